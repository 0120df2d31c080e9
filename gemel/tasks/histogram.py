"""How similar the texts of a corpus are, as a picture: nearest neighbours beside random pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors
from gemel.drawing import BLUE, GREY, ORANGE, Picture, finished, new_figure, quiet_style
from gemel.errors import InvalidInput
from gemel.similarity import pairwise, top_k

Scores = npt.NDArray[np.float32]

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
) -> SimilaritySample:
    """A sample of one corpus, or of its rows with those of another; a row is never its own neighbour."""
    right = vectors if others is None else others
    if not len(right) or len(vectors) < (2 if others is None else 1):
        raise InvalidInput(f"{len(vectors):,} and {len(right):,} rows were given; expected some to compare")
    random = np.random.default_rng(seed)
    first = random.integers(0, len(vectors), n_pairs)
    second = random.integers(0, len(right) - (others is None), n_pairs)
    if others is None:
        second += second >= first  # any row but the first
    rows = np.sort(random.permutation(len(vectors))[:n_rows])
    hits = top_k(vectors[rows], right, min(2, len(right)) if others is None else 1, measure)
    is_other = hits.ids != rows[:, None] if others is None else np.ones_like(hits.ids, np.bool_)
    nearest = np.where(is_other, hits.scores, -np.inf).max(axis=1)
    return SimilaritySample(_pairwise(vectors, right, first, second, measure), nearest, measure)


def draw_similarities(
    sample: SimilaritySample, *, threshold: float | None = None, name: str = "the corpus"
) -> Picture:
    """Both histograms on one axis, and the threshold among them."""
    with quiet_style():
        figure = new_figure(7.2, 3.8)
        axes = figure.add_subplot()
        both = np.concatenate([sample.random, sample.nearest])
        low, high = float(both.min()), float(both.max())
        bins = np.linspace(low, high if high > low else low + 1, _N_BINS + 1)
        for scores, colour, label in (
            (sample.random, GREY, "random pairs"),
            (sample.nearest, BLUE, "nearest neighbours"),
        ):
            weights = np.full(len(scores), 100 / len(scores))
            axes.hist(scores, bins.tolist(), weights=weights, color=colour, alpha=0.6, label=label)
        axes.set_title(f"Similarities in {name}".replace("$", r"\$"), pad=24)  # $ would begin a formula
        axes.set_ylabel("share of pairs, %")
        axes.grid(axis="x", visible=False)
        axes.margins(x=0.01)
        caption = "Similarities of random pairs and of nearest neighbours."
        if threshold is not None:
            near, far = ((scores >= threshold).mean() for scores in (sample.nearest, sample.random))
            caption = (
                f"{near:.1%} of the nearest neighbours and {far:.2%} of random pairs reach the threshold "
                f"{threshold:.3g}."
            )
            axes.axvline(threshold, color=ORANGE, linewidth=1.6, label=f"threshold {threshold:.3g}")
        axes.set_xlabel(f"{sample.measure}\n{caption}")
        # Above the axes, where no bar and no line can run through it.
        axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(-0.01, 0.98), ncols=3, borderpad=0)
        return finished(f"Similarities in {name}", caption, figure)


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
