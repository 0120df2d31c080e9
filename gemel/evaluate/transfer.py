"""SentEval's transfer tasks: what logistic regression learns from sentence vectors (Table 5 of the paper).

Rows, folds and grids are SentEval's: its scikit-learn classifier, run to convergence on the same vectors,
gives the same figures. The paper's own come from SentEval's default classifier: the same model, trained by
Adam with early stopping (nhid 0, tenacity 5, epoch_size 4).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from gemel.contracts import Encoder, Vectors
from gemel.data.example_files import read_examples
from gemel.data.examples import Examples
from gemel.data.labelled import LabelledTexts, read_labelled
from gemel.data.places import data_folder, find_file, hash_of
from gemel.errors import InvalidInput
from gemel.evaluate.encoded import EncodedTexts
from gemel.evaluate.probe import (
    N_FOLDS,
    SEED,
    OnFits,
    Probed,
    n_fits,
    probe_by_dev,
    probe_by_folds,
    probe_in_rings,
)
from gemel.evaluate.scores import Scores, engine_of
from gemel.tasks.logistic import Labels

PRIMARY = "accuracy"
Split = LabelledTexts | Examples
WhichLabels = Literal["given", "shuffled"]

_IN_RINGS = (
    "{n} outer folds, each predicted by a classifier whose C (2^-2 to 2^3) was chosen by {n} inner folds "
    "of the others; the mean of the outer folds"
)
# the splits of a set -> how it is validated, in words
PROTOCOLS = {
    ("all",): _IN_RINGS,
    ("train", "test"): "C (2^-1 to 2^5) chosen by {n} folds of train, refitted on train; the test part",
    ("train", "dev", "test"): "C (2^-2 to 2^3) chosen by the dev part; the test part",
}
_CLASSIFIER = (
    "logistic regression on frozen vectors, L2, solved to convergence (SentEval's scikit-learn variant, not "
    "its default of Adam with early stopping); stratified folds, seed 1111, of SentEval's order of rows"
)


@dataclass(frozen=True)
class TransferTask:
    """One of the tasks: where its files are in the data folder, and what they must hold."""

    name: str
    files: Mapping[str, tuple[str, int]]  # split -> file, number of rows
    label_names: tuple[str, ...] = ("0", "1")
    pairs: bool = False
    note: str = ""

    @property
    def protocol(self) -> str:
        """How it is evaluated, in words."""
        return protocol_of(self.files, self.note)


def protocol_of(splits: Iterable[str], note: str = "", n_folds: int = N_FOLDS) -> str:
    """How a set that has these splits is evaluated, in words."""
    words = (PROTOCOLS[tuple(splits)].format(n=n_folds), _CLASSIFIER, note)
    return "; ".join(word for word in words if word)


_SST = {
    "train": ("sst2/train.tsv.gz", 67_349),
    "dev": ("sst2/dev.tsv", 872),
    "test": ("sst2/test.tsv", 1_821),
}
_SST5 = {"train": ("sst5/train.tsv", 8_544), "dev": ("sst5/dev.tsv", 1_101), "test": ("sst5/test.tsv", 2_210)}
_TREC = {"train": ("trec/train.tsv", 5_452), "test": ("trec/test.tsv", 500)}
_MRPC = {"train": ("mrpc/train.tsv", 4_076), "test": ("mrpc/test.tsv", 1_725)}
_QUESTIONS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
TRANSFER_TASKS = (
    TransferTask("MR", {"all": ("mr/all.tsv", 10_662)}),
    TransferTask("CR", {"all": ("cr/all.tsv", 3_771)}, note="4 empty lines of SentEval's file left out"),
    # SentEval's class 1 is what is objective, the files' class 0.
    TransferTask("SUBJ", {"all": ("subj/all.tsv", 10_000)}, label_names=("1", "0")),
    TransferTask("MPQA", {"all": ("mpqa/all.tsv", 10_603)}, note="3 empty lines of SentEval's file left out"),
    TransferTask("SST", _SST, note="two classes, phrases in train"),
    TransferTask("TREC", _TREC, label_names=_QUESTIONS, note="6 coarse classes, softmax"),
    TransferTask("MRPC", _MRPC, pairs=True, note="features |u - v| and u * v"),
)
# Not in the paper.
SST5 = TransferTask("SST5", _SST5, label_names=("0", "1", "2", "3", "4"), note="5 classes, softmax")


@dataclass(frozen=True, eq=False)
class TransferData:
    """A task that has been read: one split `all`, or `train` and `test`, perhaps with `dev`."""

    name: str
    splits: Mapping[str, Split]
    note: str = ""
    data_hash: str = ""

    def __post_init__(self) -> None:
        if tuple(self.splits) not in PROTOCOLS:
            given = ", ".join(self.splits) or "none"
            raise InvalidInput(
                f"{self.name} has the splits {given}; "
                "expected all alone, train and test, or train, dev and test, in this order"
            )
        for split, part in self.splits.items():
            if isinstance(part, Examples) and part.kind != "classified pairs":
                raise InvalidInput(
                    f"{self.name} holds {part.kind}; expected classified pairs or labelled texts"
                )
            if not len(part):
                raise InvalidInput(
                    f"the {split} split of {self.name} is empty; expected some rows in each split"
                )
        first, *others = self.splits.values()
        if any(part.label_names != first.label_names or type(part) is not type(first) for part in others):
            raise InvalidInput(
                f"the splits of {self.name} are of different kinds or have other classes; "
                "read the later ones with label_names= of the first"
            )


def read_transfer(
    data: str | os.PathLike[str] | None = None, tasks: Iterable[TransferTask] = TRANSFER_TASKS
) -> list[TransferData]:
    """The tasks, read from the data folder and found to be whole."""
    folder = data_folder(data)
    return [_read_task(folder, task) for task in tasks]


def evaluate_transfer(
    encoder: Encoder,
    data: Sequence[TransferData] | None = None,
    *,
    labels: WhichLabels = "given",
    n_folds: int = N_FOLDS,
    on_fits: OnFits | None = None,
) -> list[Scores]:
    """The accuracy on each task; every distinct text of all of them is encoded once.

    `labels="shuffled"` is the control: the same work on labels that have nothing to do with the texts.
    `on_fits` is told how many more fits are done, of the `count_fits(data)` that there are.
    """
    if labels not in ("given", "shuffled"):
        raise InvalidInput(f"labels={labels!r} is unknown; choose from given, shuffled")
    sets = read_transfer() if data is None else data
    prepared = [_prepare(each, labels == "shuffled", n_folds) for each in sets]
    texts = EncodedTexts(encoder, (text for each in prepared for column in each.columns() for text in column))
    return [_scores(each, encoder, texts, n_folds, on_fits) for each in prepared]


def count_fits(data: Iterable[TransferData], n_folds: int = N_FOLDS) -> int:
    """How many classifiers evaluate_transfer fits: the length of a bar that shows them."""
    return sum(n_fits(tuple(each.splits), n_folds) for each in data)


def _read_task(folder: Path, task: TransferTask) -> TransferData:
    paths = {split: find_file(folder, file, task.name) for split, (file, _) in task.files.items()}
    splits: dict[str, Split] = {}
    for split, path in paths.items():
        n_rows = task.files[split][1]
        if task.pairs:
            columns = {"first": "sentence1", "second": "sentence2", "label": "label"}
            part: Split = read_examples(
                path, columns=columns, kind="classified pairs", label_names=task.label_names
            )
        else:
            part = read_labelled(path, text="text", label="label", label_names=task.label_names)
        if len(part) != n_rows:
            raise InvalidInput(
                f"{path} holds {len(part):,} rows; expected the {n_rows:,} of {task.name}: "
                "figures on other rows cannot be compared with published ones"
            )
        splits[split] = part
    return TransferData(task.name, splits, task.note, hash_of(*paths.values()))


@dataclass(frozen=True, eq=False)
class _Prepared:
    """A task in SentEval's order of rows, its classes numbered as the training part has them."""

    data: TransferData
    texts: Mapping[str, list[list[str]]]  # split -> columns
    labels: Mapping[str, Labels]
    majority: int  # the commonest class of the training part
    is_shuffled: bool

    def columns(self) -> list[list[str]]:
        return [column for columns in self.texts.values() for column in columns]


def _prepare(data: TransferData, is_shuffled: bool, n_folds: int) -> _Prepared:
    first = next(iter(data.splits.values()))
    classes, counts = np.unique(_labels_of(first), return_counts=True)
    _check_classes(data, [first.label_names[each] for each in classes], counts, n_folds)
    places = np.full(len(first.label_names), -1)  # a class that training lacks is never predicted
    places[classes] = np.arange(len(classes))
    generator = np.random.default_rng(SEED)
    texts, labels = {}, {}
    for split, part in data.splits.items():
        columns = [part.texts] if isinstance(part, LabelledTexts) else list(part.columns.values())
        own = places[_labels_of(part)]
        if is_shuffled:
            own = generator.permutation(own)
        # SentEval sorts by the number of words, to pad less, and divides what it has sorted into folds.
        n_words = [[len(text.split()) for text in column] for column in reversed(columns)]
        order = np.lexsort(np.array([own, *n_words]))
        texts[split] = [[column[row] for row in order] for column in columns]
        labels[split] = own[order]
    return _Prepared(data, texts, labels, int(counts.argmax()), is_shuffled)


def _check_classes(
    data: TransferData, names: Sequence[str], counts: npt.NDArray[np.int64], n_folds: int
) -> None:
    if len(names) < 2:
        raise InvalidInput(f"{data.name} has one class to learn from, {names[0]!r}; expected two or more")
    # An outer fold may take two of a class away before the others are divided into inner folds.
    needed = {("all",): n_folds + 2, ("train", "test"): n_folds}.get(tuple(data.splits), 1)
    if counts.min() < needed:
        raise InvalidInput(
            f"{data.name} has {counts.min()} examples of the class {names[int(counts.argmin())]!r}; expected "
            f"{needed} or more for {n_folds} folds: ask for fewer with n_folds=, or leave the class out"
        )


def _labels_of(part: Split) -> Labels:
    assert part.labels is not None, "classified pairs have labels"
    return part.labels.astype(np.int64)


def _scores(
    prepared: _Prepared,
    encoder: Encoder,
    texts: EncodedTexts,
    n_folds: int,
    on_fits: OnFits | None,
) -> Scores:
    data = prepared.data
    parts = {
        split: (_features([texts.of(column) for column in columns]), prepared.labels[split])
        for split, columns in prepared.texts.items()
    }
    probed = _probe(parts, n_folds, on_fits)
    _, gold = parts["all" if "all" in parts else "test"]
    metrics = _metrics(probed, gold, prepared.majority)
    if len(prepared.columns()) > len(parts) and prepared.labels["train"].max() == 1:
        metrics["f1"] = _f1(probed.predictions == 1, gold == 1)
    protocol = protocol_of(data.splits, data.note, n_folds)
    return Scores(
        name=f"{data.name}, shuffled labels" if prepared.is_shuffled else data.name,
        metrics=metrics,
        primary=PRIMARY,
        protocol=f"a control, labels shuffled; {protocol}" if prepared.is_shuffled else protocol,
        n_examples=len(gold),
        data_hash=data.data_hash,
        fingerprint=encoder.fingerprint,
        engine=engine_of(encoder),
        interval=_interval(probed.predictions == gold),
    )


def _features(columns: Sequence[Vectors]) -> Vectors:
    if len(columns) == 1:
        return columns[0]
    u, v = columns
    return np.hstack([np.abs(u - v), u * v])


def _probe(parts: Mapping[str, tuple[Vectors, Labels]], n_folds: int, on_fits: OnFits | None) -> Probed:
    if "all" in parts:
        return probe_in_rings(*parts["all"], n_folds, on_fits)
    if "dev" in parts:
        return probe_by_dev(parts["train"], parts["dev"], parts["test"], on_fits)
    return probe_by_folds(parts["train"], parts["test"], n_folds, on_fits)


def _metrics(probed: Probed, gold: Labels, majority: int) -> dict[str, float]:
    powers = np.log2(probed.costs)
    metrics = {
        PRIMARY: float(np.mean(probed.accuracies)),
        "dev_accuracy": float(np.mean(probed.dev_accuracies)),
        "majority": float((gold == majority).mean()),  # who always says the commonest class
        "log2_cost": float(powers.mean()),
    }
    if len(probed.costs) > 1:
        metrics |= {"accuracy_std": float(np.std(probed.accuracies)), "log2_cost_std": float(powers.std())}
    return metrics


def _f1(predicted: npt.NDArray[np.bool_], gold: npt.NDArray[np.bool_]) -> float:
    return float(2 * (predicted & gold).sum() / max(1, predicted.sum() + gold.sum()))


def _interval(is_right: npt.NDArray[np.bool_]) -> tuple[float, float]:
    # To draw rights and wrongs again, with replacement, is to draw from a binomial.
    draws = np.random.default_rng(SEED).binomial(len(is_right), is_right.mean(), 10_000) / len(is_right)
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(low), float(high)
