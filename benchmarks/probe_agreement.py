"""SentEval's transfer tasks beside scikit-learn: the same vectors, the same folds, another solver.

    python benchmarks/probe_agreement.py --data DATA [--task CR ...] [--as-it-comes]

The referee is SentEval's own procedure written down once more with scikit-learn's StratifiedKFold and
LogisticRegression, by default run to convergence (tolerance 1e-8); with --as-it-comes it is
`LogisticRegression(C=...)` with nothing else said, as SentEval calls it. Encoding is not counted.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import click
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold

from gemel.data.examples import Examples
from gemel.evaluate.transfer import SST5, TRANSFER_TASKS, TransferData, evaluate_transfer, read_transfer
from gemel.loading import load_encoder
from gemel.table import format_table

SEED = 1111
QUICK = ("CR", "TREC", "MRPC")
TASKS = {task.name: task for task in (*TRANSFER_TASKS, SST5)}
METRICS = ("accuracy", "dev_accuracy", "f1")
Classifier = Callable[[float, int], Any]
Part = tuple[np.ndarray, np.ndarray]


class RememberedEncoder:
    """An encoder whose work is done: it looks vectors up."""

    def __init__(self, encoder: Any, texts: Sequence[str]) -> None:
        self.dim, self.fingerprint = encoder.dim, encoder.fingerprint
        distinct = list(dict.fromkeys(texts))
        self.rows = {text: row for row, text in enumerate(distinct)}
        self.vectors = encoder.encode(distinct)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return self.vectors[[self.rows[text] for text in texts]]


# The referee ----------------------------------------------------------------------------------------


def converged(cost: float, n_classes: int) -> Any:
    """scikit-learn's classifier at its minimum, by the solver that is quickest there."""
    solver = "newton-cholesky" if n_classes == 2 else "lbfgs"
    return LogisticRegression(C=cost, solver=solver, tol=1e-8, max_iter=10_000)


def as_it_comes(cost: float, n_classes: int) -> Any:
    """What SentEval calls: the default tolerance (with more iterations, which spares a warning)."""
    return LogisticRegression(C=cost, random_state=SEED, max_iter=1_000)


def referee(data: TransferData, encoder: Any, n_folds: int, classifier: Classifier) -> dict[str, float]:
    """SentEval's figures for a task, as fractions."""
    parts = {split: features_and_labels(part, encoder) for split, part in data.splits.items()}
    if "all" in parts:
        return nested(*parts["all"], n_folds, classifier)
    train, test = parts["train"], parts["test"]
    if "dev" in parts:
        grid = [2.0**power for power in range(-2, 4)]
        by_cost = [accuracy(fitted(classifier, cost, train), parts["dev"]) for cost in grid]
    else:
        grid = [2.0**power for power in range(-1, 6)]
        by_cost = cross_validated(*train, grid, n_folds, classifier)
    best = fitted(classifier, grid[chosen(by_cost)], train)
    figures = {"accuracy": accuracy(best, test), "dev_accuracy": by_cost[chosen(by_cost)]}
    if isinstance(data.splits["test"], Examples):
        figures["f1"] = float(f1_score(test[1], best.predict(test[0])))
    return figures


def features_and_labels(part: Any, encoder: Any) -> Part:
    """The rows as SentEval sorts them: by the words of the first text, of the second, by label."""
    columns = list(part.columns.values()) if isinstance(part, Examples) else [part.texts]
    rows = sorted(
        zip(*columns, part.labels.tolist(), strict=True),
        key=lambda row: (*(len(text.split()) for text in row[:-1]), row[-1]),
    )
    vectors = [encoder.encode([row[column] for row in rows]) for column in range(len(columns))]
    if len(vectors) == 2:
        vectors = [np.c_[np.abs(vectors[0] - vectors[1]), vectors[0] * vectors[1]]]
    return vectors[0].astype(np.float64), np.array([row[-1] for row in rows])


def nested(vectors: np.ndarray, labels: np.ndarray, n_folds: int, classifier: Classifier) -> dict[str, float]:
    """Folds within folds."""
    grid = [2.0**power for power in range(-2, 4)]
    accuracies, dev_accuracies = [], []
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=SEED)
    splits = list(folds.split(vectors, labels))
    with click.progressbar(splits, label="scikit-learn", file=sys.stderr) as outer:
        for train, test in outer:
            by_cost = cross_validated(vectors[train], labels[train], grid, n_folds, classifier)
            best = fitted(classifier, grid[chosen(by_cost)], (vectors[train], labels[train]))
            accuracies.append(accuracy(best, (vectors[test], labels[test])))
            dev_accuracies.append(by_cost[chosen(by_cost)])
    return {"accuracy": float(np.mean(accuracies)), "dev_accuracy": float(np.mean(dev_accuracies))}


def cross_validated(
    vectors: np.ndarray, labels: np.ndarray, grid: Sequence[float], n_folds: int, classifier: Classifier
) -> list[float]:
    """The mean accuracy of each cost."""
    folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=SEED).split(vectors, labels))
    means = []
    for cost in grid:
        accuracies = [
            accuracy(fitted(classifier, cost, (vectors[train], labels[train])), (vectors[test], labels[test]))
            for train, test in folds
        ]
        means.append(float(np.mean(accuracies)))
    return means


def chosen(by_cost: Sequence[float]) -> int:
    return int(np.argmax([round(100 * each, 2) for each in by_cost]))


def fitted(classifier: Classifier, cost: float, part: Part) -> Any:
    return classifier(cost, len(np.unique(part[1]))).fit(*part)


def accuracy(classifier: Any, part: Part) -> float:
    return float(classifier.score(*part))


# Side by side ---------------------------------------------------------------------------------------


def compare(data: TransferData, encoder: Any, n_folds: int, classifier: Classifier) -> dict[str, Any]:
    """Both figures of a task, and how long both took."""
    began, cpu_began = time.perf_counter(), time.process_time()
    (scores,) = evaluate_transfer(encoder, [data], n_folds=n_folds)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    began = time.perf_counter()
    theirs = referee(data, encoder, n_folds, classifier)
    return {
        "task": data.name,
        "gemel": {name: scores.metrics[name] for name in METRICS if name in scores.metrics},
        "scikit-learn": theirs,
        "gemel_seconds": seconds,
        "gemel_cpu_seconds": cpu_seconds,
        "scikit-learn_seconds": time.perf_counter() - began,
    }


def texts_of(sets: Sequence[TransferData]) -> list[str]:
    parts = [part for data in sets for part in data.splits.values()]
    columns = [
        column
        for part in parts
        for column in (part.columns.values() if isinstance(part, Examples) else [part.texts])
    ]
    return [text for column in columns for text in column]


def row_of(result: dict[str, Any], metric: str) -> list[str]:
    ours, theirs = 100 * result["gemel"][metric], 100 * result["scikit-learn"][metric]
    figures = [f"{ours:.2f}", f"{theirs:.2f}", f"{ours - theirs:+.2f}"]
    if metric != "accuracy":
        return ["", metric, *figures, "", ""]
    times = [f"{result[f'{system}_seconds']:.1f}" for system in ("gemel", "scikit-learn")]
    return [result["task"], metric, *figures, *times]


@click.command()
@click.option("--data", envvar="GEMEL_DATA", required=True, metavar="DIR", help="The folder of data sets.")
@click.option("--model", metavar="MODEL", help="What encodes.  [default: the default model]")
@click.option(
    "--task", "names", multiple=True, type=click.Choice(list(TASKS)), default=QUICK, show_default=True
)
@click.option("--precision", type=click.Choice(["int8", "float32"]), help="Of the native engine.")
@click.option("--folds", "n_folds", default=10, show_default=True)
@click.option("--as-it-comes", "unconverged", is_flag=True, help="Leave scikit-learn's tolerance as it is.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines instead of a table.")
def main(
    data: str,
    model: str | None,
    names: tuple[str, ...],
    precision: str | None,
    n_folds: int,
    unconverged: bool,
    as_json: bool,
) -> None:
    """Print gemel's figures beside scikit-learn's."""
    sets = read_transfer(data, [TASKS[name] for name in names])
    encoder = RememberedEncoder(
        load_encoder(model, precision=precision, on_truncate="ignore"), texts_of(sets)
    )
    rows = []
    for each in sets:
        result = compare(each, encoder, n_folds, as_it_comes if unconverged else converged)
        rows += [row_of(result, metric) for metric in METRICS if metric in result["gemel"]]
        if as_json:
            click.echo(json.dumps(result))
    if not as_json:
        header = ["task", "figure", "gemel", "scikit-learn", "difference", "gemel s", "scikit-learn s"]
        click.echo(format_table(header, rows))


if __name__ == "__main__":
    main()
