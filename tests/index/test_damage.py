"""A flipped byte is found before it does harm: what is derived is made again, what is lost is named."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from stand_ins import ToyEncoder, sentences

from gemel.errors import Damaged, GemelError, SlowSearchWarning
from gemel.index import Collection, HnswIndex, HnswParameters
from gemel.index.database import FILE_NAME, Database
from gemel.index.segment import segment_name
from gemel.tasks.search import Mode, search

TEXTS = [f"word{n}s {text}" for n, text in enumerate(sentences(200))]
ROW_BYTES = 16 * 4


@pytest.fixture
def folder(collection: Collection) -> Path:
    """A closed collection of some records."""
    collection.add(
        TEXTS, range(len(TEXTS)), [{"place": f"number {n} of the list"} for n in range(len(TEXTS))]
    )
    collection.close()
    return collection.path


def flip(file: Path, place: int) -> None:
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)


def place_of(file: Path, data: bytes) -> int:
    """Where some bytes stand, of which there is one copy."""
    found = file.read_bytes()
    assert found.count(data) == 1
    return found.index(data)


def test_a_damaged_vector_is_named_and_made_again(folder: Path, toy_encoder: ToyEncoder) -> None:
    flip(folder / segment_name(1), 7 * ROW_BYTES + 3)
    with Collection.open(folder, toy_encoder) as opened:
        with pytest.raises(Damaged, match=r"the vectors of 7 in .* are not what was written"):
            opened.search([TEXTS[7]])
        assert opened.get([7])[0].text == TEXTS[7]  # type: ignore[union-attr]
        examined = opened.doctor(repair=False)
        assert [finding.what.split(":")[0] for finding in examined.findings] == ["record 7"]
        assert examined.lost == ()  # for the text and the encoder are there
        repaired = opened.doctor()
        assert [finding.is_repaired for finding in repaired.findings] == [True]
        assert opened.doctor().is_sound
        assert opened.search([TEXTS[7]], k=1)[0][0].record.id == 7


def test_without_an_encoder_a_damaged_vector_is_lost_and_the_rest_is_found(
    folder: Path, toy_encoder: ToyEncoder
) -> None:
    flip(folder / segment_name(1), 7 * ROW_BYTES + 3)
    queries = toy_encoder.encode(TEXTS[6:9])
    with Collection.open(folder) as opened:
        (finding,) = opened.doctor().lost
        assert finding.what.startswith("record 7: its vector is lost")
        found = opened.search_vectors(queries, k=len(TEXTS), fingerprint="toy-16")
        assert [[hit.record.id for hit in hits].count(7) for hits in found] == [0, 0, 0]
        assert [len(hits) for hits in found] == [len(TEXTS) - 1] * 3
        assert len(opened) == len(TEXTS)
        assert 7 in {hit.record.id for hit in opened.lexical(TEXTS[7], k=200)}
    with Collection.open(folder, toy_encoder) as opened:
        assert opened.add([TEXTS[7]], [7]).n_encoded == 1  # adding it again brings it back
        assert opened.search([TEXTS[7]], k=1)[0][0].record.id == 7
        assert opened.doctor().is_sound


def test_where_every_vector_is_lost_none_are_given(folder: Path) -> None:
    (folder / segment_name(1)).unlink()
    with Collection.open(folder) as opened:
        assert len(opened.doctor().lost) > 0
        ids, vectors = opened.vectors()
        assert (ids, vectors.shape) == ([], (0, 16))
        assert len(opened) == len(TEXTS)


@pytest.mark.parametrize("n_bytes", [None, 0, 50 * ROW_BYTES + 5])
def test_a_lost_or_short_file_of_vectors_is_made_again(
    folder: Path, toy_encoder: ToyEncoder, n_bytes: int | None
) -> None:
    file = folder / segment_name(1)
    file.unlink() if n_bytes is None else os.truncate(file, n_bytes)
    with Collection.open(folder, toy_encoder) as opened:
        with pytest.raises(Damaged, match="doctor"):
            opened.search(["dog"])
        with pytest.raises(Damaged, match="doctor"):
            opened.add(["a new text"])
        assert opened.get([3])[0].text == TEXTS[3]  # type: ignore[union-attr]
        assert not opened.doctor().lost
        assert opened.doctor().is_sound
        assert opened.search([TEXTS[60]], k=1)[0][0].record.id == 60
        assert opened.add(["a new text"]).n_new == 1


def test_a_vector_of_another_row_is_noticed(folder: Path, toy_encoder: ToyEncoder) -> None:
    """A block whose checksum is right, and yet not that of these rows: an old copy put back, say."""
    with sqlite3.connect(folder / FILE_NAME) as connection:
        connection.execute("update records set vector_checksum = vector_checksum + 1 where number = 4")
    connection.close()
    with Collection.open(folder, toy_encoder) as opened, pytest.raises(Damaged):
        opened.search([TEXTS[4]], k=1)


@pytest.mark.parametrize("part", ["text", "metadata"])
def test_a_damaged_record_is_never_served(folder: Path, toy_encoder: ToyEncoder, part: str) -> None:
    data = TEXTS[5].encode() if part == "text" else b"number 5 of the list"
    flip(folder / FILE_NAME, place_of(folder / FILE_NAME, data) + 3)
    with Collection.open(folder, toy_encoder) as opened:
        for serve in (
            lambda: opened.get([5]),
            lambda: opened.search([TEXTS[5]], k=1),
            lambda: opened.lexical(TEXTS[5], k=200),
            lambda: list(opened),
            lambda: opened.export(folder.parent / "out.jsonl"),
        ):
            with pytest.raises(Damaged, match=r"record 5 in .* is not what was written"):
                serve()
        assert not (folder.parent / "out.jsonl").exists()
        assert opened.get([6])[0].text == TEXTS[6]  # type: ignore[union-attr]
        (lost,) = opened.doctor().lost
        assert lost.what.startswith("record 5: text, metadata or id")
        assert opened.add([TEXTS[5]], [5]).n_changed == 1  # adding it again mends it
        opened.doctor()
        assert opened.doctor().is_sound
        assert len(list(opened)) == len(TEXTS)


@pytest.mark.parametrize("mode", ["dense", "lexical", "hybrid"])
def test_a_damaged_record_that_is_ranked_and_not_shown_does_no_harm(
    folder: Path, toy_encoder: ToyEncoder, mode: Mode
) -> None:
    with Collection.open(folder, toy_encoder) as opened:
        whole = search(opened, [TEXTS[7]], k=20, mode=mode)[0]
        assert whole[0].id == 7
    flip(folder / FILE_NAME, place_of(folder / FILE_NAME, b"number 7 of the list"))
    with Collection.open(folder, toy_encoder) as opened:
        with pytest.raises(Damaged, match="record 7 in"):
            search(opened, [TEXTS[7]], k=20, mode=mode)
        assert search(opened, [TEXTS[7]], k=19, offset=1, mode=mode)[0] == whole[1:]


def test_damaged_metadata_that_name_a_passage_are_noticed(folder: Path, toy_encoder: ToyEncoder) -> None:
    with Collection.open(folder, toy_encoder) as opened:
        opened.add(["zebra crossing"], ["z"], [{"_passage": {"of": "book"}}])
    flip(folder / FILE_NAME, place_of(folder / FILE_NAME, b'"_passage":') + len('"_passage":'))
    with (
        Collection.open(folder, toy_encoder) as opened,
        pytest.raises(Damaged, match="record 'z' in"),
    ):
        search(opened, ["zebra crossing"])


def test_a_record_that_is_lost_can_be_dropped(folder: Path, toy_encoder: ToyEncoder) -> None:
    flip(folder / FILE_NAME, place_of(folder / FILE_NAME, TEXTS[5].encode()) + 3)
    with Collection.open(folder, toy_encoder) as opened:
        assert opened.doctor(drop=True).lost[0].what.endswith("it is dropped")
        assert opened.doctor().is_sound
        assert opened.get([5]) == [None]
        assert len(list(opened)) == len(TEXTS) - 1
        assert len(opened.search(["dog"], k=200)[0]) == len(TEXTS) - 1


def test_any_flipped_byte_of_the_table_is_noticed_or_harmless(folder: Path, toy_encoder: ToyEncoder) -> None:
    """Whatever a flip hits: what is served is what was written, or an error says otherwise."""
    expected = {n: (text, f"number {n} of the list") for n, text in enumerate(TEXTS)}
    whole = (folder / FILE_NAME).read_bytes()
    places = np.random.default_rng(0).integers(0, len(whole), 60).tolist()
    n_noticed = 0
    for place in places:
        flip(folder / FILE_NAME, place)
        try:
            with Collection.open(folder, toy_encoder) as opened:
                for record in opened:
                    assert (record.text, record.metadata["place"]) == expected[record.id]  # type: ignore[index]
                for hit in opened.search([TEXTS[place % 100]], k=5)[0]:
                    assert (hit.record.text, hit.record.metadata["place"]) == expected[hit.record.id]  # type: ignore[index]
        except GemelError:
            n_noticed += 1
        for name in (FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm"):
            (folder / name).unlink(missing_ok=True)
        (folder / FILE_NAME).write_bytes(whole)
    assert 0 < n_noticed < len(places)


def test_a_record_that_is_gone_from_the_table_is_noticed(folder: Path, toy_encoder: ToyEncoder) -> None:
    with sqlite3.connect(folder / FILE_NAME) as connection:
        connection.execute("delete from records where number = 9")
    connection.close()
    with Collection.open(folder, toy_encoder) as opened:
        for serve in (lambda: opened.search([TEXTS[9]], k=1), lambda: opened.lexical(TEXTS[9], k=1)):
            with pytest.raises(Damaged, match=r"1 records in .* are not in the table"):
                serve()
        assert not opened.doctor(repair=False).is_sound
        assert not opened.doctor().is_sound
        assert opened.doctor().is_sound
        assert len(opened.search([TEXTS[9]], k=200)[0]) == len(TEXTS) - 1


def test_damaged_full_text_is_made_again(folder: Path, toy_encoder: ToyEncoder) -> None:
    with sqlite3.connect(folder / FILE_NAME) as connection:
        connection.execute("delete from text_by_word_data where id > 10")
    connection.close()
    with Collection.open(folder, toy_encoder) as opened:
        examined = opened.doctor(repair=False)
        assert [finding.what for finding in examined.findings] == [
            "the full text by word does not fit the records"
        ]
        assert opened.doctor().findings[0].is_repaired
        assert opened.doctor().is_sound
        assert opened.lexical(TEXTS[3], k=1)[0].record.id == 3


@pytest.mark.parametrize("work", ["add", "remove"])
def test_a_damaged_text_takes_its_words_with_it(folder: Path, toy_encoder: ToyEncoder, work: str) -> None:
    with sqlite3.connect(folder / FILE_NAME) as connection:
        connection.execute("update records set text = 'something else' where id = 3")
    connection.close()
    with Collection.open(folder, toy_encoder) as opened:
        with pytest.raises(Damaged, match="add it again, remove it"):
            opened.get([3])
        if work == "add":
            opened.add([TEXTS[3]], [3])
        else:
            opened.remove([3])
        found = [hit.record.id for hit in opened.lexical(TEXTS[3], k=len(TEXTS))]
        assert (3 in found) == (work == "add")
        assert opened.lexical("something else") == []
        assert opened.doctor().is_sound


def state_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith("-shm")}


@pytest.mark.parametrize(
    "damage",
    [
        "insert into text_by_word(text_by_word) values ('delete-all')",
        "delete from text_by_word_data where id > 10",
        "delete from text_by_word_docsize where id = 9",
        "drop table text_by_word_docsize",
    ],
)
def test_who_may_only_look_sees_damaged_full_text_and_changes_nothing(folder: Path, damage: str) -> None:
    with sqlite3.connect(folder / FILE_NAME) as connection:
        connection.execute(damage)
    connection.close()
    before = state_of(folder)
    with Collection.open(folder, read_only=True) as opened:
        (finding,) = opened.doctor(repair=False).findings
        assert finding.what == "the full text by word does not fit the records"
        assert (finding.is_lost, finding.is_repaired) == (False, False)
    assert state_of(folder) == before


def test_who_only_looks_keeps_no_writer_waiting(folder: Path) -> None:
    writing = Database(folder, read_only=False, timeout_seconds=0)
    try:
        with writing.writing(), Collection.open(folder, timeout_seconds=0) as opened:
            assert opened.doctor(repair=False).is_sound
    finally:
        writing.close()


def test_words_that_the_full_text_had_lost_are_found_by_who_had_asked_before(
    folder: Path, toy_encoder: ToyEncoder
) -> None:
    with sqlite3.connect(folder / FILE_NAME) as connection:
        for number, text in connection.execute("select number, text from records").fetchall():
            forget = "insert into text_by_word(text_by_word, rowid, text) values ('delete', ?, ?)"
            connection.execute(forget, (number, text))
    connection.close()
    with Collection.open(folder, toy_encoder) as opened:
        assert opened.lexical(TEXTS[3], k=1) == []
        assert opened.doctor().findings[0].is_repaired
        assert opened.lexical(TEXTS[3], k=1)[0].record.id == 3


def test_a_damaged_index_of_the_table_is_made_again(folder: Path, toy_encoder: ToyEncoder) -> None:
    with sqlite3.connect(folder / FILE_NAME) as connection:
        connection.execute("pragma writable_schema = on")
        sql = "select rootpage from sqlite_master where type = 'index' and tbl_name = 'records'"
        page = connection.execute(sql).fetchone()[0]
        size = connection.execute("pragma page_size").fetchone()[0]
    connection.close()
    file = folder / FILE_NAME
    data = bytearray(file.read_bytes())
    start = (page - 1) * size
    data[start + size - 1] ^= 1  # the number at the end of an entry
    file.write_bytes(data)
    with Collection.open(folder, toy_encoder) as opened:
        repaired = opened.doctor()
        assert not repaired.is_sound
        assert repaired.lost == ()
        assert opened.doctor().is_sound
        assert [record.id for record in opened.get(range(len(TEXTS))) if record] == list(range(len(TEXTS)))


@pytest.mark.usefixtures("small_sizes")
@pytest.mark.parametrize("place", [0, 100, 5_000, -40, -1])
def test_a_damaged_index_is_noticed_and_built_again(
    tmp_path: Path, toy_encoder: ToyEncoder, place: int
) -> None:
    with Collection.create(tmp_path / "c", toy_encoder) as made:
        made.add(TEXTS, range(len(TEXTS)))
        expected = made.search(TEXTS[:5], k=10)
    flip(next((tmp_path / "c").glob("index-*")), place)
    with Collection.open(tmp_path / "c", toy_encoder) as opened:
        assert opened.plan().method == "approximate"
        with pytest.warns(SlowSearchWarning, match="is not"):
            assert opened.search(TEXTS[:5], k=10) == expected
        assert [finding.is_lost for finding in opened.doctor(repair=False).findings] == [False]
        assert [finding.is_repaired for finding in opened.doctor().findings] == [True]
        assert opened.doctor().is_sound
        assert opened.plan().method == "approximate"
        assert opened.search(TEXTS[:5], k=10) == expected


@pytest.mark.usefixtures("small_sizes")
@pytest.mark.parametrize("n_lost", [1, 200])
def test_a_vector_that_is_made_again_is_in_the_index_again(
    tmp_path: Path, toy_encoder: ToyEncoder, n_lost: int
) -> None:
    with Collection.create(tmp_path / "c", toy_encoder) as made:
        made.add(TEXTS, range(len(TEXTS)))
    for number in range(n_lost):
        flip(tmp_path / "c" / segment_name(1), number * ROW_BYTES + 3)
    with Collection.open(tmp_path / "c") as opened:
        assert opened.doctor().lost
        opened.compact()  # takes what is lost out of the index
    with Collection.open(tmp_path / "c", toy_encoder) as opened:
        assert [finding.is_repaired for finding in opened.doctor().findings][-1:] == [True]
        assert opened.doctor().is_sound
        assert opened.plan().method == "approximate"
        assert opened.search([TEXTS[0]], k=1)[0][0].record.id == 0
    (file,) = (tmp_path / "c").glob("index-*")
    assert sorted(HnswIndex.open(file).ids()) == list(range(len(TEXTS)))


@pytest.mark.usefixtures("small_sizes")
def test_an_index_of_another_collection_is_not_used(tmp_path: Path, toy_encoder: ToyEncoder) -> None:
    files = []
    for name in "ab":
        with Collection.create(tmp_path / name, toy_encoder) as made:
            made.add(TEXTS, range(len(TEXTS)))
        files.append(next((tmp_path / name).glob("index-*")))
    files[0].write_bytes(files[1].read_bytes() if files[0].read_bytes() != files[1].read_bytes() else b"")
    with Collection.open(tmp_path / "a", toy_encoder) as opened, pytest.warns(SlowSearchWarning):
        assert opened.search(TEXTS[:1], k=1)[0][0].record.id == 0


def test_a_damaged_file_of_an_index_is_refused(tmp_path: Path) -> None:
    index = HnswIndex(HnswParameters(16))
    index.add(np.arange(100), np.random.default_rng(0).standard_normal((100, 16)))
    index.save(tmp_path / "graph")
    for place in (0, 1_000, -1, -30):
        flip(tmp_path / "graph", place)
        with pytest.raises(Damaged, match="make the index again"):
            HnswIndex.open(tmp_path / "graph")
        flip(tmp_path / "graph", place)
    assert len(HnswIndex.open(tmp_path / "graph")) == 100


def test_damage_in_a_vector_that_no_record_needs_is_mended(folder: Path, toy_encoder: ToyEncoder) -> None:
    with Collection.open(folder, toy_encoder) as opened:
        opened.remove([7])
    flip(folder / segment_name(1), 7 * ROW_BYTES + 3)
    with Collection.open(folder, toy_encoder) as opened:
        assert not opened.doctor(repair=False).is_sound
        assert opened.doctor().lost == ()
        assert opened.doctor().is_sound
        assert len(opened.search(["dog"], k=300)[0]) == len(TEXTS) - 1


def test_a_file_that_is_no_table_is_told_so(folder: Path) -> None:
    (folder / FILE_NAME).write_bytes(b"nothing of a table" * 1000)
    with pytest.raises(Damaged, match="is damaged"):
        Collection.open(folder)
