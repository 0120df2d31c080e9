"""Official archives, unpacked with care: no path leads out of the folder, no damage goes unnoticed."""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from gemel.errors import InvalidInput, WriteFailed

_ZIP_START, _GZIP_START = b"PK\x03\x04", b"\x1f\x8b"
_TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz")
# What the standard library raises for files that are cut off, damaged or encrypted.
_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, RuntimeError)


def unpack(path: Path, folder: Path) -> None:
    """Put the contents of a .zip or .tar.gz into the folder, or the file itself if it is no archive."""
    try:
        with path.open("rb") as file:
            start = file.read(4)
        if start == _ZIP_START or path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive, _room(archive, path, folder):
                for member in archive.infolist():
                    if not member.is_dir():
                        with archive.open(member) as stream:
                            _write(stream, _target(member.filename, path, folder))
        elif path.name.endswith(_TAR_SUFFIXES) or (start[:2] == _GZIP_START and tarfile.is_tarfile(path)):
            with tarfile.open(path) as tar:
                _unpack_tar(tar, path, folder)
        else:
            with path.open("rb") as stream:
                _write(stream, folder / path.name)
    except _DAMAGE as error:
        raise InvalidInput(
            f"{path} cannot be unpacked ({error}); expected a whole and undamaged archive: fetch it again"
        ) from error


def _unpack_tar(tar: tarfile.TarFile, path: Path, folder: Path) -> None:
    for member in tar:
        stream = tar.extractfile(member) if member.isfile() else None
        if stream is not None:  # links and devices have no place in a set
            _write(stream, _target(member.name, path, folder))


def _target(name: str, path: Path, folder: Path) -> Path:
    pure = PurePosixPath(name)
    if not pure.parts or pure.is_absolute() or ".." in pure.parts or "\\" in name or ":" in pure.parts[0]:
        raise InvalidInput(
            f"{path} holds {name!r}, which leads out of its folder; expected an honest archive: "
            "do not trust it"
        )
    return folder / pure


@contextmanager
def _room(archive: zipfile.ZipFile, path: Path, folder: Path) -> Iterator[None]:
    """Refuse at once what the disk cannot hold, which is also what a zip bomb is."""
    needed, free = sum(member.file_size for member in archive.infolist()), shutil.disk_usage(folder).free
    if needed > free:
        raise WriteFailed(
            f"{path} unpacks to {needed:,} bytes, and {folder} has room for {free:,}; nothing was unpacked"
        )
    yield


def _write(stream: IO[bytes], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        shutil.copyfileobj(stream, file, 1 << 20)
