"""Rows on their way to a file: what has been appended survives a crash, and the next run goes on from there.

A spool is a folder: `vectors.npy` (raw rows behind a header of fixed width), `ids.jsonl` (only where ids are
kept) and `state.json`, which is replaced after the rows before it have reached the disk and so is the truth:
whatever the files hold beyond it is cut off when a run continues.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt

from gemel.data.durable import sync_folder
from gemel.data.texts import Id, TextRecord
from gemel.errors import InvalidInput, ModelMismatch
from gemel.version import VERSION

DType = Literal["float32", "float16"]
Rows = npt.NDArray[np.floating[Any]]  # (n, dim)
BLOCK_BYTES = 1 << 23

_LOCK, _STATE, _NEW_STATE = "lock", "state.json", "state.json.new"
_VECTORS, _IDS, _DRAFT = "vectors.npy", "ids.jsonl", "draft"
_HEADER_BYTES = 128


@dataclass(frozen=True)
class Layout:
    """What all rows of a spool have in common: a run continues only a spool of its own layout."""

    fingerprint: str
    dim: int
    dtype: DType
    format: str
    keeps_ids: bool
    settings: str = ""  # what else moves a vector, such as the prompt

    @property
    def row_bytes(self) -> int:
        """The size of a row."""
        return self.dim * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class State:
    """How far a spool has come; `sha256` is that of the ids and texts behind its rows."""

    layout: Layout
    rows: int = 0
    ids_bytes: int = 0
    sha256: str = hashlib.sha256().hexdigest()
    version: str = VERSION


class Spool:
    """A folder of rows and its only writer: opening it takes a lock and continues what is there."""

    def __init__(self, folder: Path, layout: Layout, *, restart: bool = False) -> None:
        self.folder = folder
        self.layout = layout
        self._digest = hashlib.sha256()
        self._is_published = False
        folder.mkdir(exist_ok=True)
        with ExitStack() as files:
            files.enter_context(_locked(folder))
            if restart:
                (folder / _STATE).unlink(missing_ok=True)
            self.state = self._saved_state() or State(layout)
            files.callback(self._clean_up)
            self._vectors = files.enter_context(self._open(_VECTORS, _vectors_bytes(self.state)))
            self._write_header()
            self._ids: io.FileIO | None = None
            if layout.keeps_ids:
                self._ids = files.enter_context(self._open(_IDS, self.state.ids_bytes))
            sync_folder(folder.parent)
            self._files = files.pop_all()

    @property
    def rows(self) -> int:
        """How many rows are safe."""
        return self.state.rows

    def skip_done(self, records: Iterator[TextRecord]) -> None:
        """Read past the records whose rows are safe; an input that differs in one of them is refused."""
        for record in islice(records, self.rows):
            self._digest.update(_digestible(record))
        if self._digest.hexdigest() != self.state.sha256:
            raise InvalidInput(
                f"the input has changed since row {self.rows:,} was written to {self.folder}; "
                "bring the old input back, or discard the rows with --restart"
            )

    def append(self, records: Sequence[TextRecord], rows: Rows) -> None:
        """Add one row a record; when this returns, they are on the disk."""
        assert rows.shape == (len(records), self.layout.dim), "one row a record"
        assert rows.dtype == self.layout.dtype, "rows of the layout's type"
        assert self._digest.hexdigest() == self.state.sha256, "skip_done comes before append"
        ids = "".join(f"{json.dumps(record.id)}\n" for record in records).encode() if self._ids else b""
        for file, data in ((self._vectors, rows.tobytes()), (self._ids, ids)):
            if file is not None:
                _write_all(file, data)
                os.fsync(file.fileno())
        for record in records:
            self._digest.update(_digestible(record))
        self._save(
            State(
                self.layout,
                rows=self.rows + len(records),
                ids_bytes=self.state.ids_bytes + len(ids),
                sha256=self._digest.hexdigest(),
            )
        )

    def ids(self) -> Iterator[Id]:
        """The id of every row: the kept ones, or the row numbers."""
        if self._ids is None:
            yield from range(self.rows)
        else:
            with (self.folder / _IDS).open("rb") as lines:
                yield from map(json.loads, islice(lines, self.rows))

    def blocks(self) -> Iterator[tuple[list[Id], Rows]]:
        """All rows with their ids, in blocks of a bounded size."""
        ids = self.ids()
        step = max(1, BLOCK_BYTES // self.layout.row_bytes)
        with (self.folder / _VECTORS).open("rb") as file:
            file.seek(_HEADER_BYTES)
            for start in range(0, self.rows, step):
                n_rows = min(step, self.rows - start)
                block = np.frombuffer(file.read(n_rows * self.layout.row_bytes), self.layout.dtype)
                yield list(islice(ids, n_rows)), block.reshape(n_rows, self.layout.dim)

    def publish_vectors(self, target: Path) -> None:
        """Turn the rows into the .npy file `target`, without a copy."""
        self._write_header()
        os.fsync(self._vectors.fileno())
        _replace(self.folder / _VECTORS, target)
        self._is_published = True

    def publish_draft(self, target: Path, write: Callable[[IO[bytes]], None]) -> None:
        """Turn what `write` writes into the file `target`, which appears whole or not at all."""
        draft = self.folder / _DRAFT
        try:
            _write_durably(draft, write)
        except BaseException:
            draft.unlink(missing_ok=True)  # where the disk is full, its space is wanted
            raise
        _replace(draft, target)
        self._is_published = True

    def close(self) -> None:
        """Let go of the files; a spool that is published or has no row leaves nothing behind."""
        self._files.close()

    def _clean_up(self) -> None:
        if not self._is_published and (self.folder / _STATE).exists():
            return
        with suppress(OSError):
            for name in (_STATE, _NEW_STATE, _DRAFT, _IDS, _VECTORS, _LOCK):
                (self.folder / name).unlink(missing_ok=True)
            self.folder.rmdir()  # only if empty: a file that is not ours stays

    def _open(self, name: str, n_bytes: int) -> io.FileIO:
        """One of the files at its end, cut back to the bytes that the state vouches for."""
        file = (self.folder / name).open("r+b" if self.rows else "w+b", buffering=0)
        file.truncate(n_bytes)
        file.seek(n_bytes)
        return file

    def _write_header(self) -> None:
        os.pwrite(self._vectors.fileno(), npy_header(self.layout.dtype, self.rows, self.layout.dim), 0)

    def _save(self, state: State) -> None:
        _write_durably(self.folder / _NEW_STATE, lambda file: file.write(json.dumps(asdict(state)).encode()))
        _replace(self.folder / _NEW_STATE, self.folder / _STATE)
        self.state = state

    def _saved_state(self) -> State | None:
        # Without vectors there is nothing to continue: the last run died between publishing and cleaning up.
        if not all((self.folder / name).exists() for name in (_STATE, _VECTORS)):
            return None
        try:
            saved = json.loads((self.folder / _STATE).read_bytes())
            state = State(Layout(**saved.pop("layout")), **saved)
            is_whole = (self.folder / _VECTORS).stat().st_size >= _vectors_bytes(state)
            if state.layout.keeps_ids:
                is_whole &= (self.folder / _IDS).stat().st_size >= state.ids_bytes
        except (ValueError, TypeError, AttributeError, KeyError, FileNotFoundError):
            is_whole = False
        if not is_whole:
            raise InvalidInput(f"{self.folder} is damaged and cannot be continued; discard it with --restart")
        _check_same(state, self.layout, self.folder)
        return state


def npy_header(dtype: npt.DTypeLike, *shape: int) -> bytes:
    """The header of a .npy file: of one width for any number of rows, so that it can be patched in place."""
    header = io.BytesIO()
    descr = np.dtype(dtype).str
    np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": shape})
    assert header.tell() == _HEADER_BYTES, "numpy leaves room for the number to grow"
    return header.getvalue()


def _vectors_bytes(state: State) -> int:
    return _HEADER_BYTES + state.rows * state.layout.row_bytes


def _check_same(state: State, layout: Layout, folder: Path) -> None:
    for field in fields(Layout):
        before, now = getattr(state.layout, field.name), getattr(layout, field.name)
        if before != now:
            error = ModelMismatch if field.name in ("fingerprint", "dim") else InvalidInput
            raise error(
                f"{folder} holds {state.rows:,} rows with {field.name} {before!r}, and this run has {now!r}; "
                "run it as before, or discard the rows with --restart"
            )


def _digestible(record: TextRecord) -> bytes:
    return json.dumps(record).encode()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / _LOCK).open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The run that held the lock until now may have removed the spool, and the lock with it.
            is_ours = os.fstat(file.fileno()).st_nlink > 0
        except BlockingIOError:
            is_ours = False
        if not is_ours:
            raise InvalidInput(f"another process is writing to {folder}; wait until it has ended")
        yield


def _write_all(file: io.FileIO, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _write_durably(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    with path.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())


def _replace(path: Path, target: Path) -> None:
    """Move a file whose bytes are on the disk, so that the move is on the disk too."""
    path.replace(target)
    sync_folder(target.parent)
