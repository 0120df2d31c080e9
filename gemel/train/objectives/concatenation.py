"""How two vectors become one, for a classifier or a regressor on top of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gemel.errors import InvalidInput

# How two vectors are joined for a classifier; |u-v| is what makes the paper's softmax work (Table 6).
CONCATENATIONS = ("u", "v", "|u-v|", "u*v")
PAPER_CONCATENATION = ("u", "v", "|u-v|")


def concatenate(u: Tensor, v: Tensor, parts: Sequence[str]) -> Tensor:
    """(batch, dim) each into (batch, dim x parts)."""
    made = {"u": lambda: u, "v": lambda: v, "|u-v|": lambda: (u - v).abs(), "u*v": lambda: u * v}
    return torch.cat([made[part]() for part in parts], dim=-1)


def checked_concatenation(parts: Sequence[str]) -> tuple[str, ...]:
    """The parts, or a sentence that lists the known ones."""
    unknown = [part for part in parts if part not in CONCATENATIONS]
    if unknown or not parts:
        raise InvalidInput(
            f"the concatenation {list(parts)!r} is unknown; join any of {', '.join(CONCATENATIONS)}"
        )
    return tuple(parts)
