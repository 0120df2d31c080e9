"""The sets that semantic textual similarity is measured on: where they are, and what they must hold."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gemel.data.columns import read_column
from gemel.data.example_files import read_examples
from gemel.data.examples import Examples
from gemel.data.places import data_folder, find_file, hash_of, present_file
from gemel.errors import InvalidInput

_PART_COLUMNS = ("file", "dataset")
_ROLES = {"first": "sentence1", "second": "sentence2", "score": "score"}


@dataclass(frozen=True)
class StsSet:
    """One of the sets: its file in the data folder, and what it must hold."""

    name: str
    file: str
    n_pairs: int
    protocol: str
    score_range: tuple[float, float] = (0, 5)
    more_files: tuple[str, ...] = ()
    where: Mapping[str, str] = field(default_factory=dict)  # column -> the value that its rows have
    has_parts: bool = False  # whether it was published as sub-files, which a column names
    is_optional: bool = False  # whether its group may do without it


_YEAR = "no training on the set"
STS_YEARS = (
    StsSet("STS12", "sts12/test.tsv", 3_108, f"{_YEAR}; 5 sub-files", has_parts=True),
    StsSet(
        "STS13", "sts13/test.tsv", 1_500, f"{_YEAR}; 3 sub-files, without SMT as in SentEval", has_parts=True
    ),
    StsSet("STS14", "sts14/test.tsv", 3_750, f"{_YEAR}; 6 sub-files", has_parts=True),
    StsSet("STS15", "sts15/test.tsv", 3_000, f"{_YEAR}; 5 sub-files", has_parts=True),
    StsSet("STS16", "sts16/test.tsv", 1_186, f"{_YEAR}; 5 sub-files", has_parts=True),
)
STSB = StsSet("STSb", "stsb/test.tsv", 1_379, "the test split of the STS benchmark")
SICK_R = StsSet("SICK-R", "sick/test.tsv", 4_927, "the test split of SICK (not all 9,927)", (1, 5))
SICK_R_ALL = StsSet(
    "SICK-R (all)",
    "sick/train.tsv",
    9_927,
    "the three splits of SICK together, as mteb does it (the paper has the 4,927 of the test split)",
    (1, 5),
    more_files=("sick/dev.tsv", "sick/test.tsv"),
)
KORSTS = StsSet("KorSTS", "korsts/test.tsv", 1_379, "the test split of KorSTS, STSb translated into Korean")
KLUE_STS = StsSet("KLUE-STS", "klue_sts/dev.tsv", 519, "the validation split of KLUE-STS", is_optional=True)
_LANGUAGES = ("de", "en", "es", "fr", "it", "ja", "nl", "pl", "pt", "ru", "zh")
STSB_TRANSLATED = tuple(
    StsSet(
        f"STSb-{language}",
        "stsb_multi_mt/test.tsv.gz",
        1_379,
        "the test split of STSb" + ("" if language == "en" else f", translated into {language} by a machine"),
        where={"lang": language},
    )
    for language in _LANGUAGES
)

STS_SETS = (*STS_YEARS, STSB, SICK_R)  # the paper's seven
STS_GROUPS: dict[str, tuple[StsSet, ...]] = {
    "sts": STS_SETS,
    "sts-mteb": (*STS_YEARS, STSB, SICK_R_ALL),
    "sts-korean": (KORSTS, KLUE_STS),
    "sts-multilingual": (*STSB_TRANSLATED, KORSTS),
}


@dataclass(frozen=True, eq=False)
class StsData:
    """A set that has been read."""

    name: str
    pairs: Examples
    protocol: str = ""  # what is in it, in words
    data_hash: str = ""
    # The sub-file of each pair: None for a set that has none, empty where the file does not tell.
    parts: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.pairs.kind != "scored pairs":
            raise InvalidInput(f"{self.name} holds {self.pairs.kind}; expected scored pairs")
        if not len(self.pairs):
            raise InvalidInput(f"{self.name} holds no pairs; expected two or more")
        if self.parts and len(self.parts) != len(self.pairs):
            raise InvalidInput(
                f"{self.name} names the sub-file of {len(self.parts):,} of {len(self.pairs):,} pairs; "
                "expected one a pair"
            )


def read_sts(
    data: str | os.PathLike[str] | None = None, sets: str | Iterable[StsSet] = STS_SETS
) -> list[StsData]:
    """The sets, or those of a named group, read from the data folder and found to be whole."""
    folder = data_folder(data)
    chosen = _group(sets) if isinstance(sets, str) else sets
    return [_read_set(folder, each) for each in chosen if _is_wanted(folder, each)]


def _group(name: str) -> tuple[StsSet, ...]:
    if name not in STS_GROUPS:
        raise InvalidInput(f"the group of sets {name!r} is unknown; choose from {', '.join(STS_GROUPS)}")
    return STS_GROUPS[name]


def _is_wanted(folder: Path, each: StsSet) -> bool:
    return not each.is_optional or present_file(folder, each.file) is not None


def _read_set(folder: Path, each: StsSet) -> StsData:
    paths = [find_file(folder, file, each.name) for file in (each.file, *each.more_files)]
    pairs = _joined(
        [
            read_examples(
                path, columns=_ROLES, kind="scored pairs", where=each.where, score_range=each.score_range
            )
            for path in paths
        ]
    )
    if len(pairs) != each.n_pairs:
        raise InvalidInput(
            f"{', '.join(map(str, paths))} holds {len(pairs):,} pairs; expected the {each.n_pairs:,} of "
            f"{each.name}: figures on other pairs cannot be compared with published ones"
        )
    parts = (read_column(paths[0], _PART_COLUMNS) or []) if each.has_parts else None
    return StsData(each.name, pairs, each.protocol, hash_of(*paths), parts)


def _joined(files: Sequence[Examples]) -> Examples:
    """The pairs of several files as one list."""
    if len(files) == 1:
        return files[0]
    columns = {name: [text for each in files for text in each.columns[name]] for name in files[0].columns}
    labels = np.concatenate([each.labels for each in files if each.labels is not None])
    origin = ", ".join(each.origin for each in files)
    paths = tuple(path for each in files for path in each.files)
    return Examples("scored pairs", columns, labels, origin=origin, files=paths)
