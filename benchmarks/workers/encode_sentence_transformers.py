"""Encodes with sentence-transformers as it is installed, on torch or on onnxruntime, in batches of 32."""

from __future__ import annotations

from functools import partial
from typing import Any

from protocol import BATCH_SIZE, Encode, serve

PACKAGES = [
    "sentence-transformers",
    "transformers",
    "torch",
    "optimum-onnx",
    "onnxruntime",
    "tokenizers",
    "numpy",
]


def load(settings: dict[str, Any]) -> dict[str, Encode]:
    """The model; it sorts the texts of a call by length itself."""
    from sentence_transformers import SentenceTransformer

    if settings.get("backend") == "onnx":
        options = {"file_name": settings["file"], "provider": "CPUExecutionProvider"}
        model = SentenceTransformer(settings["model"], device="cpu", backend="onnx", model_kwargs=options)
    else:
        # As stored it might be float16, which a CPU computes at a crawl.
        model = SentenceTransformer(settings["model"], device="cpu", model_kwargs={"dtype": "float32"})
    return {"as is": partial(model.encode, batch_size=BATCH_SIZE, show_progress_bar=False)}


if __name__ == "__main__":
    serve(load, PACKAGES)
