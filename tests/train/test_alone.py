"""One run at a time in a folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from training_process import run

from gemel.errors import InvalidInput


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
        with pytest.raises(InvalidInput, match=r"another process is training in .*run: wait"):
            run(tiny_bert, tmp_path / "run", "contrastive")
    finally:
        held.kill()
        held.communicate()
    assert run(tiny_bert, tmp_path / "run", "contrastive").is_complete  # a lock ends with its process
