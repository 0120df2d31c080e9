"""Official files of scored pairs: SemEval's years, the STS benchmark, SICK, argument facets."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from gemel.data.layouts import STSB_COLUMNS
from gemel.data.official.files import OfficialFiles, csv_file, json_list, tab_file, text_lines
from gemel.data.official.parts import Part, Reader, cells, checked_score
from gemel.errors import InvalidInput

PAIR = ("sentence1", "sentence2", "score")

# set -> its files in SemEval's archive; STS13 is without SMT, whose texts need a licence, as in SentEval.
SEMEVAL_FILES = {
    "sts12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "sts13": ("FNWN", "headlines", "OnWN"),
    "sts14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "sts15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "sts16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}


def semeval(name: str) -> Reader:
    """The reader of one year's `STS.input.*.txt` and `STS.gs.*.txt`."""
    return partial(_semeval, name=name)


def _semeval(official: OfficialFiles, name: str) -> Iterator[Part]:
    kinds, files = ("input", "gs"), SEMEVAL_FILES[name]
    plain, dated = (
        [f"{prefix}.{kind}.{file}.txt" for file in files for kind in kinds] for prefix in ("STS", "STS2016")
    )
    folder = official.folder_with(plain, also=dated)
    prefix = "STS" if (folder / plain[0]).is_file() else "STS2016"
    yield Part("test", (*PAIR, "file"), _semeval_rows(folder, prefix, files))


def _semeval_rows(folder: Path, prefix: str, files: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for file in files:
        path = folder / f"{prefix}.input.{file}.txt"
        pairs, scores = list(text_lines(path)), list(text_lines(folder / f"{prefix}.gs.{file}.txt"))
        if len(pairs) != len(scores):
            raise InvalidInput(
                f"{path} has {len(pairs):,} pairs and its gs file {len(scores):,} scores; "
                "expected as many: is one of them cut off?"
            )
        for number, (pair, score) in enumerate(zip(pairs, scores, strict=True), 1):
            if not score.strip():  # not judged: most pairs of STS15 and STS16 are not
                continue
            place, texts = f"{path}, line {number}", pair.split("\t")
            if len(texts) < 2:
                raise InvalidInput(f"{place}: the line has one column; expected two texts with a tab between")
            yield texts[0], texts[1], checked_score(score, 0, 5, place), file


def sts_benchmark(official: OfficialFiles) -> Iterator[Part]:
    """`sts-train.csv`, `sts-dev.csv` and `sts-test.csv`: tabs, no header, licence columns on some lines."""
    for split in ("train", "dev", "test"):
        yield Part(
            split, (*PAIR, "genre", "file", "year", "id"), _stsb_rows(official.find(f"sts-{split}.csv"))
        )


def korean_sts(official: OfficialFiles) -> Iterator[Part]:
    """KorSTS: `sts-train.tsv`, `sts-dev.tsv` and `sts-test.tsv`, with a header, without quotes."""
    for split in ("train", "dev", "test"):
        path = official.find(f"KorSTS/sts-{split}.tsv", f"sts-{split}.tsv")
        yield Part(split, (*PAIR, "genre", "file", "year", "id"), _korsts_rows(path))


def _stsb_rows(path: Path) -> Iterator[list[str]]:
    with tab_file(path, STSB_COLUMNS, is_ragged=True) as table:
        for place, (*pair, score, genre, file, year, id_) in cells(
            table, (*PAIR, "genre", "file", "year", "id")
        ):
            yield [*pair, checked_score(score, 0, 5, place), genre, file, year, id_]


def _korsts_rows(path: Path) -> Iterator[list[str]]:
    with tab_file(path) as table:
        for place, (*pair, score, genre, file, year, id_) in cells(
            table, (*PAIR, "genre", "filename", "year", "id")
        ):
            yield [*pair, checked_score(score, 0, 5, place), genre, file, year, id_]


def translated_sts(official: OfficialFiles, languages: tuple[str, ...]) -> Iterator[Part]:
    """`stsb-de-train.csv` and so on: commas, quotes, no header."""
    for split in ("train", "dev", "test"):
        paths = {language: official.find(f"stsb-{language}-{split}.csv") for language in languages}
        yield Part(split, (*PAIR, "lang"), _translated_rows(paths))


def _translated_rows(paths: dict[str, Path]) -> Iterator[list[str]]:
    for language, path in paths.items():
        with csv_file(path, PAIR) as table:
            for place, (first, second, score) in cells(table, PAIR):
                yield [first, second, checked_score(score, 0, 5, place), language]


def klue_sts(official: OfficialFiles) -> Iterator[Part]:
    """`klue-sts-v1.1_train.json` and `_dev.json`; the score is the mean of the annotators as it is given."""
    for split in ("train", "dev"):
        path = official.find(f"klue-sts-v1.1_{split}.json", f"klue-sts-v1_{split}.json")
        yield Part(split, (*PAIR, "binary"), _klue_sts_rows(path))


def _klue_sts_rows(path: Path) -> Iterator[list[str]]:
    for number, item in enumerate(json_list(path)):
        labels = item.get("labels")
        if not isinstance(labels, dict) or "real-label" not in labels:
            raise InvalidInput(f"{path}, item {number}: expected labels with a real-label")
        score = checked_score(str(labels["real-label"]), 0, 5, f"{path}, item {number}")
        yield [str(item.get(key, "")) for key in PAIR[:2]] + [score, str(labels.get("binary-label", ""))]


# SICK -------------------------------------------------------------------------------------------------

_SICK_SPLITS = {"train": "train", "dev": "trial", "test": "test_annotated"}
_SICK = (*PAIR, "entailment", "pair_id")


def sick(official: OfficialFiles) -> Iterator[Part]:
    """SemEval's `SICK_train.txt`, `SICK_trial.txt` and `SICK_test_annotated.txt`, or the one `SICK.txt`."""
    for split, spoken in _SICK_SPLITS.items():
        if official.has("SICK.txt"):
            set_name = spoken.partition("_")[0].upper()
            yield Part(split, _SICK, _sick_rows(official.find("SICK.txt"), "entailment_label", set_name))
        else:
            yield Part(split, _SICK, _sick_rows(official.find(f"SICK_{spoken}.txt"), "entailment_judgment"))


def _sick_rows(path: Path, label_column: str, set_name: str | None = None) -> Iterator[list[str]]:
    wanted = ["sentence_A", "sentence_B", "relatedness_score", label_column, "pair_ID"]
    with tab_file(path) as table:
        for place, row in cells(table, wanted if set_name is None else [*wanted, "SemEval_set"]):
            if set_name is None or row[-1].strip() == set_name:
                first, second, score, label, id_ = row[:5]
                yield [first, second, checked_score(score, 1, 5, place), label.lower(), id_]


# Argument facets ---------------------------------------------------------------------------------------

_TOPICS = {"DP": "death_penalty", "GC": "gun_control", "GM": "gay_marriage"}


def argument_facets(official: OfficialFiles) -> Iterator[Part]:
    """`ArgPairs_DP.csv`, `_GC` and `_GM`: the first of 11 columns is the score, the last two are texts."""
    paths = {topic: official.find(f"ArgPairs_{code}.csv") for code, topic in _TOPICS.items()}
    yield Part("all", (*PAIR, "topic"), _argument_rows(paths))


def _argument_rows(paths: dict[str, Path]) -> Iterator[list[str]]:
    for topic, path in paths.items():
        # The files are not UTF-8: sentences were copied out of forums.
        lines = (f"{line}\n" for line in text_lines(path, "latin-1"))
        rows = csv.reader(lines)
        next(rows, None)
        for row in rows:
            place = f"{path}, line {rows.line_num}"
            if len(row) != 11:
                raise InvalidInput(
                    f"{place}: the row has {len(row)} columns; expected the 11 of the AFS corpus"
                )
            if row[0].strip():  # a pair that nobody has judged has no score
                yield [row[9], row[10], checked_score(row[0], 0, 5, place), topic]
