"""API keys: read from a file or the environment, compared in constant time, with a scope each."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from gemel.errors import InvalidInput
from gemel.serve.refusals import Refusal

Scope = Literal["open", "read", "write"]
SHORTEST_KEY = 16


class Keys:
    """The keys that the server accepts; only their hashes are kept."""

    def __init__(self, keys: Iterable[tuple[str, Scope]] = ()) -> None:
        self._scopes: dict[bytes, Scope] = {_hash(key): scope for key, scope in keys}

    def __len__(self) -> int:
        return len(self._scopes)

    @classmethod
    def read(cls, file: str | Path | None = None, environment: str | None = None) -> Keys:
        """Keys of a file (one a line) and of an environment variable's value (separated by commas)."""
        lines: list[str] = []
        if file is not None:
            try:
                lines += Path(file).read_text(encoding="utf-8").splitlines()
            except (OSError, UnicodeDecodeError) as error:
                raise InvalidInput(f"the file of keys {str(file)!r} cannot be read ({error})") from None
        if environment:
            lines += environment.split(",")
        stripped = (line.split("#")[0].strip() for line in lines)
        keys = cls(_parsed(line) for line in stripped if line)
        if file is not None and not len(keys):
            raise InvalidInput(f"the file of keys {str(file)!r} has no key; write one a line")
        return keys

    def check(self, authorization: str | None, scope: Scope) -> None:
        """Refuse a request without a key of that scope; a key that may write may read."""
        if not self._scopes or scope == "open":
            return
        scheme, _, key = (authorization or "").partition(" ")
        found = self._scope_of(key.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            raise Refusal(
                "no_key",
                "this server needs a key; send it as the header 'Authorization: Bearer KEY'",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if scope == "write" and found != "write":
            raise Refusal("forbidden", "this key may only read; use one whose scope is write")

    def _scope_of(self, key: str) -> Scope | None:
        digest, found = _hash(key), None
        for known, scope in self._scopes.items():  # all of them, so that the time tells nothing
            if hmac.compare_digest(known, digest):
                found = scope
        return found


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def _parsed(line: str) -> tuple[str, Scope]:
    key, _, scope = line.partition(" ")
    scope = scope.strip() or "write"
    if scope not in ("read", "write"):
        raise InvalidInput(f"a key's scope is {scope!r}; write 'KEY', 'KEY read' or 'KEY write' on each line")
    if len(key) < SHORTEST_KEY:
        raise InvalidInput(
            f"a key has {len(key)} characters; use at least {SHORTEST_KEY}, as from: openssl rand -hex 24"
        )
    return key, "read" if scope == "read" else "write"
