"""What a linear classifier finds in vectors: the three ways in which SentEval validates one.

A set without splits is cross-validated in two rings (MR, CR, SUBJ, MPQA); where there is a test part, folds
of the training part choose the cost C (TREC, MRPC); where there is a development part too, it chooses (SST).
Grids, seeds and folds are those of SentEval's scikit-learn classifier; of development accuracies that are
equal to a hundredth of a percent, as it rounds them, the smallest cost wins. Nothing else is rounded here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors
from gemel.evaluate.folds import stratified_folds
from gemel.tasks.logistic import Design, Labels, fit_logistic

SEED = 1111
N_FOLDS = 10
COSTS = tuple(2.0**power for power in range(-2, 4))
COSTS_BY_FOLDS = tuple(
    2.0**power for power in range(-1, 6)
)  # SentEval's grid where it has train and test only

OnFits = Callable[[int], object]  # is told how many more fits are done


@dataclass(frozen=True, eq=False)
class Probed:
    """What came of it; one cost and one accuracy for each outer fold, or for the test part."""

    accuracies: tuple[float, ...]
    dev_accuracies: tuple[float, ...]
    costs: tuple[float, ...]
    predictions: Labels  # of all rows, or of the test part


def n_fits(splits: Sequence[str], n_folds: int = N_FOLDS) -> int:
    """How many classifiers are fitted for a set that has these splits."""
    if "dev" in splits:
        return len(COSTS)
    if "test" in splits:
        return (n_folds + 1) * len(COSTS_BY_FOLDS)
    return (n_folds + 1) * n_folds * len(COSTS)


def probe_in_rings(
    vectors: Vectors, labels: Labels, n_folds: int = N_FOLDS, on_fits: OnFits | None = None
) -> Probed:
    """Every row is predicted once, by a classifier whose cost was chosen by inner folds of its own rows."""
    design = Design(vectors)
    outer = stratified_folds(labels, n_folds, SEED)
    kept = outer[:, None] != np.arange(n_folds)
    # All costs for each outer fold: one of them will be chosen, and all are where the inner fits start.
    fits = fit_logistic(design, labels, np.tile(COSTS, n_folds), np.repeat(kept, len(COSTS), axis=1))
    _tell(on_fits, n_folds * len(COSTS))
    starts = fits.weights.reshape(len(fits.weights), n_folds, len(COSTS), -1)
    predicted = fits.predictions().reshape(len(labels), n_folds, len(COSTS))
    predictions = np.empty_like(labels)
    accuracies, dev_accuracies, costs = [], [], []
    for fold in range(n_folds):
        inner = np.full(len(labels), -1)
        inner[kept[:, fold]] = stratified_folds(labels[kept[:, fold]], n_folds, SEED)
        by_cost = _accuracies_by_cost(design, labels, inner, COSTS, starts[:, fold])
        _tell(on_fits, n_folds * len(COSTS))
        chosen = _choose(by_cost)
        rows = ~kept[:, fold]
        predictions[rows] = predicted[rows, fold, chosen]
        accuracies.append(_share(predictions[rows] == labels[rows]))
        dev_accuracies.append(float(by_cost[chosen]))
        costs.append(COSTS[chosen])
    return Probed(tuple(accuracies), tuple(dev_accuracies), tuple(costs), predictions)


def probe_by_folds(
    train: tuple[Vectors, Labels],
    test: tuple[Vectors, Labels],
    n_folds: int = N_FOLDS,
    on_fits: OnFits | None = None,
) -> Probed:
    """The test part is predicted by a classifier of the whole training part, whose folds chose its cost."""
    vectors, labels = train
    design = Design(vectors)
    fits = fit_logistic(design, labels, COSTS_BY_FOLDS)
    _tell(on_fits, len(COSTS_BY_FOLDS))
    folds = stratified_folds(labels, n_folds, SEED)
    by_cost = _accuracies_by_cost(design, labels, folds, COSTS_BY_FOLDS, fits.weights)
    _tell(on_fits, n_folds * len(COSTS_BY_FOLDS))
    chosen = _choose(by_cost)
    predictions = fits.classifier(chosen).predict(test[0])
    return Probed(
        (_share(predictions == test[1]),), (float(by_cost[chosen]),), (COSTS_BY_FOLDS[chosen],), predictions
    )


def probe_by_dev(
    train: tuple[Vectors, Labels],
    dev: tuple[Vectors, Labels],
    test: tuple[Vectors, Labels],
    on_fits: OnFits | None = None,
) -> Probed:
    """The test part is predicted by a classifier of the training part, whose cost the dev part chose."""
    fits = fit_logistic(Design(train[0]), train[1], COSTS)
    _tell(on_fits, len(COSTS))
    classifiers = [fits.classifier(fit) for fit in range(len(COSTS))]
    by_cost = np.array([_share(each.predict(dev[0]) == dev[1]) for each in classifiers])
    chosen = _choose(by_cost)
    predictions = classifiers[chosen].predict(test[0])
    return Probed((_share(predictions == test[1]),), (float(by_cost[chosen]),), (COSTS[chosen],), predictions)


def _accuracies_by_cost(
    design: Design,
    labels: Labels,
    folds: npt.NDArray[np.int64],
    costs: Sequence[float],
    starts: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """The mean accuracy of each cost on folds that its classifiers did not see.

    Rows of fold -1 are left out; `starts` are weights (axes, costs, outputs) near which those of folds are.
    """
    n_folds = int(folds.max()) + 1
    learns = (folds[:, None] != np.arange(n_folds)) & (folds[:, None] >= 0)
    fits = fit_logistic(
        design,
        labels,
        np.tile(costs, n_folds),
        np.repeat(learns, len(costs), axis=1),
        np.tile(starts, (1, n_folds, 1)),
    )
    is_right = fits.predictions().reshape(len(labels), n_folds, len(costs)) == labels[:, None, None]
    accuracies = [is_right[folds == fold, fold].mean(axis=0) for fold in range(n_folds)]
    means: npt.NDArray[np.float64] = np.mean(accuracies, axis=0)
    return means


def _choose(accuracies: npt.NDArray[np.float64]) -> int:
    return int(np.round(100 * accuracies, 2).argmax())


def _share(is_right: npt.NDArray[np.bool_]) -> float:
    return float(is_right.mean())


def _tell(on_fits: OnFits | None, n_done: int) -> None:
    if on_fits is not None:
        on_fits(n_done)
