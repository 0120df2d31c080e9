"""A model folder to break."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gemel.checkpoint import Dense, Normalise, Pooling, read_encoder_folder, read_weights, save_encoder_folder


@pytest.fixture
def folder(tiny_bert: Path, tmp_path: Path) -> Path:
    """A Sentence-Transformers folder with a Dense layer, free to be damaged."""
    target = tmp_path / "model"
    plain = read_encoder_folder(tiny_bert)
    spec = plain.spec.__class__(
        hidden_size=32,
        max_tokens=20,
        pooling=Pooling(("cls", "mean")),
        tail=(Dense(64, 8), Normalise()),
        prompts={"query": "the "},
    )
    dense = {"linear.weight": np.ones((8, 64), np.float32), "linear.bias": np.zeros(8, np.float32)}
    save_encoder_folder(target, plain.with_spec(spec), read_weights(plain.weight_files), [dense])
    return target
