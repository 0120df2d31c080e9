"""One file from the web, whole or not at all; what a broken connection has left is continued."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gemel.data.places import hash_of
from gemel.errors import InvalidInput, WriteFailed
from gemel.progress import progress_bar
from gemel.version import VERSION

_BLOCK_BYTES = 1 << 16
_TIMEOUT_SECONDS = 60
RETRY_SECONDS = (1.0, 3.0, 9.0)  # how long to wait before each further attempt
_WORTH_RETRYING = (408, 429, 500, 502, 503, 504)
_OTHER_PLACE = "give another place with --url, or the file itself with --from"


@dataclass(frozen=True)
class Fetched:
    """A file that has arrived."""

    path: Path
    n_bytes: int
    sha256: str


@dataclass(frozen=True)
class _Version:
    """What the server says of the file, by which a second half is told to belong to the first."""

    url: str
    etag: str | None
    last_modified: str | None
    n_bytes: int | None

    @property
    def validator(self) -> str | None:
        """What `If-Range` takes: a strong ETag, or else the date."""
        return self.etag if self.etag and not self.etag.startswith("W/") else self.last_modified

    @property
    def is_telling(self) -> bool:
        return self.validator is not None or self.n_bytes is not None


class _Broken(Exception):
    """The connection ended before the file did."""


class _Changed(Exception):
    """What the server has now does not continue what is here."""


def download(
    url: str,
    target: Path,
    *,
    sha256: str | None = None,
    n_bytes: int | None = None,
    show: bool | None = None,
    retry_seconds: Sequence[float] = RETRY_SECONDS,
) -> Fetched:
    """Fetch a file; a `.part` beside the target keeps what has come, and the next call goes on from there."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise InvalidInput(f"{url!r} is no address; expected http:// or https://, or a file with --from")
    half = _Half(target)
    waits = iter(retry_seconds)
    while True:
        try:
            half.continue_from(url, n_bytes, show)
            break
        except _Changed:
            half.forget()
        except _Broken as error:
            wait = next(waits, None)
            if wait is None:
                kept = half.size
                raise InvalidInput(
                    f"cannot fetch {url} ({error}); expected a connection that lasts: check the network and "
                    f"repeat the command ({kept:,} bytes are kept), or {_OTHER_PLACE}"
                ) from error
            time.sleep(wait)
    return half.finish(url, sha256)


class _Half:
    """The part of a file that is here."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.part = target.with_name(f"{target.name}.part")
        self.note = target.with_name(f"{target.name}.part.json")

    @property
    def size(self) -> int:
        return self.part.stat().st_size if self.part.is_file() else 0

    def forget(self) -> None:
        """Start from nothing."""
        self.part.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)

    def continue_from(self, url: str, n_bytes: int | None, show: bool | None) -> None:
        """Fetch what is missing, or raise if the connection breaks or the file has changed."""
        version = self._version(url)
        start = self.size if version else 0
        if version and version.n_bytes is not None and start == version.n_bytes:
            return
        with _opened(url, start, version) as response:
            now = _version_of(url, response)
            is_rest = response.status == http.client.PARTIAL_CONTENT
            if is_rest and version is None:
                raise _Broken("the server sent a part of the file, and all of it was asked for")
            if is_rest and not _continues(response, start, version, now):
                raise _Changed
            _check_length(url, now.n_bytes, n_bytes)
            if not is_rest:
                start = 0
                self._write_note(now)
            with progress_bar(now.n_bytes, f"fetching {self.target.name}", show, unit="bytes") as bar:
                bar.update(start)
                self._append(response, "ab" if is_rest else "wb", bar)
        if now.n_bytes is not None and self.size != now.n_bytes:
            raise _Broken(f"the connection ended after {self.size:,} of {now.n_bytes:,} bytes")

    def finish(self, url: str, sha256: str | None) -> Fetched:
        """Put the file in place, if it is what was expected."""
        found, size = hash_of(self.part), self.size
        if sha256 is not None and found != sha256.lower():
            self.forget()
            raise InvalidInput(
                f"{url} gave {size:,} bytes with sha256 {found}; expected {sha256}: the file was changed or "
                f"damaged on the way, so nothing was kept; if you trust it, say --sha256 {found}"
            )
        self.part.replace(self.target)
        self.note.unlink(missing_ok=True)
        return Fetched(self.target, size, found)

    def _append(self, response: http.client.HTTPResponse, mode: str, bar: Any) -> None:
        try:
            with self.part.open(mode) as file:
                for block in _blocks(response):
                    file.write(block)
                    bar.update(len(block))
        except OSError as error:
            raise WriteFailed(
                f"cannot write {self.part}: {error.strerror or error}; {self.size:,} bytes are kept: make "
                "room, and the same command continues from there"
            ) from error

    def _version(self, url: str) -> _Version | None:
        """What the half that is here belongs to, if that is known and is this file."""
        try:
            version = _Version(**json.loads(self.note.read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return version if version.url == url and version.is_telling and self.size else None

    def _write_note(self, version: _Version) -> None:
        self.part.unlink(missing_ok=True)  # so that no note ever stands beside another file's half
        self.note.write_text(json.dumps(asdict(version)), "utf-8")


def _blocks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        while block := response.read(_BLOCK_BYTES):
            yield block
    except (http.client.HTTPException, OSError) as error:
        raise _Broken(str(error) or type(error).__name__) from error


@contextmanager
def _opened(url: str, start: int, version: _Version | None) -> Iterator[http.client.HTTPResponse]:
    headers = {"User-Agent": f"gemel/{VERSION}", "Accept-Encoding": "identity"}
    if start and version:
        headers["Range"] = f"bytes={start}-"
        if version.validator:
            headers["If-Range"] = version.validator
    try:
        response = urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=_TIMEOUT_SECONDS
        )
    except urllib.error.HTTPError as error:
        with error:
            raise _refusal(url, error, start) from error
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        reason = getattr(error, "reason", error)
        raise _Broken(f"{urlsplit(url).netloc} cannot be reached: {reason}") from error
    with response:
        yield response


def _refusal(url: str, error: urllib.error.HTTPError, start: int) -> Exception:
    if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and start:
        return _Changed()
    if error.code in _WORTH_RETRYING:
        return _Broken(f"the server says {error.code} {error.reason}")
    gone = error.code in (http.client.NOT_FOUND, http.client.GONE)
    what = "is not there any more" if gone else "is refused"
    return InvalidInput(f"{url} {what} (the server says {error.code} {error.reason}); {_OTHER_PLACE}")


def _version_of(url: str, response: http.client.HTTPResponse) -> _Version:
    length = response.headers.get("Content-Length")
    n_bytes = int(length) if length and length.isdigit() else None
    if response.status == http.client.PARTIAL_CONTENT:
        total = response.headers.get("Content-Range", "").rpartition("/")[2]
        n_bytes = int(total) if total.isdigit() else None
    return _Version(url, response.headers.get("ETag"), response.headers.get("Last-Modified"), n_bytes)


def _continues(
    response: http.client.HTTPResponse, start: int, before: _Version | None, now: _Version
) -> bool:
    """Whether what comes is the rest of the file that was begun."""
    begins = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    return begins == str(start) and before == now


def _check_length(url: str, found: int | None, expected: int | None) -> None:
    if expected is not None and found is not None and found != expected:
        raise InvalidInput(
            f"{url} has {found:,} bytes; expected {expected:,}: the file was changed; if you trust it, "
            f"fetch it with --url {url}"
        )
