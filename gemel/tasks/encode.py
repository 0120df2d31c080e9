"""A file of texts becomes a file of vectors: in bounded memory, and continued where it was broken off."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np

from gemel.contracts import Encoder
from gemel.data.spool import DType, Layout, Rows
from gemel.data.texts import TextRecord, TextSource
from gemel.data.vectors import VectorWriter, format_of, json_lines
from gemel.errors import InvalidInput

LIVE_WINDOW_TEXTS = 256


@dataclass(frozen=True)
class EncodeOptions:
    """How to encode a file; a window is what is read, encoded and made safe at a time."""

    dtype: DType = "float32"
    overwrite: bool = False
    restart: bool = False
    window_texts: int = 2_048
    window_chars: int = 16_000_000

    def __post_init__(self) -> None:
        if self.dtype not in get_args(DType):
            raise InvalidInput(f"dtype is {self.dtype!r}; expected one of {', '.join(get_args(DType))}")
        if min(self.window_texts, self.window_chars) < 1:
            raise InvalidInput(
                "a window of no texts or characters was asked for; expected at least 1 of each"
            )


@dataclass(frozen=True)
class EncodeSummary:
    """What a file of vectors holds, and how many of its rows an earlier run had made."""

    rows: int
    resumed_rows: int
    dim: int
    output: Path


def encode_file(
    encoder: Encoder,
    source: TextSource,
    output: str | os.PathLike[str],
    *,
    options: EncodeOptions | None = None,
    on_progress: Callable[[int], object] | None = None,
) -> EncodeSummary:
    """Write one vector a text to `output`, in the format of its suffix, or continue a run that broke off."""
    options, path = options or EncodeOptions(), Path(output)
    layout = Layout(
        fingerprint=encoder.fingerprint,
        dim=encoder.dim,
        dtype=options.dtype,
        format=format_of(path),
        keeps_ids=source.id_column is not None,
        settings=getattr(encoder, "settings", ""),
    )
    _check_pair(source, path, layout)
    with VectorWriter(path, layout, overwrite=options.overwrite, restart=options.restart) as writer:
        records = source.records()
        writer.skip_done(records)
        resumed_rows = writer.rows
        if on_progress is not None:
            on_progress(resumed_rows)
        for window in _windows(records, options.window_texts, options.window_chars):
            writer.append(window, _encode(encoder, window, writer.rows, options.dtype))
            if on_progress is not None:
                on_progress(writer.rows)
        writer.finish()
        return EncodeSummary(writer.rows, resumed_rows, encoder.dim, path)


def stream_jsonl(
    encoder: Encoder,
    source: TextSource,
    write: Callable[[str], object],
    *,
    window_texts: int = LIVE_WINDOW_TEXTS,
) -> int:
    """Write a line `{"id": ..., "embedding": [...]}` a text, as soon as may be, and count them."""
    rows = 0
    for window in _windows(source.records(), window_texts, EncodeOptions.window_chars):
        vectors = _encode(encoder, window, rows, "float32")
        write("".join(json_lines((record.id for record in window), vectors)))
        rows += len(window)
    return rows


def _check_pair(source: TextSource, path: Path, layout: Layout) -> None:
    if layout.format == "npy" and layout.keeps_ids:
        raise InvalidInput(
            f"{path} would lose the ids of {source.name}: .npy holds vectors only; "
            "write .npz, .parquet or .jsonl, or leave out --id-column"
        )
    if path.exists() and Path(source.path).exists() and path.samefile(source.path):
        raise InvalidInput(f"{path} is both the input and the output; name another output")


def _windows(records: Iterable[TextRecord], max_texts: int, max_chars: int) -> Iterator[list[TextRecord]]:
    """Records in lists that end as soon as they have enough texts or characters."""
    window: list[TextRecord] = []
    n_chars = 0
    for record in records:
        window.append(record)
        n_chars += len(record.text)
        if len(window) >= max_texts or n_chars >= max_chars:
            yield window
            window, n_chars = [], 0
    if window:
        yield window


def _encode(encoder: Encoder, window: Sequence[TextRecord], first_row: int, dtype: DType) -> Rows:
    """The window's vectors, of the right shape and type and finite throughout."""
    try:
        vectors = encoder.encode([record.text for record in window])
    except InvalidInput as error:
        raise InvalidInput(f"{error} (text 0 is row {first_row} here)") from None
    if vectors.shape != (len(window), encoder.dim):
        raise InvalidInput(
            f"the encoder gave {vectors.shape}; expected {(len(window), encoder.dim)}, a row a text"
        )
    with np.errstate(over="ignore"):
        rows: Rows = vectors.astype(dtype, copy=False)
    check_finite(rows, lambda row: f"row {first_row + row} (id {window[row].id!r})")
    return rows


def check_finite(vectors: Rows, name_of: Callable[[int], str]) -> None:
    """Refuse vectors that are not numbers throughout; the first such text is called by its name."""
    flawed = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(flawed):
        raise InvalidInput(
            f"{name_of(int(flawed[0]))} got a vector with NaN or infinity as {vectors.dtype}; expected "
            "finite numbers, so check the model (or the range, if this is float16)"
        )
