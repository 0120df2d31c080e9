"""Which examples each batch of a run has: a function of the seed and of the batch's number."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.train.objectives import Objective

Rows = npt.NDArray[np.int64]


class Batches(Protocol):
    """The batches of a run, numbered through all epochs."""

    @property
    def n_batches(self) -> int:
        """How many an epoch has."""

    def rows(self, number: int) -> Rows:
        """The examples of a batch."""


class EpochBatches:
    """Every example once an epoch, in a new order; a last batch too small for the objective is left out."""

    def __init__(self, examples: Examples, objective: Objective, batch_size: int, seed: int) -> None:
        self.n_batches = _count_batches(len(examples), batch_size, objective)
        self.n_examples, self.batch_size, self.seed = len(examples), batch_size, seed
        is_grouped = examples.kind == "classified texts" and objective.n_alike > 1
        self._classes = examples.labels if is_grouped else None
        self._n_alike = objective.n_alike
        self._epoch, self._order = -1, np.empty(0, np.int64)

    def rows(self, number: int) -> Rows:
        """The examples of a batch."""
        epoch, place = divmod(number, self.n_batches)
        if epoch != self._epoch:
            generator = np.random.default_rng([self.seed, epoch])
            if self._classes is None:
                self._order = generator.permutation(self.n_examples)
            else:
                self._order = order_in_groups(self._classes.astype(np.int64), self._n_alike, generator)
            self._epoch = epoch
        return self._order[place * self.batch_size : (place + 1) * self.batch_size]


def order_in_groups(classes: Rows, n_alike: int, generator: np.random.Generator) -> Rows:
    """All rows in a random order in which groups of `n_alike` of one class stand together.

    A rest of one joins the group before it, so that every group has two or more where its class has; the
    border of a batch may cut one.
    """
    shuffled = generator.permutation(len(classes))
    by_class = shuffled[np.argsort(classes[shuffled], kind="stable")]
    sizes = np.bincount(classes)
    ends = np.cumsum(sizes)
    groups: list[Rows] = []
    for end, size in zip(ends, sizes, strict=True):
        own = by_class[end - size : end]
        cuts = list(range(n_alike, size, n_alike))
        if cuts and size - cuts[-1] == 1:
            cuts.pop()
        groups.extend(np.split(own, cuts))
    order = generator.permutation(len(groups))
    return np.concatenate([groups[place] for place in order])


def _count_batches(n_examples: int, batch_size: int, objective: Objective) -> int:
    smallest = objective.min_batch
    if batch_size < smallest:
        raise InvalidInput(
            f"the objective {objective.describe()} needs at least {smallest} examples a batch; "
            f"batch_size is {batch_size}"
        )
    whole, rest = divmod(n_examples, batch_size)
    n_batches = whole + (rest >= smallest)
    if n_batches == 0:
        raise InvalidInput(f"{n_examples} examples are too few to train on; at least {smallest} are needed")
    return n_batches
