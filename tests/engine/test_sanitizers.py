"""The native engine under sanitizers: no stray access, no undefined behaviour, no race."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.extras
@pytest.mark.parametrize("sanitizers", ["address,undefined", "thread"])
def test_the_engine_is_clean(sanitizers: str, tmp_path: Path) -> None:
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("cmake is not installed: this test builds the engine by itself")
    configure = [cmake, "-S", ROOT, "-B", tmp_path, f"-DGEMEL_SANITIZERS={sanitizers}"]
    for command in (configure, [cmake, "--build", tmp_path, "--parallel", str(os.cpu_count())]):
        built = subprocess.run(command, capture_output=True, text=True, timeout=900)
        assert built.returncode == 0, built.stdout + built.stderr
    done = subprocess.run([tmp_path / "checks"], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "int8: the same bits in nine ways" in done.stdout
    assert "pairs: 0 differences" in done.stdout
    assert done.stderr == ""
