"""What is exported comes back the same, vectors included, and a file is whole or not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from stand_ins import ToyEncoder, sentences

from gemel.errors import InvalidInput, ModelMismatch
from gemel.index import Added, Collection, KnownModel, Record

TEXTS = list(dict.fromkeys(sentences(60)))
METADATA = [{"n": n, "deep": {"list": [n, None, "é"]}} if n % 2 else {} for n in range(len(TEXTS))]


@pytest.fixture
def filled(collection: Collection) -> Collection:
    collection.add(TEXTS, [f"#{n}" for n in range(len(TEXTS))], METADATA)
    return collection


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "out.parquet"])
@pytest.mark.parametrize("with_vectors", [False, True])
def test_what_is_exported_comes_back_the_same(
    filled: Collection, tmp_path: Path, toy_encoder: ToyEncoder, name: str, with_vectors: bool
) -> None:
    path = tmp_path / name
    assert filled.export(path, with_vectors=with_vectors) == len(TEXTS)
    n_before = toy_encoder.n_encoded
    with Collection.create(tmp_path / "other", toy_encoder) as other:
        seen: list[int] = []
        added = other.import_file(path, on_progress=seen.append)
        assert added == Added(n_new=len(TEXTS), n_encoded=0 if with_vectors else len(TEXTS))
        assert toy_encoder.n_encoded == n_before + (0 if with_vectors else len(TEXTS))
        assert seen == [len(TEXTS)]
        assert list(other) == list(filled)
        assert other.search(TEXTS[:9], k=5) == filled.search(TEXTS[:9], k=5)
        assert other.import_file(path) == Added(n_unchanged=len(TEXTS))


def test_other_programs_can_read_what_is_exported(filled: Collection, tmp_path: Path) -> None:
    filled.export(tmp_path / "out.jsonl", filter="n = 3")
    assert json.loads((tmp_path / "out.jsonl").read_text()) == {
        "id": "#3",
        "text": TEXTS[3],
        "metadata": {"n": 3, "deep": {"list": [3, None, "é"]}},
    }
    filled.export(tmp_path / "out.parquet", with_vectors=True)
    table = pyarrow.parquet.read_table(tmp_path / "out.parquet")
    assert table.column_names == ["id", "text", "metadata", "embedding", "fingerprint"]
    assert table["text"].to_pylist() == TEXTS
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_integer_ids_stay_integers(collection: Collection, tmp_path: Path) -> None:
    collection.add(TEXTS, range(len(TEXTS)))
    collection.export(tmp_path / "out.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "out.parquet")["id"].to_pylist() == list(range(len(TEXTS)))
    collection.add(["both"], ["1"], [{"kind": "word"}])
    with pytest.raises(InvalidInput, match=r"both str and int; export to \.jsonl"):
        collection.export(tmp_path / "mixed.parquet")
    assert collection.export(tmp_path / "some.parquet", filter="kind = 'word'") == 1
    collection.export(tmp_path / "mixed.jsonl")
    ids = [json.loads(line)["id"] for line in (tmp_path / "mixed.jsonl").read_text().splitlines()]
    assert ids == [*range(len(TEXTS)), "1"]


def test_nothing_is_overwritten_unasked(filled: Collection, tmp_path: Path) -> None:
    filled.export(tmp_path / "out.jsonl")
    with pytest.raises(InvalidInput, match="exists already"):
        filled.export(tmp_path / "out.jsonl")
    filled.remove(["#0"])
    assert filled.export(tmp_path / "out.jsonl", overwrite=True) == len(TEXTS) - 1
    for name in ("out.csv", "out"):
        with pytest.raises(InvalidInput, match="unknown suffix"):
            filled.export(tmp_path / name)


def test_vectors_of_another_model_are_refused(filled: Collection, tmp_path: Path) -> None:
    filled.export(tmp_path / "out.jsonl", with_vectors=True)
    with (
        Collection.create(tmp_path / "other", KnownModel("other-16", 16)) as other,
        pytest.raises(ModelMismatch, match=r"other-16.*toy-16"),
    ):
        other.import_file(tmp_path / "out.jsonl")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"id": 1}, "line 1 has the fields id; expected id and text"),
        ({"text": "a"}, "expected id and text"),
        ({"id": 1, "text": "a", "color": "red"}, "fields id, text, color"),
        ({"id": 1, "text": "a", "embedding": [1.0]}, "one of embedding and fingerprint"),
        ({"id": 1, "text": "a", "metadata": "no JSON"}, "metadata is not JSON"),
        ({"id": 1.5, "text": "a"}, "id 0 is the float 1.5"),
        ({"id": 1, "text": None}, "text 0 is the NoneType None"),
    ],
)
def test_a_wrong_line_is_named(
    collection: Collection, tmp_path: Path, line: dict[str, Any], message: str
) -> None:
    (tmp_path / "in.jsonl").write_text(json.dumps(line))
    with pytest.raises(InvalidInput, match=message):
        collection.import_file(tmp_path / "in.jsonl")
    assert len(collection) == 0


def test_vectors_of_different_lengths_are_refused(collection: Collection, tmp_path: Path) -> None:
    entries = [
        {"id": n, "text": "a", "embedding": [1.0] * length, "fingerprint": "toy-16"}
        for n, length in enumerate([16, 5])
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, entries)))
    with pytest.raises(InvalidInput, match="vectors are not one array"):
        collection.import_file(tmp_path / "in.jsonl")
    assert len(collection) == 0


def test_a_file_that_is_not_there_is_told(collection: Collection, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot read"):
        collection.import_file(tmp_path / "nothing.jsonl")


def test_records_go_in_as_they_come_out(filled: Collection, tmp_path: Path, toy_encoder: ToyEncoder) -> None:
    with Collection.create(tmp_path / "other", toy_encoder) as other:
        other.add(filled.records("n > 10"))
        assert list(other) == [Record(f"#{n}", TEXTS[n], METADATA[n]) for n in range(11, len(TEXTS), 2)]
