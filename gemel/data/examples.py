"""Examples to train on or to measure by: pairs, scored or classified, triplets, texts, classified texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gemel.data.cells import unknown_label
from gemel.data.class_names import truth_of
from gemel.data.roles import Kind, checked_kind
from gemel.errors import InvalidInput

Labels = npt.NDArray[np.int64] | npt.NDArray[np.float32]

CLASSIFIED = ("classified pairs", "classified texts")
_TOLD_CLASSES = 10  # in a description
_FOLDERS = re.compile(r"\S*/")
_LABEL_TYPES: dict[str, type[np.generic]] = {
    "scored pairs": np.float32,
    **dict.fromkeys(CLASSIFIED, np.int64),
}
_N_COLUMNS = {"triplets": 3, "classified texts": 1, "texts": 1}  # two in the others


@dataclass(frozen=True, eq=False)
class Examples:
    """Texts in columns, an example a row; classes are int64 positions in `label_names`, scores float32."""

    kind: Kind
    columns: Mapping[str, list[str]]
    labels: Labels | None = None
    label_names: tuple[str, ...] = ()
    origin: str = "memory"
    left_out: Mapping[str, int] = field(default_factory=dict)  # reason -> rows of the origin not here
    unused: tuple[str, ...] = ()  # columns of the origin that are not here
    files: tuple[str, ...] = ()  # that the origin speaks of, as it does

    def __post_init__(self) -> None:
        checked_kind(self.kind)
        _check_columns(self.columns)
        if isinstance(self.labels, list | tuple):
            object.__setattr__(self, "labels", _as_array(self.kind, self.labels))
        lengths = {name: len(texts) for name, texts in self.columns.items()}
        n_columns = _N_COLUMNS.get(self.kind, 2)
        enough = len(lengths) == n_columns or (self.kind == "triplets" and len(lengths) > n_columns)
        if not enough or len(set(lengths.values())) != 1:
            expected = {1: "1 column", 2: "2 columns", 3: "3 or more columns"}[n_columns]
            raise InvalidInput(f"{self.kind} were given {lengths} texts; expected {expected} of one length")
        label_type = _LABEL_TYPES.get(self.kind)
        expected = "no labels" if label_type is None else f"{len(self)} labels, {label_type.__name__}"
        given = "no labels" if self.labels is None else f"{self.labels.shape[0]} labels, {self.labels.dtype}"
        if given != expected:
            raise InvalidInput(f"{self.kind} were given {given}; expected {expected}")
        if self.labels is None or not len(self):
            return
        if self.kind == "scored pairs" and not np.isfinite(self.labels).all():
            raise InvalidInput("a score is NaN or infinite; expected finite numbers")
        lowest, highest = self.labels.min(), self.labels.max()
        if self.kind in CLASSIFIED and (lowest < 0 or highest >= len(self.label_names)):
            raise InvalidInput(
                f"classes run from {lowest} to {highest}; expected positions in label_names, "
                f"which has {len(self.label_names)}"
            )

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, rows: slice) -> Examples:
        return self.take(rows)

    def take(self, rows: slice | Sequence[int] | npt.NDArray[np.int64]) -> Examples:
        """The examples of these rows, in the order given."""
        chosen = np.arange(len(self))[rows]
        columns = {name: [texts[row] for row in chosen] for name, texts in self.columns.items()}
        labels = None if self.labels is None else self.labels[chosen]
        return Examples(self.kind, columns, labels, self.label_names, self.origin, files=self.files)

    def with_label_names(self, names: Sequence[str]) -> Examples:
        """The same examples, their classes in another order."""
        if tuple(names) == self.label_names or self.labels is None:
            return self
        places = {name: place for place, name in enumerate(names)}
        unknown = [name for name in self.label_names if name not in places]
        if unknown:
            raise InvalidInput(f"{self.origin}: {unknown_label(unknown[0], names)}")
        labels = np.array([places[name] for name in self.label_names], np.int64)[self.labels.astype(np.int64)]
        return replace(self, labels=labels, label_names=tuple(names))

    @property
    def public_origin(self) -> str:
        """The origin for others to read, without the folders of this machine."""
        told = self.origin
        for file in self.files:
            told = told.replace(file, Path(file).name)
        return told if self.files else _FOLDERS.sub("", told)

    def describe(self) -> str:
        """One line for a person: how many of what, from where."""
        parts = [f"{len(self):,} {self.kind} from {self.origin}"]
        if self.kind in CLASSIFIED and self.labels is not None:
            counts = np.bincount(self.labels.astype(np.int64), minlength=len(self.label_names))
            shares = list(zip(self.label_names, counts / max(1, len(self)), strict=True))
            told = [f"{name} {share:.0%}" for name, share in shares[:_TOLD_CLASSES]]
            rest = len(shares) - len(told)
            parts.append(", ".join([*told, *([f"{rest} more classes"] if rest else [])]))
        elif self.labels is not None and len(self):
            parts.append(f"scores {self.labels.min():.2f} to {self.labels.max():.2f}")
        if left_out := spoken_counts(self.left_out):
            parts.append(f"left out: {left_out}")
        return "; ".join(parts)


def _check_columns(columns: object) -> None:
    if not isinstance(columns, Mapping):
        raise InvalidInput(
            f"columns are a {type(columns).__name__}; expected texts by the names of their columns, such as "
            '{"anchor": [...], "positive": [...]}'
        )
    for name, texts in columns.items():
        if isinstance(texts, str):
            raise InvalidInput(f"the column {name!r} is one text, {texts[:40]!r}; expected a list of texts")
        strange = next((row for row, text in enumerate(texts) if not isinstance(text, str)), None)
        if strange is not None:
            raise InvalidInput(f"row {strange} of the column {name!r} is {texts[strange]!r}; expected a text")


def _as_array(kind: str, labels: Sequence[float]) -> Labels:
    """Labels in a list as the array that the kind has."""
    given = np.array(labels)
    wanted = _LABEL_TYPES.get(kind)
    if wanted is np.float32 and given.dtype.kind in "biuf":
        return given.astype(np.float32)
    if wanted is np.int64 and given.dtype.kind in "biu":
        return given.astype(np.int64)
    raise InvalidInput(f"{kind} were given labels such as {labels[0]!r}; expected numbers, or none for pairs")


def yes_as_score(examples: Examples) -> Examples:
    """Pairs of the classes 0 and 1 as pairs with these scores; other examples as they are."""
    truths = [truth_of(name) for name in examples.label_names]
    if examples.kind != "classified pairs" or set(truths) != {0.0, 1.0} or len(truths) > 2:
        return examples
    assert examples.labels is not None
    scores = np.array(truths, np.float32)[examples.labels.astype(np.int64)]
    return replace(examples, kind="scored pairs", labels=scores, label_names=())


def spoken_counts(counts: Mapping[str, int]) -> str:
    """How many of what, in words; what there is none of is not told."""
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.items() if count)
