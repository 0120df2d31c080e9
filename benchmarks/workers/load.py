"""A load generator that costs little: bytes made beforehand, bare connections, answers only measured.

    python load.py '{"port": ..., "requests": FILE, "clients": 64, "seconds": 5, "rate": null}'

`requests` is a file of JSON bodies, one a line. Without a rate every client asks as soon as it is answered
(a closed loop); with one, requests come at random moments whether or not others are answered (an open loop),
and their time counts from the moment they should have come. Prints one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

LOST = "lost"


class Connection(asyncio.Protocol):
    """Sends one request at a time, and tells when the answer is whole."""

    transport: asyncio.Transport

    def __init__(self, load: Load, on_answer: Callable[[Connection], None]) -> None:
        self.load = load
        self.on_answer = on_answer
        self.is_waiting = False
        self.is_open = True
        self._answer = bytearray()
        self._n_bytes: int | None = None  # of the whole answer, once its head is there

    def ask(self, since: float) -> None:
        """Send the next request, whose time counts from `since`."""
        self.since, self.sent = since, time.perf_counter()
        self.is_waiting = True
        self.transport.write(self.load.next_request())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._answer += data
        if self._n_bytes is None:
            end = self._answer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self._answer[:end]).lower() + b"\r\n"
            self._n_bytes = end + 4 + int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            self._status = head.split(b" ", 2)[1].decode()
            self.is_open = b"connection: close" not in head
        if len(self._answer) >= self._n_bytes:
            self._answer, self._n_bytes, self.is_waiting = bytearray(), None, False
            self.load.note(self._status, self.since, self.sent)
            if not self.is_open:
                self.transport.close()
            self.on_answer(self)

    def connection_lost(self, error: Exception | None) -> None:
        was_waiting, self.is_waiting, self.is_open = self.is_waiting, False, False
        if was_waiting:
            self.load.statuses[LOST] += 1
            self.on_answer(self)


class Load:
    """The requests that are sent, and how long the answers took."""

    def __init__(self, port: int, requests: list[bytes], path: str) -> None:
        self.port = port
        self.seconds: dict[str, list[float]] = {}
        self.statuses: Counter[str] = Counter()
        self._requests = cycle([_message(path, body) for body in requests])

    def next_request(self) -> bytes:
        """The requests in turn."""
        return next(self._requests)

    def note(self, status: str, since: float, sent: float) -> None:
        """An answer, now."""
        now = time.perf_counter()
        self.statuses[status] += 1
        self.seconds.setdefault(status, []).append(now - since)
        self.seconds.setdefault(f"{status} since sent", []).append(now - sent)

    async def connect(self, on_answer: Callable[[Connection], None]) -> Connection:
        """A new connection."""
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(lambda: Connection(self, on_answer), "127.0.0.1", self.port)
        return made

    async def closed(self, n_clients: int, seconds: float) -> None:
        """Clients that ask as soon as they are answered."""
        until = time.perf_counter() + seconds

        async def client() -> None:
            while time.perf_counter() < until:
                await self._ask_on(until)

        await asyncio.gather(*(client() for _ in range(n_clients)))

    async def _ask_on(self, until: float) -> None:
        """Ask again and again on one connection, as long as it is open."""
        ended = asyncio.Event()

        def go_on(connection: Connection) -> None:
            now = time.perf_counter()
            if now < until and connection.is_open:
                connection.ask(now)
            else:
                ended.set()

        connection = await self.connect(go_on)
        connection.ask(time.perf_counter())
        await ended.wait()
        connection.transport.close()

    async def open(self, rate: float, seconds: float) -> None:
        """Requests at random moments, `rate` of them a second."""
        idle: list[Connection] = []
        connecting: set[asyncio.Task[None]] = set()
        n_running = 0

        def answered(connection: Connection) -> None:
            nonlocal n_running
            n_running -= 1
            if connection.is_open:
                idle.append(connection)

        async def on_a_new_one(due: float) -> None:
            nonlocal n_running
            try:
                (await self.connect(answered)).ask(due)
            except OSError:
                self.statuses[LOST] += 1
                n_running -= 1

        generator = random.Random(0)
        began = due = time.perf_counter()
        while due < began + seconds:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            n_running += 1
            while idle and not idle[-1].is_open:
                idle.pop()
            if idle:
                idle.pop().ask(due)
            else:
                task = asyncio.ensure_future(on_a_new_one(due))
                connecting.add(task)
                task.add_done_callback(connecting.discard)
            due += generator.expovariate(rate)
        while n_running:
            await asyncio.sleep(0.005)
        for connection in idle:
            connection.transport.close()


def _message(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def quantile(values: list[float], share: float) -> float:
    """A quantile in milliseconds."""
    ordered = sorted(values)
    return 1_000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def report(load: Load, seconds: float) -> dict[str, Any]:
    """What was measured."""
    good = load.seconds.get("200", [])
    line: dict[str, Any] = {"statuses": dict(load.statuses), "per_second": len(good) / seconds}
    if good:
        line |= {"p50": quantile(good, 0.5), "p99": quantile(good, 0.99), "longest": 1_000 * max(good)}
        line["p99_since_sent"] = quantile(load.seconds["200 since sent"], 0.99)
    return line


async def main(
    port: int, requests: str, clients: int, seconds: float, rate: float | None, path: str = "/v1/embeddings"
) -> None:
    load = Load(port, Path(requests).read_bytes().splitlines(), path)
    began = time.perf_counter()
    await (load.closed(clients, seconds) if rate is None else load.open(rate, seconds))
    sys.stdout.write(json.dumps(report(load, time.perf_counter() - began)) + "\n")


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
