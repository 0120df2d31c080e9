"""model2vec opens gemel's static tables and gives the same vectors."""

from __future__ import annotations

import os
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from encoders.made import write_model2vec
from stand_ins import sentences, write_json

from gemel import load_encoder
from gemel.encoders import open_static
from gemel.errors import UnknownWordsWarning
from gemel.train.static import StaticConfig, distil_static

pytestmark = pytest.mark.extras

TEXTS = [*sentences(60, seed=1, max_words=7), "", "Unknowable WORDS, here!", "the dog " * 700, "한국어"]
LONG = 62  # the dog


def their_vectors(folder: Path, work: Path) -> np.ndarray:
    python = Path(f"{os.environ.get('GEMEL_PEERS', '.venv-peers')}-model2vec") / "bin" / "python"
    assert python.exists(), f"{python} is missing: `make test-extras` makes it"
    job = work / "job.json"
    write_json(job, {"folder": str(folder), "output": str(work / "theirs.npy"), "texts": TEXTS})
    worker = Path(__file__).with_name("model2vec_worker.py")
    subprocess.run([python, worker, job], check=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    vectors: np.ndarray = np.load(work / "theirs.npy")
    return vectors


def assert_same(theirs: np.ndarray, ours: np.ndarray) -> None:
    """Short texts alike to a few digits; a long text's rows are added in float32 there, in float64 here."""
    lost_in_a_long_sum = len(TEXTS[LONG].split()) * np.finfo(np.float32).eps
    np.testing.assert_allclose(np.delete(theirs, LONG, axis=0), np.delete(ours, LONG, axis=0), atol=1e-6)
    np.testing.assert_allclose(theirs[LONG], ours[LONG], atol=lost_in_a_long_sum)


def our_vectors(folder: Path) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownWordsWarning)
        return load_encoder(folder).encode(TEXTS)


@pytest.mark.parametrize("architecture", ["bert", "roberta", "xlm-roberta"])
def test_a_distilled_table_is_the_same_in_model2vec(
    architecture: str, tiny_model: Callable[..., Path], tmp_path: Path
) -> None:
    teacher = load_encoder(tiny_model(architecture), on_truncate="ignore")
    made = distil_static(teacher, sentences(200, seed=2), StaticConfig(dim=16))
    made.save(tmp_path / "table", base_model="tiny")
    assert_same(their_vectors(tmp_path / "table", tmp_path), our_vectors(tmp_path / "table"))


@pytest.mark.parametrize("quantised", [False, True])
def test_a_saved_table_with_shared_rows_is_the_same_in_model2vec(quantised: bool, tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    open_static(write_model2vec(tmp_path / "made", quantised=quantised)).save(tmp_path / "saved")
    assert_same(their_vectors(tmp_path / "saved", tmp_path), our_vectors(tmp_path / "saved"))
