"""Official files of natural language inference: SNLI, MultiNLI, AllNLI, XNLI, KorNLI, KLUE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from gemel.data.class_names import NLI_LABELS, NO_GOLD_LABEL
from gemel.data.official.files import OfficialFiles, json_file, json_list, tab_file
from gemel.data.official.parts import Part, Reader, cells
from gemel.errors import InvalidInput

NLI = ("premise", "hypothesis", "label")
_OFFICIAL = ("sentence1", "sentence2", "gold_label")


def gold_labelled(files: dict[str, str]) -> Reader:
    """The reader of SNLI's and MultiNLI's .jsonl or .txt files, given as part -> name without suffix."""
    return partial(_gold_labelled, files=files)


def _gold_labelled(official: OfficialFiles, files: dict[str, str]) -> Iterator[Part]:
    for part, name in files.items():
        yield Part(part, NLI, _labelled_rows(official.find(f"{name}.jsonl", f"{name}.txt", f"{name}.tsv")))


def _labelled_rows(path: Path) -> Iterator[list[str]]:
    is_json = ".jsonl" in path.name
    with json_file(path) if is_json else tab_file(path, is_ragged=path.name.endswith("txt")) as table:
        for place, (first, second, label) in cells(table, _OFFICIAL):
            if label.strip() != NO_GOLD_LABEL:  # on these the annotators did not agree
                yield [first, second, _checked_label(label, place)]


def all_nli(official: OfficialFiles) -> Iterator[Part]:
    """`AllNLI.tsv.gz`, the merged file of sentence-transformers, told apart by its column `split`."""
    path = official.find("AllNLI.tsv")
    for split in ("train", "dev", "test"):
        yield Part(split, (*NLI, "source"), _all_nli_rows(path, split))


def _all_nli_rows(path: Path, split: str) -> Iterator[list[str]]:
    with tab_file(path) as table:
        for place, row in cells(table, ("split", "sentence1", "sentence2", "label", "dataset")):
            if row[0] == split:
                yield [row[1], row[2], _checked_label(row[3], place), row[4]]


def xnli(official: OfficialFiles) -> Iterator[Part]:
    """`xnli.dev.tsv` and `xnli.test.tsv`, language by language."""
    for split in ("dev", "test"):
        path = official.find(f"xnli.{split}.tsv")
        with tab_file(path) as table:
            rows = [
                [first, second, _checked_label(label, place), language]
                for place, (first, second, label, language) in cells(table, (*_OFFICIAL, "language"))
            ]
        yield Part(split, (*NLI, "lang"), sorted(rows, key=lambda row: row[3]))


def joined(part: str, names: Sequence[str]) -> Reader:
    """The reader of several labelled files that make one part."""
    return partial(_joined, part=part, names=names)


def _joined(official: OfficialFiles, part: str, names: Sequence[str]) -> Iterator[Part]:
    paths = [official.find(name) for name in names]
    yield Part(part, NLI, (row for path in paths for row in _labelled_rows(path)))


def klue_nli(official: OfficialFiles) -> Iterator[Part]:
    """`klue-nli-v1.1_train.json` and `_dev.json`."""
    for split in ("train", "dev"):
        path = official.find(f"klue-nli-v1.1_{split}.json", f"klue-nli-v1_{split}.json")
        yield Part(split, NLI, _klue_nli_rows(path))


def _klue_nli_rows(path: Path) -> Iterator[list[str]]:
    for number, item in enumerate(json_list(path)):
        place = f"{path}, item {number}"
        if not all(isinstance(item.get(key), str) for key in ("premise", "hypothesis", "gold_label")):
            raise InvalidInput(f"{place}: expected texts as premise, hypothesis and gold_label")
        yield [item["premise"], item["hypothesis"], _checked_label(item["gold_label"], place)]


def _checked_label(label: str, place: str) -> str:
    name = label.strip().lower()
    if name not in NLI_LABELS:
        raise InvalidInput(f"{place}: the label is {label!r}; expected one of {', '.join(NLI_LABELS)}")
    return name
