"""Connections to Milvus, and its errors in plain words."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from gemel.errors import Busy, GemelError, InvalidInput, MissingExtra, ServerError

Result = TypeVar("Result")

PREFIX = "gemel_"
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9]|[_-](?![_-]))*")
MAX_NAME = 64
DEFAULT_PORT = 19_530
FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS = 0.1, 2.0
_EXPECTED = "expected milvus://user:password@host:port/collection, or milvus:FILE.db/collection"
# What pymilvus says of a server that is away, or was a moment ago.
_PASSING = (
    "local milvus failed",
    "unavailable",
    "connect",
    "deadline",
    "timeout",
    "timed out",
    "not ready",
    "cancelled",
    "closed",
)
_NOT_LOADED = ("released", "not loaded")
_NO_ACCESS = ("auth", "permission", "privilege", "password")

# pymilvus tells every failed call to the terminal, with its trace; the last one becomes an error of ours.
# Milvus Lite, a server in this process, does so too.
for _name in ("pymilvus", "milvus_lite", "grpc._server"):
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)


@dataclass(frozen=True)
class MilvusAddress:
    """A collection of a server or of a file, or all of them where there is no name."""

    uri: str  # as pymilvus takes it, without user and password
    shown: str
    token: str = field(default="", repr=False)
    name: str = ""
    is_file: bool = False

    @property
    def collection(self) -> str:
        """What Milvus calls it, whose names have no hyphens."""
        return PREFIX + self.name.replace("-", "__")

    def __str__(self) -> str:
        return f"{self.shown}/{self.name}" if self.name else self.shown

    def masked(self, message: str) -> str:
        """What a server has said on one line, without the password."""
        plain = " ".join(message.split())
        password = self.token.partition(":")[2] or self.token
        return plain.replace(password, "***") if password else plain


def driver() -> Any:
    """The library that talks to Milvus."""
    try:
        return import_module("pymilvus")
    except ImportError as error:
        raise MissingExtra("a collection in Milvus", "milvus") from error


def read_address(uri: str, *, has_name: bool = True) -> MilvusAddress:
    """The address of a collection; without a name that of a store."""
    scheme, _, rest = uri.partition(":")
    name = ""
    if has_name:
        rest, _, name = rest.rpartition("/")
        checked_name(name)
    address = _file_address(rest, name) if not rest.startswith("//") else _server_address(scheme, rest, name)
    if address is None:
        raise InvalidInput(f"the address of Milvus that was given ({scheme}:...) cannot be read; {_EXPECTED}")
    return address


def checked_name(name: str) -> str:
    """The name of a collection, if Milvus can call it so."""
    if not NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise InvalidInput(
            f"a collection in Milvus cannot be named {name!r}; expected up to {MAX_NAME} letters (a to z) "
            "and digits, with a - or _ between them"
        )
    return name


def name_of(collection: str) -> str | None:
    """What we call a collection of Milvus's; None for one that is not ours."""
    return collection.removeprefix(PREFIX).replace("__", "-") if collection.startswith(PREFIX) else None


def _file_address(path: str, name: str) -> MilvusAddress | None:
    if not path.endswith(".db"):  # by which pymilvus knows a file
        return None
    return MilvusAddress(str(Path(path).expanduser().resolve()), f"milvus:{path}", "", name, is_file=True)


def _server_address(scheme: str, rest: str, name: str) -> MilvusAddress | None:
    try:
        parts = urlsplit(f"{scheme}:{rest}")
        host, port = parts.hostname, parts.port or DEFAULT_PORT
    except ValueError:
        return None
    if not host or parts.fragment or parts.query or parts.path.strip("/"):
        return None
    place = f"[{host}]" if ":" in host else host
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    token = f"{user}:{password}" if password else user
    who = f"{user}:***@" if password else "***@" if user else ""
    protocol = "https" if scheme == "milvus+https" else "http"
    return MilvusAddress(f"{protocol}://{place}:{port}", f"{scheme}://{who}{place}:{port}", token, name)


class Client:
    """One server or file; calls are tried again for a while if it goes away, and errors are ours."""

    def __init__(self, address: MilvusAddress, *, timeout_seconds: float) -> None:
        self.address = address
        self.timeout_seconds = timeout_seconds
        self._pymilvus = driver()
        self._client: Any = None
        self._is_closed = False
        self.takes_values = True  # beside an expression; Milvus Lite does not

    def run(self, call: Callable[[Any], Result]) -> Result:
        """What a call gives; it must bear being made again."""
        deadline = time.monotonic() + self.timeout_seconds
        delay = FIRST_DELAY_SECONDS
        while True:
            if self._is_closed:
                raise InvalidInput(f"{self.address} has been closed; open it again to use it")
            try:
                if self._client is None:
                    self._client = self._connected(max(1.0, deadline - time.monotonic()))
                return call(self._client)
            except self._errors as error:
                if time.monotonic() + delay > deadline:
                    raise self.told(error) from None  # its trace may hold the token
                if any(word in str(error).lower() for word in _NOT_LOADED):
                    self._client.load_collection(self.address.collection)  # a server that was restarted
                elif self._is_passing(error):
                    self._drop()
                else:
                    raise self.told(error) from None
            time.sleep(delay)
            delay = min(2 * delay, LONGEST_DELAY_SECONDS)

    def told(self, error: Exception) -> GemelError:
        """What an error of Milvus's means, and what to do; never with the password."""
        shown, reason = self.address.shown, self.address.masked(str(getattr(error, "message", error)))
        lower = reason.lower()
        if isinstance(error, ImportError) or "milvus-lite" in lower or "milvus_lite" in lower:
            return MissingExtra("a file of Milvus Lite's", "milvus")
        if "open local milvus failed" in lower:
            return Busy(
                f"{shown} cannot be opened; a file of Milvus Lite's is one process's at a time: wait until "
                "the other has closed it, or use a Milvus server"
            )
        if self._is_passing(error):
            return ServerError(
                f"{shown} cannot be reached, and was not back within {self.timeout_seconds:g} seconds "
                f"({reason}); see that it runs: what was acknowledged is safe there"
            )
        if any(word in lower for word in _NO_ACCESS):
            return ServerError(f"{shown} does not let this user in ({reason}); see user and password")
        if "not found" in lower or "can't find" in lower or "not exist" in lower:
            return InvalidInput(f"{self.address} is no collection, or was removed meanwhile ({reason})")
        return ServerError(f"{shown} has failed ({reason}); the server's log may say more")

    def close(self) -> None:
        """Let go of the server."""
        self._is_closed = True
        self._drop()

    @property
    def _errors(self) -> tuple[type[Exception], ...]:
        grpc = import_module("grpc")
        return (self._pymilvus.MilvusException, grpc.RpcError, ImportError, ConnectionError)

    def _is_passing(self, error: Exception) -> bool:
        lower = str(error).lower()
        return not isinstance(error, ImportError) and any(word in lower for word in _PASSING)

    def _connected(self, seconds: float) -> Any:
        if self.address.is_file:
            Path(self.address.uri).parent.mkdir(parents=True, exist_ok=True)
        client = self._pymilvus.MilvusClient(self.address.uri, token=self.address.token, timeout=seconds)
        self.takes_values = "lite" not in client.get_server_version(timeout=seconds)
        return client

    def _drop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()
