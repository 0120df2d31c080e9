"""Logistic regression with an L2 penalty, many fits at once: the classifier that probes sentence vectors.

The objective is scikit-learn's: the cost C times the sum of the log-losses plus half the squared length of
the weights; the intercept is free, and more than two classes share one softmax. Fits over the same rows (the
folds of a cross-validation, a grid of costs) are solved together by Newton's method with conjugate gradients:
the work is products of one matrix of features with some dozens of columns. Features are centred and turned
onto their principal axes once: the penalty does not notice, and there one diagonal is near the Hessian of
every fold and every cost. Products with the Hessian are float32, logits and gradients float64.

A fit ends with the step that promises to lower the objective by less than TOLERANCE / 2 nats, summed over all
rows, which leaves the weights within about a millionth of the minimum. They are scikit-learn's at a tolerance
of 1e-8; with its default, 1e-4, it stops earlier, where about a hundredth of the predictions are others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors
from gemel.errors import InvalidInput

TOLERANCE = 1e-6  # of the squared Newton decrement, which is twice what a step promises
MAX_STEPS = 100
MAX_PRODUCTS = 100  # with the Hessian, for one step
BLOCK_ROWS = 1_024  # whose features stay in the second-level cache between a product and its transpose
LEAST_BEND = 1e-6  # where all rows are certain, steps would be without bounds

Labels = npt.NDArray[np.int64]
Kept = npt.NDArray[np.bool_]  # (rows, fits): what a fit learns from
_Doubles = npt.NDArray[np.float64]
_Singles = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class LinearClassifier:
    """What a fit has learnt, for vectors as they came."""

    weights: _Doubles  # (dim, outputs); one output for two classes
    intercepts: _Doubles  # (outputs,)

    def predict(self, vectors: Vectors) -> Labels:
        """The likeliest class of each vector."""
        return _decide(vectors @ self.weights + self.intercepts)

    def probabilities(self, vectors: Vectors) -> _Doubles:
        """How likely each class is for each vector (n, classes); rows add up to 1."""
        logits = vectors @ self.weights + self.intercepts
        if logits.shape[1] == 1:
            logits = np.concatenate([np.zeros_like(logits), logits], axis=1)
        shares: _Doubles = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return shares


class Design:
    """Vectors made ready for any number of fits: centred, and turned onto their principal axes."""

    def __init__(self, vectors: Vectors) -> None:
        if vectors.ndim != 2 or not vectors.size:
            raise InvalidInput(f"a classifier was given vectors of shape {vectors.shape}; expected (n, dim)")
        if not np.isfinite(vectors).all():
            raise InvalidInput("a classifier was given NaN or infinity; expected finite vectors")
        self.centre: _Doubles = vectors.mean(axis=0, dtype=np.float64)
        self.longest = float(np.linalg.norm(vectors, axis=1).max())
        centred = vectors - self.centre
        if len(vectors) < vectors.shape[1]:  # weights never leave the space that the rows span
            _, lengths, axes = np.linalg.svd(centred, full_matrices=False)
            squares, self.axes = lengths**2, axes.T
        else:
            squares, self.axes = np.linalg.eigh(centred.T @ centred)
        # The intercept is one more feature, which is 1 everywhere.
        self.features = np.ones((len(vectors), len(squares) + 1), np.float32)
        self.features[:, :-1] = centred @ self.axes
        self.squares: _Doubles = np.append(
            squares.clip(0), len(vectors)
        )  # of each axis, summed over the rows

    def __len__(self) -> int:
        return len(self.features)

    def blocks(self) -> Iterator[tuple[slice, _Singles]]:
        """The features, some rows at a time."""
        for first in range(0, len(self), BLOCK_ROWS):
            rows = slice(first, first + BLOCK_ROWS)
            yield rows, self.features[rows]


@dataclass(frozen=True, eq=False)
class Fits:
    """Several classifiers that were fitted together."""

    design: Design
    weights: _Doubles  # (axes + 1, fits, outputs), along the design's axes, the intercept last
    logits: _Doubles  # (rows, fits, outputs), also of rows that were left out

    def predictions(self) -> Labels:
        """The likeliest class of every row of the design by every fit: (rows, fits)."""
        return _decide(self.logits)

    def classifier(self, fit: int) -> LinearClassifier:
        """One of them, for other vectors."""
        weights = self.design.axes @ self.weights[:-1, fit]
        return LinearClassifier(weights, self.weights[-1, fit] - self.design.centre @ weights)


def fit_logistic(
    design: Design,
    labels: Labels,
    costs: Sequence[float] | _Doubles,
    kept: Kept | None = None,
    start: _Doubles | None = None,
) -> Fits:
    """One fit for each cost, each over all rows or over those that its column of `kept` keeps.

    `start` is the weights of other fits over the design, as many as there are costs: the nearer, the quicker.
    """
    penalties = 1 / _checked_costs(costs)
    if kept is None:
        kept = np.ones((len(design), 1), np.bool_)
    kept = np.broadcast_to(kept, (len(design), len(penalties)))
    n_classes = _checked_classes(labels, len(design), kept)
    loss: _Loss = _TwoClasses(labels) if n_classes == 2 else _Softmax(labels, n_classes)
    shape = (design.features.shape[1], len(penalties), loss.n_outputs)
    weights = np.zeros(shape) if start is None else start.reshape(shape).astype(np.float64)
    logits = _products(design, weights)
    moving = np.arange(len(penalties))
    for _ in range(MAX_STEPS):
        fits = _MovingFits(
            design, loss, kept[:, moving], penalties[moving], weights[:, moving], logits[:, moving]
        )
        has_ended = fits.move()
        weights[:, moving], logits[:, moving] = fits.weights, fits.logits
        moving = moving[~has_ended]
        if not len(moving):
            break
    else:
        raise InvalidInput(
            f"a classifier with C = {1 / penalties[moving[0]]:g} has not converged in {MAX_STEPS} steps, on "
            f"vectors of length up to {design.longest:g}; scale the vectors to lengths of about 1, or lower C"
        )
    if n_classes > 2:  # a shift of all intercepts changes nothing: let their mean be 0, as in scikit-learn
        surplus = weights[-1].mean(axis=-1, keepdims=True)
        weights[-1] -= surplus
        logits -= surplus
    return Fits(design, weights, logits)


# The losses -----------------------------------------------------------------------------------------


class _TwoClasses:
    """The log-loss of one logit: how much likelier class 1 is than class 0."""

    n_outputs = 1

    def __init__(self, labels: Labels) -> None:
        self.signs = (2.0 * labels - 1)[:, None, None]

    def evaluate(self, logits: _Doubles) -> tuple[_Doubles, _Doubles, _Doubles]:
        """Losses (rows, fits), their slopes and the probabilities (rows, fits, outputs)."""
        margins = self.signs * logits
        shrunk = np.exp(-np.abs(margins))
        losses = (np.log(1 + shrunk) - np.minimum(margins, 0))[..., 0]
        wrong = np.where(margins > 0, shrunk, 1) / (1 + shrunk)  # the probability of the other class
        return losses, -self.signs * wrong, wrong

    def bend(self, probabilities: _Singles, changes: _Singles) -> _Singles:
        """How the slopes change with the logits."""
        bent: _Singles = probabilities * (1 - probabilities) * changes
        return bent

    def mean_bends(self, probabilities: _Singles, kept: Kept) -> _Singles:
        """The matrix (outputs, outputs) by which the rows of each fit bend, on average over all rows."""
        bends = probabilities * (1 - probabilities)
        means: _Singles = np.einsum("rfo,rf->fo", bends, kept)[..., None] / len(kept)
        return means


class _Softmax:
    """The log-loss of one logit a class."""

    def __init__(self, labels: Labels, n_classes: int) -> None:
        self.n_outputs = n_classes
        self.is_class = np.eye(n_classes)[labels][:, None]

    def evaluate(self, logits: _Doubles) -> tuple[_Doubles, _Doubles, _Doubles]:
        """Losses (rows, fits), their slopes and the probabilities (rows, fits, outputs)."""
        shifted = logits - logits.max(axis=-1, keepdims=True)
        probabilities = np.exp(shifted)
        totals = probabilities.sum(axis=-1, keepdims=True)
        probabilities /= totals
        losses = np.log(totals[..., 0]) - (shifted * self.is_class).sum(axis=-1)
        return losses, probabilities - self.is_class, probabilities

    def bend(self, probabilities: _Singles, changes: _Singles) -> _Singles:
        """How the slopes change with the logits."""
        means = (probabilities * changes).sum(axis=-1, keepdims=True)
        bent: _Singles = probabilities * (changes - means)
        return bent

    def mean_bends(self, probabilities: _Singles, kept: Kept) -> _Singles:
        """The same, less one where all logits rise together: nothing bends there, and it shall come first."""
        by_fit = probabilities.transpose(1, 2, 0)  # (fits, outputs, rows)
        of_kept = by_fit * kept.T[:, None]
        means: _Singles = -of_kept @ by_fit.transpose(0, 2, 1)
        classes = np.arange(self.n_outputs)
        means[:, classes, classes] += of_kept.sum(axis=-1)
        means /= len(kept)
        means -= 1 / self.n_outputs
        return means


_Loss = _TwoClasses | _Softmax


# Newton's method ------------------------------------------------------------------------------------


class _MovingFits:
    """The fits that have not ended, somewhere on their way."""

    def __init__(
        self,
        design: Design,
        loss: _Loss,
        kept: Kept,
        penalties: _Doubles,
        weights: _Doubles,
        logits: _Doubles,
    ) -> None:
        self.design, self.loss = design, loss
        self.kept = kept
        self.penalties = np.repeat(penalties[None, :, None], len(weights), axis=0)
        self.penalties[-1] = 0  # of the intercept
        self.weights, self.logits = weights, logits
        self.losses, slopes, probabilities = loss.evaluate(logits)
        self.gradient = _transposed_products(design, slopes * kept[..., None]) + self.penalties * weights
        self.probabilities = probabilities.astype(np.float32)

    def move(self) -> npt.NDArray[np.bool_]:
        """Take a Newton step, shorter where it would overshoot; which fits have ended with it (fits,)."""
        step = self._newton_step()
        promised = -(self.gradient * step).sum(axis=(0, 2))
        changes = _products(self.design, step)
        before = self._objective(self.losses, self.weights)
        lengths = np.ones(len(promised))
        for _ in range(30):
            scale = lengths[None, :, None]
            weights, logits = self.weights + scale * step, self.logits + scale * changes
            after = self._objective(self.loss.evaluate(logits)[0], weights)
            overshoots = after > before - 1e-4 * lengths * promised + 1e-12 * before
            if not overshoots.any():
                break
            lengths[overshoots] /= 2
        self.weights, self.logits = weights, logits
        # Tiny costs make for tiny weights, of which a millionth is less still; the last term is rounding.
        has_ended: npt.NDArray[np.bool_] = (
            promised <= TOLERANCE * np.minimum(1, self._squares(weights)) + 1e-14 * before
        )
        return has_ended

    def _squares(self, weights: _Doubles) -> _Doubles:
        squares: _Doubles = (self.penalties * weights**2).sum(axis=(0, 2))
        return squares

    def _objective(self, losses: _Doubles, weights: _Doubles) -> _Doubles:
        total: _Doubles = np.einsum("rf,rf->f", losses, self.kept) + self._squares(weights) / 2
        return total

    def _newton_step(self) -> _Doubles:
        """The solution of Hessian x step = -gradient, by preconditioned conjugate gradients."""
        precondition = self._preconditioner()
        residual = (-self.gradient).astype(np.float32)
        step = np.zeros_like(residual)
        scaled = precondition(residual)
        direction = scaled
        size = (residual * scaled).sum(axis=(0, 2))
        # Far from the minimum a rough step does; nearer to it, exacter ones are worth their products.
        enough = size * np.sqrt(size).clip(1e-2, 1e-1) ** 2
        for _ in range(MAX_PRODUCTS):
            product = self._hessian_times(direction)
            curvature = (direction * product).sum(axis=(0, 2))
            length = _ratio(np.where(size > enough, size, 0), curvature)[None, :, None]
            step += length * direction
            residual -= length * product
            scaled = precondition(residual)
            new_size = (residual * scaled).sum(axis=(0, 2))
            if (new_size <= enough).all():
                break
            direction = scaled + _ratio(new_size, size)[None, :, None] * direction
            size = new_size
        return step.astype(np.float64)

    def _preconditioner(self) -> Callable[[_Singles], _Singles]:
        """The inverse of what the Hessian would be if all rows of a fit bent alike."""
        bends, mixes = np.linalg.eigh(self.loss.mean_bends(self.probabilities, self.kept))
        bends = np.maximum(bends, LEAST_BEND)
        inverse = (1 / (bends * self.design.squares[:, None, None] + self.penalties)).astype(np.float32)
        if self.loss.n_outputs > 1:  # all intercepts together, which nothing holds and nothing shall move
            inverse[-1, :, 0] = 0
        inverse, mixes_back = inverse.transpose(1, 0, 2), mixes.transpose(0, 2, 1)

        def precondition(residual: _Singles) -> _Singles:
            mixed = (residual.transpose(1, 0, 2) @ mixes) * inverse
            return np.ascontiguousarray((mixed @ mixes_back).transpose(1, 0, 2))

        return precondition

    def _hessian_times(self, direction: _Singles) -> _Singles:
        product = self.penalties.astype(np.float32) * direction
        flat, flat_product = _flat(direction), _flat(product)
        for rows, features in self.design.blocks():
            changes = (features @ flat).reshape(-1, *direction.shape[1:])
            bent = self.loss.bend(self.probabilities[rows], changes) * self.kept[rows, :, None]
            flat_product += features.T @ _flat(bent)
        return product


def _products(design: Design, weights: _Doubles) -> _Doubles:
    """The logits (rows, fits, outputs) of weights (axes, fits, outputs)."""
    logits = np.empty((len(design), *weights.shape[1:]))
    for rows, features in design.blocks():
        logits[rows] = (features.astype(np.float64) @ _flat(weights)).reshape(-1, *weights.shape[1:])
    return logits


def _transposed_products(design: Design, slopes: _Doubles) -> _Doubles:
    """What the rows' slopes (rows, fits, outputs) come to along each axis."""
    total = np.zeros((design.features.shape[1], *slopes.shape[1:]))
    flat_total = _flat(total)  # a view
    for rows, features in design.blocks():
        flat_total += features.astype(np.float64).T @ _flat(slopes[rows])
    return total


def _ratio(dividends: _Singles, divisors: _Singles) -> _Singles:
    """Nothing where there is nothing to divide by."""
    ratio: _Singles = np.divide(dividends, divisors, out=np.zeros_like(dividends), where=divisors > 0)
    return ratio


_Floats = TypeVar("_Floats", _Singles, _Doubles)


def _flat(array: _Floats) -> _Floats:
    return array.reshape(len(array), -1)


def _decide(logits: _Doubles) -> Labels:
    if logits.shape[-1] == 1:
        return (logits[..., 0] > 0).astype(np.int64)
    likeliest: Labels = logits.argmax(axis=-1)
    return likeliest


def _checked_costs(costs: Sequence[float] | _Doubles) -> _Doubles:
    checked = np.asarray(costs, np.float64)
    if checked.ndim != 1 or not len(checked) or not ((checked > 0) & np.isfinite(checked)).all():
        raise InvalidInput(f"the costs C are {costs!r}; expected positive numbers, such as [0.5, 1, 2]")
    return checked


def _checked_classes(labels: Labels, n_rows: int, kept: Kept) -> int:
    """How many classes there are, found to be in every fit."""
    if labels.shape != (n_rows,):
        raise InvalidInput(
            f"{n_rows:,} vectors were given labels of shape {labels.shape}; expected ({n_rows},)"
        )
    n_classes = int(labels.max()) + 1
    if n_classes < 2:
        raise InvalidInput("all labels are class 0; expected two classes or more to tell apart")
    for number in range(n_classes):
        without = ~kept[labels == number].any(axis=0)
        if without.any():
            raise InvalidInput(
                f"class {number} has no example in fit {int(without.argmax())}; expected one of each class: "
                "number the classes from 0 without gaps, and give each fit some of all of them"
            )
    return n_classes
