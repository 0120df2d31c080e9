"""More requests at once than are answered: they are told to come again, at less cost than an answer."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from gemel.serve.answers import SECURITY_HEADERS, Answer, json_bytes
from gemel.serve.calls import Serving
from gemel.serve.refusals import Dialect, Refusal


class Overload:
    """Knows when there are too many requests, and what they are told: without a line in the log."""

    def __init__(self, serving: Serving, dialects: Mapping[str, Dialect]) -> None:
        self._serving = serving
        self._dialects = dialects
        self._limit = serving.limits.max_concurrent_requests
        self._messages: dict[tuple[Dialect, int], bytes] = {}

    @property
    def is_here(self) -> bool:
        """Whether as many requests are being answered as may be at once."""
        return self._serving.n_requests >= self._limit

    @property
    def can_be_short(self) -> bool:
        """Whether the message is enough; while the server stops, connections are told so as well."""
        return not self._serving.is_draining

    def answer(self, path: str) -> Answer:
        """What a request to this path is told."""
        self._serving.metrics.request_failure.add(err="overloaded")
        return self._answer(self._dialect(path), self._serving.retry_after_seconds)

    def message(self, path: str) -> bytes:
        """The same as it goes over the wire."""
        self._serving.metrics.request_failure.add(err="overloaded")
        dialect, seconds = self._dialect(path), self._serving.retry_after_seconds
        message = self._messages.get((dialect, seconds))
        if message is None:
            message = self._messages[dialect, seconds] = _written(self._answer(dialect, seconds))
        return message

    def _dialect(self, path: str) -> Dialect:
        return self._dialects.get(path, "openai")

    def _answer(self, dialect: Dialect, retry_after_seconds: int) -> Answer:
        refusal = Refusal(
            "overloaded",
            f"{self._limit} requests are being answered already (max_concurrent_requests={self._limit}); "
            "try again later",
        )
        headers = {**SECURITY_HEADERS, "retry-after": str(retry_after_seconds)}
        return Answer(json_bytes(refusal.body(dialect)), refusal.status(dialect), headers=headers)


def _written(answer: Answer) -> bytes:
    labels = {"content-type": answer.media_type, "content-length": str(len(answer.body)), **answer.headers}
    head = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
    head += [f"{name}: {value}" for name, value in labels.items()]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + answer.body
