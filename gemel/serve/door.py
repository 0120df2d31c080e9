"""What every route does around its handler: key, limits, body, checks, answer."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from gemel.errors import GemelError
from gemel.serve.answers import Answer, json_bytes
from gemel.serve.bodies import INLINE_BYTES, check_head, parse, read_body
from gemel.serve.calls import Call, Serving
from gemel.serve.logs import log
from gemel.serve.refusals import REASONS, ClientGone, Refusal, refusal_of
from gemel.serve.routing import Route
from gemel.serve.schemas import Record

TIMEOUT_HEADER = "x-timeout-seconds"
TOLD_TO_THE_LOG = ("internal", "busy", "storage")  # what is wrong here, and not with the request


class Door:
    """A route as an ASGI application."""

    def __init__(self, route: Route, serving: Serving) -> None:
        self._route = route
        self._serving = serving
        self._record = route.request
        if route.request is not None and route.dialect == "tei":  # its clients send what other servers read
            self._record = route.request.tolerant()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        serving = self._serving
        began = time.monotonic()
        entry: dict[str, Any] = scope.setdefault("gemel", {})
        entry["route"] = self._route.path
        call = Call(serving, serving.shelf.current, receive, began + serving.limits.timeout_seconds)
        n_body_bytes, failure = 0, None
        serving.n_requests += 1
        try:
            n_body_bytes, request = await self._request(scope, call)
            answer = await self._route.handler(call, request)
            if call.n_truncated:
                answer.headers["X-Truncated-Inputs"] = str(call.n_truncated)
        except ClientGone:
            serving.metrics.abandoned.add()
            entry["status"] = 499
            return
        except (Refusal, GemelError) as error:
            failure = refusal_of(error, serving.retry_after_seconds)
            if failure.reason in TOLD_TO_THE_LOG:
                cause = error.__cause__ if isinstance(error, Refusal) else None
                self._log(entry, cause or error)
            answer = self._refused(failure)
        except Exception as error:
            self._log(entry, error)
            failure = refusal_of(error)
            answer = self._refused(failure)
        finally:
            serving.n_requests -= 1
            serving.room.shrink(n_body_bytes)
            self._tell(entry, call)
        self._count(call, failure, time.monotonic() - began)
        await send_answer(send, answer)

    async def _request(self, scope: Scope, call: Call) -> tuple[int, dict[str, Any]]:
        """The request's fields, checked, and how many bytes of room its body holds."""
        headers = Headers(scope=scope)
        serving, route = self._serving, self._route
        serving.keys.check(headers.get("authorization"), route.scope)
        call.deadline = min(call.deadline, time.monotonic() + _asked_timeout(headers))
        fields: dict[str, Any] = {"path": scope.get("path_params", {})}
        if self._record is None:
            return 0, fields
        check_head(headers, serving.limits)
        body = await read_body(call.receive, serving.limits, serving.room)
        try:
            if len(body) <= INLINE_BYTES:
                return len(body), fields | self._read(self._record, body)
            running = asyncio.get_running_loop().run_in_executor(None, self._read, self._record, body)
            return len(body), fields | await running
        except BaseException:
            serving.room.shrink(len(body))
            raise

    def _read(self, record: Record, body: bytes) -> dict[str, Any]:
        """The fields of a body; how many entries its lists have is looked at before any of them is."""
        value = parse(body)
        record.check_size(value, "", self._serving.limits)
        return record.read(value, "")

    def _refused(self, refusal: Refusal) -> Answer:
        dialect = self._route.dialect
        body = json_bytes(refusal.body(dialect))
        return Answer(body, refusal.status(dialect), headers=refusal.headers)

    def _log(self, entry: dict[str, Any], error: BaseException) -> None:
        """A failure that the operator must see; of gemel's own errors what they say too."""
        # Only the first line: in those that follow a store may quote the row, and so a text.
        told = {"message": str(error).partition("\n")[0]} if isinstance(error, GemelError) else {}
        place = {"id": entry.get("id"), "route": self._route.path}
        log("failure", level=logging.ERROR, failure=error, **place, **told)

    def _tell(self, entry: dict[str, Any], call: Call) -> None:
        """What the log says of the request: numbers, never texts."""
        if call.n_inputs:
            entry |= {
                "inputs": call.n_inputs,
                "tokens": call.n_tokens,
                "truncated": call.n_truncated,
                "tokenise_seconds": round(call.tokenise_seconds, 6),
                "queue_seconds": round(call.queue_seconds, 6),
                "compute_seconds": round(call.compute_seconds, 6),
            }

    def _count(self, call: Call, failure: Refusal | None, seconds: float) -> None:
        metrics = self._serving.metrics
        if self._route.measures is None:
            return
        method = "single" if call.n_inputs <= 1 else "batch"
        metrics.request_count.add(method=method)
        if failure is not None:
            metrics.request_failure.add(err=REASONS[failure.reason].tei_type.lower())
            return
        metrics.request_success.add(method=method)
        metrics.request_duration.observe(seconds)
        metrics.tokenization.observe(call.tokenise_seconds)
        metrics.queue.observe(call.queue_seconds)
        metrics.inference.observe(call.compute_seconds)
        metrics.input_length.observe(call.n_tokens)
        own = metrics.embed_duration if self._route.measures == "embed" else metrics.predict_duration
        own.observe(seconds)


async def send_answer(send: Send, answer: Answer) -> None:
    """An answer over ASGI."""
    headers = {"content-type": answer.media_type, "content-length": str(len(answer.body)), **answer.headers}
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": raw})
    await send({"type": "http.response.body", "body": answer.body})


def _asked_timeout(headers: Headers) -> float:
    given = headers.get(TIMEOUT_HEADER)
    if given is None:
        return float("inf")
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise Refusal("invalid", f"the header {TIMEOUT_HEADER} must be a positive number of seconds")
    return seconds
