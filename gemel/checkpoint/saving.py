"""Writing a model folder whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.checkpoint import dialects
from gemel.checkpoint.fields import read_json
from gemel.checkpoint.folder import (
    OWN_SETTINGS,
    TOKENIZER_FILES,
    UNFINISHED,
    ModelFolder,
    RerankerFolder,
    read_licence,
)
from gemel.checkpoint.head import Head, write_head
from gemel.checkpoint.spec import Dense, EncoderSpec
from gemel.checkpoint.tokenizer_settings import explicit_settings
from gemel.checkpoint.weights import SINGLE_FILE
from gemel.errors import GemelError, InvalidInput, WriteFailed
from gemel.version import VERSION

Tensors = Mapping[str, npt.NDArray[Any]]
# Copied as they are: gemel never rewrites a vocabulary.
TOKENIZER_FILE_NAMES = (
    "tokenizer.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "sentencepiece.bpe.model",
    "spiece.model",
)
# What gemel may replace: a model or a classifier, and what has one of the common names and weights beside it.
OWN_MARKS = ("modules.json", "classifier.json")
COMMON_MARKS = ("config.json", "state.json")
WEIGHT_SUFFIXES = (".safetensors", ".bin")


def save_encoder_folder(
    target: str | Path,
    model: ModelFolder,
    weights: Tensors,
    dense_weights: Sequence[Tensors] = (),
    *,
    head: Head | None = None,
    overwrite: bool = False,
) -> None:
    """Write an encoder in the older Sentence-Transformers dialect, which every reader knows."""
    spec = model.spec
    with whole_folder(Path(target), overwrite) as folder:
        _write_transformer(folder, model, weights)
        write_json(folder / "modules.json", dialects.format_modules(spec.tail))
        write_json(
            folder / "sentence_bert_config.json",
            {"max_seq_length": spec.max_tokens, "do_lower_case": spec.lowercase},
        )
        write_json(
            folder / "config_sentence_transformers.json", dialects.format_model_settings(spec, VERSION)
        )
        if not spec.pooling.include_special_tokens:
            write_json(folder / OWN_SETTINGS, {"include_special_tokens": False})
        write_json(
            folder / "1_Pooling" / "config.json", dialects.format_pooling(spec.pooling, spec.hidden_size)
        )
        remaining = iter(dense_weights)
        for index, layer in enumerate(spec.tail, start=2):
            if isinstance(layer, Dense):
                write_json(folder / f"{index}_Dense" / "config.json", dialects.format_dense(layer))
                write_tensors(folder / f"{index}_Dense" / SINGLE_FILE, next(remaining))
            else:
                write_json(folder / f"{index}_Normalize" / "config.json", {})
        if head is not None:
            write_head(folder, head)
        (folder / "README.md").write_text(_encoder_card(model), encoding="utf-8")


def save_reranker_folder(
    target: str | Path, model: RerankerFolder, weights: Tensors, *, overwrite: bool = False
) -> None:
    """Write a cross-encoder as a plain sequence classifier, which every reader knows."""
    activation = dialects.TORCH_ACTIVATIONS[model.activation]
    config = {**model.config, "sentence_transformers": {"activation_fn": activation}}
    with whole_folder(Path(target), overwrite) as folder:
        _write_transformer(folder, model, weights, config)
        card = _RERANKER_CARD.format(licence=_licence_line(model.path))
        (folder / "README.md").write_text(card, encoding="utf-8")


@contextmanager
def whole_folder(target: Path, overwrite: bool) -> Iterator[Path]:
    """A folder to fill, which takes the target's place only when everything in it is on disk."""
    from safetensors import SafetensorError

    folder: Path | None = None
    try:
        check_free(target, overwrite)
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".unfinished", dir=target.parent))
        (folder / UNFINISHED).touch()
        yield folder
        _open_to_others(folder)
        _flush(folder)
        (folder / UNFINISHED).unlink()
        _take_the_place_of(folder, target)
    except GemelError:  # some are OSErrors too, and say already what went wrong
        raise
    except (OSError, SafetensorError) as error:
        raise WriteFailed(f"{target} could not be written ({error}); nothing was changed") from error
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def recover(target: Path) -> None:
    """Clear up after a process that was killed while it replaced a folder that nobody else writes.

    If it was killed between taking the old one away and putting the new one there, the old one is put back.
    """
    for old in target.parent.glob(f".{target.name}.*.old"):
        if not target.exists() and (old / "model").is_dir():
            (old / "model").rename(target)
        shutil.rmtree(old, ignore_errors=True)
    for draft in target.parent.glob(f".{target.name}.*.unfinished"):
        shutil.rmtree(draft, ignore_errors=True)


def check_free(target: Path, overwrite: bool) -> None:
    """Refuse to replace what is not asked to be replaced, and what is not a model."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not overwrite:
        raise InvalidInput(
            f"{target} exists already: choose another name, or replace it with --overwrite (overwrite=True)"
        )
    if not _is_replaceable(target):
        raise InvalidInput(f"{target} is not a model folder and holds other things; name another")
    if (target / ".git").exists():
        raise InvalidInput(f"{target} is a git repository, whose history would be lost; name another")


def _is_replaceable(target: Path) -> bool:
    if any((target / mark).is_file() for mark in OWN_MARKS):
        return True
    has_weights = target.is_dir() and any(file.suffix in WEIGHT_SUFFIXES for file in target.iterdir())
    return has_weights and any((target / mark).is_file() for mark in COMMON_MARKS)


def _take_the_place_of(folder: Path, target: Path) -> None:
    if not target.exists():
        folder.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".old", dir=target.parent))
    try:
        target.rename(old / "model")
        folder.rename(target)
    except BaseException:
        if not target.exists():
            _put_back(old / "model", target)
        shutil.rmtree(old, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)  # the new folder stands: litter is no reason to call it a failure


def _put_back(kept: Path, target: Path) -> None:
    try:
        kept.rename(target)
    except OSError as error:
        raise WriteFailed(
            f"{target} could not be replaced ({error}); the old folder is kept as {kept}"
        ) from error


def _open_to_others(folder: Path) -> None:
    """Rights as the user's umask has them: mkdtemp and safetensors make private ones."""
    umask = os.umask(0)
    os.umask(umask)
    for path in [*folder.rglob("*"), folder]:
        path.chmod((0o777 if path.is_dir() else 0o666) & ~umask)


def _flush(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _write_transformer(
    folder: Path,
    model: ModelFolder | RerankerFolder,
    weights: Tensors,
    config: Mapping[str, Any] | None = None,
) -> None:
    write_tensors(folder / SINGLE_FILE, weights)
    kept = {name: value for name, value in (config or model.config).items() if name != "_name_or_path"}
    write_json(folder / "config.json", _with_dtype(kept, weights))  # without a folder of someone's machine
    limit = model.spec.max_tokens if isinstance(model, ModelFolder) else model.max_tokens
    tokenizer = read_json(model.transformer / "tokenizer.json")
    settings = explicit_settings(model.tokenizer_config, tokenizer, model.config.get("model_type"))
    write_json(folder / "tokenizer_config.json", {**settings, "model_max_length": limit})
    for name in TOKENIZER_FILE_NAMES:
        if (model.transformer / name).is_file():
            shutil.copyfile(model.transformer / name, folder / name)
    if not any((folder / name).is_file() for name in TOKENIZER_FILES):
        raise WriteFailed(
            f"{model.transformer}, where the model came from, holds no tokenizer any more: put it back and "
            "save again; nothing was changed"
        )


def _with_dtype(config: Mapping[str, Any], weights: Tensors) -> dict[str, Any]:
    """The config with the type that is written: a float16 source's would make others compute in halves."""
    if any(array.dtype.kind == "f" and array.dtype != np.float32 for array in weights.values()):
        return dict(config)
    return {**{key: value for key, value in config.items() if key != "torch_dtype"}, "dtype": "float32"}


def write_tensors(file: Path, tensors: Tensors) -> None:
    """Write a safetensors file."""
    from safetensors.numpy import save_file

    file.parent.mkdir(exist_ok=True)
    contiguous = {name: np.ascontiguousarray(tensors[name]) for name in sorted(tensors)}
    save_file(contiguous, file, metadata={"format": "pt"})  # transformers refuses files without this word


def write_json(file: Path, value: Any) -> None:
    """Write a JSON file as people read it."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def special_tokens_note(spec: EncoderSpec) -> tuple[str, ...]:
    """What a card has to say of a mean that other programs take otherwise: a sentence, or none."""
    if spec.pooling.include_special_tokens:
        return ()
    return ("The mean leaves out the special tokens: only gemel reads that setting (`gemel.json`).",)


def _licence_line(folder: Path) -> str:
    licence = read_licence(folder)
    return f"license: {licence}\n" if licence else ""


def _encoder_card(model: ModelFolder) -> str:
    spec = model.spec
    return _ENCODER_CARD.format(
        licence=_licence_line(model.path),
        dim=spec.dim,
        max_tokens=spec.max_tokens,
        pooling=" + ".join(spec.pooling.modes),
        note="".join(f"\n{note}\n" for note in special_tokens_note(spec)),
    )


_ENCODER_CARD = """\
---
{licence}library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags:
- sentence-transformers
- sentence-similarity
- feature-extraction
- text-embeddings-inference
- gemel
---
# A sentence encoder

Vectors of {dim} numbers, texts of up to {max_tokens} tokens, pooling: {pooling}.
{note}
```python
from gemel import load_encoder

vectors = load_encoder("this-folder").encode(["A sentence.", "Another one."])
```
"""

_RERANKER_CARD = """\
---
{licence}library_name: sentence-transformers
pipeline_tag: text-ranking
tags:
- sentence-transformers
- cross-encoder
- gemel
---
# A cross-encoder

```python
from gemel import load_reranker

scores = load_reranker("this-folder").score([("a question", "an answer")])
```
"""
