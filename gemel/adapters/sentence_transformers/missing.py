"""Names of sentence-transformers that have no place here, and what to do instead."""

from __future__ import annotations

TRAINING = "train with `gemel train`, which docs/training.md tells of"
MEASURING = "measure with `gemel evaluate`"
ONE_VECTOR = "gemel gives one dense vector for a text"
COMPILED = "the engine is compiled already, and computes in int8"
SEARCH = "use util.semantic_search, which is exact, or a collection of gemel"

OF_MODULES = {
    "DefaultBatchSampler": TRAINING,
    "InputExample": TRAINING,
    "MultiDatasetDefaultBatchSampler": TRAINING,
    "ParallelSentencesDataset": TRAINING,
    "SentencesDataset": TRAINING,
    "CrossEncoderModelCardData": TRAINING,
    "CrossEncoderTrainer": TRAINING,
    "CrossEncoderTrainingArguments": TRAINING,
    "SentenceTransformerModelCardData": TRAINING,
    "SentenceTransformerTrainer": TRAINING,
    "SentenceTransformerTrainingArguments": TRAINING,
    "datasets": TRAINING,
    "losses": TRAINING,
    "readers": TRAINING,
    "sampler": TRAINING,
    "trainer": TRAINING,
    "training_args": TRAINING,
    "models": f"give the folder of a saved model, or {TRAINING}",
    "evaluation": MEASURING,
    "MultiVectorEncoder": ONE_VECTOR,
    "SparseEncoder": ONE_VECTOR,
    "sparse_encoder": ONE_VECTOR,
    "export_dynamic_quantized_onnx_model": COMPILED,
    "export_optimized_onnx_model": COMPILED,
    "export_static_quantized_openvino_model": COMPILED,
    "semantic_search_faiss": SEARCH,
    "semantic_search_usearch": SEARCH,
}


def refused(module: str, name: str) -> Exception:
    """The error for a name that a module has not: an import shows only an ImportError's own words."""
    if name in OF_MODULES:
        return ImportError(f"gemel's adapter has no {name}: {OF_MODULES[name]}")
    return AttributeError(f"module {module!r} has no attribute {name!r}")
