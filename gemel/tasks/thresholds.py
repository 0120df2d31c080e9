"""How well a score tells two classes apart: average precision, and the thresholds that split them best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gemel.data.examples import Examples
from gemel.errors import InvalidInput

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Split:
    """A threshold, which whatever reaches it counts as positive, and the figure that this gives."""

    threshold: float
    value: float


class Separation:
    """Scores of positives and negatives, sorted once; equal scores fall on one side together."""

    def __init__(self, scores: npt.ArrayLike, is_positive: npt.ArrayLike) -> None:
        values, positive = np.asarray(scores, np.float64), np.asarray(is_positive, np.bool_)
        if values.ndim != 1 or values.shape != positive.shape:
            raise InvalidInput(
                f"{values.shape} scores were given {positive.shape} classes; expected one class a score"
            )
        if not np.isfinite(values).all():
            raise InvalidInput("a score is NaN or infinite; expected finite numbers")
        if positive.all() or not positive.any():
            raise InvalidInput(
                f"{positive.sum():,} of {len(values):,} examples are positive; expected both classes: "
                "one alone cannot be told apart from anything"
            )
        self._order = np.argsort(-values, kind="stable")
        ordered = values[self._order]
        self._starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        self._levels = ordered[self._starts]  # the distinct scores, highest first
        self._is_positive = positive[self._order].astype(np.float64)
        ends = np.r_[self._starts[1:], len(values)]
        self._n_taken = ends.astype(np.float64)  # examples at or above each level
        self._n_true = np.cumsum(self._is_positive)[ends - 1]  # of them positive

    def average_precision(self) -> float:
        """The mean of the precision at each level, weighted by the recall that it adds: scikit-learn's."""
        return float(self.average_precisions(np.ones((1, len(self._order))))[0])

    def average_precisions(self, counts: Doubles) -> Doubles:
        """The same for resamples: how often each example was drawn (resamples, n); NaN without positives."""
        drawn = counts[:, self._order]
        positives = np.add.reduceat(drawn * self._is_positive, self._starts, axis=1)
        n_true = np.cumsum(positives, axis=1)
        n_taken = np.cumsum(np.add.reduceat(drawn, self._starts, axis=1), axis=1)
        sums = np.einsum("ij,ij->i", positives, n_true / np.maximum(n_taken, 1))
        total = n_true[:, -1]
        found: Doubles = np.divide(sums, total, out=np.full(len(counts), np.nan), where=total > 0)
        return found

    def best_f1(self) -> Split:
        """The threshold with the highest F1 of the positives."""
        return self._best(2 * self._n_true / (self._n_taken + self._n_true[-1]))

    def best_accuracy(self) -> Split:
        """The threshold with the most examples on their side; it may take none for positive."""
        n, n_positive = len(self._order), self._n_true[-1]
        accuracy = (2 * self._n_true - self._n_taken + n - n_positive) / n
        none = 1 - n_positive / n
        if none > accuracy.max():
            return Split(float(np.nextafter(self._levels[0], np.inf)), float(none))
        return self._best(accuracy)

    def best_precision(self) -> Split:
        """The threshold with the highest precision of the positives."""
        return self._best(self._n_true / self._n_taken)

    def lowest_with_precision(self, precision: float) -> Split | None:
        """The threshold that finds the most positives at this precision or a better one; None without any."""
        precisions = self._n_true / self._n_taken
        enough = np.flatnonzero((precisions >= precision) & (self._n_true > 0))
        return self._split(int(enough[-1]), precisions) if len(enough) else None

    def _best(self, values: Doubles) -> Split:
        return self._split(int(values.argmax()), values)

    def _split(self, level: int, values: Doubles) -> Split:
        """Midway between the last score that is taken and the first that is not."""
        following = self._levels[min(level + 1, len(self._levels) - 1)]
        middle = self._levels[level] + (following - self._levels[level]) / 2
        return Split(float(middle if middle > following else self._levels[level]), float(values[level]))


def positives_of(pairs: Examples, positive: str, name: str) -> npt.NDArray[np.bool_]:
    """Which of the classified pairs (n,) have the label of the positives; both classes have to be there."""
    if pairs.kind != "classified pairs" or pairs.labels is None:
        raise InvalidInput(f"{name} holds {pairs.kind}; expected classified pairs")
    if positive not in pairs.label_names:
        raise InvalidInput(
            f"{name} has the labels {', '.join(pairs.label_names)} and none {positive!r}; "
            "say with positive= (--positive) which of them means that a pair is a duplicate"
        )
    is_positive: npt.NDArray[np.bool_] = pairs.labels == pairs.label_names.index(positive)
    if is_positive.all() or not is_positive.any():
        raise InvalidInput(
            f"{name}: {is_positive.sum():,} of {len(pairs):,} pairs are {positive!r}; expected some that are "
            "and some that are not"
        )
    return is_positive


# What a threshold can be by each measure: the lowest and the highest similarity.
RANGES = {
    "cosine": (-1.0, 1.0),
    "dot": (-np.inf, np.inf),
    "euclidean": (-np.inf, 0.0),
    "manhattan": (-np.inf, 0.0),
}


def checked_threshold(threshold: float, measure: str = "cosine") -> float:
    """The threshold, or a sentence that says what a similarity by this measure can be."""
    if measure not in RANGES:
        raise InvalidInput(f"measure is {measure!r}; expected a known one: choose {', '.join(RANGES)}")
    lowest, highest = RANGES[measure]
    if not np.isfinite(threshold) or not lowest <= threshold <= highest:
        expected = {
            "cosine": "a cosine: give a number from -1 to 1",
            "dot": "an inner product: give a finite number",
        }.get(measure, "a negated distance: give a number that is 0 or less")
        raise InvalidInput(f"the threshold is {threshold!r}; expected {expected}")
    return float(threshold)
