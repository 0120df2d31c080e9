"""Connected components of a graph whose edges come as a stream: memory for the rows, not for the edges."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]


class Components:
    """Rows that edges join: at first each is alone; a component is known by its lowest row."""

    def __init__(self, n_rows: int) -> None:
        self._parents = np.arange(n_rows)

    def join(self, first: Rows, second: Rows) -> None:
        """Take in edges."""
        while len(first):
            first, second = self.roots(first), self.roots(second)
            apart = first != second
            lower, upper = np.minimum(first, second)[apart], np.maximum(first, second)[apart]
            # A root that several edges want to hang elsewhere takes the lowest; the others come again.
            np.minimum.at(self._parents, upper, lower)
            first, second = lower, upper

    def roots(self, rows: Rows) -> Rows:
        """The lowest row of each row's component."""
        found = self._parents[rows]
        while True:
            above = self._parents[found]
            if (above == found).all():
                break
            found = above
        self._parents[rows] = found  # so that the next way is short
        return found

    def labels(self) -> Rows:
        """For each row the lowest row of its component (n,)."""
        return self.roots(np.arange(len(self._parents)))
