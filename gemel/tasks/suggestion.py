"""Which threshold suits a corpus: what its nearest neighbours have in common that random pairs do not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gemel.errors import InvalidInput
from gemel.similarity import top_k
from gemel.tasks.histogram import SimilaritySample, sample_similarities

Scores = npt.NDArray[np.float32]

N_SAMPLED = 2_000
_PAIRS_PER_ROW = 50  # random pairs for each sampled row: cheap, and their upper end must be known well
_LINKS_PER_ROW = 32  # so that a heap of copies does not decide for the rest
_LEAST_ROWS = 3
_BIN = 0.02
_SHARE_ABOVE_A_GAP = 0.002  # of random pairs; fewer are chance
_DIGITS = 3


def suggest_threshold(
    vectors: npt.ArrayLike, *, method: str = "star", sample: int = N_SAMPLED, seed: int = 0
) -> float:
    """A cosine to cluster these rows at, from a sample: the one that as large a share of nearest neighbours
    misses as of random pairs reaches. For `connected`, where chains would join everything at that, it is the
    one that a row reaches with one other on average. Where clusters leave a gap below that, its middle."""
    rows = np.asarray(vectors)
    if rows.ndim != 2 or len(rows) < _LEAST_ROWS:
        raise InvalidInput(
            f"vectors of shape {rows.shape} were given to find a threshold from; expected (n, dim) with n at "
            f"least {_LEAST_ROWS}: give a threshold"
        )
    if sample < 1:
        raise InvalidInput(f"sample is {sample!r}; expected at least 1: give the rows to look at")
    n_rows = min(sample, len(rows))
    seen = sample_similarities(rows, n_pairs=_PAIRS_PER_ROW * n_rows, n_rows=n_rows, seed=seed)
    if method == "connected":
        asked = np.sort(np.random.default_rng(seed).permutation(len(rows))[:n_rows])
        hits = top_k(rows[asked], rows, min(_LINKS_PER_ROW + 1, len(rows)))
        highest = linking(hits.scores[:, 1:])  # the best is the row itself, or a copy of it
    else:
        highest = sum(_balance(seen.nearest, seen.random)) / 2
    return round(gap_below(seen, highest), _DIGITS)


def linking(scores: Scores) -> float:
    """The score that a row reaches with one other on average, of rows and their nearest others (n, k)."""
    ordered = np.sort(scores.reshape(-1))[::-1]
    return float(ordered[min(len(scores), len(ordered)) - 1])


def gap_below(seen: SimilaritySample, highest: float) -> float:
    """The middle of a gap that large clusters leave among random pairs, or the highest where none is."""
    # In large clusters, pairs drawn at random are often related. That shows only above their median: what
    # lies below it, mirrored, is what the unrelated ones would be alone.
    median = np.median(seen.random)
    unrelated = seen.random[seen.random <= median]
    lowest, _ = _balance(seen.nearest, np.concatenate([unrelated, 2 * median - unrelated]))
    n_bins = int((highest - lowest) / _BIN)
    if n_bins < 2:
        return highest
    counts, edges = np.histogram(seen.random, n_bins, (lowest, highest))
    least = int(counts.argmin())
    is_gap = counts[least] < counts[least:].max() / 2
    end = least + int(np.append(counts[least:] > counts[least], True).argmax())
    if not is_gap or (seen.random >= edges[end]).mean() < _SHARE_ABOVE_A_GAP:
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
