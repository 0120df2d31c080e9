"""The table of records: SQLite in WAL mode, whose commit is the truth about everything in the folder."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gemel.errors import Busy, Damaged, GemelError, InvalidInput, WriteFailed
from gemel.index import gated
from gemel.index.connections import Connections, has_log

FILE_NAME = "records.sqlite"
FORMAT = 1  # of the whole folder; a newer one is refused
APPLICATION_ID = 0x67656D6C  # "geml", so that `file` and we know whose it is
MAX_PARAMETERS = 500  # in one statement; SQLite promises 999

# A `number` is given once, in ascending order, and never again: a changed text gets a new one. It is that of
# the vector among all that ever were; `runs` says in which slots of the file those that are left lie.
SCHEMA = """
create table settings (name text primary key, value text not null) without rowid;
create table state (
    only integer primary key check (only = 0), change integer not null, generation integer not null,
    n_slots integer not null, next_number integer not null
);
create table records (
    number integer primary key, id not null unique, text text not null, metadata text not null,
    content blob not null, vector_checksum integer, checksum integer not null
);
create table removed (place integer primary key, number integer not null);
create table runs (first_slot integer primary key, first_number integer not null, n_rows integer not null);
create table blocks (block integer primary key, checksum integer not null);
create table ann (
    only integer primary key check (only = 0), file text not null, checksum integer not null,
    before_number integer not null, n_vectors integer not null
);
insert into state values (0, 0, 1, 0, 0);
"""
TOKENIZERS = {"word": "unicode61 remove_diacritics 2", "trigram": "trigram"}
# Without triggers: these take one row at a time, which makes FTS5 five times as slow.
FULL_TEXT = """
create virtual table {name} using fts5(
    text, content='{records}', content_rowid='number', tokenize='{tokenizer}'
);
"""

# What SQLite says of a file that is not as it left it.
_DAMAGE = ("malformed", "not a database", "corrupt")
_FULL = ("is full", "disk I/O error", "readonly", "read-only", "unable to open", "too big")


class Database:
    """Connections to the table of records: each reader sees one commit, whole, for as long as it reads."""

    def __init__(self, folder: Path, *, read_only: bool, timeout_seconds: float) -> None:
        self.path = folder / FILE_NAME
        self.read_only = read_only
        self._timeout_seconds = timeout_seconds
        self._is_fixed = read_only and not os.access(folder, os.W_OK)
        if not self.path.is_file():
            raise InvalidInput(f"{folder} is not a collection; make one with Collection.create")
        self._connections = Connections(self.path, self._connect, is_fixed=self._is_fixed)
        self._check_format()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection whose statements all see the same commit."""
        with plain_errors(self.path.parent), self._connections.one() as connection:
            connection.execute("begin")
            try:
                yield connection
            finally:
                connection.rollback()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection whose statements become one commit, or nothing at all."""
        if self._connections.is_in_use_by_parent:
            raise InvalidInput(
                f"{self.path.parent} was in use by a thread when this process was forked, and SQLite cannot "
                "write to it safely here; fork while nothing is under way, or start processes by spawn"
            )
        with plain_errors(self.path.parent), self._connections.one() as connection:
            connection.execute("begin immediate")
            try:
                yield connection
                connection.execute("commit")
            except BaseException:
                if connection.in_transaction:
                    connection.rollback()
                raise

    @contextmanager
    def outside(self) -> Iterator[sqlite3.Connection]:
        """A connection without a transaction, for checks and for what SQLite does in none."""
        with plain_errors(self.path.parent), self._connections.one() as connection:
            yield connection

    @contextmanager
    def beside(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one commit and may keep tables of its own (temp.), which end with it."""
        with plain_errors(self.path.parent), self._connections.one(keep=False) as connection:
            connection.execute("pragma query_only = off")
            connection.execute("begin")
            yield connection

    def close(self) -> None:
        """Close all connections; the last of all processes folds the log into the file."""
        self._connections.close()

    def _connect(self) -> gated.Connection:
        uri = f"{self.path.absolute().as_uri()}?mode={'ro' if self._is_fixed else 'rw'}"
        if self._is_fixed and not has_log(self.path):
            uri += "&immutable=1"  # SQLite cannot make its lock files here; that nobody else can is not said
        connection = gated.connect(
            uri,
            file=self.path,
            uri=True,
            isolation_level=None,
            timeout=self._timeout_seconds,
            check_same_thread=False,
        )
        # A damaged text must reach the comparison with its checksum, and not end in the decoder.
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        if self.read_only:
            connection.execute("pragma query_only = on")
        else:
            connection.execute("pragma synchronous = full")
        return connection

    def _check_format(self) -> None:
        folder = self.path.parent
        with self.outside() as connection:
            format_ = connection.execute("pragma user_version").fetchone()[0]
            application = connection.execute("pragma application_id").fetchone()[0]
        if application != APPLICATION_ID:
            raise InvalidInput(f"{self.path} is not a table of records of gemel's; name a collection")
        if format_ > FORMAT:
            raise InvalidInput(
                f"{folder} has format {format_} and this version of gemel reads up to {FORMAT}; upgrade gemel"
            )


@contextmanager
def plain_errors(folder: Path) -> Iterator[None]:
    """What SQLite and the system have to say of a folder, in the words of this program."""
    try:
        yield
    except GemelError:
        raise
    except (sqlite3.Error, OSError) as error:
        raise _translated(error, folder) from error


def _translated(error: Exception, folder: Path) -> GemelError:
    """The error of this program that an error of SQLite or of the system amounts to."""
    reason = str(error)
    if isinstance(error, OSError):
        return WriteFailed(
            f"{folder} could not be read or written ({error.strerror or error}); "
            "what was acknowledged is safe"
        )
    if any(sign in reason for sign in _DAMAGE):
        return Damaged(
            f"{folder / FILE_NAME} is damaged ({reason}); run the collection's doctor, which makes anew what "
            "can be, then bring back a copy of the rest, or export what can be read"
        )
    if "locked" in reason or "busy" in reason:
        return Busy(f"{folder} is being written to by another program ({reason}); try again")
    if any(sign in reason for sign in _FULL):
        return WriteFailed(
            f"{folder} could not be written ({reason}); what was acknowledged is safe: "
            "make room, or check the disk"
        )
    return Damaged(f"{folder / FILE_NAME} cannot be used ({reason}); run the collection's doctor")


def lay_out(folder: Path, settings: dict[str, str], text_search: Sequence[str]) -> None:
    """Make the empty tables of a new collection."""
    file = folder / FILE_NAME
    connection = gated.connect(file, file=file, isolation_level=None)
    try:
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        connection.execute(f"pragma application_id = {APPLICATION_ID}")
        connection.execute(f"pragma user_version = {FORMAT}")
        tables = [full_text(table_of(name), name) for name in text_search]
        connection.executescript("begin;" + SCHEMA + "".join(tables))
        connection.executemany("insert into settings values (?, ?)", settings.items())
        connection.execute("commit")
    finally:
        connection.close()


def full_text(name: str, tokenizer: str, records: str = "records") -> str:
    """The statement that makes a full-text table of records."""
    return FULL_TEXT.format(name=name, records=records, tokenizer=TOKENIZERS[tokenizer])


def table_of(tokenizer: str) -> str:
    """The full-text table of a tokenizer."""
    return f"text_by_{tokenizer}"


def in_parts(
    connection: sqlite3.Connection, sql: str, values: Sequence[Any], before: Sequence[Any] = ()
) -> Iterator[Any]:
    """The rows of a statement with `in (?*)`, asked for some of the values at a time."""
    for start in range(0, len(values), MAX_PARAMETERS):
        part = values[start : start + MAX_PARAMETERS]
        yield from connection.execute(sql.replace("?*", ",".join("?" * len(part))), (*before, *part))
