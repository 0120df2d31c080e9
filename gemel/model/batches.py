"""Length-sorted, token-budget batches: little padding, bounded memory (section 7, smart batching)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gemel.tokens import Ids

TOKENS_AT_ONCE = 4_096  # padded tokens in one forward pass; see docs/log.md for the measurement


def length_sorted_batches(
    lengths: Sequence[int], tokens_at_once: int = TOKENS_AT_ONCE
) -> Iterator[npt.NDArray[np.int64]]:
    """Rows of similar length, the longest first, so that memory can only fail at the start."""
    order = np.argsort(-np.asarray(lengths, np.int64), kind="stable")
    start = 0
    while start < len(order):
        longest = max(1, lengths[order[start]])
        n_rows = max(1, tokens_at_once // longest)
        yield order[start : start + n_rows]
        start += n_rows


def padded(sequences: Sequence[Ids], fill: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Sequences as one int64 matrix (batch, tokens), filled up at the end, and the mask of real tokens."""
    lengths = np.array([len(sequence) for sequence in sequences])
    matrix = np.full((len(sequences), int(lengths.max())), fill, np.int64)
    for row, sequence in enumerate(sequences):
        matrix[row, : len(sequence)] = sequence
    mask = (np.arange(matrix.shape[1]) < lengths[:, None]).astype(np.int64)
    return torch.from_numpy(matrix).to(device), torch.from_numpy(mask).to(device)
