"""A static table encoded by gemel and by model2vec: the same folder, the same texts, in turns.

    make bench-static GEMEL_DATA=DATA MODEL=FOLDER [ARGUMENTS="--rounds 5"]

Each system is one process that stays alive, model2vec in an environment of its own. All cores are theirs, and
once more a single one. Text goes in and vectors come out; loading is not counted. The vectors are compared.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any

import click
import numpy as np
from encode_systems import System, Unavailable, Worker

from gemel.data.texts import TextSource
from gemel.table import format_table

GEMEL, MODEL2VEC = "gemel", "model2vec"
SENTENCES, SINGLES = "sentences", "one at a time"
ONE_THREAD = {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
Timings = dict[str, dict[str, list[float]]]  # system -> task -> texts a second, round by round


class Trial:
    """Both systems on the same texts."""

    def __init__(self, model: Path, peers: Path, work: Path, texts: list[str], n_singles: int) -> None:
        pythons = {GEMEL: Path(sys.executable), MODEL2VEC: Path(f"{peers}-model2vec/bin/python")}
        settings = {"model": str(model), "precision": "float32"}
        self.workers = {
            name: Worker(System(name, python.absolute(), f"encode_{name}.py", settings), work / "logs")
            for name, python in pythons.items()
        }
        self.n_texts = {SENTENCES: len(texts), SINGLES: n_singles}
        self.timings: Timings = {name: {} for name in pythons}
        for worker in self.workers.values():
            worker.do({"texts": {SENTENCES: texts, SINGLES: texts[:n_singles]}})

    def agree(self, work: Path) -> float:
        """The lowest cosine of the two vectors of a text; this also warms up."""
        vectors = []
        for name, worker in self.workers.items():
            file = work / f"{name}.npy"
            worker.do({"task": "as is", "of": SENTENCES, "save": str(file)})
            vectors.append(np.load(file).astype(np.float64))
        lengths = np.linalg.norm(vectors[0], axis=1) * np.linalg.norm(vectors[1], axis=1)
        cosines = (vectors[0] * vectors[1]).sum(axis=1)[lengths > 0] / lengths[lengths > 0]
        return float(cosines.min())

    def run_round(self, number: int) -> None:
        """Every task on both, in another order each round."""
        for task, way in ((SENTENCES, "as is"), (SINGLES, "one at a time")):
            names = list(self.workers)
            for name in names if number % 2 else names[::-1]:
                answer = self.workers[name].do({"task": way, "of": task})
                speed = self.n_texts[task] / sum(answer["seconds"])
                self.timings[name].setdefault(task, []).append(speed)

    def table(self) -> str:
        """Medians, and the ratios of each round."""
        rows = []
        for task in self.n_texts:
            ours, theirs = (np.array(self.timings[name][task]) for name in (GEMEL, MODEL2VEC))
            ratios = np.sort(ours / theirs)
            rows.append(
                [
                    task,
                    f"{np.median(ours):,.0f}",
                    f"{np.median(theirs):,.0f}",
                    f"{np.median(ratios):.2f}",
                    f"{ratios[0]:.2f} to {ratios[-1]:.2f}",
                ]
            )
        return format_table(["texts/s", GEMEL, MODEL2VEC, "ratio", "of all rounds"], rows)

    def close(self) -> None:
        """Let both end."""
        for worker in self.workers.values():
            worker.close()


@click.command()
@click.option("--data", type=Path, envvar="GEMEL_DATA", required=True, help="The folder of data sets.")
@click.option("--model", type=Path, required=True, help="A static table, such as potion-base-8M.")
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--sentences", default=100_000, show_default=True)
@click.option("--singles", default=2_000, show_default=True, help="Sentences that are encoded one at a time.")
@click.option("--one-core", is_flag=True, help="Give each system a single core and thread.")
@click.option("--peers", type=Path, default=Path(".venv-peers"), help="How the peers' environments begin.")
@click.option("--output", type=Path, default=Path("build/bench-static.json"), show_default=True)
def main(data: Path, model: Path, rounds: int, one_core: bool, output: Path, **given: Any) -> None:
    """Print how many texts a second gemel and model2vec encode, and the ratio between them."""
    if one_core:
        os.environ.update(ONE_THREAD)  # and the processes inherit the core
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    source = TextSource(data / "sentences_en" / "sentences_open.tsv.gz")
    texts = [record.text for record in islice(source.records(), given["sentences"])]
    with tempfile.TemporaryDirectory() as work:
        try:
            trial = Trial(model.absolute(), given["peers"], Path(work), texts, given["singles"])
        except (Unavailable, OSError) as error:
            raise click.ClickException(f"a system could not be started: {error}") from None
        lowest = trial.agree(Path(work))
        for number in range(rounds):
            trial.run_round(number)
        trial.close()
    results = {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "model": model.name,
        "one_core": one_core,
        "load_average": list(os.getloadavg()),
        "versions": {name: worker.versions for name, worker in trial.workers.items()},
        "n_texts": trial.n_texts,
        "lowest_cosine": lowest,
        "texts_per_second": trial.timings,
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    click.echo(trial.table())
    click.echo(f"lowest cosine of the two vectors of a text: {lowest:.6f}")


if __name__ == "__main__":
    main()
