"""The same commands on a server: names in a store, addresses, copies; a password is in nothing they print."""

from __future__ import annotations

from pathlib import Path

import pytest
from store_places import PLACES, Place, postgres_server
from terminals import lines_of, run

TABLE = "key,body,year\n1,the dog sleeps,2019\n2,a man plays guitar,2021\n3,cold street,2023\n"
READING = ("--column", "body", "--id-column", "key", "--metadata", "year:number")


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(request.param, tmp_path, is_alone=True)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "t.csv").write_text(TABLE, encoding="utf-8")
    return tmp_path / "t.csv"


def test_a_collection_lives_in_a_store_under_its_name(place: Place, table: Path, tiny_bert: Path) -> None:
    name = place.name()
    stored = (name, "--store", place.store)
    (line,) = lines_of("index", "add", name, table, *READING, "-m", tiny_bert, "--store", place.store)
    assert (line["new"], line["records"]) == (3, 3)
    (line,) = lines_of("index", "add", name, table, *READING, "--store", place.store)
    assert (line["unchanged"], line["encoded"]) == (3, 0)
    found = lines_of("search", name, "guitar", "--store", place.store, "--filter", "year > 2020")
    assert {hit["id"] for hit in found} == {"2", "3"}
    (hit,) = lines_of("search", place.address(), "guitar", "--mode", "lexical")  # by its whole address
    assert hit["text"] == "a man plays guitar"
    (info,) = lines_of("index", "info", *stored)
    assert (info["records"], info["model"]) == (3, str(tiny_bert.resolve()))
    (line,) = lines_of("index", "remove", name, "1", "--store", place.store)
    assert (line["removed"], line["records"]) == (1, 2)
    (line,) = lines_of("index", "compact", *stored)
    assert line["bytes"] > 0 or place.kind == "milvus"  # which does not tell


def test_a_collection_is_copied_there_and_back(
    place: Place, table: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    run("index", "add", first, table, *READING, "-m", tiny_bert)
    (line,) = lines_of("index", "copy", first, place.address())
    assert (line["copied"], line["unchanged"], line["records"]) == (3, 0, 3)
    (line,) = lines_of("index", "copy", first, place.address())
    assert (line["copied"], line["unchanged"]) == (0, 3)
    lines_of("index", "copy", place.address(), second)
    for path in (first, second):
        run("index", "export", path, f"{path}.jsonl", "--vectors")
    assert Path(f"{second}.jsonl").read_bytes() == Path(f"{first}.jsonl").read_bytes()
    run("index", "export", place.address(), tmp_path / "third.jsonl", "--vectors")
    assert (tmp_path / "third.jsonl").read_bytes() == Path(f"{first}.jsonl").read_bytes()


@pytest.mark.extras
def test_no_command_prints_a_password(table: Path, tiny_bert: Path) -> None:
    server = postgres_server()
    server.execute("drop role if exists teller")
    server.execute("create role teller login superuser password 'hush'")
    store = server.with_user("teller", "hush")
    adding = ("index", "add", "told", table, *READING, "-m", tiny_bert, "--store", store)
    server.execute("drop schema if exists gemel_told cascade")
    runs = [run(*adding), run("index", "info", "told", "--store", store)]
    runs += [run("index", "add", "told", table, "--dtype", "float16", *adding[4:], check=1)]
    runs += [run("search", "other", "dog", "--store", store, check=1)]
    runs += [run("index", "doctor", "told", "--store", store, check=1)]
    runs += [run("search", "a/b", "dog", "--store", store, check=1)]
    wrong = "postgresql://me:hush@127.0.0.1:9/texts/notes"
    runs += [run("search", wrong, "dog", check=1), run("index", "copy", wrong, wrong, check=1)]
    for done in runs:
        assert "hush" not in done.stdout + done.stderr
        assert len(done.stderr.splitlines()) <= 1 or done.returncode == 0
    assert "looks after what it holds itself" in runs[4].stderr
