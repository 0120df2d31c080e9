"""An address leads to its collection, or to a sentence that says what is wrong with it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from stand_ins import ToyEncoder

from gemel.errors import InvalidInput, MissingExtra
from gemel.index import Collection, Store
from gemel.index.opening import (
    address_in,
    collection_names,
    create_collection,
    has_collection,
    is_remote,
    open_collection,
    open_index,
    shown_address,
)
from gemel.index.remote import RemoteCollection


def test_a_path_is_a_folder(tmp_path: Path, toy_encoder: ToyEncoder) -> None:
    address = address_in(str(tmp_path), "notes")
    assert not has_collection(address)
    with create_collection(address, toy_encoder, measure="dot", model="toy") as made:
        assert isinstance(made, Collection)
        assert (made.settings.measure, made.settings.model) == ("dot", "toy")
        made.add(["the dog"])
    with open_collection(address, toy_encoder) as opened:
        assert opened.search(["dog"])[0][0].record.text == "the dog"
    assert collection_names(str(tmp_path)) == ["notes"]
    assert collection_names(str(tmp_path / "nothing")) == []
    with pytest.raises(InvalidInput, match="is a folder; use HnswIndex"):
        open_index(address, 16)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("notes", False),
        ("./notes", False),
        ("/tmp/notes", False),
        ("C:/notes", False),
        ("notes: 2020", False),
        ("x" * 5_000, False),
        ("postgresql://host/texts/notes", True),
        ("POSTGRES://host/texts/notes", True),
        ("milvus:notes.db/notes", True),
        ("milvus+https://host/notes", True),
        ("mysql://host/texts/notes", True),
    ],
)
def test_what_is_an_address_and_what_a_path(address: str, expected: bool) -> None:
    assert is_remote(address) is expected


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        ("postgresql://me@host/texts", "postgresql://me@host/texts/notes"),
        ("postgresql://me@host/texts?sslmode=require", "postgresql://me@host/texts/notes?sslmode=require"),
        ("milvus://host:19530", "milvus://host:19530/notes"),
        ("milvus:data/texts.db", "milvus:data/texts.db/notes"),
        ("data", "data/notes"),
    ],
)
def test_a_name_in_a_store_has_an_address(store: str, expected: str) -> None:
    assert address_in(store, "notes") == expected


def test_what_is_shown_of_an_address_has_no_password() -> None:
    assert shown_address("postgresql://me:secret@host:5/texts/notes?password=secret") == (
        "postgresql://host:5/texts/notes"
    )
    assert shown_address("milvus://me:se@cret@host/notes") == "milvus://host/notes"
    assert shown_address("postgres://host/texts/notes?password=se@cret") == "postgres://..."
    assert shown_address("postgres://me:sec?ret@host/texts/notes") == "postgres://..."
    assert shown_address("milvus:/data/texts.db/notes") == "milvus:/data/texts.db/notes"
    assert shown_address("data/notes") == "data/notes"
    with pytest.raises(InvalidInput, match="with a store, give the collection's name") as told:
        address_in("postgresql://host/texts", "postgresql://me:secret@host/texts/notes")
    assert "secret" not in str(told.value)


def test_an_unknown_store_is_told_what_there_is() -> None:
    with pytest.raises(InvalidInput, match="begins with mysql:, which is no store") as told:
        open_collection("mysql://me:secret@host/texts/notes")
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("library", "address", "extra"),
    [
        ("psycopg", "postgresql://host/texts/notes", "pgvector"),
        ("pymilvus", "milvus://host/notes", "milvus"),
    ],
)
def test_a_library_that_is_not_there_is_named_by_its_extra(
    library: str, address: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=rf"gemel\[{extra}\]"):
        open_collection(address)


def test_every_kind_of_collection_keeps_the_contract() -> None:
    for kind in (Collection, RemoteCollection):
        methods = [name for name in dir(Store) if not name.startswith("_")]
        assert [name for name in methods if not callable(getattr(kind, name, None))] == []
