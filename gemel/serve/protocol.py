"""uvicorn's HTTP, with an end to its patience: a request that does not arrive whole is given up.

Other protocols are not spoken here: who asks to change to one is answered in HTTP/1.1, as HTTP allows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, ClassVar

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from gemel.serve.answers import json_bytes
from gemel.serve.logs import log
from gemel.serve.overload import Overload
from gemel.serve.refusals import Refusal

SECOND_LOOK_SECONDS = 0.05
MOST_HEAD_BYTES = 65_536  # parsed again with each part that comes: a head without an end would take all time
LINGER_SECONDS = 1.0  # to read the answer in: what is closed while the client still sends is lost to it


class PatientProtocol(HttpToolsProtocol):
    """Closes connections whose request's head or body does not arrive in time.

    Here and not where the body is read: a timer costs a microsecond, a task for each request many.
    """

    timeout_seconds: ClassVar[float] = 20.0
    overload: ClassVar[Overload | None] = None
    has_asked = False  # anything, on this connection
    _is_turned_away = False
    _is_given_up = False  # nothing that comes is read any more
    _is_moving = False  # the end of a head, of a body or a part of one is among what has just come
    _n_head_bytes = 0  # since the last of these: of a head, or of what follows a body in chunks
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """A new connection: its first request must come soon."""
        super().connection_made(transport)
        self._wait_for(self.transport.close)

    def data_received(self, data: bytes) -> None:
        """Some bytes, of a head that may not grow without end."""
        if self._is_given_up:
            return
        self._unset_keepalive_if_required()
        self._is_moving = False
        self._n_head_bytes += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self._is_given_up = True
            self.logger.warning("Invalid HTTP request received.")
            self.send_400_response("Invalid HTTP request received.")
            return
        if self._is_moving:
            self._n_head_bytes = 0
        elif self._n_head_bytes > MOST_HEAD_BYTES and not self._is_given_up:
            self._refuse_head()

    def _feed(self, data: bytes) -> None:
        """Parse; a request to change the protocol is parsed once more, as if it had not asked."""
        rest = memoryview(data)
        while len(rest):
            try:
                self.parser.feed_data(rest)
                return
            except httptools.HttpParserUpgrade as upgrade:
                method = self.parser.get_method()
                if method == b"CONNECT":  # which means a change of the protocol without asking for it
                    raise httptools.HttpParserError("this is no proxy") from None
                start = b"%b %b HTTP/%b\r\n" % (method, self.url, self.parser.get_http_version().encode())
                kept = [b"%b: %b\r\n" % header for header in self.headers if header[0] != b"upgrade"]
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own
                self.parser.feed_data(b"".join([start, *kept, b"\r\n"]))
                rest = rest[upgrade.args[0] :]

    def on_message_begin(self) -> None:
        """The first byte of a request: the rest of its head must follow."""
        super().on_message_begin()
        self.has_asked = True
        self._wait_for(self.transport.close)

    def on_headers_complete(self) -> None:
        """The head is here: its body must follow."""
        if self.parser.should_upgrade():
            return  # it comes again, without that
        if self._n_head_bytes > MOST_HEAD_BYTES and self._head_size() > MOST_HEAD_BYTES:
            self._refuse_head()
        if self._is_given_up:
            return
        self._is_moving = True
        self._is_turned_away = self._is_one_too_many()
        if self._is_turned_away:
            self._wait_for(self._turn_away_and_close)
            return
        self._wait_for(self._refuse)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of the body, which nobody reads if the request is turned away."""
        self._is_moving = True
        if not self._is_turned_away and not self._is_given_up:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is here."""
        if self.parser.should_upgrade() or self._is_given_up:
            return
        self._is_moving = True
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

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _refuse_head(self) -> None:
        """Say that the head is too large, unless another answer is on its way, and close a little later."""
        self._is_given_up = True
        self._stop_waiting()
        before: RequestResponseCycle | None = self.cycle
        if before is not None and not before.response_complete:
            self.transport.close()
            return
        words = f"the head of the request has more than {MOST_HEAD_BYTES:,} bytes; send shorter headers"
        self._tell(Refusal("too_large", words), HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        self._waiting = self.loop.call_later(LINGER_SECONDS, self.transport.close)

    def _refuse(self) -> None:
        """Say that the body is missing, if nothing has been said yet, and close."""
        if not self.cycle.response_started and not self.transport.is_closing():
            refusal = Refusal(
                "slow_body",
                f"the body did not arrive within body_timeout_seconds={self.timeout_seconds:g}; send it at "
                "once, and as many bytes as Content-Length says",
            )
            self._tell(refusal, HTTPStatus.REQUEST_TIMEOUT)
        self.transport.close()

    def _tell(self, refusal: Refusal, status: HTTPStatus) -> None:
        body = json_bytes(refusal.body("openai"))
        head = f"HTTP/1.1 {status} {status.phrase}\r\ncontent-type: application/json\r\n"
        rest = f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write((head + rest).encode() + body)
        log(refusal.reason.replace("_", " "), status=int(status))
