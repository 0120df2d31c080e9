"""How well two groupings of the same things agree, whatever the groups are called."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gemel.errors import InvalidInput

_Doubles = npt.NDArray[np.float64]


class Agreement:
    """True classes against found groups, by the counts of what they share."""

    def __init__(self, classes: npt.ArrayLike, groups: npt.ArrayLike) -> None:
        first, second = np.asarray(classes), np.asarray(groups)
        if first.ndim != 1 or first.shape != second.shape or not len(first):
            raise InvalidInput(
                f"groupings of shapes {first.shape} and {second.shape} were compared; expected (n,) twice, "
                "n at least 1"
            )
        names, rows = np.unique(first, return_inverse=True)
        others, columns = np.unique(second, return_inverse=True)
        cells = np.bincount(rows * len(others) + columns, minlength=len(names) * len(others))
        self._shared = cells.reshape(len(names), len(others)).astype(np.float64)  # (classes, groups)

    def homogeneity(self) -> float:
        """How far each group holds one class only: 1 if all do, 0 if groups tell nothing of classes."""
        return self._explained(self._shared.sum(axis=1))

    def completeness(self) -> float:
        """How far each class lies in one group only."""
        return self._explained(self._shared.sum(axis=0))

    def v_measure(self) -> float:
        """The harmonic mean of homogeneity and completeness."""
        a, b = self.homogeneity(), self.completeness()
        return 2 * a * b / (a + b) if a + b > 0 else 0.0

    def adjusted_rand(self) -> float:
        """The share of pairs that both groupings treat alike, less chance: 0 if random, 1 if equal."""
        together = _pairs(self._shared).sum()
        by_class, by_group = _pairs(self._shared.sum(axis=1)).sum(), _pairs(self._shared.sum(axis=0)).sum()
        total = _pairs(self._shared.sum())
        if by_class == by_group and by_class in (0, total):
            return 1.0  # both put all in one group, or each thing in its own
        chance = by_class * by_group / total
        return float((together - chance) / ((by_class + by_group) / 2 - chance))

    def _explained(self, sizes: _Doubles) -> float:
        """The mutual information as a share of the entropy of one grouping; 1 where there is none."""
        entropy = _entropy(sizes)
        if entropy == 0:
            return 1.0
        other = _entropy(self._shared.sum(axis=0)) + _entropy(self._shared.sum(axis=1))
        shared = max(0.0, other - _entropy(self._shared.ravel()))
        return min(1.0, shared / entropy)


def _entropy(sizes: _Doubles) -> float:
    shares = sizes[sizes > 0] / sizes.sum()
    return abs(float(-(shares * np.log(shares)).sum()))


def _pairs(n: npt.ArrayLike) -> _Doubles:
    counts = np.asarray(n, np.float64)
    pairs: _Doubles = counts * (counts - 1) / 2
    return pairs
