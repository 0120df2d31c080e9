"""Official files of paraphrases, captions, triplets and retrieval become the tables that they should."""

from __future__ import annotations

from pathlib import Path

import pytest
from data.official.reading import put, tables

from gemel.data.official import reader_of
from gemel.data.official.files import OfficialFiles
from gemel.errors import InvalidInput

PAIRS = "sentence1\tsentence2\tlabel"


def test_quora_is_read_with_quotes_and_without_empty_questions(tmp_path: Path) -> None:
    content = (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
        '0\t1\t2\t"What is ""it""?\nReally?"\tWhy?\t0\n'
        "1\t3\t4\t\tWhy?\t0\n"
        '2\t5\t6\t"How?"\tHow so?\t1\n'
    )
    assert tables("quora", put(tmp_path, {"quora_duplicate_questions.tsv": content})) == {
        "all": "question1\tquestion2\tis_duplicate\tqid1\tqid2\n"
        'What is "it"? Really?\tWhy?\t0\t1\t2\n'
        "How?\tHow so?\t1\t5\t6\n"
    }


def test_paws_keeps_quotes_and_checks_labels(tmp_path: Path) -> None:
    content = 'id\tsentence1\tsentence2\tlabel\n1\t"A" b .\tB "a .\t0\n'
    made = tables(
        "paws", put(tmp_path, {f"final/{split}.tsv": content for split in ("train", "dev", "test")})
    )
    assert made["dev"] == f'{PAIRS}\n"A" b .\tB "a .\t0\n'
    put(tmp_path, {"final/train.tsv": content.replace("\t0\n", "\t2\n")})
    with pytest.raises(InvalidInput, match="line 2: the label is '2'; expected 0 or 1"):
        tables("paws", tmp_path)


def test_pawsx_is_joined_language_by_language(tmp_path: Path) -> None:
    languages = ("zh", "ko", "ja", "fr", "es", "en", "de")
    for language in languages:
        content = f"id\tsentence1\tsentence2\tlabel\n1\t{language}\tx\t1\n"
        put(tmp_path, {f"x-final/{language}/{split}_2k.tsv": content for split in ("dev", "test")})
    rows = "".join(f"{language}\tx\t1\t{language}\n" for language in sorted(languages))
    assert tables("pawsx", tmp_path) == {"dev": f"{PAIRS}\tlang\n{rows}", "test": f"{PAIRS}\tlang\n{rows}"}


def test_the_captions_of_an_image_stand_in_one_row(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"{split}.{number}.en": f"a {number}\nb {number}\n"
        for split in ("train", "val")
        for number in range(1, 6)
    }
    header = "caption1\tcaption2\tcaption3\tcaption4\tcaption5\n"
    expected = f"{header}a 1\ta 2\ta 3\ta 4\ta 5\nb 1\tb 2\tb 3\tb 4\tb 5\n"
    assert tables("multi30k_captions", put(tmp_path, files))["val"] == expected
    with pytest.raises(InvalidInput, match=r"val\.3\.en ends before line 2"):
        tables("multi30k_captions", put(tmp_path, {"val.3.en": "a 3\n"}))


def test_triplets_of_wikipedia_sections(tmp_path: Path) -> None:
    content = (
        'Sentence1,Sentence2,Sentence3,Article Title,Section1,Section2\n"A, b",C,D,London,History,Sport\n'
    )
    files: dict[str, str | bytes] = {f"{name}.csv": content for name in ("train", "validation", "test")}
    made = tables("wikipedia_sections", put(tmp_path, files))
    assert list(made) == ["train", "dev", "test"]
    assert made["dev"] == (
        "anchor\tpositive\tnegative\tarticle\tsection\tother_section\nA, b\tC\tD\tLondon\tHistory\tSport\n"
    )


def beir_set(word: str) -> dict[str, str | bytes]:
    return {
        "corpus.jsonl": f'{{"_id": "d1", "title": "T", "text": "{word}\\tx", "metadata": {{}}}}\n'
        '{"_id": "d2", "title": "", "text": "U"}\n',
        "queries.jsonl": '{"_id": "q1", "text": "what?"}\n',
        "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t2\n",
        "qrels/train.tsv": "query-id\tcorpus-id\tscore\nq1\td2\t1\n",
    }


def test_a_beir_folder_becomes_three_tables(tmp_path: Path) -> None:
    assert tables("beir/scifact", put(tmp_path, beir_set("one"))) == {
        "corpus": "doc_id\ttitle\ttext\nd1\tT\tone x\nd2\t\tU\n",
        "queries": "query_id\ttext\nq1\twhat?\n",
        "qrels": "query_id\tdoc_id\trelevance\nq1\td1\t2\n",
    }


def test_a_beir_set_is_found_by_its_folder_among_others(tmp_path: Path) -> None:
    put(tmp_path / "scifact", beir_set("one"))
    put(tmp_path / "nfcorpus", beir_set("two"))
    assert "two x" in tables("beir/nfcorpus", tmp_path)["corpus"]
    with pytest.raises(InvalidInput, match=r"has 2 different files corpus\.jsonl .*name the folder"):
        tables("beir/arguana", tmp_path)


def test_a_document_without_an_id_is_refused(tmp_path: Path) -> None:
    put(tmp_path, {**beir_set("one"), "queries.jsonl": '{"text": "what?"}\n'})
    with pytest.raises(InvalidInput, match="line 1: expected texts as _id, text"):
        tables("beir/scifact", tmp_path)


def test_equal_copies_of_a_file_do_no_harm(tmp_path: Path) -> None:
    put(tmp_path, {"a/x.csv": "same", "b/x.csv": "same"})
    assert OfficialFiles(tmp_path).find("x.csv") == tmp_path / "a" / "x.csv"


def test_an_unknown_layout_is_refused() -> None:
    with pytest.raises(InvalidInput, match="the layout 'sts17' is unknown; expected one of sts12"):
        reader_of("sts17")
