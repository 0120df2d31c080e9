"""The picture of similarities shows what is there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gemel.errors import InvalidInput, WriteFailed
from gemel.similarity import cosine
from gemel.tasks.histogram import SimilaritySample, draw_similarities, sample_similarities

VECTORS = np.random.default_rng(0).standard_normal((300, 8)).astype(np.float32)


def test_a_row_is_compared_with_others_only() -> None:
    sample = sample_similarities(VECTORS, n_rows=300)
    scores = cosine(VECTORS, VECTORS)
    np.fill_diagonal(scores, -2)
    assert sample.nearest == pytest.approx(scores.max(axis=1), abs=1e-6)
    assert sample.random.max() < 0.9999
    assert len(sample.random) == 20_000


def test_a_row_that_its_copies_crowd_out_still_has_a_neighbour() -> None:
    sample = sample_similarities(np.ones((5, 3), np.float32))
    assert sample.nearest.tolist() == [1] * 5


def test_two_corpora_are_compared_with_each_other() -> None:
    sample = sample_similarities(VECTORS[:100], VECTORS[100:], n_rows=100)
    assert sample.nearest == pytest.approx(cosine(VECTORS[:100], VECTORS[100:]).max(axis=1), abs=1e-6)


def test_rows_that_are_not_chosen_take_no_part() -> None:
    among = np.arange(0, 300, 3)
    chosen = sample_similarities(VECTORS, n_rows=100, among=among)
    alone = sample_similarities(VECTORS[among], n_rows=100)
    assert (chosen.nearest == alone.nearest).all()
    assert (chosen.random == alone.random).all()


def test_the_same_seed_gives_the_same_sample() -> None:
    first, second = (sample_similarities(VECTORS, n_rows=20) for _ in range(2))
    assert (first.nearest == second.nearest).all()
    assert (first.random == second.random).all()


def test_the_caption_counts_who_reaches_the_threshold(tmp_path: Path) -> None:
    sample = SimilaritySample(np.linspace(0, 1, 100, dtype=np.float32), np.full(50, 0.75, np.float32))
    picture = draw_similarities(sample, threshold=0.5, name="costs in $ and $.txt")
    assert picture.caption == (
        "100.0% of the nearest neighbours and 50.00% of random pairs reach the threshold 0.5."
    )
    picture.save(tmp_path / "h.svg")
    text = (tmp_path / "h.svg").read_text()
    assert "nearest neighbours" in text
    assert "Similarities in costs in $ and $.txt" in text


@pytest.mark.parametrize(
    ("threshold", "told"), [(0.75124, "0.751"), (0.99946, "0.99946"), (0.9999996, "0.9999996"), (1.0, "1")]
)
def test_a_threshold_just_below_one_is_not_told_as_one(threshold: float, told: str) -> None:
    ones = np.ones(5, np.float32)
    picture = draw_similarities(SimilaritySample(ones, ones), threshold=threshold)
    assert picture.caption.endswith(f"reach the threshold {told}.")


def test_equal_similarities_can_be_drawn() -> None:
    ones = np.ones(5, np.float32)
    assert draw_similarities(SimilaritySample(ones, ones)).png.startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    picture = draw_similarities(sample_similarities(VECTORS, n_rows=5))
    with pytest.raises(InvalidInput, match=r"ends in \.png or \.svg"):
        picture.save(tmp_path / "h.pdf")
    (tmp_path / "h.png").mkdir()
    with pytest.raises(WriteFailed, match="cannot write the picture"):
        picture.save(tmp_path / "h.png")


def test_one_row_has_nothing_to_be_compared_with() -> None:
    with pytest.raises(InvalidInput, match="expected some to compare"):
        sample_similarities(VECTORS[:1])
