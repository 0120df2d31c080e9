"""A collection follows a folder: what is new, changed, gone or unreadable there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from stand_ins import ToyEncoder

from gemel.errors import InvalidInput
from gemel.index import Collection
from gemel.tasks.folder import FolderSync, Synced
from gemel.tasks.passages import Chunking

CHUNKING = Chunking(20)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "notes"
    (made / "deep").mkdir(parents=True)
    (made / "a.txt").write_text("the dog sleeps", encoding="utf-8")
    (made / "deep" / "b.md").write_text("# Long\n\n" + "The cat runs. " * 30, encoding="utf-8")
    (made / "picture.png").write_bytes(b"\x89PNG")
    (made / ".hidden.txt").write_text("not this", encoding="utf-8")
    return made


@pytest.fixture
def place_of_a_mere_user() -> Iterator[Path]:
    """A folder of a user who is not root, for whom this process works meanwhile: root may read anything."""
    nobody, own = 65_534, os.geteuid()
    try:
        os.seteuid(own or nobody)
    except OSError:
        pytest.skip("this process can be no other user than root, who may read everything")
    try:
        with tempfile.TemporaryDirectory() as name:
            yield Path(name)
    finally:
        os.seteuid(own)


@contextmanager
def of_mode(path: Path, mode: int) -> Iterator[None]:
    before = path.stat().st_mode
    path.chmod(mode)
    try:
        yield
    finally:
        path.chmod(before)


def paths(collection: Collection) -> set[str]:
    return {record.metadata["path"] for record in collection}


def test_every_text_file_is_a_document_under_its_path(collection: Collection, folder: Path) -> None:
    assert FolderSync(collection, folder, CHUNKING).sync() == Synced(n_new=2)
    assert paths(collection) == {"a.txt", "deep/b.md"}
    assert str(folder.resolve() / "a.txt") in collection
    assert len(collection) > 3


def test_changes_and_removals_are_followed(
    collection: Collection, folder: Path, toy_encoder: ToyEncoder
) -> None:
    collection.add(["something else"], ids=["mine"], metadata=[{"path": "elsewhere"}])
    sync = FolderSync(collection, folder, CHUNKING)
    sync.sync()
    n_encoded = toy_encoder.n_encoded
    assert sync.sync() == Synced(n_unchanged=2)
    os.utime(folder / "a.txt", ns=(1, 1))  # read again, and found to be the same
    assert sync.sync() == Synced(n_unchanged=2)
    assert toy_encoder.n_encoded == n_encoded
    (folder / "a.txt").write_text("a horse, a horse", encoding="utf-8")
    (folder / "deep" / "b.md").unlink()
    (folder / "c.rst").write_text("new here", encoding="utf-8")
    assert sync.sync() == Synced(n_new=1, n_changed=1, n_removed=1)
    assert paths(collection) == {"a.txt", "c.rst", "elsewhere"}
    (folder / "c.rst").write_text("  \n", encoding="utf-8")
    assert sync.sync() == Synced(n_removed=1, n_unchanged=1)
    assert len(collection) == 2


def test_another_process_goes_on_where_the_first_stopped(
    collection: Collection, folder: Path, toy_encoder: ToyEncoder
) -> None:
    FolderSync(collection, folder, CHUNKING).sync()
    n_encoded = toy_encoder.n_encoded
    (folder / "a.txt").unlink()
    assert FolderSync(collection, folder, CHUNKING).sync() == Synced(n_removed=1, n_unchanged=1)
    assert toy_encoder.n_encoded == n_encoded


def test_a_document_that_is_not_there_whole_is_added_again(collection: Collection, folder: Path) -> None:
    FolderSync(collection, folder, CHUNKING).sync()
    n_records = len(collection)
    collection.remove(
        [f"{folder.resolve() / 'deep' / 'b.md'}#2"]
    )  # as a writer that was killed would leave it
    assert FolderSync(collection, folder, CHUNKING).sync() == Synced(n_changed=1, n_unchanged=1)
    assert len(collection) == n_records


def test_what_cannot_be_read_is_named_and_left_alone(collection: Collection, folder: Path) -> None:
    sync = FolderSync(collection, folder, CHUNKING)
    sync.sync()
    (folder / "a.txt").write_bytes(b"caf\xe9")
    synced = sync.sync()
    assert not synced.is_change
    assert len(synced.unreadable) == 1
    assert "a.txt: 'utf-8" in synced.unreadable[0]
    assert "a.txt" in paths(collection)


def test_what_could_not_be_stored_is_stored_the_next_time(
    collection: Collection, folder: Path, toy_encoder: ToyEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = FolderSync(collection, folder, CHUNKING)
    with monkeypatch.context() as broken:
        broken.setattr(ToyEncoder, "encode", _without_room)
        with pytest.raises(OSError, match="no room"):
            sync.sync()
    assert sync.sync() == Synced(n_new=2)
    assert paths(collection) == {"a.txt", "deep/b.md"}


def _without_room(*arguments: object, **options: object) -> None:
    raise OSError("no room")


def test_a_name_that_is_no_unicode_is_told_and_keeps_nothing_else_back(
    collection: Collection, folder: Path
) -> None:
    try:
        Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.txt")).write_text("hello", encoding="utf-8")
    except OSError:
        pytest.skip("this file system takes names in Unicode alone")
    synced = FolderSync(collection, folder, CHUNKING).sync()
    assert synced.n_new == 2
    assert "caf\\udce9.txt: 'utf-8' codec can't encode" in synced.unreadable[0]


def test_a_folder_that_is_gone_removes_nothing(collection: Collection, folder: Path) -> None:
    sync = FolderSync(collection, folder, CHUNKING)
    sync.sync()
    folder.rename(folder.with_name("moved"))
    with pytest.raises(InvalidInput, match="is gone; expected one with text files"):
        sync.sync()
    assert paths(collection) == {"a.txt", "deep/b.md"}


@pytest.mark.parametrize("mode", [0o000, 0o400, 0o100], ids=["closed", "not entered", "not listed"])
def test_a_folder_that_cannot_be_read_keeps_its_documents(
    place_of_a_mere_user: Path, toy_encoder: ToyEncoder, mode: int
) -> None:
    notes = place_of_a_mere_user / "notes"
    (notes / "deep" / "deeper").mkdir(parents=True)
    for name in ("a.txt", "deep/b.txt", "deep/deeper/c.txt"):
        (notes / name).write_text(f"what {name} says", encoding="utf-8")
    with Collection.create(place_of_a_mere_user / "collection", toy_encoder) as collection:
        sync = FolderSync(collection, notes, CHUNKING)
        assert sync.sync() == Synced(n_new=3)
        (notes / "a.txt").unlink()
        with of_mode(notes / "deep", mode):
            synced = sync.sync()
        assert (synced.n_removed, synced.n_unchanged) == (1, 2)
        assert "Permission denied" in synced.unreadable[0]
        assert paths(collection) == {"deep/b.txt", "deep/deeper/c.txt"}
        assert sync.sync() == Synced(n_unchanged=2)
        (notes / "deep" / "b.txt").unlink()
        assert sync.sync() == Synced(n_removed=1, n_unchanged=1)
