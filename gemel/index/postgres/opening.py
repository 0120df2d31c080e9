"""Collections in PostgreSQL opened and made."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TypeVar

from gemel.index.postgres.address import PostgresAddress, read_address, read_database
from gemel.index.postgres.backend import PostgresBackend
from gemel.index.postgres.schema import is_there, make_schema, read_schema, schema_names
from gemel.index.postgres.server import Server
from gemel.index.settings import Settings

Result = TypeVar("Result")


def open_backend(uri: str, *, read_only: bool, timeout_seconds: float) -> PostgresBackend:
    """The collection that an address names, which must be there."""
    server = Server(read_address(uri), timeout_seconds=timeout_seconds)
    try:
        server.open()
        return PostgresBackend(server, read_schema(server, read_only=read_only))
    except BaseException:
        server.close()
        raise


def make_collection(uri: str, settings: Settings, *, timeout_seconds: float) -> None:
    """Make the collection that an address names, empty."""
    _asked(read_address(uri), timeout_seconds, lambda server: make_schema(server, settings))


def has_collection(uri: str, *, timeout_seconds: float) -> bool:
    """Whether the collection that an address names is there."""
    return _asked(read_address(uri), timeout_seconds, is_there)


def collection_names(uri: str, *, timeout_seconds: float) -> list[str]:
    """The names of the collections in a database."""
    return _asked(read_database(uri), timeout_seconds, schema_names)


def shown_store(uri: str) -> str:
    """The address of a database, without its password."""
    return read_database(uri).shown


def _asked(address: PostgresAddress, timeout_seconds: float, ask: Callable[[Server], Result]) -> Result:
    with closing(Server(address, timeout_seconds=timeout_seconds)) as server:
        server.open()
        return ask(server)
