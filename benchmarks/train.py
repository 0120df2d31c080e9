"""Training speed beside sentence-transformers' own trainer: same data, same batches, same model.

    make bench-train GEMEL_DATA=DATA MODELS="FOLDER FOLDER"

Both train the paper's softmax objective on NLI pairs in float32. Each system runs in a process of its own
(the peer in its own environment); the rounds alternate, and the medians are compared. Loading is not counted.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np

from gemel.checkpoint.resolving import resolve
from gemel.data.example_files import read_examples
from gemel.table import format_table

HERE = Path(__file__).parent
WORKERS = {"gemel": "train_gemel.py", "sentence-transformers": "train_sentence_transformers.py"}


class Worker:
    """A system in its own process, given one job at a time."""

    def __init__(self, python: str, script: str) -> None:
        self._process = subprocess.Popen(
            [python, HERE / "workers" / script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def do(self, job: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self._process.args} ended with {self._process.wait()}")
        answered: dict[str, Any] = json.loads(answer)
        return answered

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def ordered_examples(data: Path, n: int, seed: int) -> dict[str, list[Any]]:
    """NLI pairs in the very order in which both systems shall read them."""
    examples = read_examples(data / "nli_mix" / "train.tsv.gz", where={"source": "!=sick"}, limit=20_000)
    rows = np.random.default_rng(seed).permutation(len(examples))[:n]
    chosen = examples.take(rows)
    assert chosen.labels is not None
    first, second = chosen.columns.values()
    return {"first": first, "second": second, "labels": chosen.labels.tolist()}


def compare(
    model: Path, batch_size: int, n_steps: int, rounds: int, data: Path, peers: Path
) -> list[list[str]]:
    pythons = {"gemel": sys.executable, "sentence-transformers": str(peers / "bin" / "python")}
    workers = {name: Worker(pythons[name], script) for name, script in WORKERS.items()}
    seconds: dict[str, list[float]] = {name: [] for name in workers}
    memory: dict[str, float] = {}
    for number in range(rounds + 1):
        examples = ordered_examples(data, n_steps * batch_size, seed=number)
        for name, worker in workers.items():
            job = {"model": str(model), "batch_size": batch_size, "n_steps": n_steps, "examples": examples}
            answer = worker.do(job)
            memory[name] = answer["peak_mb"]
            if number:  # the first round warms up
                seconds[name].append(answer["seconds"])
    for worker in workers.values():
        worker.close()
    pace = {name: n_steps * batch_size / float(np.median(taken)) for name, taken in seconds.items()}
    peer = pace["sentence-transformers"]
    return [
        [
            model.name if model.name != "model" else "all-MiniLM-L6-v2",
            str(batch_size),
            name,
            f"{pace[name]:.1f}",
            f"{pace[name] / peer:.2f}",
            f"{memory[name]:,.0f}",
        ]
        for name in workers
    ]


@click.command()
@click.option("--data", type=Path, envvar="GEMEL_DATA", required=True, help="The folder of data sets.")
@click.option("--model", "models", multiple=True, help="Model folders; the default model if none.")
@click.option("--batch-size", "batch_sizes", type=int, multiple=True, default=(16, 64))
@click.option("--pairs", default=640, help="Pairs a round.")
@click.option("--rounds", default=3)
@click.option("--peers", type=Path, default=Path(".venv-peers"))
def main(
    data: Path, models: tuple[str, ...], batch_sizes: tuple[int, ...], pairs: int, rounds: int, peers: Path
) -> None:
    """Print pairs/s and peak memory of both systems."""
    rows = []
    for name in models or (None,):
        for batch_size in batch_sizes:
            rows += compare(resolve(name), batch_size, pairs // batch_size, rounds, data, peers)
            print(format_table(["model", "batch", "system", "pairs/s", "ratio", "peak MB"], rows), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
