"""Official files of inference become the tables that they should."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from data.official.reading import put, tables

from gemel.errors import InvalidInput

HEADER = "premise\thypothesis\tlabel\n"


def snli_line(label: str, number: int = 1) -> str:
    return (
        json.dumps({"gold_label": label, "sentence1": f"A man {number}.", "sentence2": "He\tsleeps. "}) + "\n"
    )


def test_snli_drops_pairs_without_a_gold_label_and_mac_clutter(tmp_path: Path) -> None:
    content = snli_line("neutral", 1) + snli_line("-", 2) + snli_line("contradiction", 3)
    files: dict[str, str | bytes] = {}
    for split in ("train", "dev", "test"):
        files[f"snli_1.0/snli_1.0_{split}.jsonl"] = content
        files[f"__MACOSX/snli_1.0/._snli_1.0_{split}.jsonl"] = b"\x00\x05"
    table = f"{HEADER}A man 1.\tHe sleeps.\tneutral\nA man 3.\tHe sleeps.\tcontradiction\n"
    assert tables("snli", put(tmp_path, files)) == {"train": table, "dev": table, "test": table}


def test_multinli_is_read_from_its_txt_files_too(tmp_path: Path) -> None:
    content = (
        "gold_label\tsentence1_binary_parse\tsentence1\tsentence2\tlabel1\n"
        'entailment\t( x )\tSo, "yes".\tYes\tentailment\nneutral\t( x )\tA\tB\n'
    )
    files: dict[str, str | bytes] = {
        f"multinli_1.0_{split}.txt": content for split in ("train", "dev_matched", "dev_mismatched")
    }
    made = tables("mnli", put(tmp_path, files))
    assert list(made) == ["train", "dev_matched", "dev_mismatched"]
    assert made["dev_matched"] == f'{HEADER}So, "yes".\tYes\tentailment\nA\tB\tneutral\n'


def test_a_label_that_is_none_is_refused(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"snli_1.0_train.jsonl": snli_line("maybe")}
    with pytest.raises(InvalidInput, match="line 1: the label is 'maybe'; expected one of contradiction"):
        tables("snli", put(tmp_path, files))


def test_a_line_without_a_label_is_refused(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"snli_1.0_train.jsonl": '{"sentence1": "A", "sentence2": "B"}\n'}
    with pytest.raises(InvalidInput, match="the row has no gold_label"):
        tables("snli", put(tmp_path, files))


def test_all_nli_is_told_apart_by_its_split(tmp_path: Path) -> None:
    content = "split\tdataset\tfilename\tsentence1\tsentence2\tlabel\n" + "".join(
        f'{split}\t{source}\tf.txt\t"A\tB\tneutral\n'
        for split, source in (("train", "SNLI"), ("dev", "SNLI"), ("train", "MultiNLI"), ("test", "MultiNLI"))
    )
    made = tables("allnli", put(tmp_path, {"AllNLI.tsv.gz": gzip.compress(content.encode())}))
    assert made["train"] == f'{HEADER[:-1]}\tsource\n"A\tB\tneutral\tSNLI\n"A\tB\tneutral\tMultiNLI\n'
    assert made["dev"].count("\n") == made["test"].count("\n") == 2


def test_a_gzipped_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    content = "split\tdataset\tfilename\tsentence1\tsentence2\tlabel\n" + "train\tS\tf\tA\tB\tneutral\n" * 999
    packed = gzip.compress(content.encode())
    with pytest.raises(InvalidInput, match="expected a whole and undamaged file"):
        tables("allnli", put(tmp_path, {"AllNLI.tsv.gz": packed[:-20]}))


def test_xnli_is_ordered_by_language(tmp_path: Path) -> None:
    header = "language\tgold_label\tsentence1_binary_parse\tsentence1\tsentence2\n"
    rows = "".join(f"{lang}\tneutral\t-\t{lang} {n}\tB\n" for n in (1, 2) for lang in ("zh", "ar"))
    files: dict[str, str | bytes] = {f"XNLI-1.0/xnli.{split}.tsv": header + rows for split in ("dev", "test")}
    lines = tables("xnli", put(tmp_path, files))["test"].splitlines()
    assert [line.split("\t")[0] for line in lines] == ["premise", "ar 1", "ar 2", "zh 1", "zh 2"]


def test_kornli_keeps_quotes(tmp_path: Path) -> None:
    content = 'sentence1\tsentence2\tgold_label\n"엄마\t저 왔어요."\tneutral\n'
    files: dict[str, str | bytes] = {f"KorNLI/xnli.{split}.ko.tsv": content for split in ("dev", "test")}
    made = tables("kornli", put(tmp_path, files))
    assert made["dev_xnli_ko"] == f'{HEADER}"엄마\t저 왔어요."\tneutral\n'
    assert list(made) == ["dev_xnli_ko", "test_xnli_ko"]


def test_the_training_part_of_kornli_is_both_files(tmp_path: Path) -> None:
    header = "sentence1\tsentence2\tgold_label\n"
    files: dict[str, str | bytes] = {
        "snli_1.0_train.ko.tsv": f"{header}A\tB\tneutral\n",
        "multinli.train.ko.tsv": f"{header}C\tD\tentailment\n",
    }
    made = tables("kornli_train", put(tmp_path, files))
    assert made == {"train": f"{HEADER}A\tB\tneutral\nC\tD\tentailment\n"}


def test_klue_nli_is_read_from_a_json_list(tmp_path: Path) -> None:
    item = {"premise": "가", "hypothesis": "나", "gold_label": "entailment"}
    files: dict[str, str | bytes] = {
        f"klue-nli-v1.1_{split}.json": json.dumps([item]) for split in ("train", "dev")
    }
    assert tables("klue_nli", put(tmp_path, files))["dev"] == f"{HEADER}가\t나\tentailment\n"
    with pytest.raises(InvalidInput, match="item 0: expected texts as premise"):
        tables("klue_nli", put(tmp_path, {"klue-nli-v1.1_train.json": '[{"premise": 1}]'}))
    with pytest.raises(InvalidInput, match="holds no list of objects"):
        tables("klue_nli", put(tmp_path, {"klue-nli-v1.1_train.json": "{}"}))
