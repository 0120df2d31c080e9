"""Collections with a toy encoder, and an index that is built where a real one would not be worth it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from stand_ins import ToyEncoder
from store_places import PLACES, Place

from gemel.index import Collection, dense, scan, upkeep


@pytest.fixture
def collection(tmp_path: Path, toy_encoder: ToyEncoder) -> Iterator[Collection]:
    """An empty collection of a toy encoder's."""
    with Collection.create(tmp_path / "collection", toy_encoder) as made:
        yield made


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Each of the places where a collection may be kept."""
    return Place(request.param, tmp_path)


@pytest.fixture
def small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same choices at sizes that a test can afford."""
    monkeypatch.setattr(dense, "EXACT_ROWS", 50)
    monkeypatch.setattr(dense, "PASS_COST", 1e9)
    monkeypatch.setattr(dense, "GATHER_COST", 0)
    monkeypatch.setattr(dense, "COMPARE_COST", 30)
    monkeypatch.setattr(scan, "is_sparse", lambda n_allowed, n_slots: 4 * n_allowed < n_slots)
    monkeypatch.setattr(scan, "_PART_ROWS", 64)
    monkeypatch.setattr(scan, "_SMALL_ROWS", 8)
    monkeypatch.setattr(upkeep, "UNINDEXED_ROWS", 100)
