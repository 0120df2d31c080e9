"""Duplicates and clusters beside sentence-transformers: the same texts, each system with its own vectors.

    make bench-uses GEMEL_DATA=DATA [ARGUMENTS="--seeds 5"]

gemel encodes in int8, as it comes, and finds average precision and groups itself. Beside it stand
sentence-transformers' vectors (torch, float32) with scikit-learn's average precision and k-means, ten
beginnings each, as mteb and most notebooks have it. Classes are not seen before the groups are made.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import numpy as np
import numpy.typing as npt
from encode_systems import TORCH, System, Unavailable, Worker
from sklearn.cluster import KMeans
from sklearn.metrics import average_precision_score, v_measure_score

from gemel.checkpoint.resolving import resolve
from gemel.data.example_files import read_examples
from gemel.data.labelled import LabelledTexts, read_labelled
from gemel.evaluate.agreement import Agreement
from gemel.similarity import pairwise
from gemel.table import format_table
from gemel.tasks.kmeans import kmeans
from gemel.tasks.thresholds import Separation, positives_of

GEMEL = "gemel"
N_STARTS = 10
Vectors = npt.NDArray[np.float32]
PAIRS = {
    "Quora (sample)": "quora_pairs_sample/sample.tsv",
    "PAWS-Wiki (sample)": "paws_wiki_sample/sample.tsv",
}
CLASSES: dict[str, tuple[str, str | tuple[str, ...] | None]] = {
    "SearchSnippets": ("search_snippets/all.tsv", None),
    "Banking77": ("banking77/test.tsv", None),
    "AG News": ("ag_news/test.tsv", ("title", "description")),
}


class Vectoriser:
    """One system's process, and the vectors it gives."""

    def __init__(self, system: System, work: Path) -> None:
        self._worker = Worker(system, work / "logs")
        self._file = work / f"{system.script}.npy"

    def vectors(self, texts: list[str]) -> Vectors:
        """A row for each text; every distinct one is encoded once."""
        distinct = list(dict.fromkeys(texts))
        job = {"texts": {"all": distinct}, "task": "as is", "of": "all", "save": str(self._file)}
        self._worker.do(job)
        places = {text: row for row, text in enumerate(distinct)}
        rows: Vectors = np.load(self._file)[[places[text] for text in texts]]
        return rows

    def close(self) -> None:
        """Let the process end."""
        self._worker.close()


# What each system does with its vectors ---------------------------------------------------------------


def our_precision(first: Vectors, second: Vectors, is_duplicate: npt.NDArray[np.bool_]) -> float:
    """Average precision of cosines, by gemel."""
    return Separation(pairwise(first, second, "cosine"), is_duplicate).average_precision()


def their_precision(first: Vectors, second: Vectors, is_duplicate: npt.NDArray[np.bool_]) -> float:
    """Average precision of cosines, by scikit-learn."""
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return float(average_precision_score(is_duplicate, (first * second).sum(axis=1) / lengths))


def our_v_measure(vectors: Vectors, labels: npt.NDArray[np.int64], seed: int) -> float:
    """V-measure of gemel's k-means."""
    groups = kmeans(vectors, len(np.unique(labels)), n_starts=N_STARTS, seed=seed).groups
    return Agreement(labels, groups).v_measure()


def their_v_measure(vectors: Vectors, labels: npt.NDArray[np.int64], seed: int) -> float:
    """V-measure of scikit-learn's k-means."""
    groups = KMeans(len(np.unique(labels)), n_init=N_STARTS, random_state=seed).fit_predict(vectors)
    return float(v_measure_score(labels, groups))


PRECISIONS = {GEMEL: our_precision, TORCH: their_precision}
V_MEASURES = {GEMEL: our_v_measure, TORCH: their_v_measure}


# The table --------------------------------------------------------------------------------------------


def duplicate_row(name: str, path: Path, systems: dict[str, Vectoriser]) -> list[str]:
    """Average precision of all systems on one set of labelled pairs."""
    pairs = read_examples(path, kind="classified pairs")
    is_duplicate = positives_of(pairs, "1", name)
    columns = [list(column) for column in pairs.columns.values()]
    row = [name, "average precision"]
    for system, vectoriser in systems.items():
        first, second = np.split(vectoriser.vectors(columns[0] + columns[1]), 2)
        row.append(f"{PRECISIONS[system](first, second, is_duplicate):.4f}")
    return row


def cluster_row(name: str, data: LabelledTexts, systems: dict[str, Vectoriser], seeds: int) -> list[str]:
    """V-measure of all systems on one set of classes, over seeds."""
    row = [name, "V-measure of k-means"]
    for system, vectoriser in systems.items():
        measure: Callable[[int], float] = partial(
            V_MEASURES[system], vectoriser.vectors(list(data.texts)), data.labels
        )
        found = [measure(seed) for seed in range(seeds)]
        row.append(f"{np.mean(found):.4f} ± {np.std(found):.4f}")
    return row


def told(row: list[str]) -> list[str]:
    """The row, shown as soon as it is there: some take minutes."""
    click.echo(" · ".join(row), err=True)
    return row


@click.command()
@click.option("--data", type=Path, envvar="GEMEL_DATA", required=True, help="The folder of data sets.")
@click.option("--model", help="A model of both systems.  [default: all-MiniLM-L6-v2]")
@click.option("--seeds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--peers", type=Path, default=Path(".venv-peers"), help="How the peers' environments begin.")
def main(data: Path, model: str | None, seeds: int, peers: Path) -> None:
    """Print the quality of duplicates and clusters, gemel's and sentence-transformers'."""
    folder = str(resolve(model))
    ours = System(GEMEL, Path(sys.executable), "encode_gemel.py", {"model": folder, "precision": "int8"})
    python = (peers / "bin" / "python").absolute()
    theirs = System(TORCH, python, "encode_sentence_transformers.py", {"model": folder})
    rows = []
    with tempfile.TemporaryDirectory() as work:
        try:
            systems = {system.name: Vectoriser(system, Path(work)) for system in (ours, theirs)}
        except (Unavailable, OSError) as error:
            raise click.ClickException(f"a system could not be started: {error}") from None
        for name, file in PAIRS.items():
            rows.append(told(duplicate_row(name, data / file, systems)))
        for name, (file, text) in CLASSES.items():
            texts = read_labelled(data / file, text=text)
            rows.append(told(cluster_row(name, texts, systems, seeds)))
        for vectoriser in systems.values():
            vectoriser.close()
    click.echo(format_table(["set", "figure", GEMEL, TORCH], rows))


if __name__ == "__main__":
    main()
