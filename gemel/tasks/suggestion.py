"""Which threshold suits a corpus: what its nearest neighbours have in common that random pairs do not."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors
from gemel.errors import InvalidInput
from gemel.similarity.checks import as_rows
from gemel.tasks.distinct import originals
from gemel.tasks.histogram import SimilaritySample, sample_similarities, search_among

Scores = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]

N_SAMPLED = 2_000
_PAIRS_PER_ROW = 50  # random pairs for each sampled row: cheap, and their upper end must be known well
_LINKS_PER_ROW = 32  # so that a heap of copies does not decide for the rest
_LEAST_ROWS = 3
_BIN = 0.02
_BINS_OF_A_SMALL_SPREAD = 50  # as many as _BIN makes of cosines from 0 to 1
_FINEST_BIN = 2.0**-22  # four steps of float32 below 1: what is finer is rounding
_SHARE_ABOVE_A_GAP = 0.002  # of random pairs; fewer are chance
_DIGITS = 3
_MOST_DIGITS = 7  # that float32 tells apart below 1


def suggest_threshold(
    vectors: npt.ArrayLike, *, method: str = "star", sample: int = N_SAMPLED, seed: int = 0
) -> float:
    """A cosine to cluster these rows at, from a sample: the one that as large a share of nearest neighbours
    misses as of random pairs reaches. For `connected`, where chains would join everything at that, it is the
    one that a row reaches with one other on average. Where clusters leave a gap below that, its middle.
    Copies of a row, which every threshold joins, are left out."""
    rows = np.asarray(vectors)
    if rows.ndim != 2 or len(rows) < _LEAST_ROWS:
        raise InvalidInput(
            f"vectors of shape {rows.shape} were given to find a threshold from; expected (n, dim) with n at "
            f"least {_LEAST_ROWS}: give a threshold"
        )
    if sample < 1:
        raise InvalidInput(f"sample is {sample!r}; expected at least 1: give the rows to look at")
    rows = as_rows("vectors", rows)
    among = _without_copies(rows)
    n_rows = min(sample, len(among))
    # Without copies nothing is chosen, and every row is searched as it stands.
    chosen = among if len(among) < len(rows) else None
    seen = sample_similarities(rows, n_pairs=_PAIRS_PER_ROW * n_rows, n_rows=n_rows, seed=seed, among=chosen)
    if method == "connected":
        asked = among[np.sort(np.random.default_rng(seed).permutation(len(among))[:n_rows])]
        hits = search_among(rows, asked, min(_LINKS_PER_ROW + 1, len(among)), among)
        highest = linking(hits.scores[:, 1:])  # the best is the row itself
    else:
        highest = sum(_balance(seen.nearest, seen.random)) / 2
    return _rounded(seen, gap_below(seen, highest))


def _without_copies(rows: Vectors) -> Rows:
    """The first row of each kind, in ascending order; all rows where too few would be left."""
    every = np.arange(len(rows))
    found = np.flatnonzero(originals(rows) == every)
    return found if len(found) >= _LEAST_ROWS else every


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
    n_bins = int((highest - lowest) / _bin_width(seen))
    if n_bins < 2:
        return highest
    counts, edges = np.histogram(seen.random, n_bins, (lowest, highest))
    least = int(counts.argmin())
    is_gap = counts[least] < counts[least:].max() / 2
    end = least + int(np.append(counts[least:] > counts[least], True).argmax())
    if not is_gap or (seen.random >= edges[end]).mean() < _SHARE_ABOVE_A_GAP:
        return highest  # unrelated pairs grow ever fewer, and no cluster stands out
    return float(edges[least] + edges[end]) / 2


def _spread(seen: SimilaritySample) -> float:
    """From low random pairs to high nearest neighbours; a few rows unlike all others do not widen it."""
    return float(np.quantile(seen.nearest, 0.95) - np.quantile(seen.random, 0.05))


def _is_small(spread: float) -> bool:
    return spread < 2 * _BIN  # there would be no two bins of it, and so no gap


def _bin_width(seen: SimilaritySample) -> float:
    spread = _spread(seen)
    return max(spread / _BINS_OF_A_SMALL_SPREAD, _FINEST_BIN) if _is_small(spread) else _BIN


def _rounded(seen: SimilaritySample, found: float) -> float:
    """The threshold to as many digits as tell the similarities apart, and not out of their reach."""
    spread, digits = _spread(seen), _DIGITS
    if _is_small(spread):  # a hundred steps of it
        digits = min(max(_DIGITS, math.ceil(2 - math.log10(max(spread, 1e-9)))), _MOST_DIGITS)
    closest = round(found, digits)
    is_lost = 2 * (seen.nearest >= closest).sum() < (seen.nearest >= found).sum()
    if closest <= found or not (is_lost or _is_small(spread)):
        return closest
    return math.floor(found * 10.0**digits) / 10.0**digits


def _balance(nearest: Scores, random: Scores) -> tuple[float, float]:
    """Between which two scores as large a share of the ones is missed as of the others is reached."""
    nearest, random = np.sort(nearest), np.sort(random)
    candidates = np.union1d(nearest, random)
    missed = np.searchsorted(nearest, candidates) / len(nearest)
    reached = 1 - np.searchsorted(random, candidates) / len(random)
    place = int(np.argmin(np.abs(missed - reached)))
    return float(candidates[max(place - 1, 0)]), float(candidates[place])
