"""From labelled pairs to a threshold, and from a similarity to the probability that a pair is a duplicate.

The probability is a logistic curve through the scores (Platt 1999, with the targets that keep it from being
too sure of itself); it holds for pairs drawn as the labelled ones were.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.contracts import Encoder
from gemel.data.examples import Examples
from gemel.data.results import OutputFile
from gemel.errors import InvalidInput, ModelMismatch
from gemel.similarity import pairwise
from gemel.similarity.packed import OnProgress
from gemel.tasks.corpus import encode_distinct
from gemel.tasks.thresholds import Separation, Split, positives_of

Doubles = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

N_FOLDS = 5
_MOST_STEPS = 100
_PAIRS_AT_ONCE = 8_192


@dataclass(frozen=True)
class Calibration:
    """A threshold of cosines and a curve from cosine to probability, for one model and pairs of one kind."""

    fingerprint: str
    threshold: float
    slope: float
    intercept: float
    aim: str  # what the threshold is best at
    precision: float  # at the threshold, on the pairs that it was chosen on
    recall: float
    held_out_precision: float | None  # of thresholds chosen on other pairs; None where there are too few
    held_out_recall: float | None
    n_pairs: int
    n_positive: int
    computed_in: str | None = None  # the precision of the vectors, as int8; None in files of older versions

    def __post_init__(self) -> None:
        if not np.isfinite([self.threshold, self.slope, self.intercept]).all() or self.slope <= 0:
            raise InvalidInput(
                f"a calibration has the threshold {self.threshold!r}, slope {self.slope!r} and intercept "
                f"{self.intercept!r}; expected finite numbers and a slope above 0: calibrate again"
            )

    def probability(self, scores: npt.ArrayLike) -> Doubles:
        """How likely each cosine makes a duplicate: never less for a higher cosine."""
        return _logistic(self.slope * np.asarray(scores, np.float64) + self.intercept)

    def check_model(self, fingerprint: str) -> None:
        """Refuse cosines of another model: they are spread otherwise."""
        if fingerprint != self.fingerprint:
            raise ModelMismatch(
                f"the calibration was made for the model {self.fingerprint[:12]}, and this one is "
                f"{fingerprint[:12]}; calibrate this model, or name that one"
            )

    def check_precision(self, encoder: Encoder) -> None:
        """Refuse cosines of vectors that are computed otherwise: they are a little higher or lower."""
        precision = getattr(encoder, "precision", None)
        if None not in (self.computed_in, precision) and precision != self.computed_in:
            raise ModelMismatch(
                f"the calibration was made in {self.computed_in}, and this encoder computes in {precision}; "
                f"compute in {self.computed_in} (--precision), or calibrate in {precision} "
                "(--compute-precision)"
            )

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write it as JSON."""
        with OutputFile(path, overwrite=overwrite) as file:
            file.append((json.dumps(asdict(self), indent=2) + "\n").encode(), 1)


def calibrate(
    encoder: Encoder,
    pairs: Examples,
    *,
    positive: str = "1",
    precision: float | None = None,
    on_progress: OnProgress | None = None,
) -> Calibration:
    """The threshold with the best F1 on labelled pairs, or the one that finds most at a wanted precision.

    `positive` is the label of the duplicates.
    """
    if precision is not None and not 0 < precision <= 1:
        raise InvalidInput(f"precision is {precision!r}; expected a share: give a number above 0, at most 1")
    is_positive = positives_of(pairs, positive, pairs.origin)
    scores = _scores(encoder, pairs, on_progress)
    split = _split(scores, is_positive, precision)
    if split is None:
        best = Separation(scores, is_positive).best_precision()
        raise InvalidInput(
            f"no threshold has a precision of {precision:g} on these {len(pairs):,} pairs; the best is "
            f"{best.value:.3f} at {best.threshold:.4f}: ask for less, or use a better model"
        )
    slope, intercept = fit_logistic_curve(scores, is_positive)
    if slope <= 0:
        raise InvalidInput(
            f"pairs labelled {positive!r} are not more similar than the others; expected that they are: "
            "say with positive= (--positive) which label means that a pair is a duplicate"
        )
    found_precision, found_recall = _figures(_counts(scores, is_positive, split.threshold))
    held_out_precision, held_out_recall = _held_out(scores, is_positive, precision)
    return Calibration(
        fingerprint=encoder.fingerprint,
        threshold=split.threshold,
        slope=slope,
        intercept=intercept,
        aim="best F1" if precision is None else f"precision of at least {precision:g}",
        precision=found_precision or 0.0,
        recall=found_recall or 0.0,
        held_out_precision=held_out_precision,
        held_out_recall=held_out_recall,
        n_pairs=len(pairs),
        n_positive=int(is_positive.sum()),
        computed_in=getattr(encoder, "precision", None),
    )


def load_calibration(path: str | os.PathLike[str]) -> Calibration:
    """A calibration that was saved."""
    try:
        saved = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}; expected a calibration") from error
    except ValueError as error:
        raise InvalidInput(f"{path} is not JSON ({error}); expected what gemel calibrate writes") from error
    known = {field.name: field.type for field in fields(Calibration)}
    needed = {field.name for field in fields(Calibration) if field.default is MISSING}
    if not isinstance(saved, Mapping) or not needed <= set(saved) <= set(known):
        given = ", ".join(saved) if isinstance(saved, Mapping) else type(saved).__name__
        raise InvalidInput(
            f"{path} holds {given or 'nothing'}; expected {', '.join(known)}: make it with gemel calibrate"
        )
    for name, value in saved.items():
        if not _fits(value, str(known[name])):
            raise InvalidInput(
                f"{path}: {name} is {value!r}; expected {known[name]}: make it with gemel calibrate"
            )
    return Calibration(**saved)


def _fits(value: Any, kind: str) -> bool:
    if value is None:
        return kind.endswith("None")
    if kind.startswith("str"):
        return isinstance(value, str)
    return not isinstance(value, bool) and isinstance(value, int if kind == "int" else int | float)


def _scores(encoder: Encoder, pairs: Examples, on_progress: OnProgress | None) -> Doubles:
    left, right = pairs.columns.values()
    places = {text: row for row, text in enumerate(dict.fromkeys([*left, *right]))}
    vectors = encode_distinct(encoder, list(places), on_progress)
    scores = np.empty(len(pairs))
    for start in range(0, len(pairs), _PAIRS_AT_ONCE):
        some = slice(start, start + _PAIRS_AT_ONCE)
        first, second = ([places[text] for text in side[some]] for side in (left, right))
        scores[some] = pairwise(vectors[first], vectors[second])
    return scores


def _split(scores: Doubles, is_positive: Flags, precision: float | None) -> Split | None:
    separation = Separation(scores, is_positive)
    return separation.best_f1() if precision is None else separation.lowest_with_precision(precision)


# How good a threshold is -----------------------------------------------------------------------------


def _counts(scores: Doubles, is_positive: Flags, threshold: float) -> npt.NDArray[np.int64]:
    """True positives, what was taken for positive, and all positives (3,)."""
    is_taken = scores >= threshold
    return np.array([(is_taken & is_positive).sum(), is_taken.sum(), is_positive.sum()])


def _figures(counts: npt.NDArray[np.int64]) -> tuple[float | None, float | None]:
    """Precision and recall; None where nothing was taken."""
    n_true, n_taken, n_positive = counts.tolist()
    return n_true / n_taken if n_taken else None, n_true / n_positive if n_positive else None


def _held_out(
    scores: Doubles, is_positive: Flags, precision: float | None
) -> tuple[float | None, float | None]:
    """Precision and recall on the pairs of each fold with the threshold of the others."""
    if min(is_positive.sum(), (~is_positive).sum()) < 2 * N_FOLDS:
        return None, None
    random, folds = np.random.default_rng(0), np.empty(len(scores), np.int64)
    for side in (np.flatnonzero(is_positive), np.flatnonzero(~is_positive)):
        folds[random.permutation(side)] = np.arange(len(side)) % N_FOLDS
    total = np.zeros(3, np.int64)
    for fold in range(N_FOLDS):
        others = folds != fold
        split = _split(scores[others], is_positive[others], precision)
        threshold = np.inf if split is None else split.threshold
        total += _counts(scores[~others], is_positive[~others], threshold)
    return _figures(total)


# The curve -------------------------------------------------------------------------------------------


def fit_logistic_curve(scores: npt.ArrayLike, is_positive: npt.ArrayLike) -> tuple[float, float]:
    """Slope and intercept of the logistic curve that the labels are likeliest under.

    By Newton's method with Platt's targets, (n + 1) / (n + 2) instead of 1 and likewise for 0, so that
    a curve exists even where one score divides the classes.
    """
    values, positive = np.asarray(scores, np.float64), np.asarray(is_positive, np.bool_)
    n_positive, n_negative = positive.sum(), (~positive).sum()
    targets = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    # Equal scores give a flat curve, and not one that is as steep as the rounding of their mean.
    centre, spread = (values.mean(), values.std()) if np.ptp(values) else (values[0], 1.0)
    inputs = np.stack([(values - centre) / spread, np.ones_like(values)], axis=1)
    parameters = np.array([0.0, np.log((n_positive + 1) / (n_negative + 1))])
    loss = _loss(inputs @ parameters, targets)
    for _ in range(_MOST_STEPS):
        shares = _logistic(inputs @ parameters)
        gradient = inputs.T @ (shares - targets)
        if np.abs(gradient).max() < 1e-9 * len(values):
            break
        weights = shares * (1 - shares)
        curvature = (inputs * weights[:, None]).T @ inputs + 1e-12 * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        while size > 1e-10 and _loss(inputs @ (parameters - size * step), targets) > loss:
            size /= 2
        parameters = parameters - size * step
        loss = _loss(inputs @ parameters, targets)
    slope = parameters[0] / spread
    return float(slope), float(parameters[1] - slope * centre)


def _logistic(values: Doubles) -> Doubles:
    shares: Doubles = np.exp(-np.logaddexp(0, -values))
    return shares


def _loss(logits: Doubles, targets: Doubles) -> float:
    """The cross-entropy of the targets."""
    return float((np.logaddexp(0, logits) - targets * logits).sum())
