"""uvicorn's HTTP, with an end to its patience: a request that does not arrive whole is given up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from gemel.serve.answers import json_bytes
from gemel.serve.logs import log
from gemel.serve.overload import Overload
from gemel.serve.refusals import Refusal

SECOND_LOOK_SECONDS = 0.05


class PatientProtocol(HttpToolsProtocol):
    """Closes connections whose request's head or body does not arrive in time.

    Here and not where the body is read: a timer costs a microsecond, a task for each request many.
    """

    timeout_seconds: ClassVar[float] = 20.0
    overload: ClassVar[Overload | None] = None
    _is_turned_away = False
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """A new connection: its first request must come soon."""
        super().connection_made(transport)
        self._wait_for(self.transport.close)

    def on_message_begin(self) -> None:
        """The first byte of a request: the rest of its head must follow."""
        super().on_message_begin()
        self._wait_for(self.transport.close)

    def on_headers_complete(self) -> None:
        """The head is here: its body must follow."""
        self._is_turned_away = self._is_one_too_many()
        if self._is_turned_away:
            self._wait_for(self._turn_away_and_close)
            return
        self._wait_for(self._refuse)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of the body, which nobody reads if the request is turned away."""
        if not self._is_turned_away:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is here."""
        self._stop_waiting()
        if self._is_turned_away:
            self._turn_away()
        else:
            super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is over."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _is_one_too_many(self) -> bool:
        """Whether the request can be told to come again without anybody having looked at it.

        Where that needs more than one answer, or one that comes after another, the application says so.
        """
        if self.overload is None or not self.overload.is_here or not self.overload.can_be_short:
            return False
        is_plain = self.parser.get_http_version() == "1.1" and self.parser.should_keep_alive()
        has_origin = any(name == b"origin" for name, _ in self.headers)  # the answer has to name it
        before: RequestResponseCycle | None = self.cycle
        is_first = before is None or before.response_complete
        is_read = not self.flow.write_paused  # what the client was told before
        is_post = self.parser.get_method() == b"POST"
        return (
            is_post and is_plain and is_first and is_read and not has_origin and not self.expect_100_continue
        )

    def _turn_away(self) -> None:
        assert self.overload is not None
        self.transport.write(self.overload.message(self.url.partition(b"?")[0].decode("latin-1")))
        self.on_response_complete()

    def _turn_away_and_close(self) -> None:
        self._turn_away()
        self.transport.close()

    def _wait_for(self, give_up: Callable[[], None]) -> None:
        # In two steps: a loop that lags runs its timers before it reads what has come meanwhile.
        def once_more() -> None:
            self._waiting = self.loop.call_later(SECOND_LOOK_SECONDS, give_up)

        self._stop_waiting()
        self._waiting = self.loop.call_later(self.timeout_seconds, once_more)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _refuse(self) -> None:
        """Say that the body is missing, if nothing has been said yet, and close."""
        if not self.cycle.response_started and not self.transport.is_closing():
            refusal = Refusal(
                "slow_body",
                f"the body did not arrive within body_timeout_seconds={self.timeout_seconds:g}; send it at "
                "once, and as many bytes as Content-Length says",
            )
            body = json_bytes(refusal.body("openai"))
            head = (
                f"HTTP/1.1 {refusal.status('openai')} Request Timeout\r\ncontent-type: application/json\r\n"
            )
            rest = f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write((head + rest).encode() + body)
            log("slow body", status=refusal.status("openai"))
        self.transport.close()
