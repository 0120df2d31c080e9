"""Groups of alike vectors, by cosine: six methods behind one function, and one kind of result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors
from gemel.errors import InvalidInput
from gemel.similarity import normalise, pairs_above
from gemel.similarity.packed import OnProgress
from gemel.tasks.clustering import NONE, Clustering, clustering_of
from gemel.tasks.communities import communities, in_large_blocks
from gemel.tasks.components import Components
from gemel.tasks.density import hdbscan
from gemel.tasks.distinct import distinct, has_length
from gemel.tasks.kmeans import kmeans
from gemel.tasks.linkage import LINKAGES, agglomerative
from gemel.tasks.minibatch import minibatch_kmeans
from gemel.tasks.suggestion import suggest_threshold
from gemel.tasks.thresholds import checked_threshold

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Task:
    """What a method is asked to do, checked."""

    threshold: float | None
    n_clusters: int | None
    min_size: int
    linkage: str
    seed: int
    on_progress: OnProgress | None


@dataclass(frozen=True)
class _Found:
    """Any number for each row, the same within a group, and the rows that groups were drawn around."""

    groups: Rows
    exemplars: dict[int, int] | None = None


@dataclass(frozen=True)
class Method:
    """How to cluster, what tells it the number of clusters, and the least rows of one unless told."""

    what: str
    takes: tuple[Literal["threshold", "n_clusters"], ...]
    min_size: int
    run: Callable[[Vectors, _Task], _Found]


def cluster(
    vectors: npt.ArrayLike,
    *,
    method: str = "star",
    threshold: float | None = None,
    n_clusters: int | None = None,
    min_size: int | None = None,
    linkage: str = "average",
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Clustering:
    """Group the rows (n, dim) by cosine, with one of METHODS.

    Methods that take a threshold find one where none is given (`suggest_threshold`). Groups of fewer than
    `min_size` rows are none: their rows get the label -1. The same rows, options and seed give the same
    clusters.
    """
    check_choice(method, threshold, n_clusters)
    chosen = METHODS[method]
    rows = np.asarray(vectors)
    normalise(rows[:0])  # refuses what is no (n, dim) of numbers
    if n_clusters is not None and not 1 <= n_clusters <= len(rows):
        raise InvalidInput(
            f"n_clusters is {n_clusters!r}, of {len(rows):,} rows; expected 1 to as many clusters as rows"
        )
    if linkage not in LINKAGES:
        raise InvalidInput(f"linkage is {linkage!r}; expected one of {', '.join(LINKAGES)}")
    if min_size is None:
        min_size = chosen.min_size if n_clusters is None else 1
    if seed < 0:
        raise InvalidInput(f"seed is {seed!r}; expected a whole number from 0 on")
    if min_size < 1:
        raise InvalidInput(f"min_size is {min_size!r}; expected at least 1: give the least rows of a cluster")
    if "threshold" in chosen.takes and threshold is None and n_clusters is None and len(rows):
        is_chain = method == "agglomerative" and linkage == "single"
        threshold = suggest_threshold(rows, method="connected" if is_chain else method, seed=seed)
    task = _Task(threshold, n_clusters, min_size, linkage, seed, on_progress)
    found = chosen.run(rows, task) if len(rows) else _Found(np.zeros(0, np.int64))
    return clustering_of(
        rows,
        found.groups,
        min_size=min_size,
        exemplars=found.exemplars,
        method=method,
        threshold=threshold,
    )


def check_choice(method: str, threshold: float | None, n_clusters: int | None) -> None:
    """Refuse an unknown method, or one with what it does not take or without what it needs."""
    if method not in METHODS:
        raise InvalidInput(f"method is {method!r}; expected one of {', '.join(METHODS)}")
    if threshold is not None:
        checked_threshold(threshold)
    takes = METHODS[method].takes
    for name, value in (("threshold", threshold), ("n_clusters", n_clusters)):
        if value is not None and name not in takes:
            fit = [each for each, other in METHODS.items() if name in other.takes]
            raise InvalidInput(
                f"{name} was given with the method {method}, which takes "
                f"{' and '.join(takes) or 'neither threshold nor n_clusters'}; leave it out, or use "
                f"{', '.join(fit[:-1])} or {fit[-1]}"
            )
    if threshold is not None and n_clusters is not None:
        raise InvalidInput("threshold and n_clusters were both given; expected one of them: leave one out")
    if n_clusters is None and takes == ("n_clusters",):
        raise InvalidInput(
            f"n_clusters was not given, and the method {method} needs it; say how many, or use the method "
            "star, which finds their number"
        )


# The methods -----------------------------------------------------------------------------------------


def _star(rows: Vectors, task: _Task) -> _Found:
    assert task.threshold is not None
    groups, exemplars = np.full(len(rows), NONE), {}
    found = communities(rows, threshold=task.threshold, min_size=task.min_size, on_progress=task.on_progress)
    for number, members in enumerate(found):
        groups[members] = number
        exemplars[number] = int(members[0])
    return _Found(groups, exemplars)


def _connected(rows: Vectors, task: _Task) -> _Found:
    assert task.threshold is not None
    kinds = distinct(rows)
    components = Components(len(kinds.firsts))
    pairs = pairs_above(kinds.of(rows), task.threshold, on_progress=task.on_progress)
    for block in in_large_blocks(pairs):
        components.join(block.first, block.second)
    groups = components.labels()[kinds.kinds]
    if task.threshold > 0:  # copies of a row of zeros are not alike
        zeros = ~has_length(rows)
        groups[zeros] = len(rows) + np.flatnonzero(zeros)
    return _Found(groups)


def _agglomerative(rows: Vectors, task: _Task) -> _Found:
    return _Found(
        agglomerative(rows, threshold=task.threshold, n_clusters=task.n_clusters, linkage=task.linkage)
    )


def _kmeans(rows: Vectors, task: _Task) -> _Found:
    assert task.n_clusters is not None
    return _Found(kmeans(rows, task.n_clusters, seed=task.seed, on_progress=task.on_progress).groups)


def _minibatch(rows: Vectors, task: _Task) -> _Found:
    assert task.n_clusters is not None
    found = minibatch_kmeans(rows, task.n_clusters, seed=task.seed, on_progress=task.on_progress)
    return _Found(found.groups)


def _hdbscan(rows: Vectors, task: _Task) -> _Found:
    return _Found(hdbscan(rows, min_size=task.min_size))


METHODS = {
    "star": Method(
        "a centre and all within the threshold of it, the largest first", ("threshold",), 3, _star
    ),
    "connected": Method("all that a chain of similar rows joins", ("threshold",), 3, _connected),
    "agglomerative": Method(
        "the most similar groups merge, to the threshold or the number; up to 20,000 rows",
        ("threshold", "n_clusters"),
        3,
        _agglomerative,
    ),
    "kmeans": Method("so many groups around their means", ("n_clusters",), 1, _kmeans),
    "minibatch": Method("the same for millions of rows", ("n_clusters",), 1, _minibatch),
    "hdbscan": Method("dense places, by scikit-learn; up to 50,000 rows", (), 5, _hdbscan),
}
