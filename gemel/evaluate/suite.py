"""What can be measured by name: groups of sets in the data folder, and the evaluator of each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gemel.contracts import Encoder
from gemel.data.example_files import read_examples
from gemel.data.labelled import LabelledTexts, read_labelled
from gemel.data.places import data_folder, find_file, hash_of
from gemel.data.retrieval import read_retrieval
from gemel.errors import InvalidInput
from gemel.evaluate.clustering import evaluate_clustering
from gemel.evaluate.duplicates import evaluate_duplicates
from gemel.evaluate.few_shot import few_shot
from gemel.evaluate.nli import evaluate_nli
from gemel.evaluate.retrieval import evaluate_retrieval
from gemel.evaluate.scores import Scores, average_of
from gemel.evaluate.sts import evaluate_sts, read_sts
from gemel.evaluate.transfer import (
    SST5,
    TRANSFER_TASKS,
    TransferTask,
    count_fits,
    evaluate_transfer,
    read_transfer,
)
from gemel.evaluate.triplets import evaluate_triplets
from gemel.progress import progress_bar

Data = str | os.PathLike[str] | None


Measure = Callable[[Any], Scores]  # takes an encoder, or a pair classifier
Evaluate = Callable[[Any], Iterator[Scores]]


@dataclass(frozen=True)
class Task:
    """One set: its file in the data folder, how many examples it must hold, and who reads and measures it."""

    name: str
    file: str
    n_examples: int
    open: Callable[[Task, Sequence[Path]], Measure]  # takes where its files are
    where: Mapping[str, str] = field(default_factory=dict)  # column -> the value that its rows have
    text: tuple[str, ...] | None = None  # the columns that are one text together
    more_files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Group:
    """Sets that are measured together: in words, and opened into what gives each one's figures in turn."""

    what: str
    open: Callable[[Data], Evaluate]  # reads the sets, or says which are missing, before any model is loaded
    needs_head: bool = False  # measures a classifier of pairs that was trained with its encoder


# How a set is read and measured -----------------------------------------------------------------------


def _duplicates(task: Task, paths: Sequence[Path]) -> Measure:
    pairs = read_examples(paths[0], kind="classified pairs", where=task.where)
    _check_size(task, len(pairs), paths[0])
    return lambda encoder: evaluate_duplicates(encoder, pairs, name=task.name, data_hash=hash_of(*paths))


def _clustering(task: Task, paths: Sequence[Path]) -> Measure:
    texts = read_labelled(paths[0], text=task.text)
    _check_size(task, len(texts), paths[0])
    return lambda encoder: evaluate_clustering(encoder, texts, name=task.name, data_hash=hash_of(*paths))


def _retrieval(task: Task, paths: Sequence[Path]) -> Measure:
    data = read_retrieval(paths[0].parent)
    _check_size(task, len(data.queries), paths[0].parent)
    return lambda encoder: evaluate_retrieval(encoder, data, name=task.name, data_hash=hash_of(*paths))


def _few_shot(task: Task, paths: Sequence[Path]) -> Measure:
    test_path, train_path = paths
    train: LabelledTexts = read_labelled(train_path)
    test = read_labelled(test_path, label_names=train.label_names)
    _check_size(task, len(test), test_path)
    data_hash = hash_of(train_path, test_path)
    return lambda encoder: few_shot(encoder, train, test, name=task.name, data_hash=data_hash)


def _triplets(task: Task, paths: Sequence[Path]) -> Measure:
    triplets = read_examples(paths[0], kind="triplets")
    _check_size(task, len(triplets), paths[0])
    return lambda encoder: evaluate_triplets(encoder, triplets, name=task.name, data_hash=hash_of(*paths))


def _nli(task: Task, paths: Sequence[Path]) -> Measure:
    pairs = read_examples(paths[0], kind="classified pairs")
    _check_size(task, len(pairs), paths[0])
    return lambda classifier: evaluate_nli(classifier, pairs, name=task.name, data_hash=hash_of(*paths))


def _check_size(task: Task, n: int, path: Path) -> None:
    if n != task.n_examples:
        raise InvalidInput(
            f"{path} holds {n:,} examples; expected the {task.n_examples:,} of {task.name}: figures on "
            "others cannot be compared"
        )


# The groups -------------------------------------------------------------------------------------------


def _sts_group(name: str, what: str) -> Group:
    def open_sets(data: Data) -> Evaluate:
        sets = read_sts(data, name)
        return lambda encoder: _with_average(evaluate_sts(encoder, sets))

    return Group(what, open_sets)


def _transfer_group(what: str, *tasks: TransferTask) -> Group:
    def open_sets(data: Data) -> Evaluate:
        sets = read_transfer(data, tasks)

        def evaluate(encoder: Encoder) -> Iterator[Scores]:
            with progress_bar(count_fits(sets), "classifiers", unit="fits") as bar:
                scores = evaluate_transfer(encoder, sets, on_fits=bar.update)
            return _with_average(scores)

        return evaluate

    return Group(what, open_sets)


def _task_group(what: str, *tasks: Task, needs_head: bool = False) -> Group:
    def open_sets(data: Data) -> Evaluate:
        folder = data_folder(data)
        measures = [task.open(task, _files_of(task, folder)) for task in tasks]
        return lambda measured: (measure(measured) for measure in measures)

    return Group(what, open_sets, needs_head)


def _files_of(task: Task, folder: Path) -> list[Path]:
    return [find_file(folder, file, task.name) for file in (task.file, *task.more_files)]


def _with_average(scores: list[Scores]) -> Iterator[Scores]:
    yield from scores
    if len(scores) > 1:
        yield average_of(scores)


_LANGUAGES = ("de", "en", "es", "fr", "ja", "ko", "zh")
DUPLICATE_TASKS = (
    Task("Quora (sample)", "quora_pairs_sample/sample.tsv", 6_493, _duplicates),
    Task("PAWS-Wiki (sample)", "paws_wiki_sample/sample.tsv", 6_488, _duplicates),
    Task("MRPC", "mrpc/test.tsv", 1_725, _duplicates),
)
NLI_TASKS = (
    Task("SNLI (dev)", "snli/dev.tsv", 9_842, _nli),
    Task("MultiNLI (matched dev)", "mnli/dev_matched.tsv", 9_815, _nli),
)
GROUPS: dict[str, Group] = {
    "sts": _sts_group("sts", "the paper's seven: STS12 to STS16, STSb, SICK-R; Spearman of cosines"),
    "sts-mteb": _sts_group("sts-mteb", "the same as mteb has them: all of SICK"),
    "sts-korean": _sts_group("sts-korean", "KorSTS, and KLUE-STS where it is"),
    "sts-multilingual": _sts_group("sts-multilingual", "STSb in eleven languages, and KorSTS"),
    "transfer": _transfer_group(
        "SentEval: MR, CR, SUBJ, MPQA, SST, TREC, MRPC; accuracy of logistic regression", *TRANSFER_TASKS
    ),
    "transfer-sst5": _transfer_group("SST with five classes; accuracy of logistic regression", SST5),
    "few-shot": _task_group(
        "accuracy after 8, 16 and 64 examples of each class, over ten seeds",
        Task("Banking77", "banking77/test.tsv", 3_080, _few_shot, more_files=("banking77/train.tsv",)),
        Task("TREC", "trec/test.tsv", 500, _few_shot, more_files=("trec/train.tsv",)),
        Task("SST-2", "sst2/test.tsv", 1_821, _few_shot, more_files=("sst2/train.tsv.gz",)),
    ),
    "duplicates": _task_group("Quora, PAWS, MRPC; average precision", *DUPLICATE_TASKS),
    "duplicates-multilingual": _task_group(
        "PAWS-X in seven languages; average precision",
        *(
            Task(f"PAWS-X-{language} (dev)", "pawsx/dev.tsv.gz", 2_000, _duplicates, where={"lang": language})
            for language in _LANGUAGES
        ),
    ),
    "retrieval": _task_group(
        "Cranfield; nDCG@10",
        Task(
            "Cranfield",
            "cranfield/queries.tsv",
            225,
            _retrieval,
            more_files=("cranfield/corpus.tsv", "cranfield/qrels.tsv"),
        ),
    ),
    "clustering": _task_group(
        "SearchSnippets, Banking77, AG News, TREC; V-measure of k-means",
        Task("SearchSnippets", "search_snippets/all.tsv", 12_340, _clustering),
        Task("Banking77", "banking77/test.tsv", 3_080, _clustering),
        Task("AG News", "ag_news/test.tsv", 7_600, _clustering, text=("title", "description")),
        Task("TREC", "trec/test.tsv", 500, _clustering),
    ),
    "triplets": _task_group(
        "sections of Wikipedia; accuracy",
        Task("Wikipedia sections", "wikipedia_sections/test.tsv.gz", 222_957, _triplets),
    ),
    "nli": _task_group(
        "SNLI and MultiNLI by the classifier that softmax training has left in a model; accuracy",
        *NLI_TASKS,
        needs_head=True,
    ),
}


def open_group(name: str, data: Data = None) -> Evaluate:
    """What measures an encoder on the sets of a group in turn; what is missing is named at once."""
    if name not in GROUPS:
        raise InvalidInput(f"the group of sets {name!r} is unknown; choose from {', '.join(GROUPS)}")
    return GROUPS[name].open(data)
