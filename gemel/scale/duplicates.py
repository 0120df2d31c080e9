"""Duplicates of a corpus whose pairs are found tile by tile: the same ones are kept as on one machine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gemel.contracts import Vectors
from gemel.scale.pairs import BLOCK_ROWS, OnProgress, mine
from gemel.scale.runners import Runner
from gemel.similarity import Pairs
from gemel.tasks.corpus import Corpus
from gemel.tasks.dedupe import (
    Duplicates,
    DuplicateSearch,
    Grouping,
    Keep,
    Rows,
    first_of_each,
    group_duplicates,
)
from gemel.tasks.thresholds import checked_threshold


def dedupe(
    corpus: Corpus,
    *,
    threshold: float = 0.9,
    keep: Keep = "first",
    grouping: Grouping = "star",
    normalise: bool = False,
    runner: Runner | None = None,
    block_rows: int = BLOCK_ROWS,
    on_progress: OnProgress | None = None,
) -> Duplicates:
    """Which rows are duplicates of which: what `gemel.dedupe` gives for the same.

    All similar pairs are compared and brought here, whereas one machine alone leaves out what is dropped
    already: memory grows with the pairs.
    """
    search = _TiledSearch(corpus, checked_threshold(threshold), runner, block_rows, on_progress)
    return group_duplicates(corpus, search, keep, grouping, normalise)


class _TiledSearch(DuplicateSearch):
    def __init__(
        self,
        corpus: Corpus,
        threshold: float,
        runner: Runner | None,
        block_rows: int,
        on_progress: OnProgress | None,
    ) -> None:
        super().__init__(corpus, threshold, lambda first, second: np.ones(len(first), np.bool_), on_progress)
        self._runner, self._block_rows = runner, block_rows

    def find(self, vectors: Vectors, on_progress: OnProgress | None) -> Iterator[Pairs]:
        return mine(
            vectors,
            at_least=self.threshold,
            runner=self._runner,
            block_rows=self._block_rows,
            on_progress=on_progress,
        )

    def stars(self, ranked: Rows) -> Rows:
        keepers = np.arange(len(self.vectors))
        if len(ranked):
            found = self.find(
                self.vectors[ranked], lambda done, total: self.report(self.n_steps - 1, done / total)
            )
            keepers[ranked] = ranked[first_of_each(len(ranked), found)]
        return keepers
