"""Official files of labelled texts: SentEval's transfer tasks, banking77, AG news."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from gemel.data.official.files import OfficialFiles, csv_file, tab_file, text_lines
from gemel.data.official.parts import Part, Reader, cells, clean
from gemel.data.official.treebank import escaped, treebank_words
from gemel.errors import InvalidInput

LABELLED = ("text", "label")


def two_files(folder: str, raw_folder: str, labels: dict[str, str]) -> Reader:
    """The reader of one file a class, as SentEval's script leaves them or as its archive has them."""
    return partial(_two_files, folder=folder, raw_folder=raw_folder, labels=labels)


def _two_files(
    official: OfficialFiles, folder: str, raw_folder: str, labels: dict[str, str]
) -> Iterator[Part]:
    is_raw = official.has(*(f"{raw_folder}/{name}" for name in labels))
    place = raw_folder if is_raw else folder
    paths = {official.find(f"{place}/{name}", name): label for name, label in labels.items()}
    yield Part("all", LABELLED, _class_rows(paths, is_raw))


def _class_rows(paths: dict[Path, str], is_raw: bool) -> Iterator[list[str]]:
    for path, label in paths.items():
        for line in text_lines(path, "latin-1" if is_raw else _encoding(path)):
            text = treebank_words(escaped(line)) if is_raw else line
            if clean(text):  # a few lines of CR and MPQA are empty
                yield [text, label]


def _encoding(path: Path) -> str:
    """UTF-8 or latin-1: SentEval's script leaves the one or the other, as the machine's locale has it."""
    try:
        path.read_bytes().decode()
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def sst_binary(official: OfficialFiles) -> Iterator[Part]:
    """`sentiment-train`, `-dev` and `-test`: a phrase, a tab, 0 or 1."""
    for split in ("train", "dev", "test"):
        path = official.find(f"binary/sentiment-{split}", f"sentiment-{split}")
        yield Part(split, LABELLED, _sst_binary_rows(path))


def _sst_binary_rows(path: Path) -> Iterator[list[str]]:
    with tab_file(path, LABELLED) as table:
        for place, (text, label) in cells(table, LABELLED):
            yield [text, _digit(label.strip(), "01", place)]


def sst_fine(official: OfficialFiles) -> Iterator[Part]:
    """`stsa.fine.train` and so on (SentEval: `fine/sentiment-train`): 0 to 4, a blank, a sentence."""
    for split in ("train", "dev", "test"):
        path = official.find(f"stsa.fine.{split}", f"fine/sentiment-{split}")
        yield Part(split, LABELLED, _sst_fine_rows(path))


def _sst_fine_rows(path: Path) -> Iterator[list[str]]:
    for number, line in enumerate(text_lines(path), 1):
        label, _, text = line.partition(" ")
        yield [text, _digit(label, "01234", f"{path}, line {number}")]


def _digit(label: str, known: str, place: str) -> str:
    if len(label) != 1 or label not in known:
        raise InvalidInput(f"{place}: the label is {label!r}; expected {known[0]} to {known[-1]}")
    return label


def question_types(official: OfficialFiles) -> Iterator[Part]:
    """TREC's `train_5500.label` and `TREC_10.label`, without apostrophes and backticks as in SentEval."""
    for part, name in (("train", "train_5500.label"), ("test", "TREC_10.label")):
        yield Part(part, (*LABELLED, "fine_label"), _question_rows(official.find(name)))


def _question_rows(path: Path) -> Iterator[list[str]]:
    for number, line in enumerate(text_lines(path, "cp1252"), 1):
        label, _, text = line.partition(" ")
        coarse, colon, _ = label.partition(":")
        if not colon or not text.strip():
            raise InvalidInput(f"{path}, line {number}: {line[:40]!r}; expected TYPE:subtype and a question")
        yield [text.replace("`", "").replace("'", ""), coarse, label]


def msr_paraphrases(official: OfficialFiles) -> Iterator[Part]:
    """`msr_paraphrase_train.txt` and `msr_paraphrase_test.txt`."""
    for split in ("train", "test"):
        path = official.find(f"msr_paraphrase_{split}.txt")
        yield Part(split, ("sentence1", "sentence2", "label", "id1", "id2"), _msr_rows(path))


def _msr_rows(path: Path) -> Iterator[list[str]]:
    with tab_file(path) as table:
        for place, row in cells(table, ("#1 String", "#2 String", "Quality", "#1 ID", "#2 ID")):
            yield [*row[:2], _digit(row[2], "01", place), *row[3:]]


# Intents and topics ------------------------------------------------------------------------------------

_TOPICS = {"1": "World", "2": "Sports", "3": "Business", "4": "Sci/Tech"}
_NEWS = ("class", "title", "description")


def banking_intents(official: OfficialFiles) -> Iterator[Part]:
    """banking77's `train.csv` and `test.csv`."""
    for split in ("train", "test"):
        yield Part(split, LABELLED, _intent_rows(official.find(f"{split}.csv")))


def _intent_rows(path: Path) -> Iterator[list[str]]:
    with csv_file(path) as table:
        yield from (row for _, row in cells(table, ("text", "category")))


def news_topics(official: OfficialFiles) -> Iterator[Part]:
    """AG news' `train.csv` and `test.csv`: class, title, description, no header."""
    for split in ("train", "test"):
        yield Part(split, ("title", "description", "label"), _news_rows(official.find(f"{split}.csv")))


def _news_rows(path: Path) -> Iterator[list[str]]:
    with csv_file(path, _NEWS) as table:
        for place, (number, title, description) in cells(table, _NEWS):
            if number not in _TOPICS:
                raise InvalidInput(f"{place}: the class is {number!r}; expected 1 to 4")
            yield [title, description, _TOPICS[number]]
