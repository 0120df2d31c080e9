"""What every objective is."""

from __future__ import annotations

from typing import ClassVar

from torch import nn


class Objective(nn.Module):
    """Embeddings of each column (batch, dim) and labels (batch,) into one loss."""

    kinds: ClassVar[tuple[str, ...]]  # of examples that it eats
    min_batch: ClassVar[int] = 1
