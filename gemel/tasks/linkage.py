"""Agglomerative clustering: the two groups that are most alike become one, again and again.

All pairs of rows are compared and kept, so this is for thousands of rows; scipy merges them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors
from gemel.errors import InvalidInput, MissingExtra
from gemel.similarity import normalise
from gemel.tasks.components import Components

Rows = npt.NDArray[np.int64]
_Doubles = npt.NDArray[np.float64]

LINKAGES = ("average", "complete", "single")
MAX_ROWS = 20_000  # 1.6 GB of distances, and scipy works on a copy
_BLOCK_ROWS = 1_024
_ROUNDING = 1e-6  # of the distances, which come from float32 vectors


def agglomerative(
    vectors: npt.ArrayLike,
    *,
    threshold: float | None = None,
    n_clusters: int | None = None,
    linkage: str = "average",
) -> Rows:
    """For each row the lowest row of its group: groups merge while their cosine reaches the threshold, or
    until so many are left; that is the mean over pairs of rows, the least (complete) or the best (single)."""
    if linkage not in LINKAGES:
        raise InvalidInput(f"linkage is {linkage!r}; expected one of {', '.join(LINKAGES)}")
    assert (threshold is None) != (n_clusters is None), "the caller chooses one of both"
    units = normalise(vectors)
    if len(units) > MAX_ROWS:
        raise InvalidInput(
            f"{len(units):,} rows were given to agglomerative clustering, which keeps all pairs and takes "
            f"{MAX_ROWS:,} rows at most; use the method star, connected or minibatch"
        )
    groups = Components(len(units))
    if len(units) < 2:
        return groups.labels()
    merges = _merges(units, linkage)
    if n_clusters is None:
        assert threshold is not None
        n_merges = int(np.searchsorted(merges[:, 2], 1 - threshold + _ROUNDING, side="right"))
    else:
        n_merges = len(units) - n_clusters
    first, second = _members(merges[:n_merges], len(units))
    groups.join(first, second)
    return groups.labels()


def _merges(units: Vectors, linkage: str) -> _Doubles:
    """scipy's tree (n - 1, 4): which two groups merge, and at which distance, the nearest first."""
    try:
        from scipy.cluster import hierarchy
    except ImportError:
        raise MissingExtra("agglomerative clustering", "evaluate") from None
    tree: _Doubles = hierarchy.linkage(_distances(units), linkage)
    return tree


def _distances(units: Vectors) -> _Doubles:
    """1 - cosine of each pair of rows once, in scipy's order."""
    n_rows = len(units)
    distances = np.empty(n_rows * (n_rows - 1) // 2)
    end = 0
    for start in range(0, n_rows, _BLOCK_ROWS):
        with np.errstate(all="ignore"):  # BLAS may flag what it computes in the unused lanes of a register
            block = 1 - (units[start : start + _BLOCK_ROWS] @ units.T).astype(np.float64)
        for row, others in enumerate(np.maximum(block, 0), start):
            distances[end : end + n_rows - row - 1] = others[row + 1 :]
            end += n_rows - row - 1
    return distances


def _members(merges: _Doubles, n_rows: int) -> tuple[Rows, Rows]:
    """For each merge a row of either group; scipy numbers the groups that merging makes from n_rows on."""
    one_of = np.arange(n_rows + len(merges))
    first, second = merges[:, 0].astype(np.int64), merges[:, 1].astype(np.int64)
    for merge, part in enumerate(first):
        one_of[n_rows + merge] = one_of[part]
    return one_of[first], one_of[second]
