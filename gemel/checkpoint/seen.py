"""The files of a model folder as they were when it was opened: what is read later must be the same model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gemel.errors import ModelMismatch

Stamp = tuple[int, int, int]  # size, time of the last change, inode: no file is read for them


@dataclass(frozen=True)
class SeenFiles:
    """The stamp of each file; None where there was no such file."""

    folder: Path = Path()
    stamps: tuple[tuple[Path, Stamp | None], ...] = ()

    @classmethod
    def of(cls, folder: Path, files: Iterable[Path]) -> SeenFiles:
        """The files as they are now."""
        return cls(folder, tuple((file, _stamp(file)) for file in files))

    def again(self) -> SeenFiles:
        """The same files as they are now."""
        return self.of(self.folder, (file for file, _ in self.stamps))

    def are_unchanged(self) -> bool:
        """Whether every file still is the one that was seen."""
        return self._changed() is None

    def check(self) -> None:
        """Refuse to read a folder that was replaced or changed in the meantime."""
        file = self._changed()
        if file is not None:
            raise ModelMismatch(
                f"{self.folder} has changed since this model was opened ({file.name} is gone or another); "
                "what is in it now may be another model: open it again"
            )

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Refuse a folder that changes before or while it is read."""
        self.check()
        yield
        self.check()

    def _changed(self) -> Path | None:
        return next((file for file, stamp in self.stamps if _stamp(file) != stamp), None)


def _stamp(file: Path) -> Stamp | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino
