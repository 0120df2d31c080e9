"""Results on their way out: vectors as JSON or base64, large answers written apart from the event loop."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson

from gemel.contracts import Vectors

INLINE_NUMBERS = 32_768  # written in about a millisecond; more goes to a thread, row by row
SECURITY_HEADERS: Mapping[str, str] = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass
class Answer:
    """The body of an answer, and how it is labelled."""

    body: bytes | bytearray = field(repr=False)  # which may be long, and holds texts
    status: int = 200
    media_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


def json_bytes(value: Any) -> bytes:
    """JSON of plain values and of arrays; float32 in as few digits as read back to the same bits."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)


def plain(value: Any) -> Answer:
    """An answer of a few values."""
    return Answer(json_bytes(value))


async def rows(
    head: bytes, vectors: Sequence[Any] | Vectors, write: Callable[[int, Any], bytes], tail: bytes
) -> Answer:
    """An answer with an entry for each row, between a head and a tail."""

    def written() -> bytearray:
        # Each call of `write` keeps the interpreter for itself; between them others have their turn. All is
        # written to one place: parts that are put together at the end would take the memory twice.
        whole = bytearray(head)
        for index, row in enumerate(vectors):
            if index:
                whole += b","
            whole += write(index, row)
        whole += tail
        return whole

    n_numbers = sum(np.size(row) for row in vectors) if isinstance(vectors, list) else np.size(vectors)
    if n_numbers <= INLINE_NUMBERS:
        return Answer(written())
    return Answer(await asyncio.get_running_loop().run_in_executor(None, written))


def float_list(_: int, vector: Any) -> bytes:
    """A vector as a list of numbers."""
    return json_bytes(vector)


def openai_entry(encoding: str) -> Callable[[int, Any], bytes]:
    """How a vector stands in OpenAI's answer."""

    def as_floats(index: int, vector: Any) -> bytes:
        return b'{"object":"embedding","index":%d,"embedding":%b}' % (index, json_bytes(vector))

    def as_base64(index: int, vector: Any) -> bytes:
        numbers = base64.b64encode(vector.astype("<f4", copy=False).tobytes())
        return b'{"object":"embedding","index":%d,"embedding":"%b"}' % (index, numbers)

    return as_base64 if encoding == "base64" else as_floats


def usage_of(n_tokens: int) -> Mapping[str, int]:
    """What OpenAI's clients add up."""
    return {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
