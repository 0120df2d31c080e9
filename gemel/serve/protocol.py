"""uvicorn's HTTP, with an end to its patience: a connection that never finishes its head is closed."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class PatientProtocol(HttpToolsProtocol):
    """Closes connections whose request's head does not arrive in time."""

    head_timeout_seconds: ClassVar[float] = 20.0
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """A new connection: its first request must come soon."""
        super().connection_made(transport)
        self._waiting = self.loop.call_later(self.head_timeout_seconds, self._give_up)

    def on_message_begin(self) -> None:
        """The first byte of a request: the rest of its head must follow."""
        super().on_message_begin()
        self._stop_waiting()
        self._waiting = self.loop.call_later(self.head_timeout_seconds, self._give_up)

    def on_headers_complete(self) -> None:
        """The head is here."""
        self._stop_waiting()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is over."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
