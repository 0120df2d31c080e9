"""Whatever ends a writer: all that was acknowledged is there, nothing is half there, and search works."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stand_ins import ToyEncoder

from gemel.errors import WriteFailed
from gemel.index import Collection, KnownModel, database

HERE = Path(__file__).parent


def run(script: str, *, library: Path | None = None, **settings: Any) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (HERE, HERE.parent)))}
    if library is not None:
        environment["LD_PRELOAD"] = str(library)
        settings["library"] = library
    command = [sys.executable, str(HERE / script), json.dumps(settings, default=str)]
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=2_400, check=False
    )
    assert ended.stderr == ""
    outcome: dict[str, Any] = json.loads(ended.stdout)
    return outcome


def test_a_killed_writer_loses_nothing(tmp_path: Path) -> None:
    outcome = run("collection_process.py", folder=tmp_path, n_kills=10, seed=1)
    assert outcome["wrong"] == []
    assert outcome["n_killed"] == 10
    assert outcome["n_records"] > 0


@pytest.mark.extras
def test_a_writer_killed_two_hundred_times_loses_nothing(tmp_path: Path) -> None:
    outcome = run("collection_process.py", folder=tmp_path, n_kills=200, seed=2)
    assert outcome["wrong"] == []
    assert outcome["n_killed"] == 200
    assert outcome["interrupted"].keys() == {"add", "remove", "compact", "index"}


@pytest.mark.extras
def test_a_writer_killed_at_one_step_after_the_other_loses_nothing(tmp_path: Path) -> None:
    outcome = run("collection_process.py", folder=tmp_path, steps=True, stride=11)
    assert outcome["wrong"] == []
    assert outcome["n_steps"] > 800
    assert outcome["interrupted"].keys() == {"add", "remove", "compact", "index"}


@pytest.mark.parametrize("max_file_bytes", [20_000, 150_000])
def test_a_file_that_may_not_grow_is_told_and_loses_nothing(tmp_path: Path, max_file_bytes: int) -> None:
    outcome = run("collection_process.py", folder=tmp_path, max_file_bytes=max_file_bytes)
    assert outcome["wrong"] == []
    assert "what was acknowledged is safe" in outcome["message"]


@pytest.mark.extras
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["ENOSPC", "EIO"])
def test_a_disk_that_fails_at_any_call_is_told_and_loses_nothing(tmp_path: Path, number: int) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("the failing disk needs a C compiler and Linux")
    library = tmp_path / "failing_disk.so"
    source = HERE / "failing_disk.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    (tmp_path / "work").mkdir()
    outcome = run("starved_process.py", library=library, folder=tmp_path / "work", errno=number, stride=2)
    assert outcome["wrong"] == []
    assert outcome["n_told"] > 50


@contextmanager
def no_file_larger_than(n_bytes: int) -> Iterator[None]:
    """As if there were no more room than that on the disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_collection_that_there_is_no_room_for_is_told_and_leaves_nothing(
    tmp_path: Path, toy_encoder: ToyEncoder
) -> None:
    with no_file_larger_than(8_192), pytest.raises(WriteFailed, match="could not be made"):
        Collection.create(tmp_path / "c", toy_encoder)
    assert list(tmp_path.iterdir()) == []
    Collection.create(tmp_path / "c", toy_encoder).close()


def test_full_text_that_there_is_no_room_to_examine_is_told(tmp_path: Path) -> None:
    texts = [" ".join(f"{n}x{word}" for word in range(300)) for n in range(2_000)]  # more than SQLite caches
    with Collection.create(tmp_path / "c", KnownModel("known", 1), text_search="word") as made:
        made.add_vectors(texts, np.ones((len(texts), 1)), fingerprint="known")
        with no_file_larger_than(1_000_000):
            (finding,) = made.doctor(repair=False).findings
        assert finding.what.startswith("the full text by word was not examined: ")
        assert made.doctor(repair=False).is_sound


def test_readers_are_never_disturbed_by_a_writer(tmp_path: Path) -> None:
    outcome = run("collection_process.py", folder=tmp_path, seconds=3)
    assert outcome["wrong"] == []
    assert min(outcome["n_changes"], outcome["n_searches"]) > 10


def test_vectors_reach_the_disk_before_the_commit_that_speaks_of_them(
    tmp_path: Path, toy_encoder: ToyEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a power cut would show: the order in which things are made to last."""
    steps: list[str] = []
    fsync, connect = os.fsync, database.Database._connect

    def noted_fsync(descriptor: int) -> None:
        fsync(descriptor)
        steps.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    def noted_connect(self: database.Database) -> Any:
        connection = connect(self)
        assert connection.execute("pragma synchronous").fetchone() == (2,)
        assert connection.execute("pragma journal_mode").fetchone() == ("wal",)
        connection.set_trace_callback(lambda sql: steps.append(sql) if sql == "commit" else None)
        return connection

    Collection.create(tmp_path / "c", toy_encoder).close()
    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(database.Database, "_connect", noted_connect)
    with Collection.open(tmp_path / "c", toy_encoder) as made:
        made.add(["the dog", "the cat"], [1, 2])
        assert steps == ["vectors-1.bin", "c", "commit"]
        steps.clear()
        made.remove([1])
        assert steps == ["commit"]
        made.compact()
        assert steps[1:4] == ["vectors-2.bin", "c", "commit"]
        steps.clear()
        made.build_index()
        assert [step.split("-")[0] for step in steps] == [".index", "c", "commit", "c"]
