"""What each table measures of an encoder: the data it reads, and the figures it makes of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemel.contracts import Encoder, Reranker
from gemel.data.catalogue import find_set
from gemel.data.example_files import read_examples
from gemel.data.examples import Examples
from gemel.data.places import hash_of
from gemel.evaluate.afs import AfsData, evaluate_afs, read_afs
from gemel.evaluate.correlation import pearson, spearman
from gemel.evaluate.scores import Scores, average_of, engine_of
from gemel.evaluate.sts import STS_SETS, StsData, evaluate_sts, read_sts
from gemel.evaluate.transfer import count_fits, evaluate_transfer, read_transfer
from gemel.evaluate.triplets import evaluate_triplets
from gemel.progress import progress_bar

Data = Any  # what `read` gives, `evaluate` takes


@dataclass(frozen=True)
class Measure:
    """How the figures of a table come about."""

    name: str
    read: Callable[[str | Path | None], tuple[Data, str]]  # the data and its hash
    evaluate: Callable[[Encoder, Data], list[Scores]]
    figures: Callable[[Sequence[Scores]], dict[str, float]]  # by the table's columns
    n_examples: int | None = None  # of the paper's set, where a file of any size is taken

    def remark(self, scores: Sequence[Scores]) -> str:
        """How many examples there were, where the paper's were others."""
        n = scores[0].n_examples
        if self.n_examples in (None, n):
            return ""
        return f"{n:,} examples, not the paper's {self.n_examples:,}"


@dataclass(frozen=True)
class Sections:
    """Triplets of Wikipedia's sections, and the hash of their file."""

    triplets: Examples
    data_hash: str


def percents(scores: Sequence[Scores]) -> dict[str, float]:
    """The primary figure of each set, in hundredths."""
    return {each.name: 100 * each.score for each in scores}


def score_pairs(reranker: Reranker, data: StsData, fingerprint: str) -> Scores:
    """How well a cross-encoder orders the pairs of a set."""
    gold = data.pairs.labels
    assert gold is not None, "scored pairs have scores"
    given = reranker.score(list(zip(*data.pairs.columns.values(), strict=True)))
    return Scores(
        name=data.name,
        metrics={"spearman": spearman(given, gold), "pearson": pearson(given, gold)},
        primary="spearman",
        protocol=f"a cross-encoder reads both texts; {data.protocol}",
        n_examples=len(data.pairs),
        data_hash=data.data_hash,
        fingerprint=fingerprint,
        engine=engine_of(reranker),
    )


def read_benchmark(data: str | Path | None) -> tuple[list[StsData], str]:
    """The test split of the STS benchmark."""
    return _with_hash(read_sts(data, [each for each in STS_SETS if each.name == "STSb"]))


def _with_hash(sets: Sequence[Any]) -> tuple[Any, str]:
    return sets, hashlib.sha256("".join(each.data_hash for each in sets).encode()).hexdigest()


def _evaluate_seven(encoder: Encoder, sets: list[StsData]) -> list[Scores]:
    scores = evaluate_sts(encoder, sets)
    return [*scores, average_of(scores)]


def _evaluate_transfer(encoder: Encoder, sets: Any) -> list[Scores]:
    with progress_bar(count_fits(sets), "classifiers", unit="fits") as bar:
        scores = evaluate_transfer(encoder, sets, on_fits=bar.update)
    return [*scores, average_of(scores)]


def _read_afs(data: str | Path | None) -> tuple[AfsData, str]:
    arguments = read_afs(find_set("afs", "all", data))
    return arguments, arguments.data_hash


def _afs_figures(scores: Sequence[Scores]) -> dict[str, float]:
    metrics = scores[0].metrics
    return {"Pearson": 100 * metrics["pearson_cosine"], "Spearman": 100 * metrics["spearman_cosine"]}


def _read_sections(data: str | Path | None) -> tuple[Sections, str]:
    path = find_set("wikipedia_sections", "test", data)
    sections = Sections(read_examples(path, kind="triplets"), hash_of(path))
    return sections, sections.data_hash


def _evaluate_sections(encoder: Encoder, data: Sections) -> list[Scores]:
    return [evaluate_triplets(encoder, data.triplets, name="Wikipedia sections", data_hash=data.data_hash)]


SEVEN_STS = Measure("sts", lambda data: _with_hash(read_sts(data)), _evaluate_seven, percents)
STS_BENCHMARK = Measure("stsb", read_benchmark, evaluate_sts, percents)
ARGUMENTS = Measure(
    "afs", _read_afs, lambda encoder, data: [evaluate_afs(encoder, data)], _afs_figures, n_examples=6_000
)
SECTIONS = Measure(
    "wikipedia sections",
    _read_sections,
    _evaluate_sections,
    lambda scores: {"accuracy": 100 * scores[0].score},
    n_examples=222_957,
)
TRANSFER = Measure("transfer", lambda data: _with_hash(read_transfer(data)), _evaluate_transfer, percents)

# number of the table -> what it measures of an encoder that was not trained for it
MEASURES = {1: SEVEN_STS, 2: STS_BENCHMARK, 3: ARGUMENTS, 4: SECTIONS, 5: TRANSFER}
