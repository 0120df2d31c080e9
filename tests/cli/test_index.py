"""`gemel index` as a shell sees it."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from datetime import date, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from stand_ins import sentences
from terminals import GEMEL, lines_of, on_a_terminal, run

from gemel import load_encoder
from gemel.index import Collection, KnownModel, Record
from gemel.index.database import FILE_NAME

TABLE = "key,body,year,lang\n1,the dog sleeps,2019,en\n2,a man plays guitar,2021,en\n3,cold street,,de\n"
COLUMNS = ("--column", "body", "--id-column", "key")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text(TABLE, encoding="utf-8")
    return tmp_path / "t.csv"


@pytest.fixture
def made(table: Path, tmp_path: Path, tiny_bert: Path) -> Path:
    """A collection of three texts with their metadata."""
    path = tmp_path / "made"
    run("index", "add", path, table, *COLUMNS, "--metadata", "year:number,lang", "-m", tiny_bert)
    return path


def test_a_table_becomes_a_collection_that_knows_its_model(
    table: Path, tmp_path: Path, tiny_bert: Path
) -> None:
    path = tmp_path / "c"
    adding = ("index", "add", path, table, *COLUMNS, "--metadata", "year:number,lang")
    (line,) = lines_of(*adding, "-m", tiny_bert)
    assert {name: line[name] for name in ("new", "encoded", "records")} == {
        "new": 3,
        "encoded": 3,
        "records": 3,
    }
    (line,) = lines_of(*adding)  # with the model that it was made with
    assert (line["unchanged"], line["encoded"]) == (3, 0)
    (info,) = lines_of("index", "info", path)
    assert (info["model"], info["dim"], info["search"]) == (str(tiny_bert.resolve()), 32, "exact")
    with Collection.open(path) as opened:
        assert [record.metadata for record in opened] == [
            {"year": 2019, "lang": "en"},
            {"year": 2021, "lang": "en"},
            {"year": None, "lang": "de"},
        ]


def test_a_repeated_text_with_other_metadata_is_left_out_and_told(tmp_path: Path, tiny_bert: Path) -> None:
    rows = "text,year\nthe dog runs,2019\nthe dog runs,2019\nthe dog runs,2020\na cat,2021\n"
    (tmp_path / "t.csv").write_text(rows, encoding="utf-8")
    adding = ("index", "add", tmp_path / "c", tmp_path / "t.csv", "-m", tiny_bert)
    added = run(*adding, "--metadata", "year:number")
    line = json.loads(added.stdout)
    assert (line["new"], line["left_out"]) == (2, 1)
    assert "gemel: 1 row was left out, row 2 of" in added.stderr
    assert "--id-column" in added.stderr
    with Collection.open(tmp_path / "c") as opened:
        assert [record.metadata for record in opened] == [{"year": 2019}, {"year": 2021}]
    told = run("index", "add", tmp_path / "without metadata", *adding[3:])
    assert (json.loads(told.stdout)["left_out"], told.stderr) == (0, "")


def test_texts_without_ids_are_known_by_what_they_say(tmp_path: Path, tiny_bert: Path) -> None:
    (line,) = lines_of("index", "add", tmp_path / "c", "-", "-m", tiny_bert, stdin="a dog\na cat\na dog\n")
    assert line["records"] == 2
    (line,) = lines_of("index", "add", tmp_path / "c", "-", stdin="a dog\na horse\n")
    assert (line["new"], line["unchanged"], line["records"]) == (1, 1, 3)


def test_long_texts_are_cut_into_passages_unless_told_not_to(tmp_path: Path, tiny_bert: Path) -> None:
    (tmp_path / "t.txt").write_text("the dog sleeps. " * 40 + "\n", encoding="utf-8")
    done = run("index", "add", tmp_path / "c", tmp_path / "t.txt", "-m", tiny_bert)
    assert done.stderr == ""
    assert json.loads(done.stdout)["records"] > 4
    done = run("index", "add", tmp_path / "d", tmp_path / "t.txt", "-m", tiny_bert, "--chunk-tokens", 0)
    assert "1 text was longer than 40 tokens and cut" in done.stderr
    assert json.loads(done.stdout)["records"] == 1
    done = run("index", "add", tmp_path / "d", tmp_path / "t.txt", "--chunk-tokens", 41, check=1)
    assert "is more than the 40 that this model reads" in done.stderr


def test_numbers_of_many_digits_are_kept_as_they_are(tmp_path: Path, tiny_bert: Path) -> None:
    number = 1234567890123456789
    (tmp_path / "t.tsv").write_text(f"text\tn\na dog\t{number}\na cat\t{number + 1}\n", encoding="utf-8")
    run("index", "add", tmp_path / "c", tmp_path / "t.tsv", "--metadata", "n:number", "-m", tiny_bert)
    with Collection.open(tmp_path / "c") as opened:
        assert {record.metadata["n"] for record in opened} == {number, number + 1}
    assert lines_of("index", "remove", tmp_path / "c", "--filter", f"n = {number}")[0]["removed"] == 1


@pytest.mark.parametrize("id_", ["20240101123456789012345", "--5", "-7"])
def test_any_id_can_be_removed(id_: str, tmp_path: Path, tiny_bert: Path) -> None:
    (tmp_path / "t.tsv").write_text(f"text\tkey\na dog\t{id_}\n", encoding="utf-8")
    table = (tmp_path / "t.tsv", "--id-column", "key")
    run("index", "add", tmp_path / "c", *table, "-m", tiny_bert)
    assert lines_of("index", "remove", tmp_path / "c", "--", id_)[0]["removed"] == 1


def test_documents_are_removed_by_id_and_by_filter(made: Path) -> None:
    assert lines_of("index", "remove", made, "1", "nothing")[0]["removed"] == 1
    assert lines_of("index", "remove", made, "--filter", "lang = 'de'")[0] == {
        "collection": str(made),
        "removed": 1,
        "records": 1,
    }


@pytest.mark.parametrize("suffix", ["jsonl.gz", "parquet"])
def test_what_is_exported_is_imported_without_encoding(
    made: Path, tmp_path: Path, tiny_bert: Path, suffix: str
) -> None:
    file = tmp_path / f"out.{suffix}"
    assert lines_of("index", "export", made, file, "--vectors")[0]["records"] == 3
    (line,) = lines_of("index", "import", tmp_path / "again", file, "-m", tiny_bert)
    assert (line["new"], line["encoded"]) == (3, 0)
    query = ("-k", 3, "--json")
    assert lines_of("search", tmp_path / "again", "dog", *query) == lines_of("search", made, "dog", *query)
    assert "exists already; name another file, or replace it with --overwrite" in (
        run("index", "export", made, file, check=1).stderr
    )


def test_compaction_gives_room_back(tmp_path: Path, tiny_bert: Path) -> None:
    texts = "\n".join(dict.fromkeys(sentences(3_000, max_words=12)))
    path = tmp_path / "c"
    n = lines_of("index", "add", path, "-", "-m", tiny_bert, stdin=texts)[0]["records"]
    with Collection.open(path) as opened:
        opened.remove([record.id for record in opened][: n // 2])
    (line,) = lines_of("index", "compact", path)
    assert line["bytes"] < 0.8 * line["bytes_before"]
    assert lines_of("index", "info", path)[0]["removed"] == 0


def test_the_doctor_mends_what_can_be_and_names_what_is_lost(made: Path) -> None:
    assert lines_of("index", "doctor", made)[-1]["sound"] is True
    (segment,) = made.glob("vectors*")
    damaged = bytearray(segment.read_bytes())
    damaged[5] ^= 64
    segment.write_bytes(damaged)
    assert lines_of("index", "doctor", made, "--check", check=1)[-1]["sound"] is False
    finding, summary = lines_of("index", "doctor", made)  # the encoder makes the vector again
    assert (finding["is_repaired"], summary["lost"]) == (True, 0)
    assert lines_of("index", "doctor", made, "--check")[-1]["sound"] is True
    with sqlite3.connect(made / FILE_NAME) as connection:
        connection.execute("update records set text = 'forged' where id = '1'")
    connection.close()
    assert lines_of("index", "doctor", made, check=1)[-1]["lost"] >= 1
    assert "is not what was written there" in run("search", made, "dog", "-k", 3, check=1).stderr


def test_the_doctor_mends_without_a_model_what_needs_none(tmp_path: Path) -> None:
    path = tmp_path / "c"
    with Collection.create(path, KnownModel("others", 4)) as made:
        made.add_vectors([Record(1, "a dog"), Record(2, "a cat")], np.eye(2, 4), fingerprint="others")
    with sqlite3.connect(path / FILE_NAME) as connection:
        connection.execute("delete from text_by_word_data where id > 10")
    connection.close()
    finding, summary = lines_of("index", "doctor", path)
    assert (finding["is_repaired"], summary["lost"]) == (True, 0)
    (segment,) = path.glob("vectors*")
    segment.write_bytes(bytes(len(segment.read_bytes())))
    with sqlite3.connect(path / FILE_NAME) as connection:
        connection.execute("delete from text_by_word_data where id > 10")
    connection.close()
    done = run("index", "doctor", path, check=1)
    assert "what needs no model is mended" in done.stderr
    *findings, summary = [json.loads(line) for line in done.stdout.splitlines()]
    assert summary["lost"] == 2
    assert [each["what"] for each in findings if each["is_repaired"]] == [
        "the full text by word does not fit the records"
    ]


def test_a_terminal_gets_a_readable_description(made: Path) -> None:
    shown = on_a_terminal("index", "info", made)
    assert "text_search  word, trigram\n" in shown
    assert "records      3\n" in shown


# Following a folder ----------------------------------------------------------------------------------------


def test_a_folder_is_followed_until_the_command_is_stopped(tmp_path: Path, tiny_bert: Path) -> None:
    folder, path = tmp_path / "notes", tmp_path / "c"
    folder.mkdir()
    (folder / "a.txt").write_text("the dog sleeps", encoding="utf-8")
    (folder / "bad.txt").write_bytes(b"\xff\xfe\xfd")
    command = ["index", "add", path, "--watch", folder, "--interval", 0.05, "-m", tiny_bert]
    heeds = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*GEMEL, *map(str, command)], **pipes, preexec_fn=heeds) as process:  # type: ignore[call-overload]
        assert json.loads(process.stdout.readline())["new"] == 1
        (folder / "b.md").write_text("a cat runs", encoding="utf-8")
        assert json.loads(process.stdout.readline())["new"] == 1
        (folder / "a.txt").unlink()
        assert json.loads(process.stdout.readline())["removed"] == 1
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.count("left alone") == 1
    assert "bad.txt" in errors
    (hit,) = lines_of("search", path, "cat", "-k", 5)
    assert (hit["id"], hit["metadata"]) == (str(folder.resolve() / "b.md"), {"path": "b.md"})
    (line,) = lines_of("index", "add", path, "--watch", folder, "--once")
    assert (line["new"], line["unchanged"]) == (0, 1)


# What is refused -------------------------------------------------------------------------------------------


def test_another_model_is_refused_by_both_names(made: Path, tiny_model: Callable[[str], Path]) -> None:
    other = tiny_model("electra")
    message = run("search", made, "dog", "-m", other, check=1).stderr
    assert load_encoder(other).fingerprint in message
    assert lines_of("index", "info", made)[0]["fingerprint"] in message
    assert "holds vectors of the model" in run("index", "add", made, "-", "-m", other, check=1).stderr


def test_wrong_input_is_told_in_one_line(made: Path, table: Path, tmp_path: Path, tiny_bert: Path) -> None:
    add = ("index", "add", made)
    wrong: list[tuple[tuple[object, ...], str, int]] = [
        (("index", "add", made, tmp_path / "no.csv"), "cannot read", 1),
        ((*add, table), "has no column 'text'", 1),
        ((*add, table, *COLUMNS, "--metadata", "month"), "has no column 'month'", 1),
        ((*add, table, *COLUMNS, "--metadata", "lang:number"), "'lang' holds 'en'; expected a number", 1),
        ((*add, table, *COLUMNS, "--metadata", "lang:date"), "expected NAME, NAME:number or NAME:text", 1),
        ((*add, table, "--column", "body", "--id-column", "lang"), "row 1 of", 1),
        ((*add, table, *COLUMNS, "--dtype", "float16"), "keeps its vectors as float32", 1),
        (add, "give INPUT files, or --watch FOLDER", 2),
        ((*add, "--watch", tmp_path / "none"), "is no folder, or is gone", 1),
        (("index", "info", tmp_path / "none"), "is no collection; make one with", 1),
        (("index", "remove", made), "give IDs, or --filter", 2),
        (("index", "remove", made, "--filter", "1; drop table records"), "cannot be read at character", 1),
        (("index", "export", made, tmp_path / "x.docx"), "unknown suffix", 1),
        (("index", "import", made, table), "unknown suffix", 1),
        (("index", "doctor", made, "--check", "--drop"), "give one of them", 2),
        (("index", "add", table, table, *COLUMNS, "-m", tiny_bert), "exists already", 1),
    ]
    for arguments, message, code in wrong:
        errors = run(*arguments, check=code).stderr
        assert message in errors, (arguments, errors)
        assert "Traceback" not in errors
        if code == 1:
            assert errors.count("\n") == 1
    with Collection.open(made) as opened:
        assert len(opened) == 3


def test_ids_that_repeat_are_told_before_anything_is_written(tmp_path: Path, tiny_bert: Path) -> None:
    # farther apart than what is committed at a time
    rows = "".join(f'{{"id": {n % 3000}, "text": "text {n}"}}\n' for n in range(3001))
    (tmp_path / "t.jsonl").write_text(rows)
    adding = ("index", "add", tmp_path / "c", tmp_path / "t.jsonl", "--id-column", "id", "-m", tiny_bert)
    assert "row 3,000 of" in (message := run(*adding, check=1).stderr)
    assert "has the id 0, as an earlier one has; expected ids that differ" in message
    assert not (tmp_path / "c").exists()


def test_days_and_times_are_kept_as_texts_that_sort_as_they_do(made: Path, tmp_path: Path) -> None:
    days = [date(2020, 1, 31), date(2020, 2, 1), None]
    times = [datetime(2020, 1, 31, 23, 59), None, datetime(2021, 1, 1)]
    columns = {"id": [11, 12, 13], "text": ["a", "b", "c"], "day": days, "time": times}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "days.parquet")
    run("index", "add", made, tmp_path / "days.parquet", "--id-column", "id", "--metadata", "*")
    with Collection.open(made) as opened:
        assert [record.id for record in opened.records('day >= "2020-02-01"')] == [12]
        assert [record.id for record in opened.records('time < "2020-12-31"')] == [11]


def test_rows_that_a_collection_cannot_keep_are_named(made: Path, tmp_path: Path) -> None:
    everything = ("--id-column", "id", "--metadata", "*")
    wrong = {
        '{"id": 1.5, "text": "a"}': "the id is of type float; expected string or integer",
        '{"id": null, "text": "a"}': "the id is null",
        '{"id": 1, "text": 7}': "the text is of type int",
        '{"id": 99999999999999999999, "text": "a"}': "has more than 64 bits",
        '{"id": 1, "text": "a", "x": NaN}': "the column 'x' holds nan; expected what JSON can hold",
        '{"id": 1, "text": "a", "_passage": 1}': "'_passage', which is kept for passages",
    }
    for line, message in wrong.items():
        done = run("index", "add", made, "-", "--input-format", "jsonl", *everything, stdin=line, check=1)
        assert message in done.stderr, (line, done.stderr)
    unkept = pyarrow.table({"id": [1], "text": ["a"], "picture": [b"png"]})
    pyarrow.parquet.write_table(unkept, tmp_path / "unkept.parquet")
    done = run("index", "add", made, tmp_path / "unkept.parquet", *everything, check=1)
    assert "unkept.parquet: the column 'picture' holds b'png'; expected what JSON can hold" in done.stderr
    with Collection.open(made) as opened:
        assert len(opened) == 3


def test_a_newer_format_is_refused(made: Path) -> None:
    with sqlite3.connect(made / FILE_NAME) as connection:
        connection.execute("pragma user_version = 99")
    connection.close()
    assert "reads up to 1; upgrade gemel" in run("search", made, "dog", check=1).stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_searched_and_not_written(made: Path, table: Path) -> None:
    made.chmod(0o555)
    try:
        assert len(lines_of("search", made, "dog", "-k", 2)) == 2
        assert "reading only" in run("index", "add", made, table, *COLUMNS, check=1).stderr
    finally:
        made.chmod(0o755)
