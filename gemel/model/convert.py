"""A safe copy of a model folder whose weights are a pickle."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.numpy import save_file

from gemel.checkpoint.saving import whole_folder
from gemel.checkpoint.weights import SINGLE_FILE
from gemel.errors import InvalidModel, ModelNotFound

PICKLE = "pytorch_model.bin"
PICKLE_INDEX = "pytorch_model.bin.index.json"
SAFE_SUFFIXES = (".json", ".txt", ".model", ".md", ".safetensors")


def convert(source: str | Path, target: str | Path, *, overwrite: bool = False) -> list[str]:
    """Copy a model folder with its pickles as safetensors; the names of the files that were converted."""
    source = Path(source)
    if not source.is_dir():
        raise ModelNotFound(f"there is no model folder {str(source)!r}")
    pickles = sorted({*source.rglob(PICKLE), *(file.parent / PICKLE for file in source.rglob(PICKLE_INDEX))})
    needs_tokenizer = (source / "config.json").is_file() and not (source / "tokenizer.json").is_file()
    if not pickles and not needs_tokenizer:
        raise InvalidModel(f"{source} has no {PICKLE}: there is nothing to convert")
    with whole_folder(Path(target), overwrite) as folder:
        _copy_safe_files(source, folder)
        for pickle in pickles:
            place = folder / pickle.parent.relative_to(source)
            place.mkdir(parents=True, exist_ok=True)
            save_file(_tensors(pickle.parent), place / SINGLE_FILE, metadata={"format": "pt"})
        if needs_tokenizer:
            _save_tokenizer(source, folder)
    return [str(pickle.relative_to(source)) for pickle in pickles]


def _copy_safe_files(source: Path, folder: Path) -> None:
    for file in source.rglob("*"):
        if file.is_file() and file.suffix in SAFE_SUFFIXES and file.name != PICKLE_INDEX:
            place = folder / file.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)


def _tensors(folder: Path) -> dict[str, npt.NDArray[Any]]:
    files = [folder / PICKLE]
    if (folder / PICKLE_INDEX).is_file():
        index = json.loads((folder / PICKLE_INDEX).read_text(encoding="utf-8"))
        files = [folder / Path(name).name for name in sorted(set(index["weight_map"].values()))]
    tensors: dict[str, npt.NDArray[Any]] = {}
    for file in files:
        tensors.update(_read_pickle(file))
    return tensors


def _read_pickle(file: Path) -> dict[str, npt.NDArray[Any]]:
    """The tensors of a pickle, through a reader that knows tensors only and runs nothing."""
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        raise InvalidModel(
            f"{file} holds more than weights, or is damaged ({reason}); it is not opened"
        ) from None
    if not isinstance(state, Mapping):
        raise InvalidModel(f"{file} holds a {type(state).__name__}, and a table of tensors was expected")
    # bfloat16 has no numpy type; float32 holds it exactly.
    return {
        name: np.ascontiguousarray((value.float() if value.dtype == torch.bfloat16 else value).numpy())
        for name, value in state.items()
        if isinstance(value, torch.Tensor)
    }


def _save_tokenizer(source: Path, folder: Path) -> None:
    from transformers import AutoTokenizer

    AutoTokenizer.from_pretrained(source, local_files_only=True, trust_remote_code=False).save_pretrained(
        folder
    )
