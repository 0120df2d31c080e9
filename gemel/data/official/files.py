"""The files that somebody published, wherever they lie below a folder, in whatever encoding."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from gemel.data.lines import decoded_lines, decompressed, without_end
from gemel.data.places import hash_of
from gemel.data.tables import Table, csv_table, json_table, open_bytes, split_suffixes, tab_table
from gemel.errors import InvalidInput

_SHOWN = 3  # how many of several files a message names


class OfficialFiles:
    """A folder in which official files are found by the ends of their paths, gzipped or not."""

    def __init__(self, root: Path) -> None:
        self.root = root
        files = (path for path in root.rglob("*") if path.is_file())
        self._files = sorted(path for path in files if not _is_clutter(path.relative_to(root)))

    def find(self, *endings: str) -> Path:
        """The only file with the first of these path endings that any has."""
        for ending in endings:
            found = [path for path in self._files if _ends_with(path, ending)]
            if found:
                return self._only(found, ending)
        raise InvalidInput(
            f"{self.root} has no {' or '.join(endings)} (found: {self._shown(self._files)}); "
            "expected the set as it is officially published"
        )

    def has(self, *endings: str) -> bool:
        """Whether there is a file with one of these path endings."""
        return any(_ends_with(path, ending) for path in self._files for ending in endings)

    def folder_with(self, names: Sequence[str], also: Sequence[str]) -> Path:
        """The only folder that holds files of all these names, or else of all the other ones."""
        for wanted in (names, also):
            found = [
                folder
                for folder in dict.fromkeys(path.parent for path in self._files)
                if all((folder / name).is_file() for name in wanted)
            ]
            if len(found) > 1:
                raise InvalidInput(
                    f"{len(found)} folders hold {names[0]} and its like ({self._shown(found)}); "
                    "expected one: name the one that is meant"
                )
            if found:
                return found[0]
        raise InvalidInput(
            f"{self.root} has no folder with {', '.join(names)} (found: {self._shown(self._files)}); "
            "expected the set as it is officially published"
        )

    def _only(self, found: Sequence[Path], ending: str) -> Path:
        if len(found) > 1 and len({hash_of(path) for path in found}) > 1:
            raise InvalidInput(
                f"{self.root} has {len(found)} different files {ending} ({self._shown(found)}); "
                "expected one: name the folder that is meant"
            )
        return found[0]

    def _shown(self, paths: Sequence[Path]) -> str:
        names = [str(path.relative_to(self.root)) for path in paths[:_SHOWN]]
        more = len(paths) - len(names)
        return ", ".join(names) + (f" and {more} more" if more else "") if names else "no files"


def _is_clutter(path: Path) -> bool:
    """Whether this is what macOS leaves in archives."""
    return "__MACOSX" in path.parts or path.name.startswith("._") or path.name == ".DS_Store"


def _ends_with(path: Path, ending: str) -> bool:
    wanted = tuple(ending.split("/"))
    return path.parts[-len(wanted) :] in (wanted, (*wanted[:-1], f"{wanted[-1]}.gz"))


# What is inside ---------------------------------------------------------------------------------------


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked if it is gzipped."""
    with open_bytes(path, "an official file") as file:
        yield decompressed(file, split_suffixes(path.name)[1])


def text_lines(path: Path, encoding: str = "utf-8") -> Iterator[str]:
    """The lines of a file without their ends."""
    with opened(path) as stream:
        if encoding == "utf-8":
            yield from map(without_end, decoded_lines(stream, str(path)))
            return
        for number, line in enumerate(stream, 1):
            try:
                yield without_end(line.decode(encoding))
            except UnicodeDecodeError as error:
                raise InvalidInput(
                    f"{path}, line {number}: {error.reason} at byte {error.start}; expected {encoding}"
                ) from error


@contextmanager
def tab_file(path: Path, columns: Sequence[str] | None = None, *, is_ragged: bool = False) -> Iterator[Table]:
    """The table of a file that is split at tabs alone."""
    with opened(path) as stream:
        lines = decoded_lines(stream, str(path))
        yield tab_table(lines, str(path), columns=columns, is_ragged=is_ragged)


@contextmanager
def csv_file(path: Path, columns: Sequence[str] | None = None, *, delimiter: str = ",") -> Iterator[Table]:
    """The table of a file with quotes, its header given or in the first line."""
    with opened(path) as stream:
        yield csv_table(decoded_lines(stream, str(path)), str(path), columns=columns, delimiter=delimiter)


@contextmanager
def json_file(path: Path) -> Iterator[Table]:
    """The table of a file of JSON lines."""
    with opened(path) as stream:
        yield json_table(decoded_lines(stream, str(path)), str(path))


def json_list(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON file that holds one list; numbers with a point stay as they are written."""
    with opened(path) as stream:
        try:
            values = json.load(stream, parse_float=str)
        except (ValueError, RecursionError, OSError, EOFError) as error:
            raise InvalidInput(f"{path} is not JSON ({error}); expected the whole official file") from error
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise InvalidInput(f"{path} holds no list of objects; expected the official file")
    return values
