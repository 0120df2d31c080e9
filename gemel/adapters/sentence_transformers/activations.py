"""What makes scores of a cross-encoder's raw ones: functions as there, and the names they are saved by."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.adapters.sentence_transformers.tensors import array, has_torch, tensor
from gemel.checkpoint.dialects import TORCH_ACTIVATIONS, activation_name
from gemel.errors import InvalidInput

Activation = Callable[[Any], Any]
Scores = npt.NDArray[np.float32]


def activation_named(name: str) -> Any:
    """torch's layer of that name, or the name itself where torch is not installed."""
    if not has_torch():
        return name
    from torch import nn

    return getattr(nn, TORCH_ACTIVATIONS[name].rsplit(".", 1)[-1])()


def name_of(activation: Any) -> str | None:
    """The name that a folder has for a function, if it has one: those of torch's layers without arguments."""
    if isinstance(activation, str):
        return activation if activation in TORCH_ACTIVATIONS else None
    kind = type(activation)
    name = activation_name(kind.__name__)
    if not kind.__module__.startswith("torch.nn.modules.") or name not in TORCH_ACTIVATIONS:
        return None
    return name if repr(activation) == repr(kind()) else None


def saved_name(activation: Any) -> str:
    """The same, or a sentence for a function that no folder can name."""
    name = name_of(activation)
    if name is None:
        raise InvalidInput(
            f"activation_fn is {activation!r}, which cannot be written into a folder; set it to "
            "torch.nn.Identity() or torch.nn.Sigmoid() before saving, and give yours when opening"
        )
    return name


def activated(raw: Scores, activation: Activation) -> Scores:
    """What a function makes of raw scores, which it is given as rows (n, labels), as there."""
    columns = raw[:, None] if raw.ndim == 1 else raw
    # Who has a function of tensors has imported torch.
    given = tensor(columns, "an activation of tensors") if "torch" in sys.modules else columns
    scores = array(activation(given)).astype(np.float32)
    return scores[:, 0] if raw.ndim == 1 and scores.ndim > 1 else scores
