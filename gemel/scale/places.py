"""Folders and files wherever fsspec reaches: this disk, an object storage, memory."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from gemel.errors import InvalidInput, MissingExtra, WriteFailed
from gemel.threads import once

MARKS = "*?["  # of a pattern
DRAFT = ".draft"


def _fsspec() -> Any:
    try:
        return import_module("fsspec")
    except ImportError as error:
        raise MissingExtra("reading and writing object storage", "ray") from error


def is_draft(name: str) -> bool:
    """Whether a file is one that `Folder.write` has begun and not finished."""
    return re.fullmatch(rf"\..+\.[0-9a-f]{{32}}{re.escape(DRAFT)}", name) is not None


@contextmanager
def _told(url: str, doing: str) -> Iterator[None]:
    """What a filesystem raises, in our words; a name with a password in it is not repeated."""
    try:
        yield
    except (OSError, ValueError, ImportError) as error:
        reason = str(error).replace(url, without_secrets(url)) or type(error).__name__
        kind = WriteFailed if doing == "write" else InvalidInput
        raise kind(
            f"cannot {doing} {without_secrets(url)}: {reason}; expected a path, or an address for fsspec"
        ) from None


def without_secrets(url: str) -> str:
    """An address without the user and the password that it may hold."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        return url
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def absolute(path: str) -> str:
    """The same place for a process that stands elsewhere."""
    return path if "://" in path else str(Path(path).resolve())


def matching(patterns: str | Sequence[str]) -> list[str]:
    """The files that paths, addresses and patterns (`s3://bucket/*.parquet`) name, each once, in order."""
    asked = [patterns] if isinstance(patterns, str) else list(patterns)
    found: dict[str, None] = {}
    for pattern in asked:
        files = [pattern]
        if any(mark in pattern for mark in MARKS):
            with _told(pattern, "read"):
                filesystem, path = _fsspec().url_to_fs(pattern)
                # A name may hold a mark: report[1].txt is that file, if there is one.
                names = [path] if filesystem.isfile(path) else sorted(filesystem.glob(path))
            files = [filesystem.unstrip_protocol(name) if "://" in pattern else name for name in names]
        if not files:
            raise InvalidInput(f"no file is named {without_secrets(pattern)}; expected at least one input")
        found.update(dict.fromkeys(map(absolute, files)))  # a file that two patterns name is read once
    if not found:
        raise InvalidInput("no input was given; expected a file or more")
    return list(found)


def open_input(url: str) -> IO[bytes]:
    """A file, opened for reading."""
    with _told(url, "read"):
        filesystem, path = _fsspec().url_to_fs(url)
        opened: IO[bytes] = filesystem.open(path, "rb")
        return opened


@dataclass(frozen=True)
class Folder:
    """A folder that files appear in whole or not at all."""

    url: str

    @once
    def _place(self) -> tuple[Any, str]:
        with _told(self.url, "write"):
            filesystem, path = _fsspec().url_to_fs(self.url)
            return filesystem, path.rstrip("/")

    @property
    def name(self) -> str:
        """What messages call this folder."""
        return without_secrets(self.url)

    def make(self) -> None:
        """Let it be there."""
        filesystem, path = self._place
        with _told(self.url, "write"):
            filesystem.makedirs(path, exist_ok=True)

    def files(self) -> dict[str, int]:
        """The names of the files that stand in it, and their sizes."""
        filesystem, path = self._place
        filesystem.invalidate_cache(path)
        try:
            found = filesystem.ls(path, detail=True)
        except FileNotFoundError:
            return {}
        return {
            entry["name"].rstrip("/").rpartition("/")[2]: int(entry["size"] or 0)
            for entry in found
            if entry["type"] == "file"
        }

    def sweep(self) -> None:
        """Remove the drafts that machines have left which were lost while they wrote."""
        filesystem, path = self._place
        for name in self.files():
            if is_draft(name):
                filesystem.rm_file(f"{path}/{name}")

    def read(self, name: str) -> bytes:
        """All bytes of a file."""
        filesystem, path = self._place
        with _told(f"{self.url}/{name}", "read"):
            content: bytes = filesystem.cat_file(f"{path}/{name}")
            return content

    def open(self, name: str) -> IO[bytes]:
        """A file, opened for reading."""
        filesystem, path = self._place
        with _told(f"{self.url}/{name}", "read"):
            opened: IO[bytes] = filesystem.open(f"{path}/{name}", "rb")
            return opened

    def write(self, name: str, fill: Callable[[IO[bytes]], object]) -> None:
        """Write a file under another name and move it into place; who comes second replaces it."""
        filesystem, path = self._place
        draft = f"{path}/.{name}.{uuid.uuid4().hex}{DRAFT}"
        with _told(f"{self.url}/{name}", "write"):
            try:
                with filesystem.open(draft, "wb") as file:
                    fill(file)
                filesystem.mv(draft, f"{path}/{name}")
            except BaseException:
                if filesystem.exists(draft):
                    filesystem.rm_file(draft)
                raise
