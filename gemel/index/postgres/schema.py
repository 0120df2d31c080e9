"""The tables of a collection: how they are made, brought up to date, and known by their settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from gemel.errors import Damaged, InvalidInput
from gemel.index.postgres.address import SCHEMA_PREFIX, PostgresAddress, driver
from gemel.index.postgres.server import Connection, Server
from gemel.index.settings import Settings
from gemel.version import VERSION

MAX_DIM = 16_000  # of pgvector's types
MAX_VECTOR_INDEX_DIM, MAX_HALF_INDEX_DIM = 2_000, 4_000  # of its indexes
TEXT_COLUMNS = {"word": ("words", "n_words"), "trigram": ("trigrams", "n_trigrams")}

_OPERATORS = {"cosine": "<=>", "dot": "<#>", "euclidean": "<->", "manhattan": "<+>"}
_CLASSES = {"cosine": "cosine", "dot": "ip", "euclidean": "l2", "manhattan": "l1"}


class Names:
    """The pieces of SQL that depend on a collection: its schema, and how its vectors are compared."""

    def __init__(self, schema: str, settings: Settings) -> None:
        self.sql = driver().sql
        self.schema = schema
        self.is_half = settings.dtype == "float16"
        self.dim = settings.dim
        self.vector_type = "halfvec" if self.is_half else "vector"
        self.operator = _OPERATORS[settings.measure]
        self.operator_class = f"{self.index_type}_{_CLASSES[settings.measure]}_ops"

    @property
    def index_type(self) -> str:
        """The type of what is indexed: vectors of many dimensions in half precision."""
        return "halfvec" if self.is_half or self.dim > MAX_VECTOR_INDEX_DIM else "vector"

    @property
    def can_be_indexed(self) -> bool:
        """Whether pgvector can index vectors of so many dimensions."""
        return self.dim <= MAX_HALF_INDEX_DIM

    @property
    def indexed(self) -> str:
        """What is indexed, and compared where the index is to be used."""
        is_cast = self.index_type != self.vector_type
        return f"(embedding::halfvec({self.dim}))" if is_cast else "embedding"

    def of(self, statement: str, **parts: str) -> Any:
        """A statement with the schema's name in place of {s}; `parts` are SQL of our own."""
        given = {name: self.sql.SQL(part) for name, part in parts.items()}
        return self.sql.SQL(statement).format(s=self.sql.Identifier(self.schema), **given)


# Each takes a collection from one version to the next; what is here is never changed, only added to.
Migration = Callable[[Connection, Names, Settings], None]


def _first(connection: Connection, names: Names, settings: Settings) -> None:
    texts = [TEXT_COLUMNS[tokenizer] for tokenizer in settings.text_search]
    columns = "".join(f", {terms} tsvector not null, {count} integer not null" for terms, count in texts)
    # The metadata is kept as it came, for jsonb writes some numbers otherwise; filters go by `fields`.
    connection.execute(
        names.of(
            """
            create table {s}.records (
                number bigint generated always as identity primary key,
                id text collate "C" not null, id_is_integer boolean not null,
                text text not null, metadata text not null,
                fields jsonb not null generated always as (metadata::jsonb) stored,
                content bytea not null, embedding {vector} not null {columns},
                unique (id, id_is_integer)
            )""",
            vector=f"{names.vector_type}({settings.dim})",
            columns=columns,
        )
    )
    connection.execute(
        names.of(
            """
            create table {s}.state (
                is_one boolean primary key default true check (is_one),
                n_records bigint not null default 0, n_words bigint not null default 0,
                n_trigrams bigint not null default 0
            )"""
        )
    )
    connection.execute(names.of("insert into {s}.state default values"))
    for terms, _ in texts:
        connection.execute(
            names.of("create index {name} on {s}.records using gin ({terms})", name=terms, terms=terms)
        )


MIGRATIONS: tuple[Migration, ...] = (_first,)


def make_schema(server: Server, settings: Settings) -> None:
    """Make an empty collection, whole or not at all."""
    address = server.address
    if settings.dim > MAX_DIM:
        raise InvalidInput(f"vectors of {settings.dim:,} numbers are too long for pgvector's {MAX_DIM:,}")
    names = Names(address.schema, settings)

    def make(connection: Connection) -> None:
        if _exists(connection, address.schema):
            raise InvalidInput(f"{address} exists already; open it, or choose another name")
        connection.execute(names.of("create schema {s}"))
        connection.execute(names.of("create table {s}.settings (name text primary key, value text not null)"))
        connection.execute(
            names.of(
                "create table {s}.migrations (version integer primary key, gemel text not null, "
                "applied timestamptz not null default now())"
            )
        )
        for name, value in asdict(settings).items():
            row = names.of("insert into {s}.settings values (%s, %s)")
            connection.execute(row, (name, json.dumps(value)))
        _migrate(connection, names, settings, MIGRATIONS, 0)

    server.run(make)


def read_schema(server: Server, *, read_only: bool) -> Settings:
    """The settings of a collection that is there, brought up to date if it is older than this gemel."""
    address = server.address

    def read(connection: Connection) -> Settings:
        if not _exists(connection, address.schema):
            raise InvalidInput(
                f"there is no collection {address.name!r} in {address.shown}; make one with: "
                f"gemel index add {address} FILE"
            )
        sql = driver().sql
        schema = sql.Identifier(address.schema)
        found = dict(
            connection.execute(sql.SQL("select name, value from {}.settings").format(schema)).fetchall()
        )
        settings = _read_settings(found, address)
        version = _version(connection, schema, address)
        if version < len(MIGRATIONS):
            if read_only:
                raise InvalidInput(
                    f"{address} was made by an older gemel (version {version} of its tables, and this one "
                    f"has {len(MIGRATIONS)}); open it once for writing, which brings it up to date"
                )
            lock_writers(connection, address)
            version = _version(connection, schema, address)  # perhaps another has done it meanwhile
            _migrate(connection, Names(address.schema, settings), settings, MIGRATIONS, version)
        return settings

    return server.run(read)


def schema_names(server: Server) -> list[str]:
    """The names of the collections in a database."""

    def read(connection: Connection) -> list[str]:
        found = connection.execute(
            "select substr(n.nspname, length(%s) + 1) from pg_namespace n where starts_with(n.nspname, %s) "
            "and exists (select from pg_class where relnamespace = n.oid and relname = 'settings') "
            "order by 1",
            (SCHEMA_PREFIX, SCHEMA_PREFIX),
        )
        return [name for (name,) in found.fetchall()]

    return server.run(read)


def is_there(server: Server) -> bool:
    """Whether the collection of an address has been made."""
    return server.run(lambda connection: _exists(connection, server.address.schema))


def drop_schema(server: Server) -> None:
    """Remove a collection with everything in it."""
    sql = driver().sql
    statement = sql.SQL("drop schema {} cascade").format(sql.Identifier(server.address.schema))
    server.run(lambda connection: connection.execute(statement) and None)


def lock_writers(connection: Connection, address: PostgresAddress) -> None:
    """Wait until no other transaction writes this collection, and keep others waiting until this one ends."""
    connection.execute("select pg_advisory_xact_lock(hashtextextended(%s, 0))", (address.schema,))


def _exists(connection: Connection, schema: str) -> bool:
    found = connection.execute(
        "select to_regclass(quote_ident(%s) || '.settings') is not null "
        "and to_regclass(quote_ident(%s) || '.migrations') is not null",
        (schema, schema),
    )
    return bool(found.fetchone()[0])


def _version(connection: Connection, schema: Any, address: PostgresAddress) -> int:
    statement = driver().sql.SQL("select version, gemel from {}.migrations order by version desc limit 1")
    version, made_by = connection.execute(statement.format(schema)).fetchone() or (0, VERSION)
    if version > len(MIGRATIONS):
        raise InvalidInput(
            f"{address} was made by gemel {made_by} (version {version} of its tables), and this is gemel "
            f"{VERSION}, which knows {len(MIGRATIONS)}; use a gemel that is as new"
        )
    return int(version)


def _migrate(
    connection: Connection, names: Names, settings: Settings, migrations: Sequence[Migration], version: int
) -> None:
    for number, migration in enumerate(migrations[version:], version + 1):
        migration(connection, names, settings)
        noted = names.of("insert into {s}.migrations (version, gemel) values (%s, %s)")
        connection.execute(noted, (number, VERSION))


def _read_settings(found: dict[str, str], address: PostgresAddress) -> Settings:
    try:
        values = {name: json.loads(value) for name, value in found.items()}
        return Settings(**{**values, "text_search": tuple(values["text_search"])})
    except (ValueError, TypeError, KeyError) as error:
        raise Damaged(f"the settings of {address} cannot be read ({error}); bring back a copy") from error
