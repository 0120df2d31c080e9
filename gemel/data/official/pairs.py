"""Official files of paraphrases, captions and triplets: Quora, PAWS, PAWS-X, Multi30k, Wikipedia sections."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from gemel.data.official.files import OfficialFiles, csv_file, tab_file, text_lines
from gemel.data.official.parts import Part, cells, clean
from gemel.errors import InvalidInput

QUESTIONS = ("question1", "question2", "is_duplicate")
PARAPHRASES = ("sentence1", "sentence2", "label")
PAWSX_LANGUAGES = ("de", "en", "es", "fr", "ja", "ko", "zh")
N_CAPTIONS = 5


def quora(official: OfficialFiles) -> Iterator[Part]:
    """`quora_duplicate_questions.tsv`: tabs and quotes; pairs with an empty question are left out."""
    path = official.find("quora_duplicate_questions.tsv")
    yield Part("all", (*QUESTIONS, "qid1", "qid2"), _quora_rows(path))


def _quora_rows(path: Path) -> Iterator[list[str]]:
    with csv_file(path, delimiter="\t") as table:
        for place, row in cells(table, (*QUESTIONS, "qid1", "qid2")):
            if clean(row[0]) and clean(row[1]):
                _check_binary(row[2], place)
                yield row


def paws(official: OfficialFiles) -> Iterator[Part]:
    """PAWS-Wiki, labelled: `final/train.tsv`, `dev.tsv` and `test.tsv`."""
    for split in ("train", "dev", "test"):
        yield Part(split, PARAPHRASES, _paws_rows(official.find(f"final/{split}.tsv", f"{split}.tsv")))


def _paws_rows(path: Path) -> Iterator[list[str]]:
    with tab_file(path) as table:
        for place, row in cells(table, PARAPHRASES):
            _check_binary(row[2], place)
            yield row


def pawsx(official: OfficialFiles) -> Iterator[Part]:
    """`x-final/de/dev_2k.tsv` and so on, language by language."""
    for split in ("dev", "test"):
        paths = {language: official.find(f"{language}/{split}_2k.tsv") for language in PAWSX_LANGUAGES}
        rows = ([*row, language] for language, path in paths.items() for row in _paws_rows(path))
        yield Part(split, (*PARAPHRASES, "lang"), rows)


def _check_binary(label: str, place: str) -> None:
    if label not in ("0", "1"):
        raise InvalidInput(f"{place}: the label is {label!r}; expected 0 or 1")


def captions(official: OfficialFiles) -> Iterator[Part]:
    """Multi30k's `train.1.en` to `train.5.en`, and `val`: a line an image in each."""
    columns = tuple(f"caption{number}" for number in range(1, N_CAPTIONS + 1))
    for split in ("train", "val"):
        paths = [official.find(f"{split}.{number}.en") for number in range(1, N_CAPTIONS + 1)]
        yield Part(split, columns, _caption_rows(paths))


def _caption_rows(paths: list[Path]) -> Iterator[tuple[str, ...]]:
    for number, row in enumerate(zip_longest(*map(text_lines, paths)), 1):
        if None in row:
            short = paths[row.index(None)]
            raise InvalidInput(
                f"{short} ends before line {number}; expected as many lines as {paths[0].name}"
            )
        yield row


_TRIPLET = ("anchor", "positive", "negative", "article", "section", "other_section")
_SECTIONS = ("Sentence1", "Sentence2", "Sentence3", "Article Title", "Section1", "Section2")


def wikipedia_sections(official: OfficialFiles) -> Iterator[Part]:
    """`train.csv`, `validation.csv` and `test.csv` of `wikipedia-sections-triplets.zip`."""
    for part, name in (("train", "train"), ("dev", "validation"), ("test", "test")):
        yield Part(part, _TRIPLET, _triplet_rows(official.find(f"{name}.csv")))


def _triplet_rows(path: Path) -> Iterator[list[str]]:
    with csv_file(path) as table:
        yield from (row for _, row in cells(table, _SECTIONS))
