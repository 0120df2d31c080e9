"""Whatever is handed to the native side, it answers with an error or a result, never with a crash."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine.native import INSTRUCTION_SETS, native
from hypothesis import given, settings
from hypothesis import strategies as st

from gemel import _native

SETTINGS: dict[str, Any] = {
    "hidden": 32,
    "n_heads": 2,
    "head_dim": 16,
    "n_positions": 40,
    "first_position": 0,
    "activation": "gelu",
    "epsilon": 1e-12,
    "is_int8": True,
    "tokens_at_once": 0,
    "n_down_groups": 1,
}
LAYER = {
    "query_key_value.weight": (96, 32),
    "query_key_value.bias": (96,),
    "attention_output.weight": (32, 32),
    "attention_output.bias": (32,),
    "up.weight": (48, 32),
    "up.bias": (48,),
    "down.weight": (32, 48),
    "down.bias": (32,),
    "after_attention.gain": (32,),
    "after_attention.shift": (32,),
    "after_feed_forward.gain": (32,),
    "after_feed_forward.shift": (32,),
}


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def engine(**changes: Any) -> _native.Engine:
    made = _native.Engine({**SETTINGS, **changes}, "", 2)
    made.set_embeddings(zeros(9, 32), zeros(40, 32), zeros(2, 32), zeros(32), zeros(32))
    made.add_layer({name: zeros(*shape) for name, shape in LAYER.items()})
    return made


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden", 0),
        ("hidden", -5),
        ("hidden", 1 << 29),
        ("n_heads", 0),
        ("head_dim", 24),
        ("head_dim", 1 << 20),
        ("n_positions", 0),
        ("first_position", -1),
        ("activation", "snake"),
        ("epsilon", float("nan")),
        ("n_down_groups", 0),
        ("tokens_at_once", -1),
        ("hidden", "wide"),
        ("is_int8", None),
    ],
)
def test_settings_that_make_no_model_are_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"\w+ "):
        engine(**{name: value})


def test_a_missing_setting_is_named() -> None:
    settings = {name: value for name, value in SETTINGS.items() if name != "n_heads"}
    with pytest.raises(ValueError, match="'n_heads' is missing"):
        _native.Engine(settings, "", 1)


@pytest.mark.parametrize("threads", [0, -1, 1 << 20])
def test_a_senseless_number_of_threads_is_refused(threads: int) -> None:
    with pytest.raises(ValueError, match="n_threads"):
        _native.Engine(SETTINGS, "", threads)


def test_an_instruction_set_that_does_not_run_here_is_refused() -> None:
    with pytest.raises(ValueError, match=r"does not run here; choose from portable"):
        _native.Engine(SETTINGS, "mmx", 1)


@settings(max_examples=60)
@given(name=st.sampled_from(sorted(LAYER)), shape=st.lists(st.integers(0, 100), min_size=0, max_size=3))
def test_tensors_of_other_shapes_are_refused(name: str, shape: list[int]) -> None:
    if tuple(shape) == LAYER[name]:
        return
    tensors = {each: zeros(*expected) for each, expected in LAYER.items()}
    made = _native.Engine(SETTINGS, "", 1)
    with pytest.raises((ValueError, TypeError)):
        made.add_layer({**tensors, name: zeros(*shape)})


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.float16])
def test_tensors_of_other_types_are_refused(dtype: type) -> None:
    tensors = {name: zeros(*shape) for name, shape in LAYER.items()}
    with pytest.raises((ValueError, TypeError)):
        _native.Engine(SETTINGS, "", 1).add_layer({**tensors, "up.weight": np.zeros((48, 32), dtype)})


@settings(max_examples=200)
@given(
    ids=st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(0, 8), max_size=60),
    starts=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 60), max_size=12),
    types=st.none() | st.lists(st.integers(-3, 5), max_size=60),
    skipped=st.lists(st.integers(-5, 70), min_size=2, max_size=4),
    width=st.integers(0, 80),
    result=st.sampled_from(["finished", "pooled", "tokens", "else"]),
)
def test_any_ids_and_lengths_give_an_answer_or_an_error(
    ids: list[int],
    starts: list[int],
    types: list[int] | None,
    skipped: list[int],
    width: int,
    result: str,
) -> None:
    n_rows = len(ids) if result == "tokens" else max(len(starts) - 1, 0)
    out = zeros(n_rows, width)
    kinds = None if types is None else np.array(types, np.int32)
    try:
        engine().encode(
            np.array(ids, np.int32), np.array(starts, np.int64), kinds, ["mean", "max"], skipped, result, out
        )
    except ValueError:
        return
    assert np.isfinite(out).all()


def test_an_engine_without_weights_says_so() -> None:
    bare = _native.Engine(SETTINGS, "", 1)
    with pytest.raises(ValueError, match="no weights yet"):
        bare.encode(
            np.zeros(1, np.int32), np.array([0, 1]), None, ["mean"], [0, 0, 0], "pooled", zeros(1, 32)
        )


def test_numbers_that_are_none_do_not_crash(tiny_bert: Path) -> None:
    norms = [name for name in LAYER if name.endswith((".gain", ".shift"))]
    for value, named in ((np.nan, norms), (np.inf, norms), (1e38, LAYER)):
        made = engine()
        made.add_layer(
            {name: np.full(shape, value if name in named else 1, np.float32) for name, shape in LAYER.items()}
        )
        out = zeros(1, 32)
        made.encode(np.zeros(5, np.int32), np.array([0, 5]), None, ["mean"], [0, 0, 0], "pooled", out)
    assert native(tiny_bert).encode(["the man"]).shape == (1, 32)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", [name for name in LAYER if name.endswith((".weight", ".bias"))])
def test_a_matrix_takes_only_numbers_that_are_some(name: str, value: float) -> None:
    tensors = {each: np.ones(shape, np.float32) for each, shape in LAYER.items()}
    tensors[name].reshape(-1)[-1] = value
    with pytest.raises(ValueError, match="holds numbers that are not finite"):
        engine().add_layer(tensors)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_signal_stops_a_long_call_between_micro_batches(
    tiny_model: Callable[[str], Path], threads: int
) -> None:
    class Interrupted(Exception):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    encoder = native(tiny_model("bert"), "float32", INSTRUCTION_SETS[0], threads)
    n_texts, n_tokens = 500_000, 8
    ids = np.full(n_texts * n_tokens, 5, np.int32)
    starts = np.arange(n_texts + 1, dtype=np.int64) * n_tokens
    out = np.full((n_texts, encoder.dim), np.nan, np.float32)
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(Interrupted):
            encoder._engine.encode(ids, starts, None, ["mean"], [0, 0, 0], "finished", out)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    done = ~np.isnan(out[:, 0])
    assert done.any()
    assert not done.all()
