"""Where a database is, and how it is named where others can read it: never with its password."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from gemel.errors import InvalidInput, MissingExtra

SCHEMES = ("postgresql", "postgres")
SCHEMA_PREFIX = "gemel_"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,56}")  # with its prefix, the 63 bytes of an identifier
_EXPECTED = "expected postgresql://user:password@host:port/database/collection"


@dataclass(frozen=True)
class PostgresAddress:
    """A collection in a database, or the database alone where there is no name."""

    conninfo: str = field(repr=False)
    shown: str  # of the database, without its password
    password: str = field(default="", repr=False)
    name: str = ""

    @property
    def schema(self) -> str:
        """The schema that holds the collection."""
        return SCHEMA_PREFIX + self.name

    def __str__(self) -> str:
        return f"{self.shown}/{self.name}" if self.name else self.shown

    def masked(self, message: str) -> str:
        """What a server has said on one line, without the password."""
        plain = " ".join(message.split())
        return plain.replace(self.password, "***") if self.password else plain


def driver() -> Any:
    """The library that talks to PostgreSQL."""
    return _library("psycopg")


def pool_library() -> Any:
    """The library that keeps connections for the next one."""
    return _library("psycopg_pool")


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtra("a collection in PostgreSQL", "pgvector") from error


def read_address(uri: str, name: str | None = None) -> PostgresAddress:
    """The address of a collection: its name stands behind the database, or is given apart."""
    psycopg = driver()
    try:
        parts = urlsplit(uri)
        segments = [segment for segment in parts.path.split("/") if segment]
        if "," not in parts.netloc:  # of several hosts libpq reads the ports itself
            _ = parts.port  # which must be a number
        if parts.fragment or len(segments) != (2 if name is None else 1):
            raise ValueError("another number of parts")
        database = urlunsplit(("postgresql", parts.netloc, f"/{segments[0]}", parts.query, ""))
        found = psycopg.conninfo.conninfo_to_dict(database)
    except (ValueError, psycopg.Error):
        # Whatever the reason says, it may quote a part of the password.
        what = _EXPECTED if name is None else _EXPECTED.removesuffix("/collection")
        raise InvalidInput(
            f"the address of a database that was given ({_scheme(uri)}://...) cannot be read; {what}, with "
            "signs such as @, / and # in a password written as %40, %2F and %23"
        ) from None
    return PostgresAddress(
        database, _shown(found), str(found.get("password") or ""), checked_name(name or segments[1])
    )


def read_database(uri: str) -> PostgresAddress:
    """The address of a database in which collections are."""
    address = read_address(uri, "any")
    return PostgresAddress(address.conninfo, address.shown, address.password)


def checked_name(name: str) -> str:
    """The name of a collection, if a schema can be named so."""
    if not NAME.fullmatch(name):
        raise InvalidInput(
            f"a collection in PostgreSQL cannot be named {name!r}; expected 1 to 57 letters (a to z), "
            "digits, - or _, the first of them a letter or digit"
        )
    return name


def _scheme(uri: str) -> str:
    scheme = uri.partition(":")[0]
    return scheme if scheme in SCHEMES else "postgresql"


def _shown(found: dict[str, Any]) -> str:
    secret = ":***" if found.get("password") else ""
    user = f"{found.get('user', '')}{secret}@" if secret or "user" in found else ""
    host = str(found.get("host") or found.get("hostaddr") or "")
    place = f"[{host}]" if host.startswith("/") else host
    port = f":{found['port']}" if "port" in found else ""
    return f"postgresql://{user}{place}{port}/{found.get('dbname', '')}"
