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

from gemel.scale import EncodingSettings, encode_files
from gemel.scale.parts import open_parts

TESTS = Path(__file__).parent.parent

pytestmark = pytest.mark.extras


def on_a_cluster(*command: object) -> Any:
    pytest.importorskip("ray")
    done = subprocess.run(
        [sys.executable, TESTS / "scale_process.py", *map(str, command)],
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent}", "RAY_DEDUP_LOGS": "0"},
        capture_output=True,
        text=True,
        timeout=300,
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
    assert 2 <= told["parts_when_killed"][0] < 40
    encode_files(tiny_bert, source, tmp_path / "local", settings=EncodingSettings(part_rows=500))
    local, ray = open_parts(tmp_path / "local"), open_parts(tmp_path / "ray")
    assert ray.ids == local.ids == list(range(20_000))
    assert np.array_equal(ray.vectors, local.vectors)
    names = [sorted(path.name for path in (tmp_path / place).iterdir()) for place in ("local", "ray")]
    assert names[0] == names[1]
