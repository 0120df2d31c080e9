"""One run at a time in a folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from training_process import run

from gemel.errors import InvalidInput
from gemel.train.alone import alone_in


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def test_two_processes_do_not_train_in_one_folder(tiny_bert: Path, tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from gemel.train.alone import alone_in\n"
        "with alone_in(Path(sys.argv[1])): print('held', flush=True); time.sleep(600)"
    )
    held = subprocess.Popen([sys.executable, "-c", program, tmp_path / "run"], stdout=subprocess.PIPE)
    try:
        assert held.stdout is not None
        assert held.stdout.readline() == b"held\n"
        with pytest.raises(InvalidInput, match=r"another training is going on in .*run: wait"):
            run(tiny_bert, tmp_path / "run", "contrastive")
    finally:
        held.kill()
        held.communicate()
    assert run(tiny_bert, tmp_path / "run", "contrastive").is_complete  # a lock ends with its process


def test_two_threads_do_not_train_in_one_folder(tmp_path: Path) -> None:
    def refused() -> str:
        with pytest.raises(InvalidInput, match="another training is going on") as told, alone_in(tmp_path):
            raise AssertionError
        return str(told.value)

    with alone_in(tmp_path), alone_in(tmp_path), ThreadPoolExecutor(1) as pool:
        assert pool.submit(refused).result()
    with alone_in(tmp_path):
        assert tmp_path.is_dir()


def test_a_child_does_not_hold_what_its_parent_held(tmp_path: Path) -> None:
    program = (
        "import os, sys, time; from pathlib import Path; from gemel.train.alone import alone_in\n"
        "with alone_in(Path(sys.argv[1])):\n"
        "    if os.fork() == 0:\n"
        "        print(os.getpid(), flush=True)\n"
        "    time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    try:
        parent.kill()
        parent.wait()
        with alone_in(tmp_path):
            os.kill(child, 0)  # it lives
    finally:
        os.kill(child, signal.SIGKILL)
        parent.stdout.close()


def test_a_folder_in_which_nothing_was_left_is_taken_away(tmp_path: Path) -> None:
    with alone_in(tmp_path / "new"):
        assert (tmp_path / "new").is_dir()
    assert not (tmp_path / "new").exists()
    with alone_in(tmp_path / "new"):
        (tmp_path / "new" / "file").touch()
    assert (tmp_path / "new" / "file").exists()
    with (
        pytest.raises(InvalidInput, match="file is a file; expected a folder"),
        alone_in(tmp_path / "new/file"),
    ):
        raise AssertionError
