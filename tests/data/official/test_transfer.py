"""Official files of labelled texts become the tables that they should."""

from __future__ import annotations

from pathlib import Path

import pytest
from data.official.reading import put, tables

from gemel.data.official.treebank import escaped, treebank_words
from gemel.errors import InvalidInput

HEADER = "text\tlabel\n"


def test_senteval_folders_are_read_as_they_are(tmp_path: Path) -> None:
    put(tmp_path, {"MR/rt-polarity.pos": "good .\n\nvery good . \n", "MR/rt-polarity.neg": "bad .\n"})
    assert tables("mr", tmp_path) == {"all": f"{HEADER}good .\t1\nvery good .\t1\nbad .\t0\n"}


def test_subjective_is_one_and_comes_second(tmp_path: Path) -> None:
    put(tmp_path, {"SUBJ/subj.subjective": "i think .\n", "SUBJ/subj.objective": "it is .\n"})
    assert tables("subj", tmp_path) == {"all": f"{HEADER}it is .\t0\ni think .\t1\n"}


def test_the_archive_before_sentevals_script_is_split_into_words(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "data/customerr/custrev.pos": 'it\'s a "caf\xe9" .\n'.encode("latin-1"),
        "data/customerr/custrev.neg": b"i can't , and cannot .\n",
    }
    expected = f"{HEADER}it 's a `` cafM-i '' .\t1\ni ca n't , and can not .\t0\n"
    assert tables("cr", put(tmp_path, files)) == {"all": expected}


def test_latin_1_that_a_machine_has_left_is_read(tmp_path: Path) -> None:
    put(tmp_path, {"MPQA/mpqa.pos": "caf\xe9\n".encode("latin-1"), "MPQA/mpqa.neg": "naïve\n"})
    assert tables("mpqa", tmp_path) == {"all": f"{HEADER}café\t1\nnaïve\t0\n"}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('"Stop!" he said.', "`` Stop ! '' he said ."),
        ("They'll say (so) that we've won...", "They 'll say ( so ) that we 've won ..."),
        ("the dogs' bone, 50% off; gimme it--now", "the dogs ' bone , 50 % off ; gim me it -- now"),
        ("mr. smith isn't in washington d.c.", "mr. smith is n't in washington d.c ."),
        ("'tis a pity: i wanna, gotta, gonna", "'t is a pity : i wan na , got ta , gon na"),
    ],
)
def test_words_are_split_as_the_penn_treebank_does(line: str, words: str) -> None:
    assert treebank_words(line) == words


def test_bytes_beyond_ascii_are_shown_as_cat_does() -> None:
    assert escaped("a\tb ~\x7f\x01 é\x96\xff") == "a\tb ~^?^A M-iM-^VM-^?"


def test_sst_binary_and_fine_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        put(
            tmp_path,
            {
                f"SST/binary/sentiment-{split}": 'a "fine" film \t1\nbad\t0\n',
                f"SST/fine/sentiment-{split}": "4 a fine film\n0 bad\n",
            },
        )
    assert tables("sst2", tmp_path)["dev"] == f'{HEADER}a "fine" film\t1\nbad\t0\n'
    assert tables("sst5", tmp_path)["test"] == f"{HEADER}a fine film\t4\nbad\t0\n"


def test_sst_fine_is_known_by_its_official_name(tmp_path: Path) -> None:
    put(tmp_path, {f"stsa.fine.{split}": "3 well\n" for split in ("train", "dev", "test")})
    assert tables("sst5", tmp_path)["train"] == f"{HEADER}well\t3\n"


@pytest.mark.parametrize(
    ("layout", "name", "line"), [("sst5", "stsa.fine.train", "5 x"), ("sst2", "sentiment-train", "x\t2")]
)
def test_a_class_that_is_none_is_refused(layout: str, name: str, line: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=f"{name}, line 1: the label is '[52]'; expected 0 to [14]"):
        tables(layout, put(tmp_path, {name: f"{line}\n"}))


def test_trec_loses_apostrophes_and_keeps_both_labels(tmp_path: Path) -> None:
    line = "NUM:dist How far is `` it '' from Denver 's caf\xe9 ?\n".encode("cp1252")
    made = tables("trec", put(tmp_path, {"train_5500.label": line, "TREC_10.label": line * 2}))
    row = "How far is  it  from Denver s café ?\tNUM\tNUM:dist\n"
    assert made == {
        "train": f"text\tlabel\tfine_label\n{row}",
        "test": f"text\tlabel\tfine_label\n{row}{row}",
    }
    with pytest.raises(InvalidInput, match=r"line 1: 'just a line'; expected TYPE:subtype"):
        tables("trec", put(tmp_path, {"train_5500.label": "just a line\n"}))


def test_mrpc_is_read_with_its_mark_and_line_ends(tmp_path: Path) -> None:
    content = '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n1\t7\t8\tHe said "no.\tNo.\r\n'
    made = tables(
        "mrpc", put(tmp_path, {f"msr_paraphrase_{split}.txt": content for split in ("train", "test")})
    )
    assert made["test"] == 'sentence1\tsentence2\tlabel\tid1\tid2\nHe said "no.\tNo.\t1\t7\t8\n'


def test_banking_intents_and_news_topics_are_csv(tmp_path: Path) -> None:
    banking = put(
        tmp_path / "b", {f"{split}.csv": 'text,category\n"Hi,\nyou",card\n' for split in ("train", "test")}
    )
    assert tables("banking77", banking)["test"] == f"{HEADER}Hi, you\tcard\n"
    news = put(tmp_path / "n", {f"{split}.csv": '"3","A ""T""","D"\n' for split in ("train", "test")})
    assert tables("ag_news", news)["train"] == 'title\tdescription\tlabel\nA "T"\tD\tBusiness\n'
    put(news, {"train.csv": '"5","A","B"\n'})
    with pytest.raises(InvalidInput, match="the class is '5'; expected 1 to 4"):
        tables("ag_news", news)
