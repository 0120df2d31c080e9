"""Which threshold suits a corpus: what its nearest neighbours have in common that random pairs do not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors
from gemel.errors import InvalidInput
from gemel.similarity import pairwise, top_k

Scores = npt.NDArray[np.float32]

N_SAMPLED = 2_000
_PAIRS_PER_ROW = 50  # random pairs for each sampled row: cheap, and their upper end must be known well
_LINKS_PER_ROW = 32  # so that a heap of copies does not decide for the rest
_LEAST_ROWS = 3
_DIGITS = 3
_BIN = 0.02
_SHARE_ABOVE_A_GAP = 0.002  # of random pairs; fewer are chance


@dataclass(frozen=True, eq=False)
class Levels:
    """How alike rows are to their nearest others, best first, and how alike random pairs are: samples."""

    nearest: Scores  # (sampled, k)
    random: Scores  # (pairs,)

    def dividing(self) -> float:
        """The cosine that as large a share of nearest neighbours misses as of random pairs reaches; where few
        large clusters stand clear of each other, the middle of the gap below them."""
        return self._gap_below(sum(_balance(self.nearest[:, 0], self.random)) / 2)

    def linking(self) -> float:
        """The cosine that a row reaches with one other on average, itself aside; or the gap, as above."""
        scores = np.sort(self.nearest.reshape(-1))[::-1]
        return self._gap_below(float(scores[min(len(self.nearest), len(scores)) - 1]))

    def _gap_below(self, highest: float) -> float:
        """The middle of a gap in the similarities of random pairs, or the highest where there is none."""
        # In large clusters, pairs drawn at random are often related. That shows only above their median: what
        # lies below it, mirrored, is what the unrelated ones would be alone.
        median = np.median(self.random)
        unrelated = self.random[self.random <= median]
        lowest, _ = _balance(self.nearest[:, 0], np.concatenate([unrelated, 2 * median - unrelated]))
        n_bins = int((highest - lowest) / _BIN)
        if n_bins < 2:
            return highest
        counts, edges = np.histogram(self.random, n_bins, (lowest, highest))
        least = int(counts.argmin())
        is_gap = counts[least] < counts[least:].max() / 2
        end = least + int(np.append(counts[least:] > counts[least], True).argmax())
        if not is_gap or (self.random >= edges[end]).mean() < _SHARE_ABOVE_A_GAP:
            return highest  # unrelated pairs grow ever fewer, and no cluster stands out
        return float(edges[least] + edges[end]) / 2


def _balance(nearest: Scores, random: Scores) -> tuple[float, float]:
    """Between which two scores as large a share of the ones is missed as of the others is reached."""
    nearest, random = np.sort(nearest), np.sort(random)
    candidates = np.union1d(nearest, random)
    missed = np.searchsorted(nearest, candidates) / len(nearest)
    reached = 1 - np.searchsorted(random, candidates) / len(random)
    place = int(np.argmin(np.abs(missed - reached)))
    return float(candidates[max(place - 1, 0)]), float(candidates[place])


def sample_levels(vectors: npt.ArrayLike, *, k: int = 1, sample: int = N_SAMPLED, seed: int = 0) -> Levels:
    """The cosines of sampled rows to their k nearest others, and of random pairs of rows."""
    rows: Vectors = np.asarray(vectors)
    if rows.ndim != 2 or len(rows) < _LEAST_ROWS:
        raise InvalidInput(
            f"vectors of shape {rows.shape} were given to find a threshold from; expected (n, dim) with n at "
            f"least {_LEAST_ROWS}: give a threshold"
        )
    if sample < 1:
        raise InvalidInput(f"sample is {sample!r}; expected at least 1: give the rows to look at")
    n_rows, generator = len(rows), np.random.default_rng(seed)
    asked = np.sort(generator.choice(n_rows, min(sample, n_rows), replace=False))
    k = min(k, n_rows - 1)
    nearest = top_k(rows[asked], rows, k + 1).scores[:, 1:]  # the best is the row itself, or a copy of it
    first, second = generator.integers(n_rows, size=(2, _PAIRS_PER_ROW * len(asked)))
    second = np.where(first == second, (second + 1) % n_rows, second)
    return Levels(nearest, _scores(rows, first, second))


def suggest_threshold(
    vectors: npt.ArrayLike, *, method: str = "star", sample: int = N_SAMPLED, seed: int = 0
) -> float:
    """A cosine to cluster these rows at, from a sample: the one that as large a share of nearest neighbours
    misses as of random pairs reaches. For `connected`, where chains would join everything at that, it is the
    one that a row reaches with one other on average. Where clusters leave a gap below that, its middle."""
    is_chain = method in ("connected", "single")
    levels = sample_levels(vectors, k=_LINKS_PER_ROW if is_chain else 1, sample=sample, seed=seed)
    return round(levels.linking() if is_chain else levels.dividing(), _DIGITS)


def _scores(rows: Vectors, first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> Scores:
    scores = np.empty(len(first), np.float32)
    for start in range(0, len(first), 4_096):
        part = slice(start, start + 4_096)
        scores[part] = pairwise(rows[first[part]], rows[second[part]])
    return scores
