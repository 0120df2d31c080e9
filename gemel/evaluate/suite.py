"""What can be measured by name: groups of sets in the data folder, and the evaluator of each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gemel.contracts import Encoder
from gemel.data.examples import read_examples
from gemel.data.labelled import read_labelled
from gemel.data.places import data_folder, find_file, hash_of
from gemel.data.retrieval import read_retrieval
from gemel.errors import InvalidInput
from gemel.evaluate.clustering import evaluate_clustering
from gemel.evaluate.duplicates import evaluate_duplicates
from gemel.evaluate.retrieval import evaluate_retrieval
from gemel.evaluate.scores import Scores
from gemel.evaluate.sts import STS_GROUPS, evaluate_sts, read_sts


@dataclass(frozen=True)
class Task:
    """One set: its file in the data folder, how many examples it must hold, and who measures it."""

    name: str
    file: str
    n_examples: int
    evaluate: Callable[[Encoder, Task, Path], Scores]
    where: Mapping[str, str] = field(default_factory=dict)  # column -> the value that its rows have
    text: tuple[str, ...] | None = None  # the columns that are one text together
    more_files: tuple[str, ...] = ()


def _duplicates(encoder: Encoder, task: Task, folder: Path) -> Scores:
    path = folder / task.file
    pairs = read_examples(path, kind="classified pairs", where=task.where)
    _check_size(task, len(pairs), path)
    return evaluate_duplicates(encoder, pairs, name=task.name, data_hash=hash_of(path))


def _clustering(encoder: Encoder, task: Task, folder: Path) -> Scores:
    path = folder / task.file
    texts = read_labelled(path, text=task.text)
    _check_size(task, len(texts), path)
    return evaluate_clustering(encoder, texts, name=task.name, data_hash=hash_of(path))


def _retrieval(encoder: Encoder, task: Task, folder: Path) -> Scores:
    paths = [folder / file for file in (task.file, *task.more_files)]
    data = read_retrieval(paths[0].parent)
    _check_size(task, len(data.queries), paths[0].parent)
    return evaluate_retrieval(encoder, data, name=task.name, data_hash=hash_of(*paths))


_LANGUAGES = ("de", "en", "es", "fr", "ja", "ko", "zh")
GROUPS: dict[str, tuple[Task, ...]] = {
    "duplicates": (
        Task("Quora (sample)", "quora_pairs_sample/sample.tsv", 6_493, _duplicates),
        Task("PAWS-Wiki (sample)", "paws_wiki_sample/sample.tsv", 6_488, _duplicates),
        Task("MRPC", "mrpc/test.tsv", 1_725, _duplicates),
    ),
    "duplicates-multilingual": tuple(
        Task(f"PAWS-X-{language} (dev)", "pawsx/dev.tsv.gz", 2_000, _duplicates, where={"lang": language})
        for language in _LANGUAGES
    ),
    "retrieval": (
        Task(
            "Cranfield",
            "cranfield/queries.tsv",
            225,
            _retrieval,
            more_files=("cranfield/corpus.tsv", "cranfield/qrels.tsv"),
        ),
    ),
    "clustering": (
        Task("SearchSnippets", "search_snippets/all.tsv", 12_340, _clustering),
        Task("Banking77", "banking77/test.tsv", 3_080, _clustering),
        Task("AG News", "ag_news/test.tsv", 7_600, _clustering, text=("title", "description")),
        Task("TREC", "trec/test.tsv", 500, _clustering),
    ),
}
NAMES = (*STS_GROUPS, *GROUPS)


def evaluate_group(
    encoder: Encoder, group: str, data: str | os.PathLike[str] | None = None
) -> Iterator[Scores]:
    """The figures of each set of a group, one after the other; files that are missing are named at once."""
    if group in STS_GROUPS:
        return iter(evaluate_sts(encoder, read_sts(data, group)))
    if group not in GROUPS:
        raise InvalidInput(f"the group of sets {group!r} is unknown; choose from {', '.join(NAMES)}")
    folder, tasks = data_folder(data), GROUPS[group]
    for task in tasks:
        for file in (task.file, *task.more_files):
            find_file(folder, file, task.name)
    return (task.evaluate(encoder, task, folder) for task in tasks)


def _check_size(task: Task, n: int, path: Path) -> None:
    if n != task.n_examples:
        raise InvalidInput(
            f"{path} holds {n:,} examples; expected the {task.n_examples:,} of {task.name}: figures on "
            "others cannot be compared"
        )
