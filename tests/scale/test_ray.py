"""On a real Ray cluster, also with a node killed: complete, no row twice, the bits of one machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stand_ins import sentences

import gemel
from gemel.scale import EncodingSettings, encode_files
from gemel.scale.parts import open_parts
from gemel.tasks.corpus import Corpus

TESTS = Path(__file__).parent.parent

pytestmark = pytest.mark.extras


def on_a_cluster(*command: object) -> Any:
    pytest.importorskip("ray")
    done = subprocess.run(
        [sys.executable, TESTS / "scale_process.py", *map(str, command)],
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent}", "RAY_DEDUP_LOGS": "0"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_node_killed_in_the_middle_costs_no_row_and_no_bit(tiny_bert: Path, tmp_path: Path) -> None:
    lines = sentences(20_000, seed=1, max_words=12)
    (tmp_path / "texts.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    source = str(tmp_path / "texts.txt")
    told = on_a_cluster("encode", tiny_bert, source, tmp_path / "ray", 500)
    assert told["rows"] == 20_000
    assert told["workers_left"] == 1
    assert 10 <= told["parts_when_killed"] < 30
    assert told["broken_off"] >= 1  # the killed node was at a part, which was done again
    assert told["attempts"] == 40 + told["broken_off"]
    encode_files(tiny_bert, source, tmp_path / "local", settings=EncodingSettings(part_rows=500))
    local, ray = open_parts(tmp_path / "local"), open_parts(tmp_path / "ray")
    assert ray.ids == local.ids == list(range(20_000))
    assert np.array_equal(ray.vectors, local.vectors)
    names = [sorted(path.name for path in (tmp_path / place).iterdir()) for place in ("local", "ray")]
    assert names[0] == names[1]


def test_pairs_and_duplicates_are_those_of_one_machine(tmp_path: Path) -> None:
    generator = np.random.default_rng(4)
    rows = generator.normal(size=(1_500, 16))[generator.integers(0, 1_500, 6_000)]
    vectors = (rows + 0.1 * generator.normal(size=rows.shape)).astype(np.float32)
    np.save(tmp_path / "vectors.npy", vectors)
    told = on_a_cluster("compare", tmp_path / "vectors.npy", tmp_path / "found.npz")
    assert told["workers_left"] == 1
    found = np.load(tmp_path / "found.npz")
    corpus = Corpus([str(row) for row in range(6_000)], list(range(6_000)), vectors)
    kept = gemel.dedupe(corpus, threshold=0.9)
    assert np.array_equal(found["keepers"], kept.keepers)
    assert np.array_equal(found["scores"], kept.scores)
    for name, choice in (("best", {"n_pairs": 500}), ("above", {"at_least": 0.9})):
        blocks = list(gemel.mine(vectors, **choice))  # type: ignore[arg-type]
        columns = [np.stack([pairs.first, pairs.second, pairs.scores.view(np.int32)]) for pairs in blocks]
        assert np.array_equal(found[name], np.concatenate(columns, axis=1))
    assert found["above"].shape[1] > 1_000


def test_what_goes_wrong_on_a_cluster_is_told_in_our_words(tiny_bert: Path, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("the man " * 90 + "\n", encoding="utf-8")
    refused, small, lost = on_a_cluster("fail", tiny_bert, tmp_path / "long.txt", tmp_path / "out")["told"]
    assert "longer than" in refused
    assert "4 threads and the largest machine of the cluster has 1 cores" in small
    assert lost.startswith("no Ray cluster answers at 127.0.0.1:1")


def test_the_command_encodes_on_a_cluster_that_it_starts(tiny_bert: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    lines = sentences(300, seed=2, max_words=9)
    (tmp_path / "texts.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "gemel",
        "encode",
        "texts.txt",
        "-m",
        str(tiny_bert),
        "--part-rows",
        "100",
    ]
    for output, more in (("ray/", ["--runner", "ray"]), ("local/", [])):
        done = subprocess.run(
            [*command, "-o", output, *more],
            env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["parts"] == 3
    for part in (tmp_path / "local").glob("part-*"):
        assert part.read_bytes() == (tmp_path / "ray" / part.name).read_bytes()
