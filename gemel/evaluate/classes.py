"""Predicted classes against true ones: accuracy, and precision, recall and F1 of each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gemel.errors import InvalidInput

_Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Confusion:
    """How often each true class (row) was taken for each class (column)."""

    counts: _Doubles  # (classes, classes)
    names: tuple[str, ...]

    @classmethod
    def of(cls, truth: npt.ArrayLike, predicted: npt.ArrayLike, names: Sequence[str]) -> Confusion:
        """Count positions in `names`."""
        rows, columns = np.asarray(truth, np.int64), np.asarray(predicted, np.int64)
        if rows.ndim != 1 or rows.shape != columns.shape or not len(rows):
            raise InvalidInput(
                f"classes of shapes {rows.shape} and {columns.shape} were compared; expected (n,) twice, "
                "n at least 1"
            )
        counts = np.bincount(rows * len(names) + columns, minlength=len(names) ** 2)
        return cls(counts.reshape(len(names), len(names)).astype(np.float64), tuple(names))

    def accuracy(self) -> float:
        """The share of examples whose class was found."""
        return float(np.trace(self.counts) / self.counts.sum())

    def recalls(self) -> _Doubles:
        """The share of each class that was found; NaN for a class that no example has."""
        return _ratio(np.diag(self.counts), self.counts.sum(axis=1))

    def f1(self) -> _Doubles:
        """F1 of each class; NaN for one that neither stands in the data nor was predicted."""
        return _ratio(2 * np.diag(self.counts), self.counts.sum(axis=0) + self.counts.sum(axis=1))

    def macro_f1(self) -> float:
        """The mean F1 of the classes that stand in the data or were predicted."""
        return float(np.nanmean(self.f1()))


def _ratio(above: _Doubles, below: _Doubles) -> _Doubles:
    ratio: _Doubles = np.divide(above, below, out=np.full(len(below), np.nan), where=below > 0)
    return ratio
