"""Reading a request's body: strict types, bounded bytes."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import orjson
from starlette.types import Receive

from gemel.serve.refusals import ClientGone, Refusal
from gemel.serve.settings import Limits

INLINE_BYTES = 100_000  # parsed and checked in a millisecond or two; more goes to a thread
DIGITS_AS_ZEROS = bytes(ord("0") if byte in b"0123456789" else ord(" ") for byte in range(256))
LONG_NUMBER = b"0" * 19  # a whole number of fewer digits fits into 64 bits


class BodyRoom:
    """How many bytes of bodies are held at the moment, over all requests."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.n_bytes = 0

    def grow(self, n_bytes: int) -> None:
        """Hold more, or refuse."""
        if self.n_bytes + n_bytes > self._limits.max_bodies_bytes:
            raise Refusal(
                "overloaded",
                "other requests hold all the memory that bodies may take "
                f"(max_bodies_bytes={self._limits.max_bodies_bytes:,}); try again later",
                headers={"Retry-After": "1"},
            )
        self.n_bytes += n_bytes

    def shrink(self, n_bytes: int) -> None:
        """Hold less."""
        self.n_bytes -= n_bytes


def check_head(headers: Mapping[str, str], limits: Limits) -> None:
    """Refuse, before its body is read, a request that is no JSON or announces too much."""
    media_type, _, parameters = headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if media_type.strip().lower() != "application/json" or charset not in ("", "utf-8", "utf8"):
        raise Refusal("media_type", "the body must be JSON in UTF-8: send 'Content-Type: application/json'")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Refusal("media_type", "compressed bodies are not read; send the JSON as it is")
    announced = headers.get("content-length", "0")
    if announced.isdigit() and int(announced) > limits.max_body_bytes:
        raise _too_large(int(announced), limits)


async def read_body(receive: Receive, limits: Limits, room: BodyRoom) -> bytes:
    """The whole body; the caller gives its room back when the request is over."""
    chunks: list[bytes] = []
    n_bytes = 0
    try:
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            chunk = message.get("body", b"")
            room.grow(len(chunk))
            n_bytes += len(chunk)
            if n_bytes > limits.max_body_bytes:
                raise _too_large(n_bytes, limits)
            chunks.append(chunk)
            if not message.get("more_body", False):
                return b"".join(chunks)
    except BaseException:
        room.shrink(n_bytes)
        raise


def parse(body: bytes) -> Any:
    """The JSON value of a body; NaN, lone surrogates, broken UTF-8 and bottomless nesting are no JSON."""
    try:
        with _without_collection() if len(body) > INLINE_BYTES else nullcontext():
            value = orjson.loads(body)
            return json.loads(body) if _may_be_rounded(body) else value
    except orjson.JSONDecodeError as error:
        problem = f"{error.msg} at character {error.pos}"
    except RecursionError:
        problem = "it is nested too deeply"
    raise Refusal("invalid", f"the body is no JSON ({problem}); send a JSON object in UTF-8")


@contextmanager
def _without_collection() -> Iterator[None]:
    """Without the search for garbage: JSON has no cycles, and to look through the four million lists of 16 MB
    again and again took three times as long as to read them.
    """
    if not gc.isenabled():  # another thread reads a large body too
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _may_be_rounded(body: bytes) -> bool:
    """Whether there may be a whole number of more than 64 bits: orjson makes a float of it."""
    return LONG_NUMBER in body.translate(DIGITS_AS_ZEROS)


def _too_large(n_bytes: int, limits: Limits) -> Refusal:
    return Refusal(
        "too_large",
        f"the body has {n_bytes:,} bytes or more, over the limit max_body_bytes={limits.max_body_bytes:,}; "
        "send fewer inputs at once",
    )
