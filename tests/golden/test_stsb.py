"""Published figures, from the published weights and the real data."""

from __future__ import annotations

from pathlib import Path

import pytest
from scipy.stats import spearmanr

from gemel import load_encoder
from gemel.similarity import pairwise


def test_the_default_model_scores_what_is_published_on_stsb(real_data: Path, default_weights: Path) -> None:
    lines = (real_data / "stsb" / "test.tsv").read_text(encoding="utf-8").split("\n")[:-1]
    header = lines[0].split("\t")
    rows = [dict(zip(header, line.split("\t"), strict=True)) for line in lines[1:]]
    assert len(rows) == 1_379
    encoder = load_encoder(default_weights, precision="float32", on_truncate="error")
    first = encoder.encode([row["sentence1"] for row in rows])
    second = encoder.encode([row["sentence2"] for row in rows])
    correlation = spearmanr(pairwise(first, second), [float(row["score"]) for row in rows]).statistic
    assert 100 * correlation == pytest.approx(82.03, abs=0.03)
