"""A Ray cluster of several nodes on this machine, of which one is killed: scale_process.py WHAT ARGUMENTS.

In a process of its own: Ray leaves threads, warnings and an atexit behind.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ray.cluster_utils import Cluster

from gemel.scale import EncodingSettings, RayRunner, encode_files


@contextmanager
def cluster_of(n_nodes: int) -> Iterator[tuple[Any, list[Any]]]:
    """A head without cores, and nodes of one core each."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(n_nodes)]
    cluster.wait_for_nodes()
    try:
        yield cluster, nodes
    finally:
        import ray

        ray.shutdown()
        cluster.shutdown()


def encode_with_a_node_killed(model: str, source: str, output: str, part_rows: int) -> dict[str, Any]:
    """Encode on two nodes; one is killed as soon as parts appear, while it is at work."""
    with cluster_of(2) as (cluster, nodes):
        runner = RayRunner(cluster.address)
        killed: list[int] = []

        def kill() -> None:
            while len(list(Path(output).glob("part-*"))) < 2:
                time.sleep(0.01)
            cluster.remove_node(nodes[0], allow_graceful=False)
            killed.append(len(list(Path(output).glob("part-*"))))

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        settings = EncodingSettings(part_rows=part_rows)
        began = time.perf_counter()
        done = encode_files(model, source, output, settings=settings, runner=runner)
        killer.join(60)
        return {
            "rows": done.rows,
            "parts": done.parts,
            "parts_when_killed": killed,
            "workers_left": runner.n_workers(),
            "seconds": time.perf_counter() - began,
        }


if __name__ == "__main__":
    _, what, *arguments = sys.argv
    if what == "encode":
        model, source, output, part_rows = arguments
        print(json.dumps(encode_with_a_node_killed(model, source, output, int(part_rows))))  # noqa: T201
