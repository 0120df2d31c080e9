"""Small files and folders that encoders without a transformer open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from stand_ins import WORDS, write_json

from gemel.checkpoint.infersent import save_infersent_folder, tensor_shapes

MODULE = "sentence_transformers.models."


def table(n_rows: int, dim: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n_rows, dim)).astype(np.float32)


def write_glove(file: Path, words: list[str] | None = None, dim: int = 8, header: bool = False) -> np.ndarray:
    """A GloVe text file of these words; with a header it is word2vec's. The vectors are returned."""
    words = WORDS if words is None else words
    vectors = table(len(words), dim).round(4)
    lines = [
        " ".join([word, *map(str, vector)]) for word, vector in zip(words, vectors.tolist(), strict=True)
    ]
    first = [f"{len(words)} {dim}"] if header else []
    file.write_text("\n".join([*first, *lines]) + "\n", encoding="utf-8")
    return vectors


def word_level(words: list[str]) -> Any:
    """A tokenizer of whole words that gemel has no native stand-in for."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({word: row for row, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer


def word_pieces(words: list[str]) -> Any:
    """BERT's tokenizer with these words and pieces."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.WordPiece({word: row for row, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def write_model2vec(
    folder: Path, *, quantised: bool = False, normalises: bool = True, **changes: Any
) -> Path:
    """model2vec's layout; quantised, tokens share rows and are weighed."""
    words = ["[UNK]", *WORDS, "##s"]
    n_rows = 7 if quantised else len(words)
    tensors = {"embeddings": table(n_rows)}
    if quantised:
        tensors["mapping"] = np.arange(len(words)) % n_rows
        tensors["weights"] = np.linspace(0.5, 2, len(words))
    tensors.update(changes)
    write_json(folder / "config.json", {"model_type": "model2vec", "normalize": normalises})
    save_file(tensors, folder / "model.safetensors")
    word_pieces(words).save(str(folder / "tokenizer.json"))
    return folder


def write_static_embedding(
    folder: Path, *, normalises: bool = False, settings: dict[str, Any] | None = None
) -> Path:
    """Sentence-Transformers' layout: unknown words have a row that counts."""
    words = ["<unk>", *WORDS]
    kinds = ["StaticEmbedding", *(["Normalize"] if normalises else [])]
    modules = [
        {"idx": index, "name": str(index), "path": f"{index}_{kind}", "type": MODULE + kind}
        for index, kind in enumerate(kinds)
    ]
    write_json(folder / "modules.json", modules)
    write_json(folder / "config_sentence_transformers.json", settings or {"prompts": {}})
    part = folder / "0_StaticEmbedding"
    part.mkdir()
    save_file({"embedding.weight": table(len(words), seed=3)}, part / "model.safetensors")
    word_level(words).save(str(part / "tokenizer.json"))
    return folder


KNOWN = ["the", "man", "dog", "plays"]


def write_infersent(folder: Path, words: list[str] = KNOWN, hidden_size: int = 6, seed: int = 0) -> Path:
    """A folder with seeded random weights over word vectors of 5 numbers."""
    generator = np.random.default_rng(seed)
    shapes = tensor_shapes(len(words), 5, hidden_size)
    tensors = {name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    save_infersent_folder(folder, tensors, words, lowercase=True)
    return folder
