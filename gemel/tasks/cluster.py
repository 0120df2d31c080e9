"""Groups of alike vectors, without saying how many groups there are."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors
from gemel.errors import InvalidInput
from gemel.similarity import neighbours, pairwise


def communities(
    vectors: npt.ArrayLike, *, threshold: float = 0.75, min_size: int = 3
) -> list[npt.NDArray[np.int64]]:
    """Groups of row numbers, the largest first: a centre, then the rows whose cosine to it is at least the
    threshold, the most similar first; no row is in two groups, and many may be in none."""
    if not -1 <= threshold <= 1:
        raise InvalidInput(f"threshold is {threshold!r}; expected a cosine: give a number from -1 to 1")
    if min_size < 1:
        raise InvalidInput(f"min_size is {min_size!r}; expected at least 1: give the least rows of a group")
    rows = np.asarray(vectors)
    near = neighbours(rows, threshold)
    free = np.ones(len(rows), dtype=np.bool_)
    sizes = np.diff(near.offsets)
    heap = [(-int(sizes[centre]), int(centre)) for centre in np.flatnonzero(sizes >= min_size)]
    heapify(heap)
    groups = []
    while heap:
        minus_size, centre = heappop(heap)
        if not free[centre]:
            continue
        members = near.of(centre)
        members = members[free[members]]
        if len(members) == -minus_size:
            groups.append(_around(rows, centre, members))
            free[members] = False
        elif len(members) >= min_size:
            # Sizes only shrink, so a group that is still the largest after a recount is the largest of all.
            heappush(heap, (-len(members), centre))
    return groups


def _around(vectors: Vectors, centre: int, members: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The members by similarity to the centre, the centre itself before any copy of it."""
    scores = pairwise(vectors[members], np.broadcast_to(vectors[centre], (len(members), vectors.shape[1])))
    return members[np.lexsort((members, -scores, members != centre))]
