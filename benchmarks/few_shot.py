"""Few-shot classification beside SetFit: the same examples, the same encoder, the same number of pairs.

    python benchmarks/few_shot.py --data DATA --peer .venv-peers-setfit

banking77, 77 intents: each seed draws so many examples of each from the training part; accuracy is that on
the whole test part. SetFit runs as it comes (cosine loss, batches of 16 at 2e-5, scikit-learn's logistic
regression with C = 1), but for its number of steps: all pairs that it would make of 8 examples a class are
over 20,000 steps. A second line gives its classifier gemel's C, which was chosen on five sets, banking77's
training part among them. Seconds are those of learning, without loading, and of classifying the test part.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from gemel.checkpoint.resolving import resolve
from gemel.data.labelled import LabelledTexts, read_labelled
from gemel.loading import load_encoder
from gemel.table import format_table
from gemel.tasks.few_shot import COST, FewShotClassifier
from gemel.tasks.zero_shot import ZeroShotClassifier
from gemel.train.few_shot import ContrastiveTuner

WORKER = Path(__file__).parent / "workers" / "few_shot_setfit.py"
SETFIT_BATCH = 16


@dataclass(frozen=True)
class Outcome:
    """How one system did with one draw of examples."""

    accuracy: float
    learning_seconds: float
    predicting_seconds: float


# Takes examples, the test part and a seed.
System = Callable[[LabelledTexts, LabelledTexts, int], Outcome]


def drawn(train: LabelledTexts, n_shots: int, seed: int) -> LabelledTexts:
    """So many examples of each class."""
    generator = np.random.default_rng(seed)
    rows = [
        generator.permutation(np.flatnonzero(train.labels == each))[:n_shots]
        for each in np.unique(train.labels)
    ]
    return train.take(np.concatenate(rows))


def run_gemel(
    model: str | None, cost: float, n_pairs: int, examples: LabelledTexts, test: LabelledTexts, seed: int
) -> Outcome:
    """Frozen where there are no pairs to tune on."""
    tune = (
        ContrastiveTuner(n_pairs, n_rounds=n_pairs, seed=seed, open_folder=load_encoder) if n_pairs else None
    )
    classifier = FewShotClassifier(load_encoder(model), cost=cost, tune=tune)
    began = time.perf_counter()
    classifier.fit(examples.texts, examples.labels)
    learnt = time.perf_counter()
    accuracy = classifier.score(test.texts, test.labels)
    return Outcome(accuracy, learnt - began, time.perf_counter() - learnt)


def run_zero_shot(model: str | None, examples: LabelledTexts, test: LabelledTexts, seed: int) -> Outcome:
    """The names of the classes alone."""
    encoder = load_encoder(model)
    began = time.perf_counter()
    classifier = ZeroShotClassifier(encoder, [name.replace("_", " ") for name in test.label_names])
    learnt = time.perf_counter()
    predicted = classifier.probabilities(test.texts).argmax(axis=1)
    return Outcome(float((predicted == test.labels).mean()), learnt - began, time.perf_counter() - learnt)


def run_setfit(
    process: subprocess.Popen[str],
    model: str | None,
    n_pairs: int,
    examples: LabelledTexts,
    test: LabelledTexts,
    seed: int,
) -> Outcome:
    """SetFit in its own environment, one job a line."""
    job = {
        "model": str(resolve(model)),
        "texts": examples.texts,
        "labels": examples.labels.tolist(),
        "test": test.texts,
        "batch_size": SETFIT_BATCH,
        "max_steps": n_pairs // SETFIT_BATCH,
        "seed": seed,
    }
    return _answered(process, job, test)


def run_setfit_head(
    process: subprocess.Popen[str], cost: float, examples: LabelledTexts, test: LabelledTexts, seed: int
) -> Outcome:
    """What SetFit has just tuned, with another cost of its logistic regression."""
    return _answered(process, {"cost": cost}, test)


def _answered(process: subprocess.Popen[str], job: dict[str, Any], test: LabelledTexts) -> Outcome:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(job) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"SetFit ended with {process.wait()}; its messages are above")
    answer: dict[str, Any] = json.loads(line)
    accuracy = float((np.array(answer["predicted"]) == test.labels).mean())
    return Outcome(accuracy, answer["learning_seconds"], answer["predicting_seconds"])


@contextmanager
def setfit_process(peer: Path) -> Iterator[subprocess.Popen[str]]:
    """The peer's worker, which ends with this block."""
    with subprocess.Popen(
        [peer / "bin" / "python", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def measure(
    systems: dict[str, System], train: LabelledTexts, test: LabelledTexts, shots: tuple[int, ...], seeds: int
) -> None:
    """Print a line a system and number of examples, as soon as it is known."""
    rows = []
    for n_shots in shots:
        outcomes: dict[str, list[Outcome]] = {name: [] for name in systems}
        for seed in range(seeds):  # the systems take turns, so that a busy machine is busy for all
            for name, system in systems.items():
                outcomes[name].append(system(drawn(train, n_shots, seed), test, seed))
                sys.stderr.write(f"{n_shots} examples, seed {seed}, {name}: {outcomes[name][-1]}\n")
        for name, found in outcomes.items():
            accuracies = [100 * each.accuracy for each in found]
            rows.append(
                [
                    str(n_shots),
                    name,
                    f"{np.mean(accuracies):.1f} ± {np.std(accuracies):.1f}",
                    f"{np.median([each.learning_seconds for each in found]):,.1f}",
                    f"{np.median([each.predicting_seconds for each in found]):,.1f}",
                ]
            )
    click.echo(format_table(["examples", "system", "accuracy", "learning s", "predicting s"], rows))


@click.command()
@click.option("--data", type=Path, envvar="GEMEL_DATA", required=True, help="The folder of data sets.")
@click.option("--model", help="A model folder; the default model if none.")
@click.option("--shots", type=int, multiple=True, default=(8, 16))
@click.option("--seeds", default=3)
@click.option("--pairs", default=ContrastiveTuner.max_pairs, help="Pairs to tune on; 0 leaves tuning out.")
@click.option("--peer", type=Path, help="SetFit's environment; without, gemel stands alone.")
def main(
    data: Path, model: str | None, shots: tuple[int, ...], seeds: int, pairs: int, peer: Path | None
) -> None:
    """Print accuracies and seconds of all systems."""
    train = read_labelled(data / "banking77" / "train.tsv")
    test = read_labelled(data / "banking77" / "test.tsv", label_names=train.label_names)
    systems: dict[str, System] = {
        "gemel, names alone": partial(run_zero_shot, model),
        "gemel, frozen, C = 1": partial(run_gemel, model, 1.0, 0),
        f"gemel, frozen, C = {COST:g}": partial(run_gemel, model, COST, 0),
    }
    if pairs:
        systems[f"gemel, tuned on {pairs:,} pairs"] = partial(run_gemel, model, COST, pairs)
    if peer is None:
        measure(systems, train, test, shots, seeds)
        return
    with setfit_process(peer) as process:
        systems[f"SetFit, {pairs:,} pairs"] = partial(run_setfit, process, model, pairs)
        systems[f"SetFit, C = {COST:g}"] = partial(run_setfit_head, process, COST)
        measure(systems, train, test, shots, seeds)


if __name__ == "__main__":
    main()
