"""A collection kept in step with a folder of text files: what is new, changed or gone there."""

from __future__ import annotations

import os
from collections.abc import Callable, Container
from dataclasses import dataclass
from pathlib import Path

from gemel.errors import InvalidInput
from gemel.index import Filter, Record, Store
from gemel.index.checksums import content_hash
from gemel.index.records import Id
from gemel.tasks.passages import FILE_KEY, Chunking, add_documents, passage_of, remove_documents

SUFFIXES = (".txt", ".text", ".md", ".rst")

_Stamp = tuple[int, int]  # when a file was changed (nanoseconds), and its size


@dataclass(frozen=True)
class Synced:
    """What had to be done to bring a collection into step."""

    n_new: int = 0
    n_changed: int = 0
    n_removed: int = 0
    n_unchanged: int = 0
    unreadable: tuple[str, ...] = ()  # these were left as they are, with the reason

    @property
    def is_change(self) -> bool:
        """Whether anything was done."""
        return self.n_new + self.n_changed + self.n_removed > 0


class FolderSync:
    """Keeps the documents of a folder, each under its path, in a collection; others in it are left alone.

    A file whose time and size are as before is not read, one whose content is as before is not encoded.
    """

    def __init__(self, collection: Store, folder: str | os.PathLike[str], chunking: Chunking) -> None:
        self.folder = Path(folder).resolve()
        self._check_folder()
        self._collection = collection
        self._chunking = chunking
        self._stamps: dict[Id, _Stamp] = {}
        self._hashes = self._stored_hashes()

    def sync(self, on_progress: Callable[[int, int], object] | None = None) -> Synced:
        """Bring the collection into step; `on_progress` gets how many files are done, and of how many."""
        self._check_folder()
        unreadable: list[str] = []
        there: set[Id] = set()
        stamps: dict[Id, _Stamp] = {}
        changed: list[Record] = []
        closed: dict[str, OSError] = {}  # folders that cannot be looked into, and why
        for path in self._files(closed):
            there.add(str(path))
            try:
                stamps[str(path)], document = self._read_if_changed(path)
            except (OSError, UnicodeError) as error:
                unreadable.append(f"{_shown(path)}: {error}")
                continue
            if document is not None:
                changed.append(document)
        unreadable += [f"{_shown(Path(name))}: {error}" for name, error in closed.items()]
        empty = {document.id for document in changed if not document.text.strip()}
        gone = [
            id_
            for id_ in self._hashes
            if id_ in empty or (id_ not in there and not _is_below(str(id_), closed))
        ]
        kept = [document for document in changed if document.id not in empty]
        n_new = sum(1 for document in kept if document.id not in self._hashes)
        report = None if on_progress is None else lambda n: on_progress(n, len(kept))
        add_documents(self._collection, kept, self._chunking, on_progress=report)
        remove_documents(self._collection, gone)
        self._hashes.update({document.id: document.metadata[FILE_KEY]["hash"] for document in kept})
        for id_ in gone:
            del self._hashes[id_]
        self._stamps = stamps  # only now: what could not be stored is read again the next time
        n_changed = len(kept) - n_new
        n_unchanged = len(self._hashes) - len(kept)
        return Synced(n_new, n_changed, len(gone), n_unchanged, tuple(unreadable))

    def _files(self, closed: dict[str, OSError]) -> list[Path]:
        """The text files, in order; folders that cannot be looked into are added to `closed`."""

        def remember(error: OSError) -> None:
            closed[str(error.filename)] = error

        found: list[Path] = []
        for folder, folders, names in os.walk(self.folder, onerror=remember):
            folders[:] = [name for name in folders if not name.startswith(".")]
            paths = [Path(folder, name) for name in names if not name.startswith(".")]
            found += [path for path in paths if path.suffix.lower() in SUFFIXES and _may_be_file(path)]
        return sorted(found)

    def _read_if_changed(self, path: Path) -> tuple[_Stamp, Record | None]:
        str(path).encode()  # a name that is no UTF-8 cannot be an id
        status = path.stat()
        stamp = (status.st_mtime_ns, status.st_size)
        if self._stamps.get(str(path)) == stamp:
            return stamp, None
        # Read after the time was taken: what changes meanwhile is read again the next time.
        text = path.read_bytes().decode("utf-8-sig")
        digest = content_hash(text).hex()
        if self._hashes.get(str(path)) == digest:
            return stamp, None
        place = {"folder": str(self.folder), "hash": digest}
        metadata = {"path": path.relative_to(self.folder).as_posix(), FILE_KEY: place}
        return stamp, Record(str(path), text, metadata)

    def _stored_hashes(self) -> dict[Id, str]:
        """The content of each document that came from this folder; "" for one that is not there whole."""
        found: dict[Id, str] = {}
        n_missing: dict[Id, int] = {}
        for record in self._collection.records(Filter(f"{FILE_KEY}.folder = ?", str(self.folder))):
            passage = passage_of(record)
            document = record.id if passage is None else passage.document
            digest = record.metadata[FILE_KEY]["hash"]
            is_same = found.setdefault(document, digest) == digest
            found[document] = digest if is_same else ""
            count = 1 if passage is None else passage.count
            n_missing[document] = n_missing.get(document, count) - 1
        return {id_: digest if not n_missing[id_] else "" for id_, digest in found.items()}

    def _check_folder(self) -> None:
        if not self.folder.is_dir():
            raise InvalidInput(
                f"{self.folder} is no folder, or is gone; expected one with text files (nothing was removed)"
            )


def _may_be_file(path: Path) -> bool:
    """Whether this is a file, or something that cannot be told: whoever reads it is told why."""
    try:
        return path.is_file()
    except OSError:
        return True


def _is_below(id_: str, folders: Container[str]) -> bool:
    """Whether a document stands in one of these folders, however deep."""
    return any(str(parent) in folders for parent in Path(id_).parents)


def _shown(path: Path) -> str:
    """The path in characters that can be written, whatever its bytes are."""
    return str(path).encode(errors="backslashreplace").decode()
