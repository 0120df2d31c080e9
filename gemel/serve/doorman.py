"""Lets in all connections that have come: uvloop itself takes one in each of its rounds.

Those rounds last long when much is asked. Then connections would wait outside, for seconds and where nobody
can tell them to come again, until the system forgets them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from socket import socket

from gemel.serve.logs import log

AT_ONCE = 256  # and then those who are inside have their turn
PAUSE_SECONDS = 0.1  # when the system has no room for one more


class Doorman:
    """A listening socket whose connections are given to an event loop; looks like the server of one."""

    def __init__(
        self, listening: socket, make_protocol: Callable[[], asyncio.Protocol], backlog: int
    ) -> None:
        self.sockets = (listening,)
        self._make_protocol = make_protocol
        self._loop = asyncio.get_running_loop()
        self._greeted: set[asyncio.Task[object]] = set()
        self._is_open = True
        listening.setblocking(False)
        listening.listen(backlog)
        self._watch()

    def close(self) -> None:
        """Let those in who have come already, and then nobody."""
        if self._is_open:
            while self._let_in():
                pass
            self._is_open = False
            self._loop.remove_reader(self.sockets[0])
            self.sockets[0].close()

    async def wait_closed(self) -> None:
        """Wait until those who were let in are in."""
        await asyncio.gather(*self._greeted, return_exceptions=True)

    def _watch(self) -> None:
        if self._is_open:
            self._loop.add_reader(self.sockets[0], self._let_in)

    def _let_in(self) -> bool:
        """Some of those who wait; whether there may be more."""
        for _ in range(AT_ONCE):
            try:
                accepted, _ = self.sockets[0].accept()
            except ConnectionAbortedError:
                continue
            except BlockingIOError:
                return False
            except OSError as error:  # too many open files, or no memory: the next ones wait a little
                log("nobody can be let in", level=logging.ERROR, message=str(error))
                self._loop.remove_reader(self.sockets[0])
                self._loop.call_later(PAUSE_SECONDS, self._watch)
                return False
            accepted.setblocking(False)
            greeting = self._loop.create_task(
                self._loop.connect_accepted_socket(self._make_protocol, accepted)
            )
            self._greeted.add(greeting)
            greeting.add_done_callback(self._greeted.discard)
        return True
