"""What a clustering is: the cluster of each row, and the centre, size and best example of each cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors
from gemel.errors import InvalidInput
from gemel.similarity import normalise

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]

NONE = -1  # the label of a row that is in no cluster
_BLOCK_ROWS = 4_096


@dataclass(frozen=True, eq=False)
class Clustering:
    """The cluster of each row, numbered from the largest one, and what each cluster is like."""

    labels: Rows  # (n,), -1 for a row that is in none
    centres: (
        Vectors  # (n_clusters, dim): the mean of the members, each at unit length, brought to unit length
    )
    exemplars: Rows  # (n_clusters,): the row that a star was drawn around, else the one nearest to the centre
    similarities: npt.NDArray[np.float32]  # (n,): the cosine of each row to its centre, NaN for a row in none
    method: str
    threshold: float | None  # that was given or found; None for methods that take none

    def __len__(self) -> int:
        return len(self.centres)

    @property
    def sizes(self) -> Rows:
        """How many rows each cluster has (n_clusters,), in descending order."""
        return np.bincount(self.labels[self.labels >= 0], minlength=len(self))

    def members(self, cluster: int) -> Rows:
        """The rows of a cluster, the nearest to its centre first."""
        if not 0 <= cluster < len(self):
            raise InvalidInput(f"cluster {cluster} was asked for; expected 0 to {len(self) - 1}")
        rows = np.flatnonzero(self.labels == cluster)
        return rows[np.lexsort((rows, -self.similarities[rows]))]

    @property
    def n_unclustered(self) -> int:
        """How many rows are in no cluster."""
        return int((self.labels < 0).sum())


def clustering_of(
    vectors: Vectors,
    groups: Rows,
    *,
    min_size: int = 1,
    exemplars: Mapping[int, int] | None = None,
    method: str = "",
    threshold: float | None = None,
) -> Clustering:
    """The clustering of rows into groups of any numbers, -1 for none; smaller groups than min_size are none.

    `exemplars` has a row for each group, where something else than being nearest to the centre decides.
    """
    labels, names = _numbered(groups, min_size)
    centres = _centres(vectors, labels, len(names))
    similarities = _similarities(vectors, labels, centres)
    if exemplars is None:
        chosen = _nearest(labels, similarities)
    else:
        chosen = np.array([exemplars[name] for name in names.tolist()], np.int64)
    return Clustering(labels, centres, chosen, similarities, method, threshold)


def _numbered(groups: Rows, min_size: int) -> tuple[Rows, Rows]:
    """Labels from 0 for the largest group, of equals for that with the lowest row; and these groups."""
    names, firsts, places, counts = np.unique(
        groups, return_index=True, return_inverse=True, return_counts=True
    )
    kept = np.flatnonzero((names >= 0) & (counts >= min_size))
    kept = kept[np.lexsort((firsts[kept], -counts[kept]))]
    labels = np.full(len(names), NONE)
    labels[kept] = np.arange(len(kept))
    return labels[places], names[kept]


def _blocks(vectors: Vectors, labels: Rows) -> Iterator[tuple[Rows, Vectors]]:
    """The rows of clusters, and these at unit length, some at a time."""
    for start in range(0, len(labels), _BLOCK_ROWS):
        rows = start + np.flatnonzero(labels[start : start + _BLOCK_ROWS] >= 0)
        yield rows, normalise(vectors[rows])


def _centres(vectors: Vectors, labels: Rows, n_clusters: int) -> Vectors:
    sums = np.zeros((n_clusters, vectors.shape[1]))
    for rows, units in _blocks(vectors, labels):
        order = np.argsort(labels[rows], kind="stable")
        present, starts = np.unique(labels[rows][order], return_index=True)
        if len(present):
            sums[present] += np.add.reduceat(units[order], starts, axis=0, dtype=np.float64)
    return normalise(sums)


def _similarities(vectors: Vectors, labels: Rows, centres: Vectors) -> Scores:
    similarities = np.full(len(labels), np.nan, np.float32)
    for rows, units in _blocks(vectors, labels):
        similarities[rows] = np.clip(np.einsum("ij,ij->i", units, centres[labels[rows]]), -1, 1)
    return similarities


def _nearest(labels: Rows, similarities: Scores) -> Rows:
    """The row of each cluster that is nearest to its centre, the lowest of equals."""
    rows = np.flatnonzero(labels >= 0)
    order = rows[np.lexsort((rows, -similarities[rows], labels[rows]))]
    _, firsts = np.unique(labels[order], return_index=True)
    return order[firsts]
