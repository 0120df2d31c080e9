"""Whether two lists of numbers rise together: Pearson's and Spearman's correlation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gemel.errors import InvalidInput

_Doubles = npt.NDArray[np.float64]


def pearson(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """How nearly the values lie on a straight line: -1 to 1."""
    return float(np.clip(np.dot(*(_direction(values) for values in _checked(first, second))), -1, 1))


def spearman(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """How nearly the values have one order: the correlation of their ranks, equal values sharing a rank."""
    return pearson(*(_ranks(values) for values in _checked(first, second)))


def _checked(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[_Doubles, _Doubles]:
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if a.ndim != 1 or a.shape != b.shape or len(a) < 2:
        raise InvalidInput(
            f"a correlation was asked of shapes {a.shape} and {b.shape}; expected (n,) twice, n at least 2"
        )
    for values in (a, b):
        if not np.isfinite(values).all():
            raise InvalidInput("a correlation was asked of NaN or infinity; expected finite numbers")
        if values.min() == values.max():
            raise InvalidInput(
                f"all {len(values):,} values are {values[0]:g}, and what never changes has no correlation; "
                "expected at least two different values"
            )
    return a, b


def _ranks(values: _Doubles) -> _Doubles:
    _, groups, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: _Doubles = (np.cumsum(counts) - (counts - 1) / 2)[groups]
    return ranks


def _direction(values: _Doubles) -> _Doubles:
    """The deviations from the mean, at unit length."""
    # Scaled, by a power of two and so exactly, lest the squares of huge or tiny values leave float64.
    scaled = np.ldexp(values, -np.frexp(np.abs(values).max())[1])
    deviations = scaled - scaled.mean()
    deviations /= np.abs(deviations).max()
    unit: _Doubles = deviations / np.linalg.norm(deviations)
    return unit
