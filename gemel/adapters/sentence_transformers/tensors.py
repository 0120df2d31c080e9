"""Tensors where torch is installed, arrays where it is not."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.errors import InvalidInput, MissingExtra

Floats = npt.NDArray[np.float32]


def has_torch() -> bool:
    """Whether torch is installed; asked without importing it."""
    if "torch" in sys.modules:
        return sys.modules["torch"] is not None
    return find_spec("torch") is not None


def is_tensor(value: Any) -> bool:
    """Whether a value is a torch tensor; without torch there are none."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def tensor(array: npt.NDArray[Any], purpose: str) -> Any:
    """The array as a tensor on the same memory; without torch, a sentence that says what needs it."""
    if not has_torch():
        raise MissingExtra(purpose, "train")
    import torch

    return torch.from_numpy(array)


def tensor_or_array(array: npt.NDArray[Any]) -> Any:
    """The array as a tensor where torch is installed, and as it is elsewhere."""
    return tensor(array, "") if has_torch() else array


def array(value: Any) -> npt.NDArray[Any]:
    """Any kind of numbers as an array: tensors, arrays, or sequences of either."""
    if is_tensor(value):
        return _array_of_tensor(value)
    if isinstance(value, Sequence) and any(is_tensor(each) for each in value):
        return np.stack([_array_of_tensor(each) for each in value])
    return np.asarray(value)


def rows(value: Any) -> Floats:
    """Any kind of numbers as rows (n, dim) of float32; one vector is one row."""
    found = array(value)
    if found.ndim == 1 and found.size:
        found = found[None]
    return np.ascontiguousarray(found, np.float32)


def _array_of_tensor(value: Any) -> npt.NDArray[Any]:
    if value.requires_grad:
        raise InvalidInput(
            "a tensor with a gradient was given, and gradients do not pass through here; detach it, or use "
            "torch's own functions in a loss"
        )
    if value.is_sparse:
        value = value.to_dense()
    if value.is_floating_point():  # numpy has no bfloat16
        value = value.float()
    found: npt.NDArray[Any] = value.cpu().numpy()
    return found
