"""Encodes with fastembed's runner on an ONNX file of one's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from protocol import BATCH_SIZE, Encode, serve

NAME = "benchmark/model"  # never asked for on the hub: the files are here


def load(settings: dict[str, Any]) -> dict[str, Encode]:
    """The model as it is installed: batches of 256 as the texts come. It never sorts."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    TextEmbedding.add_custom_model(
        model=NAME,
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf=NAME),
        dim=settings["dim"],
        model_file=settings["file"],
    )
    model = TextEmbedding(NAME, specific_model_path=settings["model"], local_files_only=True)

    def encode(texts: list[str]) -> npt.NDArray[np.float32]:
        return np.stack(list(model.embed(texts)))

    def encode_small_batches(texts: list[str]) -> npt.NDArray[np.float32]:
        return np.stack(list(model.embed(texts, batch_size=BATCH_SIZE)))

    return {"as is": encode, "no smart batching": encode_small_batches}


if __name__ == "__main__":
    serve(load, ["fastembed", "onnxruntime", "tokenizers", "numpy"])
