"""Official files of scored pairs become the tables that they should."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from data.official.reading import put, tables

from gemel.data.official.similarity import SEMEVAL_FILES
from gemel.errors import InvalidInput


def year(name: str, prefix: str = "STS", **special: tuple[str, str]) -> dict[str, str | bytes]:
    """The files of a year, with one judged pair in each unless told otherwise."""
    files: dict[str, str | bytes] = {}
    for file in SEMEVAL_FILES[name]:
        pairs, scores = special.get(file, (f"one {file}\ttwo {file}\n", "2.5\n"))
        files[f"{prefix}.input.{file}.txt"] = pairs
        files[f"{prefix}.gs.{file}.txt"] = scores
    return files


def test_a_semeval_year_is_one_table_in_the_order_of_its_files(tmp_path: Path) -> None:
    put(tmp_path, year("sts12", MSRpar=('He said "no".\t He  said it. \nA\tB\n', "4.400\n0\n")))
    assert tables("sts12", tmp_path) == {
        "test": "sentence1\tsentence2\tscore\tfile\n"
        'He said "no".\tHe  said it.\t4.400\tMSRpar\n'
        "A\tB\t0\tMSRpar\n"
        "one MSRvid\ttwo MSRvid\t2.5\tMSRvid\n"
        "one SMTeuroparl\ttwo SMTeuroparl\t2.5\tSMTeuroparl\n"
        "one surprise.OnWN\ttwo surprise.OnWN\t2.5\tsurprise.OnWN\n"
        "one surprise.SMTnews\ttwo surprise.SMTnews\t2.5\tsurprise.SMTnews\n"
    }


def test_pairs_that_nobody_judged_are_left_out(tmp_path: Path) -> None:
    put(tmp_path, year("sts15", belief=("a\tb\nc\td\ne\tf\n", "\n3\n\n")))
    lines = tables("sts15", tmp_path)["test"].splitlines()
    assert [line for line in lines if line.endswith("belief")] == ["c\td\t3\tbelief"]


def test_the_sources_beside_the_pairs_of_sts16_are_dropped(tmp_path: Path) -> None:
    files = year("sts16", prefix="STS2016", plagiarism=("a\tb\thttp://x\thttp://y\n", "1\n"))
    assert "a\tb\t1\tplagiarism\n" in tables("sts16", put(tmp_path, files))["test"]


def test_sts13_leaves_out_smt(tmp_path: Path) -> None:
    put(tmp_path, {**year("sts13"), "STS.gs.SMT.txt": "1\n"})
    assert "SMT" not in tables("sts13", tmp_path)["test"]


def test_a_year_is_found_by_all_of_its_files_among_other_years(tmp_path: Path) -> None:
    put(tmp_path / "STS" / "STS14-en-test", year("sts14"))
    put(tmp_path / "STS" / "STS15-en-test", year("sts15"))
    assert tables("sts15", tmp_path)["test"].count("\n") == 6
    put(tmp_path / "raw", year("sts15", images=("x\ty\n", "5\n")))
    with pytest.raises(InvalidInput, match=r"2 folders hold STS.input.answers-forums.txt.*name the one"):
        tables("sts15", tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    files = year("sts13")
    del files["STS.gs.OnWN.txt"]
    with pytest.raises(InvalidInput, match=r"has no folder with .*STS\.gs\.OnWN\.txt.* \(found: STS\.gs"):
        tables("sts13", put(tmp_path, files))


@pytest.mark.parametrize("score", ["5.1", "-0.1", "nan", "high", "1_0"])
def test_a_score_outside_the_scale_is_refused(score: str, tmp_path: Path) -> None:
    put(tmp_path, year("sts13", FNWN=("a\tb\n", f"{score}\n")))
    with pytest.raises(InvalidInput, match=f"FNWN.txt, line 1: the score is '{score}'; expected .* 0 to 5"):
        tables("sts13", tmp_path)


def test_a_scores_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    put(tmp_path, year("sts13", FNWN=("a\tb\nc\td\n", "1\n")))
    with pytest.raises(InvalidInput, match="has 2 pairs and its gs file 1 scores"):
        tables("sts13", tmp_path)


def test_a_line_without_a_second_text_is_refused(tmp_path: Path) -> None:
    put(tmp_path, year("sts13", FNWN=("alone\n", "1\n")))
    with pytest.raises(InvalidInput, match="the line has one column"):
        tables("sts13", tmp_path)


def test_the_sts_benchmark_keeps_quotes_and_drops_licence_columns(tmp_path: Path) -> None:
    line = 'main-news\tMSRpar\t2012test\t0007\t3.750\tHe said "no.\tShe said yes."'
    files: dict[str, str | bytes] = {
        f"stsbenchmark/sts-{split}.csv": f"{line}\n{line}\tlicence\thttp://x\n"
        for split in ("train", "dev", "test")
    }
    row = 'He said "no.\tShe said yes."\t3.750\tmain-news\tMSRpar\t2012test\t0007\n'
    table = "sentence1\tsentence2\tscore\tgenre\tfile\tyear\tid\n" + row * 2
    assert tables("stsb", put(tmp_path, files)) == {"train": table, "dev": table, "test": table}


def test_korsts_is_read_by_its_header(tmp_path: Path) -> None:
    header = "genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2\n"
    content = f"{header}news\tMSRvid\t2012\t1\t4.75\t“아이”가\t아이가 \n"
    files: dict[str, str | bytes] = {f"KorSTS/sts-{split}.tsv": content for split in ("train", "dev", "test")}
    made = tables("korsts", put(tmp_path, files))
    assert made["dev"] == (
        "sentence1\tsentence2\tscore\tgenre\tfile\tyear\tid\n“아이”가\t아이가\t4.75\tnews\tMSRvid\t2012\t1\n"
    )


SICK_HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"


def test_sick_of_semeval_is_three_files(tmp_path: Path) -> None:
    names = {"train": "train", "dev": "trial", "test": "test_annotated"}
    files: dict[str, str | bytes] = {
        f"SICK_{name}.txt": f"{SICK_HEADER}{number}\tA dog runs\tA cat\t{number}.5\tENTAILMENT\n"
        for number, name in enumerate(names.values(), 1)
    }
    made = tables("sick", put(tmp_path, files))
    assert list(made) == ["train", "dev", "test"]
    assert made["dev"] == (
        "sentence1\tsentence2\tscore\tentailment\tpair_id\nA dog runs\tA cat\t2.5\tentailment\t2\n"
    )


def test_the_one_sick_file_is_split_by_its_last_column(tmp_path: Path) -> None:
    header = "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\tx\tSemEval_set\n"
    rows = "".join(
        f"{number}\tA\tB\tNEUTRAL\t{number}\t-\t{split}\n"
        for number, split in enumerate(["TRAIN", "TEST", "TRIAL", "TEST"], 1)
    )
    made = tables("sick", put(tmp_path, {"SICK.txt": header + rows}))
    assert {part: table.count("\n") - 1 for part, table in made.items()} == {"train": 1, "dev": 1, "test": 2}
    assert made["test"].endswith("A\tB\t2\tneutral\t2\nA\tB\t4\tneutral\t4\n")


def test_sicks_scale_begins_at_one(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"SICK_train.txt": f"{SICK_HEADER}1\tA\tB\t0.9\tNEUTRAL\n"}
    with pytest.raises(InvalidInput, match=r"the score is '0\.9'; expected a number from 1 to 5"):
        tables("sick", put(tmp_path, files))


def test_translated_pairs_are_joined_language_by_language(tmp_path: Path) -> None:
    languages = ("de", "en", "es", "fr", "it", "ja", "nl", "pl", "pt", "ru", "zh")
    files: dict[str, str | bytes] = {
        f"stsb-{language}-{split}.csv": f'"Eins, {language}",zwei,4.75\n'
        for language in languages
        for split in ("train", "dev", "test")
    }
    made = tables("stsb_multi_mt", put(tmp_path, files))
    assert made["dev"].splitlines()[:2] == ["sentence1\tsentence2\tscore\tlang", "Eins, de\tzwei\t4.75\tde"]
    assert [line.rpartition("\t")[2] for line in made["dev"].splitlines()[1:]] == list(languages)


def test_klue_scores_stay_as_they_are_written(tmp_path: Path) -> None:
    labels = {"label": 3.7, "real-label": 3.714285714285714, "binary-label": 1}
    item = {"guid": "x", "sentence1": "가\n나", "sentence2": "다", "labels": labels}
    files: dict[str, str | bytes] = {
        f"klue-sts-v1.1_{split}.json": json.dumps([item], indent=1) for split in ("train", "dev")
    }
    assert tables("klue_sts", put(tmp_path, files))["dev"] == (
        "sentence1\tsentence2\tscore\tbinary\n가 나\t다\t3.714285714285714\t1\n"
    )
    with pytest.raises(InvalidInput, match="expected labels with a real-label"):
        tables("klue_sts", put(tmp_path, {"klue-sts-v1.1_train.json": '[{"labels": {}}]'}))
    with pytest.raises(InvalidInput, match="is not JSON"):
        tables("klue_sts", put(tmp_path, {"klue-sts-v1.1_train.json": '[{"labels": '}))


AFS_HEADER = "score,a,b,c,d,e,f,g,h,sentence_1,sentence_2\n"


def test_argument_facets_are_read_in_latin_1_with_their_topics(tmp_path: Path) -> None:
    row = '"4.2",1,2,3,4,5,6,7,8,"Guns, he said, ""kill"".","It\x92s caf\xe9 talk."\n'.encode("latin-1")
    unjudged = b",1,2,3,4,5,6,7,8,A,B\n"
    files: dict[str, str | bytes] = {
        f"ArgPairs_{code}.csv": AFS_HEADER.encode() + row + unjudged for code in ("DP", "GC", "GM")
    }
    expected = 'Guns, he said, "kill".\tIt\x92s café talk.\t4.2\t'
    assert tables("afs", put(tmp_path, files)) == {
        "all": "sentence1\tsentence2\tscore\ttopic\n"
        + "".join(f"{expected}{topic}\n" for topic in ("death_penalty", "gun_control", "gay_marriage"))
    }


def test_argument_facets_with_other_columns_are_refused(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"ArgPairs_{code}.csv": "s,a,b\n1,A,B\n" for code in ("DP", "GC", "GM")}
    with pytest.raises(InvalidInput, match="line 2: the row has 3 columns; expected the 11"):
        tables("afs", put(tmp_path, files))
