"""A client of `gemel serve`, which is itself an Encoder: what takes one takes a server."""

from __future__ import annotations

import base64
import http.client
import json
import math
import ssl
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import SplitResult, quote, urlsplit

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vector, Vectors, checked_pairs, checked_texts
from gemel.errors import InvalidInput, Overloaded, ServerError
from gemel.threads import once

# In one request: few enough for a server's limits, enough to keep it busy. How many tokens there are only the
# server knows; what it refuses as too large is sent again in halves.
INPUTS_AT_ONCE = 2_048
CHARACTERS_AT_ONCE = 500_000
TOO_LARGE = 413
SHORTEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 10.0
CLOSED_MEANWHILE = (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError)

Given = TypeVar("Given")


@dataclass(frozen=True)
class Ranked:
    """One text of a ranking: its row among the texts given, and its relevance from 0 to 1."""

    index: int
    score: float


@dataclass(frozen=True)
class PairClass:
    """The likeliest label of a pair, and how likely each is."""

    label: str
    scores: Mapping[str, float]


@dataclass(frozen=True)
class ServedHit:
    """A document that a search on the server has found."""

    id: int | str
    text: str
    score: float
    metadata: Mapping[str, Any]


class Client:
    """The models of a server, as if they were here; safe to use from several threads."""

    def __init__(
        self, url: str = "http://127.0.0.1:8080", *, key: str | None = None, timeout_seconds: float = 60.0
    ) -> None:
        self._parts = _split(url)
        self.url = url.rstrip("/")
        key = _checked_key(key)
        self._headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {key}"} if key else {}
        )
        self._timeout_seconds = timeout_seconds
        self._kept: deque[http.client.HTTPConnection] = deque()  # open, and used by no thread

    def close(self) -> None:
        """Close the connections that are kept for the next request."""
        while (connection := self._kept_connection()) is not None:
            connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_kept"):
            self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    @property
    def dim(self) -> int:
        """The length of every vector."""
        return int(self._info["dim"])

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the server's model, as it was when first asked for."""
        return str(self._info["fingerprint"])

    @once
    def _info(self) -> dict[str, Any]:
        return self.info()

    def info(self) -> dict[str, Any]:
        """What is loaded, and the limits."""
        found: dict[str, Any] = self._ask("GET", "/info")
        return found

    def models(self) -> list[str]:
        """The names of the loaded models."""
        return [model["id"] for model in self._ask("GET", "/v1/models")["data"]]

    def is_ready(self) -> bool:
        """Whether the server can be reached and takes new requests."""
        try:
            self._ask("GET", "/ready")
        except (ServerError, Overloaded):
            return False
        return True

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One vector a text (n, dim): to the last bit what the model gives where it runs."""
        texts = checked_texts(texts)

        def encoded(part: slice) -> Vectors:
            request = {"input": texts[part], "encoding_format": "base64"}
            answer = self._ask("POST", "/v1/embeddings", request)
            numbers = b"".join(base64.b64decode(entry["embedding"]) for entry in answer["data"])
            return np.frombuffer(numbers, "<f4").reshape(len(texts[part]), -1).astype(np.float32)

        found = list(_in_parts(texts, encoded))
        return np.concatenate(found) if found else np.zeros((0, self.dim), np.float32)

    def encode_one(self, text: str) -> Vector:
        """The vector of one text (dim,)."""
        if not isinstance(text, str):
            raise InvalidInput(f"encode_one takes one str and a {type(text).__name__} was given; use encode")
        vector: Vector = self.encode([text])[0]
        return vector

    def similarity(
        self, a: Sequence[str], b: Sequence[str], *, measure: str = "cosine"
    ) -> npt.NDArray[np.float32]:
        """How alike the texts of a and b are, row by row (n,)."""
        request = {"a": checked_texts(a), "b": checked_texts(b), "measure": measure}
        return np.array(self._ask("POST", "/v1/similarity", request)["scores"], np.float32)

    def rerank(self, query: str, texts: Sequence[str], *, top_n: int | None = None) -> list[Ranked]:
        """The texts in the order of their relevance for the query, the best first."""
        request = {"query": query, "documents": checked_texts(texts), "top_n": top_n}
        results = self._ask("POST", "/v2/rerank", request)["results"]
        return [Ranked(entry["index"], entry["relevance_score"]) for entry in results]

    def classify(self, pairs: Sequence[tuple[str, str]]) -> list[PairClass]:
        """The class of each pair of texts."""
        data = self._ask("POST", "/v1/classify", {"pairs": checked_pairs(pairs)})["data"]
        return [PairClass(entry["label"], entry["scores"]) for entry in data]

    def collections(self) -> list[str]:
        """The names of the server's collections."""
        return [collection["name"] for collection in self._ask("GET", "/v1/collections")["data"]]

    def create(self, collection: str) -> None:
        """Make an empty collection on the server."""
        self._ask("POST", "/v1/collections", {"name": collection})

    def add(
        self,
        collection: str,
        texts: Sequence[str],
        ids: Sequence[int | str] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
    ) -> int:
        """Store texts in a collection; how many records it then has.

        They go in parts, and the parts before one that is refused stay stored.
        """
        path = f"/v1/collections/{quote(collection, safe='')}"
        texts = checked_texts(texts)
        columns = {
            "texts": texts,
            "ids": _each_once(_one_a_text("ids", ids, len(texts))),
            "metadata": _one_a_text("metadata", metadata, len(texts)),
        }

        def added(part: slice) -> int:
            request = {name: None if values is None else values[part] for name, values in columns.items()}
            return int(self._ask("POST", f"{path}/add", request)["n_records"])

        n_records = list(_in_parts(texts, added))
        return n_records[-1] if n_records else int(self._ask("GET", path)["n_records"])

    def remove(self, collection: str, ids: Sequence[int | str]) -> int:
        """Remove the records with these ids; how many of them were there."""
        path = f"/v1/collections/{quote(collection, safe='')}/remove"
        return int(self._ask("POST", path, {"ids": list(ids)})["n_removed"])

    def search(
        self,
        collection: str,
        queries: Sequence[str],
        k: int = 10,
        *,
        mode: str | None = None,
        rerank: bool = False,
        filter: str | None = None,
        offset: int = 0,
    ) -> list[list[ServedHit]]:
        """For each query the k documents of a collection that fit it best, best first."""
        asked = {"collection": collection, "queries": checked_texts(queries), "k": k, "mode": mode}
        request = {**asked, "rerank": rerank, "filter": filter, "offset": offset}
        data = self._ask("POST", "/v1/search", request)["data"]
        names = ("id", "text", "score", "metadata")
        return [[ServedHit(*(hit[name] for name in names)) for hit in hits] for hits in data]

    def _ask(self, method: str, path: str, request: Mapping[str, Any] | None = None) -> Any:
        """The server's answer; an overloaded server is asked again when it says, until the time is over."""
        body = None if request is None else _body(request)
        until = time.monotonic() + self._timeout_seconds
        while True:
            status, headers, content = self._exchange(method, path, body)
            if status < 300:
                return self._read(path, status, content)
            message = _message(content)
            if status not in (429, 503):
                raise ServerError(f"{self.url}{path} answered {status}: {message}", status)
            pause = _pause_seconds(headers.get("retry-after", ""))
            if time.monotonic() + pause > until or path == "/ready":
                if status == 429:
                    raise Overloaded(f"{self.url}{path} has too much to do: {message}")
                raise ServerError(f"{self.url}{path} answered {status}: {message}", status)
            time.sleep(pause)

    def _read(self, path: str, status: int, content: bytes) -> Any:
        """What an answer says; where it is none of gemel serve's, that is told."""
        if not content and path == "/ready":
            return None
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            said = f"what is no JSON object (it begins {content[:40].decode('utf-8', 'replace')!r})"
            raise ServerError(f"{self.url}{path} answered {status} with {said}; is it gemel serve?", status)
        return found

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, dict[str, str], bytes]:
        """One request and its answer, on a kept connection if there is one that the server still has open."""
        while True:
            kept = self._kept_connection()
            connection = kept or self._new_connection()
            try:
                connection.request(method, self._parts.path.rstrip("/") + path, body, self._headers)
                response = connection.getresponse()
                content = response.read()
            except (http.client.HTTPException, OSError) as error:
                connection.close()
                if kept is not None and isinstance(error, CLOSED_MEANWHILE):
                    continue
                raise ServerError(
                    f"{self.url} cannot be reached ({error}); is gemel serve running?"
                ) from None
            self._kept.append(connection)
            return response.status, {name.lower(): value for name, value in response.getheaders()}, content

    def _kept_connection(self) -> http.client.HTTPConnection | None:
        try:
            return self._kept.pop()
        except IndexError:  # asked for, not looked for: between the two another thread could take the last
            return None

    def _new_connection(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname, self._parts.port
        assert host is not None
        if self._parts.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, port, timeout=self._timeout_seconds, context=context)
        return http.client.HTTPConnection(host, port, timeout=self._timeout_seconds)


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, a bracket that is not closed
        is_address = False
    if not is_address:
        raise InvalidInput(f"url={url!r} was given, and one such as http://127.0.0.1:8080 was expected")
    return parts


def _checked_key(key: str | None) -> str | None:
    """The key without the white space around it, as the end of a file's line; it is never shown."""
    key = None if key is None else key.strip()
    unfit = next((place for place, letter in enumerate(key or "") if not "!" <= letter <= "\xff"), None)
    if unfit is not None:
        raise InvalidInput(
            f"character {unfit} of the key is one that no header can hold; give the key as the server has it"
        )
    return key


def _one_a_text(name: str, values: Sequence[Any] | None, n_texts: int) -> list[Any] | None:
    if values is None:
        return None
    listed = list(values)
    if len(listed) != n_texts:
        raise InvalidInput(f"{len(listed)} {name} were given for {n_texts} texts; give one for each text")
    return listed


def _each_once(ids: list[Any] | None) -> list[Any] | None:
    """The ids; one that stands twice is refused here, since the server sees no two parts at once."""
    seen: dict[Any, int] = {}
    for position, id_ in enumerate(ids or ()):
        before = seen.setdefault(id_, position) if isinstance(id_, Hashable) else position
        if before != position:
            raise InvalidInput(
                f"id {id_!r} is given twice, at {before} and at {position}; give every id once"
            )
    return ids


def _in_parts(texts: Sequence[str], ask: Callable[[slice], Given]) -> Iterator[Given]:
    """The answers for all texts, part by part; a part that is too large for the server goes in halves."""
    remaining = list(_parts(texts))[::-1]
    while remaining:
        part = remaining.pop()
        try:
            answer = ask(part)
        except ServerError as error:
            if error.status != TOO_LARGE:
                raise
            middle = (part.start + part.stop) // 2
            if middle == part.start:
                raise ServerError(f"{error} (this was text {part.start})", TOO_LARGE) from None
            remaining += [slice(middle, part.stop), slice(part.start, middle)]
        else:
            yield answer


def _parts(texts: Sequence[str]) -> Iterator[slice]:
    start = n_characters = 0
    for end, text in enumerate(texts):
        n_characters += len(text)
        if end > start and (end - start == INPUTS_AT_ONCE or n_characters > CHARACTERS_AT_ONCE):
            yield slice(start, end)
            start, n_characters = end, len(text)
    if texts:
        yield slice(start, len(texts))


def _body(request: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(request, ensure_ascii=False, default=_plain).encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"a text holds a lone surrogate (U+{ord(error.object[error.start]):04X}), which is no Unicode; "
            "repair it where it was decoded"
        ) from None


def _plain(value: object) -> object:
    """NumPy's numbers as JSON's; the rest of what JSON has no word for is refused."""
    if isinstance(value, np.integer | np.floating | np.bool_):
        return value.item()
    raise InvalidInput(
        f"a {type(value).__name__} was given, which JSON cannot hold; give texts, numbers, lists and dicts"
    )


def _pause_seconds(retry_after: str) -> float:
    """How long a server asks to wait, by a number of seconds or a date; a second where it does not say."""
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(retry_after).timestamp() - time.time()
        except (ValueError, OverflowError):
            seconds = math.nan
    return 1.0 if math.isnan(seconds) else min(max(SHORTEST_PAUSE_SECONDS, seconds), LONGEST_PAUSE_SECONDS)


def _message(content: bytes) -> str:
    """What an error says, in any of the server's shapes."""
    try:
        found = json.loads(content)
        error = found.get("error", found)
        return str(error.get("message") if isinstance(error, dict) else error)
    except (ValueError, AttributeError):
        return content[:200].decode("utf-8", "replace")
