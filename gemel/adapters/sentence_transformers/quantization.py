"""`sentence_transformers.quantization` under its name there."""

from __future__ import annotations

from typing import Any

from gemel.adapters.sentence_transformers.missing import refused
from gemel.adapters.sentence_transformers.quantisation import quantize_embeddings

__all__ = ["quantize_embeddings"]


def __getattr__(name: str) -> Any:
    raise refused(__name__, name)
