"""k-means for more rows than one wants to go through again and again, or than memory holds.

A k-means of a sample gives the centres, batches of random rows move them, each by less than the one before,
and one of Lloyd's steps over all rows ends it. Rows are brought to unit length when they are read.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors
from gemel.errors import InvalidInput
from gemel.similarity import normalise
from gemel.similarity.packed import OnProgress
from gemel.tasks.kmeans import Partition, assigned, kmeans, moved_centres

SAMPLE_ROWS = 20_000
SAMPLE_ROWS_PER_GROUP = 20
BATCH_ROWS = 4_096
_N_STARTS = 5  # as `kmeans` has: of three, one seed in eight ends 2% short of the best


class UnitRows:
    """Rows that are brought to unit length when they are asked for, however many there are."""

    def __init__(self, vectors: npt.ArrayLike) -> None:
        self._vectors = np.asarray(vectors)
        normalise(self._vectors[:0])  # refuses what is no (n, dim) of numbers

    def __len__(self) -> int:
        return len(self._vectors)

    def __getitem__(self, which: slice | npt.NDArray[np.int64]) -> Vectors:
        return normalise(self._vectors[which])


def minibatch_kmeans(
    vectors: npt.ArrayLike, n_groups: int, *, seed: int = 0, on_progress: OnProgress | None = None
) -> Partition:
    """A partition of the rows by cosine into groups; up to a few ten thousand rows, that of `kmeans`."""
    rows = UnitRows(vectors)
    if not 1 <= n_groups <= len(rows):
        raise InvalidInput(
            f"{n_groups} groups were asked of {len(rows):,} rows; expected 1 to as many groups as rows"
        )
    generator = np.random.default_rng(seed)
    n_sampled = max(SAMPLE_ROWS, SAMPLE_ROWS_PER_GROUP * n_groups)
    if len(rows) <= n_sampled:
        return kmeans(vectors, n_groups, n_starts=_N_STARTS, seed=seed, on_progress=on_progress)

    def still_sampling(*_: int) -> None:  # none of the rows is done; who hears it may end the work
        if on_progress is not None:
            on_progress(0, len(rows))

    sample = rows[np.sort(generator.choice(len(rows), n_sampled, replace=False))]
    begun = kmeans(sample, n_groups, n_starts=_N_STARTS, seed=seed, on_progress=still_sampling)
    centres = _trained(rows, begun, generator.permutation(len(rows)), on_progress)
    groups, distances = assigned(rows, centres)
    centres = moved_centres(rows, groups, distances, centres, "cosine")
    groups, distances = assigned(rows, centres)
    return Partition(groups, centres, float(distances.sum()), begun.n_steps)


def _trained(
    rows: UnitRows, begun: Partition, order: npt.NDArray[np.int64], on_progress: OnProgress | None
) -> Vectors:
    """The centres after every row has drawn its nearest one a little towards itself."""
    n_seen = np.bincount(begun.groups, minlength=len(begun.centres)).astype(np.float64)
    sums = begun.centres * n_seen[:, None]
    centres = begun.centres
    for start in range(0, len(order), BATCH_ROWS):
        if on_progress is not None:
            on_progress(start, len(order))
        batch = rows[np.sort(order[start : start + BATCH_ROWS])]
        groups, _ = assigned(batch, centres)
        np.add.at(sums, groups, batch)
        centres = normalise(sums.astype(np.float32))
    if on_progress is not None:
        on_progress(len(order), len(order))
    return centres
