"""A load generator that costs little: bytes made beforehand, one task a connection, answers only measured.

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
from itertools import cycle
from pathlib import Path
from typing import Any

LOST = "lost"


class Load:
    """Connections, the requests they send, and how long the answers took."""

    def __init__(self, port: int, requests: list[bytes], path: str) -> None:
        self.port = port
        self.seconds: dict[str, list[float]] = {}
        self.statuses: Counter[str] = Counter()
        self._requests = cycle([_message(path, body) for body in requests])

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 26)

    async def ask(self, stream: tuple[asyncio.StreamReader, asyncio.StreamWriter], since: float) -> bool:
        """One request; whether the connection can be used again."""
        reader, writer = stream
        sent = time.perf_counter()
        try:
            writer.write(next(self._requests))
            head = await reader.readuntil(b"\r\n\r\n")
            fields = head.lower()
            length = int(fields.split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.statuses[LOST] += 1
            return False
        status = head.split(b" ", 2)[1].decode()
        self.statuses[status] += 1
        self.seconds.setdefault(status, []).append(time.perf_counter() - since)
        self.seconds.setdefault(f"{status} since sent", []).append(time.perf_counter() - sent)
        return b"connection: close" not in fields

    async def closed(self, n_clients: int, seconds: float) -> None:
        """Clients that ask as soon as they are answered."""
        until = time.perf_counter() + seconds

        async def client() -> None:
            stream = await self.connect()
            while time.perf_counter() < until:
                if not await self.ask(stream, time.perf_counter()):
                    stream = await self.connect()
            stream[1].close()

        await asyncio.gather(*(client() for _ in range(n_clients)))

    async def open(self, rate: float, seconds: float) -> None:
        """Requests at random moments, `rate` of them a second."""
        idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        running: set[asyncio.Task[None]] = set()

        async def one(due: float) -> None:
            try:
                stream = idle.pop() if idle else await self.connect()
            except OSError:
                self.statuses[LOST] += 1
                return
            if await self.ask(stream, due):
                idle.append(stream)

        generator = random.Random(0)
        began = due = time.perf_counter()
        while due < began + seconds:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            task = asyncio.ensure_future(one(due))
            running.add(task)
            task.add_done_callback(running.discard)
            due += generator.expovariate(rate)
        await asyncio.gather(*running)


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
