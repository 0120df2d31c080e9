"""A set brought here: fetched, or made from official files in hand; checked, and put in place whole."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gemel.data.catalogue import DataFile, DataSet, Download, data_set, how_to_get
from gemel.data.download import RETRY_SECONDS, download
from gemel.data.normalised import Written, write_part
from gemel.data.official import reader_of
from gemel.data.official.files import OfficialFiles
from gemel.data.places import DATA_VARIABLE, cache_folder, hash_of, present_file
from gemel.data.unpacking import unpack
from gemel.errors import InvalidInput, WriteFailed
from gemel.version import VERSION

SOURCE_NOTE = "source.json"
_DOWNLOADS = ".downloads"


@dataclass(frozen=True)
class Source:
    """An official file that a set was made of; the sha256 of a folder is None."""

    place: str
    n_bytes: int | None = None
    sha256: str | None = None
    was_known: bool = False  # whether the catalogue or the user had said the sha256 before


@dataclass(frozen=True)
class Receipt:
    """What has been brought, or was here already."""

    name: str
    folder: Path
    is_new: bool
    files: tuple[Written, ...] = ()
    sources: tuple[Source, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**asdict(self), "folder": str(self.folder)}


def get_set(
    name: str,
    data: str | os.PathLike[str] | None = None,
    *,
    source: str | os.PathLike[str] | None = None,
    urls: Sequence[str] = (),
    hashes: Sequence[str] = (),
    overwrite: bool = False,
    show: bool | None = None,
    retry_seconds: Sequence[float] = RETRY_SECONDS,
) -> Receipt:
    """Bring a set into the data folder: from its official place, from other `urls`, or from files in hand."""
    known = data_set(name)
    downloads = _downloads(known, source, urls, hashes)
    with _writing(known):
        root = _root(data)
        here = [file for file in known.files if present_file(root / known.name, file.path)]
        if len(here) == len(known.files) and not overwrite:
            return Receipt(known.name, root / known.name, is_new=False)
        if (root / known.name).exists() and not overwrite:
            found = ", ".join(file.path for file in here) or "other files"
            raise InvalidInput(
                f"{root / known.name} is there already with {found}; expected no such folder: add "
                "--overwrite to replace what the official files have too, or name another --data"
            )
        with _workshop(root, known.name) as workshop:
            if source is None:
                official, sources = _fetched(known, downloads, workshop, show, retry_seconds)
            else:
                official, sources = _in_hand(known, Path(source), hashes, workshop / "official")
            written = _convert(known, official, workshop / "made")
            receipt = Receipt(known.name, root / known.name, True, written, tuple(sources))
            _write_note(receipt, workshop / "made")
            _put_in_place(workshop / "made", root / known.name)
        _clear_downloads(root, known)
    return receipt


def read_source_note(folder: Path) -> dict[str, Any] | None:
    """What a set in this folder was made of, if it was made by `get_set`."""
    try:
        note = json.loads((folder / SOURCE_NOTE).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return note if isinstance(note, dict) else None


# Where from -------------------------------------------------------------------------------------------


def _downloads(
    known: DataSet, source: str | os.PathLike[str] | None, urls: Sequence[str], hashes: Sequence[str]
) -> tuple[Download, ...]:
    if not known.layout:
        raise InvalidInput(f"{known.name} is not here; {how_to_get(known)}")
    if source is not None:
        if urls:
            raise InvalidInput("both a place and a file were given; expected --url or --from, not both")
        return ()
    chosen = tuple(Download(url) for url in urls) or known.downloads
    if not chosen:
        raise InvalidInput(f"{known.name} is not here; {how_to_get(known)}")
    names = [_name_of(each) for each in chosen]
    if len(set(names)) < len(names):
        raise InvalidInput(
            f"several addresses end in the same name ({', '.join(names)}); expected names that differ: "
            "download them yourself, and give their folder with --from"
        )
    if hashes and len(hashes) != len(chosen):
        raise InvalidInput(
            f"{known.name} comes in {len(chosen)} files, and {len(hashes)} hashes were given; "
            "expected one --sha256 for each, in the same order"
        )
    if not hashes:
        return chosen
    return tuple(Download(each.url, None, sha256) for each, sha256 in zip(chosen, hashes, strict=True))


def _name_of(wanted: Download) -> str:
    try:
        return wanted.file_name
    except ValueError as error:
        raise InvalidInput(
            f"{wanted.url!r} is no address ({error}); expected such as https://HOST/FILE"
        ) from None


def _fetched(
    known: DataSet,
    downloads: Sequence[Download],
    workshop: Path,
    show: bool | None,
    retry_seconds: Sequence[float],
) -> tuple[OfficialFiles, list[Source]]:
    """The official files, fetched; they stay beside the sets, halves too, until the set is in place."""
    cellar = workshop.parent / _DOWNLOADS / known.name
    cellar.mkdir(parents=True, exist_ok=True)
    paths = [_fetch(each, cellar, show, retry_seconds) for each in downloads]
    sources = [
        Source(each.url, *_measures(path), each.sha256 is not None)
        for each, path in zip(downloads, paths, strict=True)
    ]
    return _unpacked(paths, workshop / "official"), sources


def _clear_downloads(root: Path, known: DataSet) -> None:
    cellar = root / _DOWNLOADS / known.name
    if not cellar.is_dir():
        return
    shutil.rmtree(cellar)
    if not any(cellar.parent.iterdir()):
        cellar.parent.rmdir()


def _fetch(wanted: Download, cellar: Path, show: bool | None, retry_seconds: Sequence[float]) -> Path:
    """The file, fetched unless an earlier run has left it whole."""
    path = cellar / (wanted.file_name or "official")
    if wanted.sha256 is not None and path.is_file() and hash_of(path) == wanted.sha256:
        return path
    return download(
        wanted.url,
        path,
        sha256=wanted.sha256,
        n_bytes=wanted.n_bytes,
        show=show,
        retry_seconds=retry_seconds,
    ).path


def _in_hand(
    known: DataSet, source: Path, hashes: Sequence[str], folder: Path
) -> tuple[OfficialFiles, list[Source]]:
    """The official files of a folder or an archive; a folder may also hold the archives themselves."""
    if source.is_dir():
        archives = [source / each.file_name for each in known.downloads]
        if not archives or not all(path.is_file() for path in archives):
            if hashes:
                raise InvalidInput(f"--sha256 was given with the folder {source}; expected it with files")
            return OfficialFiles(source), [Source(str(source))]
    elif source.is_file():
        archives = [source]
    else:
        raise InvalidInput(f"{source} is not there; expected the official files of {known.name}")
    known_hashes = {each.sha256 for each in known.downloads} | {each.lower() for each in hashes}
    measured = [(path, *_measures(path)) for path in archives]
    sources = [Source(str(path), size, sha256, sha256 in known_hashes) for path, size, sha256 in measured]
    if hashes and [each.sha256 for each in sources] != [each.lower() for each in hashes]:
        found = ", ".join(str(each.sha256) for each in sources)
        raise InvalidInput(f"{source} has the sha256 {found}; expected {', '.join(hashes)}")
    return _unpacked(archives, folder), sources


def _measures(path: Path) -> tuple[int, str]:
    return path.stat().st_size, hash_of(path)


def _unpacked(paths: Sequence[Path], folder: Path) -> OfficialFiles:
    folder.mkdir()
    for path in paths:
        unpack(path, folder)
    return OfficialFiles(folder)


# What it becomes --------------------------------------------------------------------------------------


def _convert(known: DataSet, official: OfficialFiles, folder: Path) -> tuple[Written, ...]:
    folder.mkdir()
    written = []
    for part in reader_of(known.layout)(official):
        file = known.file(part.name)
        assert file is not None, f"the catalogue has no {known.name}/{part.name}"
        written.append(write_part(part, folder / file.path))
        _check_rows(known, file, written[-1])
    return tuple(written)


def _check_rows(known: DataSet, file: DataFile, written: Written) -> None:
    expected = "at least one" if file.rows is None else f"{file.rows:,}"
    if written.rows == 0 or (file.rows is not None and written.rows != file.rows):
        raise InvalidInput(
            f"the official files of {known.name} gave {written.rows:,} rows for {file.path}; expected "
            f"{expected}: they are cut off or another release, so nothing was put in place"
        )


def _write_note(receipt: Receipt, folder: Path) -> None:
    note = {"name": receipt.name, "made_by": f"gemel {VERSION}", **receipt.to_dict()}
    kept = {key: note[key] for key in ("name", "made_by", "sources", "files")}
    (folder / SOURCE_NOTE).write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _put_in_place(made: Path, target: Path) -> None:
    """Rename the folder, or, where there is one, replace its files and leave the others alone."""
    if not target.exists():
        made.rename(target)
        return
    for path in made.iterdir():
        plain = path.name.removesuffix(".gz")
        path.replace(target / path.name)
        for other in {plain, f"{plain}.gz"} - {path.name}:
            (target / other).unlink(missing_ok=True)


# Where to ---------------------------------------------------------------------------------------------


def _root(data: str | os.PathLike[str] | None) -> Path:
    """The data folder, made if it is not there yet."""
    named = data or os.environ.get(DATA_VARIABLE)
    root = Path(named).expanduser() if named else cache_folder()
    root.mkdir(parents=True, exist_ok=True)
    return root


@contextmanager
def _workshop(root: Path, name: str) -> Iterator[Path]:
    """A folder beside the target, on the same disk, that is gone in the end."""
    folder = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=root))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _writing(known: DataSet) -> Iterator[None]:
    try:
        yield
    except (InvalidInput, WriteFailed):
        raise
    except OSError as error:
        raise WriteFailed(
            f"cannot bring {known.name}: {error.strerror or error} ({error.filename or 'no file named'}); "
            "nothing of it was put in place"
        ) from error
