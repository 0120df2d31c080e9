"""Vectors and words in the binary form in which PostgreSQL takes and gives them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gemel.contracts import Vectors
from gemel.index.postgres.address import driver
from gemel.index.segment import Rows

# What PostgreSQL refuses: longer lexemes, later positions, more of them, and more than a megabyte in all.
MAX_LEXEME_BYTES, MAX_POSITION, MAX_POSITIONS, MAX_BYTES = 2_046, 16_383, 255, 900_000

_NUMBERS = {"float32": ">f4", "float16": ">f2"}


class Wired(bytes):
    """A value in PostgreSQL's own form."""


class WiredVector(Wired):
    """A vector of float32 (`vector`)."""


class WiredHalf(Wired):
    """A vector of float16 (`halfvec`)."""


def wired_vector(row: Rows) -> WiredVector | WiredHalf:
    """A vector as it is sent: how many numbers, two bytes of nothing, the numbers."""
    kind = str(row.dtype)
    data = struct.pack(">HH", len(row), 0) + row.astype(_NUMBERS[kind]).tobytes()
    return WiredHalf(data) if kind == "float16" else WiredVector(data)


def read_vectors(wired: Sequence[bytes], dim: int, dtype: str) -> Vectors:
    """Vectors (n, dim) as they were received."""
    joined = b"".join(memoryview(data)[4:] for data in wired)
    rows: Vectors = np.frombuffer(joined, _NUMBERS[dtype]).reshape(len(wired), dim).astype(np.float32)
    return rows


class WiredWords(Wired):
    """The terms of a text and where they stand (`tsvector`)."""


def wired_words(terms: Iterable[str]) -> WiredWords:
    """The terms of a text as a tsvector, which goes by the first ones where there are too many."""
    places: dict[bytes, list[int]] = {}
    n_bytes = 0
    for position, term in enumerate(terms, 1):
        lexeme = term.encode()
        if len(lexeme) > MAX_LEXEME_BYTES:
            continue
        known = places.get(lexeme)
        if known is None:
            n_bytes += len(lexeme) + 8
            if n_bytes > MAX_BYTES:
                break
            known = places[lexeme] = []
        # Beyond the last possible position a term is still counted, once for each place that is left.
        place = min(position, MAX_POSITION)
        if len(known) < MAX_POSITIONS and (not known or known[-1] < place):
            known.append(place)
            n_bytes += 2
    parts = [struct.pack(">I", len(places))]
    for lexeme, at in places.items():
        parts += (lexeme, b"\0", struct.pack(f">H{len(at)}H", len(at), *at))
    return WiredWords(b"".join(parts))


def register_types(connection: Any) -> None:
    """Teach a connection to send these values; the extension gives its types another number everywhere."""
    psycopg = driver()
    for name, python_type in (("vector", WiredVector), ("halfvec", WiredHalf), ("tsvector", WiredWords)):
        found = connection.execute(
            "select pg_type.oid from pg_type left join pg_extension on extname = 'vector' "
            "where typname = %s and typnamespace in (extnamespace, 'pg_catalog'::regnamespace)",
            (name,),
        ).fetchone()
        if found is not None:
            dumper = _dumper(psycopg, found[0])
            connection.adapters.register_dumper(python_type, dumper)
            connection.adapters.types.add(psycopg.types.TypeInfo(name, found[0], 0))


def _dumper(psycopg: Any, oid: int) -> Any:
    """A class that sends what is in its own form already; psycopg, an extra, is not here to be named."""

    def dump(self: Any, value: Wired) -> bytes:
        return bytes(value)

    members = {"format": psycopg.pq.Format.BINARY, "oid": oid, "dump": dump}
    return type("AsItIs", (psycopg.adapt.Dumper,), members)
