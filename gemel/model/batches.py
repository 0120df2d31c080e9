"""Length-sorted, token-budget batches: little padding, bounded memory (section 7, smart batching)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gemel.tokens import Ids

CPU_TOKENS, GPU_TOKENS = 2_048, 32_768  # in one forward pass; docs/log.md has the measurement


def length_sorted_batches(lengths: Sequence[int], device: torch.device) -> Iterator[npt.NDArray[np.int64]]:
    """Rows of similar length, the longest first, so that memory can only fail at the start."""
    tokens_at_once = CPU_TOKENS if device.type == "cpu" else GPU_TOKENS
    order = np.argsort(-np.asarray(lengths, np.int64), kind="stable")
    start = 0
    while start < len(order):
        longest = max(1, lengths[order[start]])
        n_rows = max(1, tokens_at_once // longest)
        yield order[start : start + n_rows]
        start += n_rows


@dataclass(frozen=True)
class PaddedBatch:
    """Sequences as one matrix, for architectures that cannot be packed."""

    input_ids: Tensor  # (sequences, tokens)
    attention_mask: Tensor  # (sequences, tokens)
    restore: None = None

    def blocks(self, model: torch.nn.Module) -> Iterator[tuple[Tensor, Tensor]]:
        """The model's token embeddings (sequences, tokens, dim) and their mask."""
        output = model(input_ids=self.input_ids, attention_mask=self.attention_mask)
        yield output.last_hidden_state, self.attention_mask

    def hidden_blocks(self, model: torch.nn.Module, layer: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """What the tokens are after so many layers and after all, and their mask."""
        output = model(
            input_ids=self.input_ids, attention_mask=self.attention_mask, output_hidden_states=True
        )
        yield output.hidden_states[layer], output.last_hidden_state, self.attention_mask

    def blocks_of_ids(self) -> Iterator[Tensor]:
        """The token ids (sequences, tokens)."""
        yield self.input_ids


def padded(sequences: Sequence[Ids], fill: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Sequences as one int64 matrix (batch, tokens), filled up at the end, and the mask of real tokens."""
    lengths = np.array([len(sequence) for sequence in sequences])
    matrix = np.full((len(sequences), int(lengths.max())), fill, np.int64)
    for row, sequence in enumerate(sequences):
        matrix[row, : len(sequence)] = sequence
    mask = (np.arange(matrix.shape[1]) < lengths[:, None]).astype(np.int64)
    return torch.from_numpy(matrix).to(device), torch.from_numpy(mask).to(device)
