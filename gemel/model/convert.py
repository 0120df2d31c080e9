"""A safe copy of a model folder whose weights are a pickle."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.numpy import save_file

from gemel.checkpoint import fields
from gemel.checkpoint.folder import TOKENIZER_FILES
from gemel.checkpoint.saving import whole_folder
from gemel.checkpoint.weights import SHARD_INDEX, SINGLE_FILE
from gemel.errors import InvalidInput, InvalidModel, ModelNotFound

PICKLE = "pytorch_model.bin"
PICKLE_INDEX = "pytorch_model.bin.index.json"
SAFE_SUFFIXES = (".json", ".txt", ".model", ".md", ".safetensors")


def convert(source: str | Path, target: str | Path, *, overwrite: bool = False) -> list[str]:
    """Copy a model folder with its pickles as safetensors; the names of the files that were converted."""
    source, target = Path(source).expanduser().absolute(), Path(target).expanduser().absolute()
    if not source.is_dir():
        raise ModelNotFound(f"there is no model folder {str(source)!r}")
    _check_apart(source, target)
    pickles = sorted({*source.rglob(PICKLE), *(file.parent / PICKLE for file in source.rglob(PICKLE_INDEX))})
    wordless = sorted(file.parent for file in source.rglob("config.json") if _needs_tokenizer(file.parent))
    if not pickles and not wordless:
        raise InvalidModel(f"{source} has no {PICKLE}: there is nothing to convert")
    with whole_folder(target, overwrite) as folder:
        _copy_safe_files(source, folder)
        for pickle in pickles:
            place = folder / pickle.parent.relative_to(source)
            place.mkdir(parents=True, exist_ok=True)
            save_file(_tensors(pickle.parent), place / SINGLE_FILE, metadata={"format": "pt"})
        for part in wordless:
            _save_tokenizer(part, folder / part.relative_to(source))
    return [str(pickle.relative_to(source)) for pickle in pickles]


def _check_apart(source: Path, target: Path) -> None:
    """A copy inside its source would be copied too, and one around it would take its place."""
    inner, outer = target.resolve(), source.resolve()
    if inner.is_relative_to(outer) or outer.is_relative_to(inner):
        raise InvalidInput(f"{target} and {source} lie in one another: name a target outside of the source")


def _needs_tokenizer(folder: Path) -> bool:
    """Whether a transformer is here without tokenizer.json; Dense and heads have a config and weights too."""
    present = {file.name for file in folder.iterdir()}
    if "tokenizer.json" in present or present.isdisjoint((PICKLE, PICKLE_INDEX, SINGLE_FILE, SHARD_INDEX)):
        return False
    return "model_type" in fields.read_json(folder / "config.json") or not present.isdisjoint(TOKENIZER_FILES)


def _copy_safe_files(source: Path, folder: Path) -> None:
    for file in source.rglob("*"):
        if file.is_file() and file.suffix in SAFE_SUFFIXES and file.name != PICKLE_INDEX:
            place = folder / file.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)


def _tensors(folder: Path) -> dict[str, npt.NDArray[Any]]:
    files = [folder / PICKLE]
    index = folder / PICKLE_INDEX
    if index.is_file():
        names = set(fields.text_table(fields.read_json(index), "weight_map", str(index)).values())
        if not names or any(not name.isprintable() for name in names):
            raise InvalidModel(f"{index} has no weight_map, and the file of each tensor was expected")
        files = [folder / Path(name).name for name in sorted(names)]
    tensors: dict[str, npt.NDArray[Any]] = {}
    for file in files:
        tensors.update(_read_pickle(file))
    return tensors


def _read_pickle(file: Path) -> dict[str, npt.NDArray[Any]]:
    """The tensors of a pickle, through a reader that knows tensors only and runs nothing."""
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:
        raise InvalidModel(
            f"{file} holds more than weights, or is damaged ({_first_line(error)}); it is not opened"
        ) from None
    if not isinstance(state, Mapping):
        raise InvalidModel(f"{file} holds a {type(state).__name__}, and a table of tensors was expected")
    if strange := [name for name in state if not isinstance(name, str)]:
        raise InvalidModel(f"{file} names a tensor {strange[0]!r}, and a text was expected")
    arrays = {
        name: _array(value, name, file) for name, value in state.items() if isinstance(value, torch.Tensor)
    }
    if not arrays:
        raise InvalidModel(f"{file} holds no tensors, and the weights of a model were expected")
    return arrays


def _array(tensor: torch.Tensor, name: str, file: Path) -> npt.NDArray[Any]:
    """A tensor as plain numbers in a row."""
    try:
        # bfloat16 has no numpy type; float32 holds it exactly.
        plain = tensor.detach().float() if tensor.dtype == torch.bfloat16 else tensor.detach()
        array = np.asarray(plain.numpy(), order="C")
    except (TypeError, RuntimeError):  # sparse, quantised and 8-bit floating point tensors
        array = None
    if array is None or array.dtype.kind not in "fiub":
        raise InvalidModel(
            f"{file}: the tensor {name!r} is {tensor.layout} of {tensor.dtype}, and plain numbers are needed"
        )
    return array


def _save_tokenizer(source: Path, folder: Path) -> None:
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # transformers and its tokenizers raise what they like
        raise InvalidModel(
            f"{source} has no tokenizer.json, and none could be made for it ({_first_line(error)})"
        ) from None
    tokenizer.save_pretrained(folder)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
