"""Pooling against numbers worked out by hand."""

from __future__ import annotations

import pytest
import torch

from gemel.checkpoint import POOLING_MODES
from gemel.model.pooling import pool, pooling_mask

# Two texts of 2 and 3 tokens, 2 dimensions; 9 stands where padding is.
TOKENS = torch.tensor([[[1.0, -2.0], [3.0, -4.0], [9.0, 9.0]], [[1.0, 1.0], [2.0, 0.0], [6.0, 5.0]]])
MASK = torch.tensor([[1, 1, 0], [1, 1, 1]])
BY_HAND = {
    "cls": [[1.0, -2.0], [1.0, 1.0]],
    "max": [[3.0, -2.0], [6.0, 5.0]],
    "mean": [[2.0, -3.0], [3.0, 2.0]],
    "mean_sqrt_len": [[4.0 / 2**0.5, -6.0 / 2**0.5], [9.0 / 3**0.5, 6.0 / 3**0.5]],
    "weightedmean": [[7.0 / 3, -10.0 / 3], [23.0 / 6, 16.0 / 6]],
    "lasttoken": [[3.0, -4.0], [6.0, 5.0]],
}


@pytest.mark.parametrize("mode", POOLING_MODES)
def test_each_mode_gives_the_numbers_worked_out_by_hand(mode: str) -> None:
    torch.testing.assert_close(pool(TOKENS, MASK, (mode,)), torch.tensor(BY_HAND[mode]))


def test_several_modes_are_concatenated_in_order() -> None:
    pooled = pool(TOKENS, MASK, ("max", "cls"))
    torch.testing.assert_close(pooled[:, :2], torch.tensor(BY_HAND["max"]))
    torch.testing.assert_close(pooled[:, 2:], torch.tensor(BY_HAND["cls"]))


def test_padding_never_moves_a_vector() -> None:
    longer = torch.cat([TOKENS, torch.full((2, 4, 2), 99.0)], dim=1)
    mask = torch.cat([MASK, torch.zeros(2, 4, dtype=MASK.dtype)], dim=1)
    torch.testing.assert_close(pool(longer, mask, POOLING_MODES), pool(TOKENS, MASK, POOLING_MODES))


def test_skipped_tokens_are_left_out_of_the_mask() -> None:
    attention = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]])
    assert pooling_mask(attention, 1, 1).tolist() == [[0, 1, 1, 0, 0], [0, 1, 0, 0, 0]]
    assert pooling_mask(attention, 2, 0).tolist() == [[0, 0, 1, 1, 0], [0, 0, 1, 0, 0]]


def test_a_text_with_nothing_left_counts_whole() -> None:
    attention = torch.tensor([[1, 1, 0], [1, 1, 1]])
    assert pooling_mask(attention, 1, 1).tolist() == [[1, 1, 0], [0, 1, 0]]
