"""Embeddings in fewer bits, as sentence-transformers packs them."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.adapters.sentence_transformers.tensors import array
from gemel.errors import InvalidInput

PRECISIONS = ("float32", "int8", "uint8", "binary", "ubinary")
FEW_ROWS = 100  # below that, the ranges of the numbers are a guess

logger = logging.getLogger(__name__)


def checked_precision(precision: str | None) -> str:
    """The precision of embeddings, or a sentence that lists the known ones."""
    if precision is not None and precision not in PRECISIONS:
        raise InvalidInput(f"precision is {precision!r}; expected one of {', '.join(PRECISIONS)}")
    return precision or "float32"


def quantize_embeddings(
    embeddings: Any,
    precision: str,
    ranges: npt.NDArray[Any] | None = None,
    calibration_embeddings: npt.NDArray[Any] | None = None,
) -> npt.NDArray[Any]:
    """The rows as float32, as one byte a number (of its range among the rows), or as one bit a number."""
    precision = checked_precision(precision)
    given = array(embeddings)
    if given.dtype in (np.uint8, np.int8):
        raise InvalidInput(f"the embeddings are {given.dtype} already; expected floats: give them unpacked")
    if precision == "float32":
        return given.astype(np.float32)
    if precision in ("binary", "ubinary"):
        bits = np.packbits(given > 0, axis=-1)
        signed = (bits ^ 0x80).view(np.int8)  # 128 less
        return bits if precision == "ubinary" else signed
    if ranges is None:
        ranges = _ranges(given, precision, calibration_embeddings)
    lowest, highest = np.asarray(ranges, np.float32)
    steps = (highest - lowest) / 255
    steps = np.where(steps == 0, 1, steps)
    values: npt.NDArray[Any] = np.clip(np.floor((given - lowest) / steps), 0, 255)
    return values.astype(np.uint8) if precision == "uint8" else (values - 128).astype(np.int8)


def _ranges(
    embeddings: npt.NDArray[Any], precision: str, calibration: npt.NDArray[Any] | None
) -> npt.NDArray[Any]:
    """The least and the largest of each number, among what was given to calibrate by, or else the rows."""
    known = embeddings if calibration is None else array(calibration)
    if calibration is None and (known.ndim == 1 or len(known) == 1):
        raise InvalidInput(
            f"{precision} needs the range of each number, and one embedding alone has none; give ranges or "
            "calibration_embeddings"
        )
    if not len(known):
        return np.zeros((2, known.shape[-1]), np.float32)
    if calibration is None and len(known) < FEW_ROWS:
        logger.warning(
            "%s ranges are taken from %d embeddings; give ranges or calibration_embeddings",
            precision,
            len(known),
        )
    return np.stack([known.min(axis=0), known.max(axis=0)])
