"""The folder of an InferSent encoder: a bidirectional LSTM over fixed word vectors, and the words it knows.

config.json          {"model_type": "infersent", "hidden_size": .., "word_dim": .., "lowercase": ..}
model.safetensors    words (n_words, word_dim); lstm.* under torch's names, gates in the order i, f, g, o
vocabulary.txt       a word a line, in the order of the rows of `words`
gemel_head/          the classifier that it was trained with, where there is one
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.checkpoint import fields
from gemel.checkpoint.folder import existing_folder
from gemel.checkpoint.head import Head, write_head
from gemel.checkpoint.saving import whole_folder, write_json, write_tensors
from gemel.checkpoint.weights import SINGLE_FILE, WeightFile, check_shapes, find_weights
from gemel.errors import InvalidModel

MODEL_TYPE = "infersent"
VOCABULARY = "vocabulary.txt"
WORDS = "words"
DIRECTIONS = ("", "_reverse")


@dataclass(frozen=True)
class InferSentFolder:
    """An InferSent encoder on disk, its header and its vocabulary read and checked."""

    path: Path
    weights: WeightFile
    words: tuple[str, ...]
    hidden_size: int  # of each direction: vectors are twice as long
    word_dim: int
    lowercase: bool

    def tensors(self) -> dict[str, npt.NDArray[np.float32]]:
        """All tensors as float32; the pages of the words are those of the file."""
        return {name: self.weights.view(name) for name in self.weights.entries}


def is_infersent_folder(folder: Path) -> bool:
    """Whether a folder holds an InferSent encoder, told by its JSON alone."""
    config = existing_folder(folder) / "config.json"
    return fields.read_json(config).get("model_type") == MODEL_TYPE


def read_infersent_folder(folder: str | Path) -> InferSentFolder:
    """The InferSent encoder in a folder."""
    folder = existing_folder(folder)
    file = folder / "config.json"
    config = fields.read_json(file, required_by="an InferSent encoder")
    if config.get("model_type") != MODEL_TYPE:
        raise InvalidModel(
            f"{file} has the model_type {config.get('model_type')!r}; {MODEL_TYPE!r} was expected"
        )
    hidden_size = fields.required_integer(config, "hidden_size", str(file))
    word_dim = fields.required_integer(config, "word_dim", str(file))
    words = _read_words(folder / VOCABULARY)
    files = find_weights(folder)
    if len(files) != 1:
        raise InvalidModel(f"{folder} holds its weights in {len(files)} files, and one was expected")
    weights = WeightFile.open(files[0])
    check_shapes(weights, tensor_shapes(len(words), word_dim, hidden_size))
    lowercase = fields.flag(config, "lowercase", str(file), True)
    return InferSentFolder(folder, weights, words, hidden_size, word_dim, lowercase)


def tensor_shapes(n_words: int, word_dim: int, hidden_size: int) -> dict[str, tuple[int, ...]]:
    """The tensors of an encoder of this size, by their names in the folder."""
    shapes: dict[str, tuple[int, ...]] = {WORDS: (n_words, word_dim)}
    for direction in DIRECTIONS:
        shapes[f"lstm.weight_ih_l0{direction}"] = (4 * hidden_size, word_dim)
        shapes[f"lstm.weight_hh_l0{direction}"] = (4 * hidden_size, hidden_size)
        shapes[f"lstm.bias_ih_l0{direction}"] = shapes[f"lstm.bias_hh_l0{direction}"] = (4 * hidden_size,)
    return shapes


def save_infersent_folder(
    target: str | Path,
    tensors: Mapping[str, npt.NDArray[Any]],
    words: Sequence[str],
    *,
    lowercase: bool,
    head: Head | None = None,
    overwrite: bool = False,
) -> None:
    """Write an InferSent encoder whole or not at all."""
    hidden_size = int(tensors["lstm.weight_hh_l0"].shape[1])
    word_dim = int(tensors[WORDS].shape[1])
    with whole_folder(Path(target), overwrite) as folder:
        write_json(
            folder / "config.json",
            {
                "model_type": MODEL_TYPE,
                "architectures": ["InferSent"],
                "hidden_size": hidden_size,
                "word_dim": word_dim,
                "n_words": len(words),
                "lowercase": lowercase,
            },
        )
        write_tensors(folder / SINGLE_FILE, tensors)
        (folder / VOCABULARY).write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
        if head is not None:
            write_head(folder, head)
        card = _CARD.format(dim=2 * hidden_size, n_words=len(words), word_dim=word_dim)
        (folder / "README.md").write_text(card, encoding="utf-8")


def _read_words(file: Path) -> tuple[str, ...]:
    if not file.is_file():
        raise InvalidModel(f"{file} is not there, and an InferSent encoder needs its words: get it again")
    try:
        words = tuple(file.read_text(encoding="utf-8").split("\n")[:-1])
    except UnicodeDecodeError as error:
        raise InvalidModel(f"{file} is not UTF-8 ({error}): get it again") from None
    if len(set(words)) < len(words) or "" in words:
        raise InvalidModel(f"{file} has an empty or a repeated word; a word a line was expected")
    return words


_CARD = """\
---
library_name: gemel
pipeline_tag: sentence-similarity
tags:
- sentence-similarity
- infersent
- gemel
---
# An InferSent encoder

A bidirectional LSTM with max pooling over {n_words:,} fixed word vectors of {word_dim} numbers.
Vectors of {dim} numbers, texts of any length.

```python
from gemel import load_encoder

vectors = load_encoder("this-folder").encode(["A sentence.", "Another one."])
```
"""
