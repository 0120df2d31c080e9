"""Devices, batches and downloads by the names that they have in `sentence_transformers.util`."""

from __future__ import annotations

import shutil
import urllib.request
from pathlib import Path
from typing import Any

from gemel.adapters.sentence_transformers.tensors import has_torch, is_tensor
from gemel.errors import InvalidInput

TIMEOUT_SECONDS = 60


def get_device_name() -> str:
    """The best device of this machine that torch knows of; "cpu" without torch."""
    if not has_torch():
        return "cpu"
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def batch_to_device(batch: dict[str, Any], target_device: Any) -> dict[str, Any]:
    """The batch with its tensors on a device."""
    for name, value in batch.items():
        if is_tensor(value):
            batch[name] = value.to(target_device)
    return batch


def http_get(url: str, path: str | Path) -> None:
    """Download a file, which is there only once it is whole."""
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(
            f"the address {url!r} was given; expected one that begins with http:// or https://"
        )
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}_part")
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response, part.open("wb") as file:
            shutil.copyfileobj(response, file)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
