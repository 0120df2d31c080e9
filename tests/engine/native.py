"""Encoders of every precision and instruction set, for the tests of the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gemel import _native
from gemel.checkpoint import EncoderSpec, ModelFolder, read_encoder_folder
from gemel.engine import EngineSettings, NativeEncoder

INSTRUCTION_SETS = _native.instruction_sets()
PRECISIONS = ("int8", "float32")


def changed(folder: Path, **changes: Any) -> ModelFolder:
    model = read_encoder_folder(folder)
    return model.with_spec(EncoderSpec(**{**vars(model.spec), **changes}))


def native(
    model: ModelFolder | Path,
    precision: str = "float32",
    instruction_set: str = "",
    threads: int = 1,
    tokens_at_once: int = 0,
) -> NativeEncoder:
    folder = model if isinstance(model, ModelFolder) else read_encoder_folder(model)
    return NativeEncoder(folder, EngineSettings(precision, instruction_set, threads, tokens_at_once))


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
