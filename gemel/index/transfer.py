"""Collections to files and back: JSON lines and parquet, whole or not at all."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import groupby, islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from gemel.data.durable import sync_folder
from gemel.data.lines import decompressed
from gemel.data.parquet import import_pyarrow
from gemel.data.tables import Table, open_bytes, open_table, split_suffixes
from gemel.errors import GemelError, InvalidInput, WriteFailed
from gemel.index.reading import StoredRow, check_vectors
from gemel.index.records import Added, Record
from gemel.index.view import View

WINDOW_ROWS = 2_048
COLUMNS = ("id", "text", "metadata", "embedding", "fingerprint")
Entry = tuple[Record, list[float] | None, str | None]  # with its vector and the fingerprint of its model

_FORMATS = "expected .jsonl, .jsonl.gz or .parquet"


class Export:
    """Records on their way to a file: windows of rows as in COLUMNS, and `dim` where these have vectors."""

    def __init__(
        self, windows: Iterable[list[dict[str, Any]]], dim: int | None, id_types: Callable[[], set[type]]
    ) -> None:
        self._windows = windows
        self._dim = dim
        self._id_types = id_types  # asked only where a format has to know

    def write(self, path: Path, *, overwrite: bool) -> int:
        """Write the file, which appears whole or not at all; how many records it has."""
        kind = _checked_kind(path)
        if path.exists() and not overwrite:
            raise InvalidInput(
                f"{path} exists already; name another file, or replace it with --overwrite (overwrite=True)"
            )
        draft = path.with_name(f".{path.name}.unfinished")
        try:
            with draft.open("wb") as file:
                n_records = self._write_parquet(file) if kind == "parquet" else self._write_lines(file, kind)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
            sync_folder(path.parent)
        except GemelError:
            raise
        except OSError as error:
            reason = error.strerror or error
            raise WriteFailed(f"{path} could not be written ({reason}); nothing was changed") from error
        finally:
            draft.unlink(missing_ok=True)
        return n_records

    def _write_lines(self, file: IO[bytes], kind: str) -> int:
        n_records = 0
        stream: Any = gzip.GzipFile(fileobj=file, mode="wb", mtime=0) if kind == "jsonl.gz" else file
        for window in self._windows:
            stream.write("".join(map(_line, window)).encode())
            n_records += len(window)
        if stream is not file:
            stream.close()
        return n_records

    def _write_parquet(self, file: IO[bytes]) -> int:
        pyarrow = import_pyarrow()
        kinds = self._id_types()
        if len(kinds) > 1:
            raise InvalidInput(
                "parquet keeps ids of one type and these are both str and int; export to .jsonl"
            )
        columns = [
            ("id", pyarrow.int64() if kinds == {int} else pyarrow.string()),
            ("text", pyarrow.string()),
            ("metadata", pyarrow.string()),
        ]
        if self._dim is not None:
            vector = pyarrow.list_(pyarrow.float32(), self._dim)
            columns += [("embedding", vector), ("fingerprint", pyarrow.string())]
        schema = pyarrow.schema(columns)
        n_records = 0
        with pyarrow.parquet.ParquetWriter(file, schema) as writer:
            for window in self._windows:
                writer.write_table(pyarrow.Table.from_pylist(window, schema=schema))
                n_records += len(window)
        return n_records


def stored_windows(
    folder: Path, rows: Iterable[StoredRow], view: View | None, fingerprint: str
) -> Iterator[list[dict[str, Any]]]:
    """The rows of a table on their way to a file, with vectors and fingerprint where a view is given."""
    remaining = iter(rows)
    while together := list(islice(remaining, WINDOW_ROWS)):
        window: list[dict[str, Any]] = []
        for row in together:
            record = row.record(folder)
            window.append({"id": record.id, "text": record.text, "metadata": row.metadata})
        if view is not None:
            check_vectors(view, together, folder)
            slots = view.slots_of(np.array([row.number for row in together], np.int64))
            for entry, vector in zip(window, view.rows[slots].astype(np.float32), strict=True):
                entry |= {"embedding": vector, "fingerprint": fingerprint}
        yield window


def add_entries(
    entries: Iterator[Entry],
    add: Callable[[list[Record]], Added],
    add_vectors: Callable[[list[Record], list[list[float]], str], Added],
    on_progress: Callable[[int], object] | None,
) -> Added:
    """Hand the entries of a file over in windows, those with vectors apart from those without."""
    added = Added()
    while window := list(islice(entries, WINDOW_ROWS)):
        for fingerprint, group in groupby(window, key=lambda entry: entry[2]):
            together = list(group)
            records = [record for record, _, _ in together]
            if fingerprint is None:
                added += add(records)
            else:
                added += add_vectors(records, [vector or [] for _, vector, _ in together], fingerprint)
        if on_progress is not None:
            on_progress(len(added))
    return added


def read_entries(path: Path) -> Iterator[Entry]:
    """The records of a file, with vectors and fingerprints where it has them; a wrong row is named."""
    kind = _checked_kind(path)
    with closing(open_bytes(path, "a file that a collection was exported to")) as file:
        plain = decompressed(file, "gz" if kind == "jsonl.gz" else "")
        table = open_table(plain, kind.removesuffix(".gz"), str(path))
        for number, row in table.rows(None if table.columns is None else list(table.columns)):
            yield _entry(table, number, row)


def _entry(table: Table, number: int, row: Mapping[str, Any]) -> Entry:
    place = table.place(number)
    unknown = sorted(set(row) - set(COLUMNS))
    if unknown or "text" not in row or "id" not in row:
        raise InvalidInput(
            f"{place} has the fields {', '.join(row)}; expected id and text, and any of "
            f"{', '.join(COLUMNS[2:])}"
        )
    metadata = row.get("metadata") or {}
    if isinstance(metadata, str):
        try:
            metadata = json.loads(metadata)
        except ValueError as error:
            raise InvalidInput(f"{place}: the metadata is not JSON ({error}); expected an object") from error
    vector, fingerprint = row.get("embedding"), row.get("fingerprint")
    if (vector is None) != (fingerprint is None):
        raise InvalidInput(f"{place} has one of embedding and fingerprint; expected both or neither")
    return Record(row["id"], row["text"], metadata), vector, fingerprint


def _line(entry: dict[str, Any]) -> str:
    """One JSON object; nine digits name every float32 exactly."""
    fields = [f'"id": {json.dumps(entry["id"], ensure_ascii=False)}']
    fields.append(f'"text": {json.dumps(entry["text"], ensure_ascii=False)}')
    fields.append(f'"metadata": {entry["metadata"]}')
    if "embedding" in entry:
        numbers = ", ".join(f"{number:.9g}" for number in entry["embedding"].tolist())
        fields.append(f'"embedding": [{numbers}]')
        fields.append(f'"fingerprint": {json.dumps(entry["fingerprint"])}')
    return f"{{{', '.join(fields)}}}\n"


def _checked_kind(path: Path) -> str:
    kind, compression = split_suffixes(path.name)
    name = f"{kind}.{compression}" if compression else kind
    if name not in ("jsonl", "jsonl.gz", "parquet"):
        raise InvalidInput(f"{path} has an unknown suffix; {_FORMATS}")
    return name
