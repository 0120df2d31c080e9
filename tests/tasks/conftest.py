"""Collections with a toy encoder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from stand_ins import ToyEncoder

from gemel.index import Collection


@pytest.fixture
def collection(tmp_path: Path, toy_encoder: ToyEncoder) -> Iterator[Collection]:
    """An empty collection of a toy encoder's."""
    with Collection.create(tmp_path / "collection", toy_encoder) as made:
        yield made
