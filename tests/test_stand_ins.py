"""The small models are the same in every process: what one run of the tests has seen, the next one sees."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TELL = "import sys; from stand_ins import _tokenizer; print(_tokenizer(sys.argv[1]).to_str())"


@pytest.mark.parametrize("architecture", ["bert", "mpnet", "roberta", "xlm-roberta"])
def test_vocabularies_are_the_same_in_every_process(architecture: str) -> None:
    told = {
        subprocess.run(
            [sys.executable, "-c", TELL, architecture],
            cwd=Path(__file__).parent,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "123"
    }
    assert len(told) == 1
