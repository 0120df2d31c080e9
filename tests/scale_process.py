"""A Ray cluster of several nodes on this machine, of which one is killed: scale_process.py WHAT ARGUMENTS.

In a process of its own: Ray leaves threads, warnings and an atexit behind.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray.cluster_utils import Cluster

from gemel.errors import InvalidInput, ProcessLost
from gemel.index import Record
from gemel.scale import EncodingSettings, RayRunner, dedupe, encode_files, fill, mine
from gemel.scale.parts import EncoderChoice
from gemel.similarity import Pairs
from gemel.tasks.corpus import Corpus
from gemel.tasks.passages import Chunking


@contextmanager
def cluster_of(n_nodes: int) -> Iterator[tuple[Any, list[Any]]]:
    """A head without cores, and nodes of one core each."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(wait=False, num_cpus=1) for _ in range(n_nodes)]
    cluster.wait_for_nodes(timeout=180)
    try:
        yield cluster, nodes
    finally:
        ray.shutdown()
        cluster.shutdown()


def workers_left(runner: RayRunner) -> int:
    """How many are left of two; Ray takes some seconds to believe that a node is gone."""
    deadline = time.monotonic() + 180
    while runner.n_workers() > 1 and time.monotonic() < deadline:
        time.sleep(0.5)
    return runner.n_workers()


class WatchedRunner(RayRunner):
    """Notes who is at which piece of work, and lets it take a while."""

    def __init__(self, address: str, notes: Path) -> None:
        super().__init__(address)
        self.notes = notes

    def worker_of(self, node: str) -> int:
        """The process that is at work on a node, or 0."""
        for note in self.notes.glob(f"{node}-*"):
            with suppress(FileNotFoundError):  # it is done by now
                if not note.suffix:
                    return int(note.read_text() or 0)
        return 0

    def run(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        notes = self.notes

        def watched(item: Any) -> Any:
            note = notes / f"{ray.get_runtime_context().get_node_id()}-{item.number}-{uuid.uuid4().hex}"
            note.write_text(str(os.getpid()))
            time.sleep(0.3)
            result = work(item)
            note.rename(note.with_suffix(".done"))
            return result

        return super().run(watched, items)


def encode_with_a_node_killed(model: str, source: str, output: str, part_rows: int) -> dict[str, Any]:
    """Encode on two nodes; one is killed when a quarter is done, while it is at work."""
    with cluster_of(2) as (cluster, nodes):
        notes = Path(f"{output}-attempts")
        notes.mkdir()
        runner = WatchedRunner(cluster.address, notes)
        killed: list[int] = []

        def kill_at(n_done: int, n_total: int) -> None:
            worker = runner.worker_of(nodes[0].node_id)  # 0 if the node is at no part: then the next time
            if n_done >= n_total // 4 and worker and not killed:
                os.kill(worker, signal.SIGKILL)  # Ray kills the node's manager; a machine dies as a whole
                cluster.remove_node(nodes[0], allow_graceful=False)
                killed.append(len(list(Path(output).glob("part-*"))))

        settings = EncodingSettings(part_rows=part_rows)
        done = encode_files(model, source, output, settings=settings, runner=runner, on_progress=kill_at)
        return {
            "rows": done.rows,
            "parts_when_killed": killed[0],
            "attempts": sum(1 for _ in notes.iterdir()),
            "broken_off": sum(1 for note in notes.iterdir() if not note.suffix),
            "workers_left": workers_left(runner),
        }


def fill_with_a_node_killed(model: str, source: str, address: str) -> dict[str, Any]:
    """Fill a collection on two nodes; one is killed when a few windows are stored. Then fill it again."""
    texts = Path(source).read_text(encoding="utf-8").splitlines()
    documents = [Record(row, text, {"row": row}) for row, text in enumerate(texts)]
    with cluster_of(2) as (cluster, nodes):
        runner = RayRunner(cluster.address)
        killed: list[int] = []

        def kill_at(n_done: int) -> None:
            if not killed:
                cluster.remove_node(nodes[0], allow_graceful=False)
                killed.append(n_done)

        chosen = Chunking(32), EncoderChoice(model)
        fill(address, documents, *chosen, runner=runner, on_progress=kill_at)
        again = fill(address, documents, *chosen, runner=runner)
        return {
            "killed_at": killed[0],
            "unchanged": again.n_unchanged,
            "again": len(again),
            "encoded_again": again.n_encoded,
            "workers_left": workers_left(runner),
        }


def compare(vectors_file: str, output: str) -> dict[str, Any]:
    """Pairs and duplicates of a file of vectors, on two nodes; one is killed while they are compared."""
    vectors = np.load(vectors_file)
    corpus = Corpus([str(row) for row in range(len(vectors))], list(range(len(vectors))), vectors)
    with cluster_of(2) as (cluster, nodes):
        runner = RayRunner(cluster.address)
        best = joined(mine(vectors, n_pairs=500, runner=runner, block_rows=1_000))

        def kill_at(n_done: int, n_total: int) -> None:
            if n_done == 3:
                cluster.remove_node(nodes[0], allow_graceful=False)

        above = joined(mine(vectors, at_least=0.9, runner=runner, block_rows=1_000, on_progress=kill_at))
        kept = dedupe(corpus, threshold=0.9, runner=runner, block_rows=2_000)
        np.savez(output, best=best, above=above, keepers=kept.keepers, scores=kept.scores)
        return {"workers_left": workers_left(runner)}


def joined(blocks: Iterable[Pairs]) -> Any:
    columns = [np.stack([pairs.first, pairs.second, pairs.scores.view(np.int32)]) for pairs in blocks]
    return np.concatenate(columns, axis=1)


def fail(model: str, source: str, output: str) -> dict[str, Any]:
    """What is told when a worker refuses a text, when no machine is large enough, and when none answers."""
    told = []
    with cluster_of(1) as (cluster, _):
        settings = EncodingSettings(on_truncate="error")
        try:
            encode_files(model, source, output, settings=settings, runner=RayRunner(cluster.address))
        except InvalidInput as error:
            told.append(str(error))
        try:
            RayRunner(cluster.address, threads=4)
        except InvalidInput as error:
            told.append(str(error))
    try:
        RayRunner("127.0.0.1:1")
    except ProcessLost as error:
        told.append(str(error))
    return {"told": told}


if __name__ == "__main__":
    _, what, *arguments = sys.argv
    if what == "encode":
        model, source, output, part_rows = arguments
        result = encode_with_a_node_killed(model, source, output, int(part_rows))
    else:
        result = {"compare": compare, "fail": fail, "fill": fill_with_a_node_killed}[what](*arguments)
    print(json.dumps(result))  # noqa: T201
