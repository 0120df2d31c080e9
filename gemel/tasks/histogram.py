"""How similar the texts of a corpus are, as a picture: nearest neighbours beside random pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gemel.contracts import Hits, Vectors
from gemel.drawing import BLUE, GREY, ORANGE, Picture, finished, new_figure, quiet_style
from gemel.errors import InvalidInput
from gemel.similarity import PackedRows, pairwise, top_k

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Scores = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]

N_RANDOM_PAIRS = 20_000
N_SAMPLED_ROWS = 2_000
_N_BINS = 80


@dataclass(frozen=True, eq=False)
class SimilaritySample:
    """Similarities of random pairs, and of sampled rows to the rows that are most similar to them."""

    random: Scores
    nearest: Scores
    measure: str = "cosine"


def sample_similarities(
    vectors: Vectors,
    others: Vectors | None = None,
    *,
    measure: str = "cosine",
    n_pairs: int = N_RANDOM_PAIRS,
    n_rows: int = N_SAMPLED_ROWS,
    seed: int = 0,
    among: Rows | None = None,
) -> SimilaritySample:
    """A sample of one corpus, or of its rows with those of another; a row is never its own neighbour. With
    `among`, row numbers in ascending order, one corpus is taken to have these rows only."""
    assert among is None or others is None, "a choice among the rows of one corpus"
    right = vectors if others is None else others
    n_left = len(vectors) if among is None else len(among)
    n_right = n_left if others is None else len(others)
    if not n_right or n_left < (2 if others is None else 1):
        raise InvalidInput(f"{n_left:,} and {n_right:,} rows were given; expected some to compare")
    random = np.random.default_rng(seed)
    first = random.integers(0, n_left, n_pairs)
    second = random.integers(0, n_right - (others is None), n_pairs)
    if others is None:
        second += second >= first  # any row but the first
    rows = np.sort(random.permutation(n_left)[:n_rows])
    if among is None:
        hits = top_k(vectors[rows], right, min(2, n_right) if others is None else 1, measure)
    else:
        first, second, rows = among[first], among[second], among[rows]
        hits = search_among(vectors, rows, 2, among, measure)
    is_other = hits.ids != rows[:, None] if others is None else np.ones_like(hits.ids, np.bool_)
    nearest = np.where(is_other, hits.scores, -np.inf).max(axis=1)
    return SimilaritySample(_pairwise(vectors, right, first, second, measure), nearest, measure)


def search_among(vectors: Vectors, rows: Rows, k: int, among: Rows, measure: str = "cosine") -> Hits:
    """The k rows most similar to each of these that are `among` the chosen ones, which are not copied."""
    is_chosen = np.zeros(len(vectors), np.bool_)
    is_chosen[among] = True
    return PackedRows(vectors, measure).search(vectors[rows], k, allowed=is_chosen)


def draw_similarities(
    sample: SimilaritySample, *, threshold: float | None = None, name: str = "the corpus"
) -> Picture:
    """Both histograms on one axis, and the threshold among them."""
    with quiet_style():
        figure = new_figure(7.2, 3.8)
        axes = figure.add_subplot()
        axes.set_title(f"Similarities in {name}".replace("$", r"\$"), pad=24)  # $ would begin a formula
        caption = draw_bars(axes, sample, threshold)
        axes.set_xlabel(f"{sample.measure}\n{caption}")
        return finished(f"Similarities in {name}", caption, figure)


def draw_bars(axes: Axes, sample: SimilaritySample, threshold: float | None) -> str:
    """Draw both histograms and the threshold; what is to be seen there, in a sentence."""
    both = np.concatenate([sample.random, sample.nearest])
    low, high = float(both.min()), float(both.max())
    bins = np.linspace(low, high if high > low else low + 1, _N_BINS + 1)
    for scores, colour, label in (
        (sample.random, GREY, "random pairs"),
        (sample.nearest, BLUE, "nearest neighbours"),
    ):
        weights = np.full(len(scores), 100 / len(scores))
        axes.hist(scores, bins.tolist(), weights=weights, color=colour, alpha=0.6, label=label)
    axes.set(xlabel=sample.measure, ylabel="share of pairs, %")
    axes.grid(axis="x", visible=False)
    axes.margins(x=0.01)
    caption = "Similarities of random pairs and of nearest neighbours."
    if threshold is not None:
        near, far = ((scores >= threshold).mean() for scores in (sample.nearest, sample.random))
        caption = (
            f"{near:.1%} of the nearest neighbours and {far:.2%} of random pairs reach the threshold "
            f"{_told(threshold)}."
        )
        axes.axvline(threshold, color=ORANGE, linewidth=1.6, label=f"threshold {_told(threshold)}")
    # Above the axes, where no bar and no line can run through it.
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(-0.01, 0.98), ncols=3, borderpad=0)
    return caption


def _told(threshold: float) -> str:
    """Three digits, or more where they would say 1 of what is just below it."""
    return f"{threshold:.3g}" if threshold < 0.999 else f"{threshold:.7g}"


def _pairwise(
    left: Vectors,
    right: Vectors,
    first: npt.NDArray[np.int64],
    second: npt.NDArray[np.int64],
    measure: str,
) -> Scores:
    scores = [
        pairwise(left[first[start : start + 1_024]], right[second[start : start + 1_024]], measure)
        for start in range(0, len(first), 1_024)
    ]
    return np.concatenate(scores)
