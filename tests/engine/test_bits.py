"""A text's vector is the same, bit for bit, whatever else is encoded with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from engine.native import INSTRUCTION_SETS, PRECISIONS, native
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stand_ins import sentences

from gemel import _native

TEXTS = ["", *sentences(40, seed=11, max_words=38)]


@pytest.fixture(scope="module")
def alone(tiny_model: Callable[[str], Path]) -> Callable[[str, str], np.ndarray]:
    """Each text's vector, encoded by itself on one thread."""

    @cache
    def encode(precision: str, instruction_set: str) -> np.ndarray:
        encoder = native(tiny_model("mpnet"), precision, instruction_set)
        return np.stack([encoder.encode_one(text) for text in TEXTS])

    return encode


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
@pytest.mark.parametrize("precision", PRECISIONS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.integers(0, len(TEXTS) - 1), min_size=1, max_size=60),
    threads=st.integers(1, 4),
    tokens_at_once=st.sampled_from([1, 7, 50, 400]),
)
def test_whatever_the_batch_the_order_and_the_threads(
    tiny_model: Callable[[str], Path],
    alone: Callable[[str, str], np.ndarray],
    precision: str,
    instruction_set: str,
    rows: list[int],
    threads: int,
    tokens_at_once: int,
) -> None:
    encoder = native(tiny_model("mpnet"), precision, instruction_set, threads, tokens_at_once)
    together = encoder.encode([TEXTS[row] for row in rows])
    assert together.tobytes() == alone(precision, instruction_set)[rows].tobytes()


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
def test_the_sums_of_products_are_exact_on_every_instruction_set(instruction_set: str) -> None:
    generator = np.random.default_rng(0)
    for n_rows, depth, n_outputs in ((1, 64, 64), (5, 64, 65), (7, 384, 200), (13, 1536, 64)):
        rows = generator.choice([0, 1, 127, 128, 254, 255], (n_rows, depth)).astype(np.uint8)
        weights = generator.integers(-127, 128, (n_outputs, depth)).astype(np.float32)
        weights[:, 0] = 127  # the largest, so that quantisation changes nothing
        out = np.zeros((n_rows, -(-n_outputs // 64) * 64), np.int32)
        _native.int8_sums(instruction_set, rows, weights, out)
        expected = rows.astype(np.int64) @ weights.astype(np.int64).T
        np.testing.assert_array_equal(out[:, :n_outputs], expected)
        assert not out[:, n_outputs:].any()


def test_instruction_sets_agree(tiny_model: Callable[[str], Path]) -> None:
    from engine.native import cosines

    for precision, least in (("float32", 0.999999), ("int8", 0.9999)):
        by_set = [native(tiny_model("bert"), precision, name).encode(TEXTS[1:]) for name in INSTRUCTION_SETS]
        for vectors in by_set[1:]:
            assert cosines(vectors, by_set[0]).min() > least
