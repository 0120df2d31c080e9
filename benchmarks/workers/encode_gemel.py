"""Encodes with gemel: its own engine, in int8 or float32."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from protocol import Encode, serve


def load(settings: dict[str, Any]) -> dict[str, Encode]:
    """The encoder, on one core only where the settings ask for it."""
    if settings.get("one_core"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    from gemel.loading import load_encoder

    encoder = load_encoder(
        settings["model"],
        precision=settings["precision"],
        device="cpu",
        threads=settings.get("threads"),
        on_truncate="ignore",
    )
    # Nothing is ever padded, so there is no batching to switch off: small calls are what is left to compare.
    return {"as is": partial(encoder.encode, show_progress=False)}


if __name__ == "__main__":
    serve(load, ["gemel", "numpy", "tokenizers"])
