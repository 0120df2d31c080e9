"""Encoding on a Ray cluster beside plain encoding on the same cores, and with a node killed in the middle.

    python benchmarks/scale.py --data DATA [--sentences 200000] [--rounds 3] [--model FOLDER]

A cluster of one-core nodes, as many as there are cores, stands on this machine. Plain and clustered runs
take turns: one process with all cores that writes one file, and workers that write parts. Both are timed
from the first text read to the last vector written, with the model loaded and the workers started. Then a
node is added and, when a quarter is done, one is killed: the output must be complete, hold every row once,
and be that of the plain run bit for bit.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import click
import numpy as np

from gemel import _native
from gemel.data.stored_vectors import open_vectors
from gemel.data.texts import TextSource
from gemel.loading import load_encoder
from gemel.scale import EncodingSettings, RayRunner, encode_files
from gemel.tasks.encode import encode_file

OnProgress = Callable[[int, int], object]

WARM_UP_SENTENCES = 2_000


@contextmanager
def cluster_of(n_nodes: int) -> Iterator[tuple[Any, list[Any]]]:
    """A head without cores, and nodes of one core each."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        nodes = [cluster.add_node(num_cpus=1) for _ in range(n_nodes)]
        cluster.wait_for_nodes()
        yield cluster, nodes
    finally:
        ray.shutdown()
        cluster.shutdown()


class Bench:
    """The texts, and the two ways to encode them."""

    def __init__(self, work: Path, model: str | None, part_rows: int, n_cores: int) -> None:
        self.work, self.model, self.n_cores = work, model, n_cores
        self.settings = EncodingSettings(part_rows=part_rows)
        self.encoder = load_encoder(model, threads=n_cores)
        self.n_runs = 0

    def write_texts(self, data: Path, n_sentences: int) -> None:
        """The texts to encode, and a few to warm up with."""
        source = TextSource(str(data / "sentences_en" / "sentences_open.tsv.gz"), format="tsv")
        lines = [" ".join(record.text.split()) + "\n" for record in islice(source.records(), n_sentences)]
        (self.work / "texts.txt").write_text("".join(lines), encoding="utf-8")
        (self.work / "few.txt").write_text("".join(lines[:WARM_UP_SENTENCES]), encoding="utf-8")

    def plain(self, name: str = "texts.txt") -> tuple[Path, float]:
        """One process writes one file, as `gemel encode` does: where it is, and the seconds."""
        output, began = self._output().with_suffix(".parquet"), time.perf_counter()
        encode_file(self.encoder, TextSource(self.work / name), output)
        return output, time.perf_counter() - began

    def on_ray(
        self, runner: RayRunner, on_progress: OnProgress | None = None, name: str = "texts.txt"
    ) -> tuple[Path, float]:
        """The workers of a cluster write parts: where they are, and the seconds."""
        output, began = self._output(), time.perf_counter()
        source, settings = str(self.work / name), self.settings
        encode_files(self.model, source, output, settings=settings, runner=runner, on_progress=on_progress)
        return output, time.perf_counter() - began

    def warm_up(self, runner: RayRunner) -> None:
        """Let every worker open the model."""
        few = EncodingSettings(part_rows=WARM_UP_SENTENCES // 8)
        encode_files(self.model, str(self.work / "few.txt"), self._output(), settings=few, runner=runner)
        self.plain("few.txt")

    def _output(self) -> Path:
        self.n_runs += 1
        return self.work / f"vectors-{self.n_runs}"


def overhead(bench: Bench, rounds: int) -> list[dict[str, float]]:
    """Plain and clustered runs in turns; the outputs are compared and removed."""
    lines = []
    with cluster_of(bench.n_cores) as (cluster, _):
        runner = RayRunner(cluster.address, threads=1)
        bench.warm_up(runner)
        for number in range(rounds):
            ways: list[tuple[str, Callable[[], tuple[Path, float]]]]
            ways = [("plain", bench.plain), ("ray", lambda: bench.on_ray(runner))]
            runs = {name: way() for name, way in (ways if number % 2 else reversed(ways))}
            seconds = {name: runs[name][1] for name in ("plain", "ray")}
            same = same_bits(runs["plain"][0], runs["ray"][0])
            lines.append({**seconds, "ratio": seconds["ray"] / seconds["plain"], "same_bits": same})
            click.echo(json.dumps(lines[-1]), err=True)
            runs["plain"][0].unlink()
            shutil.rmtree(runs["ray"][0])
    return lines


def with_a_node_killed(bench: Bench) -> dict[str, Any]:
    """One more node than there are cores; one is killed when a quarter of the rows is done."""
    with cluster_of(bench.n_cores + 1) as (cluster, nodes):
        runner = RayRunner(cluster.address, threads=1)
        bench.warm_up(runner)
        killed: list[int] = []

        def kill_at(n_done: int, n_total: int) -> None:
            if n_done >= n_total // 4 and not killed:
                cluster.remove_node(nodes[0], allow_graceful=False)
                killed.append(n_done)

        output, seconds = bench.on_ray(runner, kill_at)
    plain, plain_seconds = bench.plain()
    found = open_vectors(output)
    return {
        "rows": len(found.vectors),
        "rows_when_killed": killed[0],
        "every_row_once": found.ids == list(range(len(found.vectors))),
        "same_bits": same_bits(plain, output),
        "seconds": seconds,
        "plain_seconds": plain_seconds,
    }


def same_bits(one: Path, other: Path) -> bool:
    """Whether two files or folders of vectors hold the same rows."""
    a, b = open_vectors(one), open_vectors(other)
    return a.ids == b.ids and bool(np.array_equal(a.vectors, b.vectors))


@click.command()
@click.option("--data", envvar="GEMEL_DATA", required=True, help="The folder of data sets.")
@click.option("--model", default=None, help="A model folder or name.  [default: the default model]")
@click.option("--sentences", "n_sentences", type=int, default=200_000, show_default=True)
@click.option("--part-rows", type=int, default=4_096, show_default=True)
@click.option("--rounds", type=int, default=3, show_default=True)
@click.option("--cores", type=int, default=None, help="[default: all that may be used]")
def main(
    data: str, model: str | None, n_sentences: int, part_rows: int, rounds: int, cores: int | None
) -> None:
    """Measure what Ray costs, and what a lost node does."""
    n_cores = cores or _native.usable_cores()
    with tempfile.TemporaryDirectory(prefix="gemel-scale-") as work:
        bench = Bench(Path(work), model, part_rows, n_cores)
        bench.write_texts(Path(data), n_sentences)
        lines = overhead(bench, rounds)
        lost = with_a_node_killed(bench)
    ratio = float(np.median([line["ratio"] for line in lines]))
    report = {"sentences": n_sentences, "cores": n_cores, "part_rows": part_rows, "rounds": lines}
    click.echo(json.dumps({**report, "median_ratio": ratio, "node_killed": lost}, indent=2))


if __name__ == "__main__":
    main()
