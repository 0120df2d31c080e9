"""gemel serve under load, beside infinity-emb on the same model: closed and open loops over loopback.

    make bench-serve GEMEL_DATA=DATA [ARGUMENTS="--seconds 10 --rounds 3"]

Every server is a process of its own, every load another; systems take turns, ratios are taken round by
round. Measured are requests a second and their times for 1 to 256 clients with one text each; single queries
while another client sends thousands of texts; four times as many requests as can be answered; and, if asked
for, the memory after many requests.
"""

from __future__ import annotations

import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any

import click
from serve_systems import ENGINES, Server, Start, running, starts

from gemel.checkpoint.resolving import resolve
from gemel.table import format_table

LOAD = Path(__file__).parent / "workers" / "load.py"
BULK_TEXTS = 10_000


@dataclass
class Bench:
    """The requests, the folder they lie in, and what was measured."""

    work: Path
    lines: list[dict[str, Any]] = field(default_factory=list)

    def load(
        self, server: Server, requests: str, *, clients: int, seconds: float, rate: float | None = None
    ) -> dict[str, Any]:
        """One load on one server."""
        request = {"port": server.port, "requests": str(self.work / requests), "clients": clients}
        request |= {"seconds": seconds, "rate": rate}
        command = [sys.executable, str(LOAD), json.dumps(request)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        line: dict[str, Any] = {"system": server.name, "requests": requests, "clients": clients, "rate": rate}
        line |= json.loads(done.stdout)
        self.lines.append(line)
        shown = (
            f"{line['per_second']:,.0f}/s, p50 {line.get('p50', 0):.1f} ms, p99 {line.get('p99', 0):.1f} ms"
        )
        click.echo(f"  {server.name}, {requests}, {clients} clients: {shown}, {line['statuses']}", err=True)
        return line


def write_requests(data: Path, work: Path) -> None:
    """Bodies of requests: short texts, mixed lengths, and one of many texts."""
    with gzip.open(data / "sentences_en" / "sentences_open.tsv.gz", "rt", encoding="utf-8") as opened:
        column = next(opened).rstrip("\n").split("\t").index("text")
        texts = [line.rstrip("\n").split("\t")[column] for line in islice(opened, BULK_TEXTS)]
    with (data / "cranfield" / "corpus.tsv").open(encoding="utf-8") as opened:
        column = next(opened).rstrip("\n").split("\t").index("text")
        documents = [line.rstrip("\n").split("\t")[column] for line in opened]
    mixed = [document if n % 5 == 4 else texts[n] for n, document in enumerate(documents)]
    for name, inputs in (("short", texts[:4_000]), ("mixed", mixed), ("bulk", [texts])):
        bodies = [
            json.dumps({"model": "model", "input": text, "encoding_format": "base64"}) for text in inputs
        ]
        (work / name).write_text("\n".join(bodies), encoding="utf-8")


def beside(
    bench: Bench, servers: list[Server], clients: tuple[int, ...], seconds: float, rounds: int
) -> None:
    """Closed loops, in which the systems take turns."""
    rows = []
    for requests in ("short", "mixed"):
        for n in clients:
            measured: dict[str, list[dict[str, Any]]] = {server.name: [] for server in servers}
            for number in range(rounds):
                for server in servers if number % 2 else servers[::-1]:
                    measured[server.name].append(bench.load(server, requests, clients=n, seconds=seconds))
            for name, lines in measured.items():
                pairs = zip(measured["gemel"], lines, strict=True)
                ratios = [own["per_second"] / max(line["per_second"], 1e-9) for own, line in pairs]
                rows.append([requests, str(n), name, *_medians(lines), f"{statistics.median(ratios):.2f}"])
    names = ["requests", "clients", "system", "per second", "p50 ms", "p99 ms", "gemel is faster by"]
    click.echo(format_table(names, rows))


def _medians(lines: list[dict[str, Any]]) -> list[str]:
    keys = ("per_second", "p50", "p99")
    return [f"{statistics.median(line.get(key, float('nan')) for line in lines):,.1f}" for key in keys]


def beside_bulk(bench: Bench, server: Server, seconds: float) -> None:
    """Single queries alone, and while another client sends thousands of texts at a time."""
    alone = bench.load(server, "short", clients=1, seconds=seconds)
    request = {"port": server.port, "requests": str(bench.work / "bulk"), "clients": 1, "rate": None}
    command = [sys.executable, str(LOAD), json.dumps({**request, "seconds": seconds + 1})]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        time.sleep(0.5)
        together = bench.load(server, "short", clients=1, seconds=seconds)
        bulk = json.loads(other.communicate()[0])
    ratio = together["p99"] / alone["p99"]
    click.echo(
        f"{server.name}: p99 of a single query {alone['p99']:.1f} ms alone, {together['p99']:.1f} ms beside "
        f"{bulk['per_second'] * BULK_TEXTS:,.0f} texts/s of bulk work: {ratio:.1f} times"
    )


def overload(bench: Bench, server: Server, seconds: float) -> None:
    """Four times as many requests as can be answered, whether or not others are."""
    capacity = bench.load(server, "short", clients=64, seconds=seconds)["per_second"]
    line = bench.load(server, "short", clients=0, seconds=seconds, rate=4 * capacity)
    accepted = f"p50 {line['p50']:.0f} ms, p99 {line['p99']:.0f} ms since they were due, "
    accepted += f"p99 {line['p99_since_sent']:.0f} ms since they were sent"
    click.echo(f"{server.name} at 4 x {capacity:,.0f} requests/s: {line['statuses']}; accepted: {accepted}")


def memory(bench: Bench, server: Server, n_requests: int) -> None:
    """How much memory is held after many requests."""
    rate = bench.load(server, "mixed", clients=32, seconds=5)["per_second"]
    before = server.memory_megabytes()
    line = bench.load(server, "mixed", clients=32, seconds=n_requests / rate)
    n = sum(line["statuses"].values())
    click.echo(
        f"{server.name}: {before:.0f} MB before, {server.memory_megabytes():.0f} MB after {n:,} requests"
    )


@click.command()
@click.option("--data", envvar="GEMEL_DATA", required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--model", default=None, help="A model folder or name.  [default: the default model]")
@click.option("--peers", type=click.Path(path_type=Path), help="The prefix of the peers' environments.")
@click.option(
    "--engine",
    "engines",
    multiple=True,
    type=click.Choice(list(ENGINES)),
    default=tuple(ENGINES),
    show_default=True,
    help="Of infinity.",
)
@click.option("--clients", "clients", multiple=True, type=int, default=(1, 8, 64, 256), show_default=True)
@click.option("--seconds", type=float, default=8.0, show_default=True, help="Of each load.")
@click.option("--rounds", type=int, default=3, show_default=True)
@click.option(
    "--memory-requests", type=int, default=0, show_default=True, help="Such as 200000; 0: leave out."
)
@click.option(
    "--results", type=click.Path(path_type=Path), help="A file for every measurement, as JSON lines."
)
def main(data: Path, model: str | None, peers: Path | None, **options: Any) -> None:
    """Measure, and print tables."""
    click.echo(f"{datetime.now(timezone.utc):%Y-%m-%d}, {os.cpu_count()} cores", err=True)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        write_requests(data, bench.work)
        measure(bench, starts(resolve(model), peers, options["engines"], bench.work), options)
    if options["results"]:
        text = "\n".join(json.dumps(line) for line in bench.lines)
        options["results"].write_text(text + "\n", encoding="utf-8")


def measure(bench: Bench, systems: list[Start], options: dict[str, Any]) -> None:
    """Everything, on servers that all run at once but are asked one at a time."""
    with ExitStack() as stack:
        servers = [stack.enter_context(running(start)) for start in systems]
        for server in servers:
            bench.load(server, "short", clients=4, seconds=min(2.0, options["seconds"]))  # to warm up
        beside(bench, servers, options["clients"], options["seconds"], options["rounds"])
        beside_bulk(bench, servers[0], options["seconds"])
        overload(bench, servers[0], options["seconds"])
        if options["memory_requests"]:
            memory(bench, servers[0], options["memory_requests"])


if __name__ == "__main__":
    main()
