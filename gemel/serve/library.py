"""The collections that the server keeps, in a folder or a store: opened once and used by all requests."""

from __future__ import annotations

import re
import threading
from pathlib import Path

from gemel.contracts import Encoder
from gemel.errors import InvalidInput
from gemel.index import Collection, Store
from gemel.index.database import FILE_NAME
from gemel.index.opening import (
    address_in,
    collection_names,
    create_collection,
    has_collection,
    open_collection,
    shown_store,
)
from gemel.serve.refusals import Refusal

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
WRITE_SECONDS = 5.0  # that a change waits for another process


class Library:
    """Collections by their names, which are never paths."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root).expanduser().resolve()
        if self.root.exists() and not self.root.is_dir():
            raise InvalidInput(f"{self.root} is no folder; give one with --collections")
        self._opened: dict[str, tuple[int, Collection]] = {}
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """The names of the collections that are there, in the order of the alphabet."""
        if not self.root.is_dir():
            return []
        return sorted(path.name for path in self.root.iterdir() if _is_collection(path))

    def collection(self, name: str) -> Collection:
        """The open collection of that name; it has no encoder yet."""
        path = self.root / checked_name(name)
        if not _is_collection(path):
            raise Refusal(
                "not_found", f"there is no collection {name!r}; /v1/collections lists those that there are"
            )
        file = (path / FILE_NAME).stat().st_ino
        with self._lock:
            known = self._opened.get(name)
            if known is not None and known[0] == file:
                return known[1]
            opened = Collection.open(path, timeout_seconds=WRITE_SECONDS)
            self._opened[name] = file, opened
            return opened

    def create(self, name: str, encoder: Encoder, model: str) -> Collection:
        """Make an empty collection for the vectors of this encoder."""
        path = self.root / checked_name(name)
        Collection.create(path, encoder, model=model).close()
        return self.collection(name)

    def without_root(self, message: str) -> str:
        """A message in which collections go by their names: where they are is nobody's business."""
        return message.replace(f"{self.root}/", "").replace(str(self.root), "the folder of collections")

    def close(self) -> None:
        """Close what is open."""
        with self._lock:
            for _, collection in self._opened.values():
                collection.close()
            self._opened.clear()


class StoreLibrary:
    """The same for the collections of a store that is not a folder."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._shown = shown_store(store)
        self._opened: dict[str, Store] = {}
        self._lock = threading.Lock()
        self.names()  # a store that cannot be used is told at once, and not to the first request

    def names(self) -> list[str]:
        """The names of the collections that are there, in the order of the alphabet."""
        names = collection_names(self._store, timeout_seconds=WRITE_SECONDS)
        return [name for name in names if NAME.fullmatch(name)]

    def collection(self, name: str) -> Store:
        """The open collection of that name; it has no encoder yet."""
        address = address_in(self._store, checked_name(name))
        with self._lock:
            known = self._opened.get(name)
        if known is not None:
            return known
        # Not under the lock: a server that is away would keep those waiting whose collections are open.
        if not has_collection(address, timeout_seconds=WRITE_SECONDS):
            raise Refusal(
                "not_found", f"there is no collection {name!r}; /v1/collections lists those that there are"
            )
        opened = open_collection(address, timeout_seconds=WRITE_SECONDS)
        with self._lock:
            kept = self._opened.setdefault(name, opened)
        if kept is not opened:
            opened.close()
        return kept

    def create(self, name: str, encoder: Encoder, model: str) -> Store:
        """Make an empty collection for the vectors of this encoder."""
        address = address_in(self._store, checked_name(name))
        create_collection(address, encoder, model=model, timeout_seconds=WRITE_SECONDS).close()
        return self.collection(name)

    def without_root(self, message: str) -> str:
        """A message in which collections go by their names: where they are is nobody's business."""
        return message.replace(f"{self._shown}/", "").replace(self._shown, "the store of collections")

    def close(self) -> None:
        """Close what is open."""
        with self._lock:
            for collection in self._opened.values():
                collection.close()
            self._opened.clear()


AnyLibrary = Library | StoreLibrary


def checked_name(name: str) -> str:
    """The name, if it can be one: letters, digits, - and _ alone, so that it leads to no other folder."""
    if not NAME.fullmatch(name):
        raise Refusal(
            "invalid",
            "the name of a collection has 1 to 64 letters (a to z), digits, - or _, and begins with a letter "
            "or digit",
            parameter="name",
        )
    return name


def _is_collection(path: Path) -> bool:
    return bool(NAME.fullmatch(path.name)) and not path.is_symlink() and (path / FILE_NAME).is_file()
