"""Copies of rows: found all of them, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from gemel.tasks import distinct as module
from gemel.tasks.distinct import distinct, has_length, originals


def test_copies_are_of_one_kind() -> None:
    rows = np.array([[1, 2], [3, 4], [1, 2], [1, 2], [5, 6], [3, 4], [1, 2], [1, 2]], np.float32)
    found = distinct(rows)
    assert found.firsts.tolist() == [0, 1, 4]
    assert found.kinds.tolist() == [0, 1, 0, 0, 2, 1, 0, 0]
    assert found.counts.tolist() == [5, 2, 1]
    assert found.of(rows).tolist() == [[1, 2], [3, 4], [5, 6]]
    assert found.rows_of(np.array([1, 2])).tolist() == [1, 4, 5]


def test_a_few_copies_are_not_worth_it() -> None:
    rows = np.arange(20, dtype=np.float32)[:, None] // 2
    assert distinct(rows).of(rows) is rows


def test_the_first_of_even_a_few_copies_is_their_original() -> None:
    rows = np.array([[1, 2], [3, 4], [1, 2], [5, 6], [3, 4]], np.float32)
    assert originals(rows).tolist() == [0, 1, 0, 3, 1]


def test_rows_of_one_hash_that_differ_are_no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_hashes", lambda rows: np.zeros(len(rows), np.uint64))
    rows = np.array([[1, 0]] * 6 + [[0, 1]] * 2, np.float32)
    found = distinct(rows)
    assert found.kinds.tolist() == [0, 0, 0, 0, 0, 0, 1, 2]


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).integers(3, size=(300, 3)).astype(np.float32)
    whole = distinct(rows)
    assert len(whole.firsts) == len(np.unique(rows, axis=0))
    monkeypatch.setattr(module, "_BLOCK_ROWS", 7)
    assert distinct(rows).kinds.tolist() == whole.kinds.tolist()
    assert has_length(rows).tolist() == rows.any(axis=1).tolist()
