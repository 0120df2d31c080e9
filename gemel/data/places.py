"""Where data sets are on this machine: a folder that the user names, or the cache of downloaded ones."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from gemel.errors import InvalidInput

DATA_VARIABLE = "GEMEL_DATA"
CACHE_VARIABLE = "GEMEL_CACHE"


def data_folder(data: str | os.PathLike[str] | None = None) -> Path:
    """The folder of data sets: the one given, else the one that the environment names, else the cache."""
    named = data or os.environ.get(DATA_VARIABLE)
    if not named:
        return cache_folder()
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise InvalidInput(f"the data folder {folder} is not there; expected a folder of data sets")
    return folder


def cache_folder() -> Path:
    """Where downloaded sets are kept; it need not exist yet."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser() / "data"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "gemel" / "data"


def present_file(folder: Path, file: str) -> Path | None:
    """Where a file is in a folder, packed or not."""
    plain = file.removesuffix(".gz")
    return next((folder / name for name in (plain, f"{plain}.gz") if (folder / name).is_file()), None)


def find_file(folder: Path, file: str, of: str) -> Path:
    """A set's file in the data folder, packed or not, or a sentence that says what to do."""
    path = present_file(folder, file)
    if path is None:
        raise InvalidInput(
            f"{of} was looked for at {folder / file} and is not there; give the folder that holds {file} "
            f"with --data or in {DATA_VARIABLE}, or see `gemel data {file.partition('/')[0]}`"
        )
    return path


def hash_of(*paths: Path) -> str:
    """The sha256 of one or several files, read one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as opened:
            while block := opened.read(1 << 22):
                digest.update(block)
    return digest.hexdigest()
