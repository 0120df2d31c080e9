"""Encodes with OpenVINO: batches of 32, sorted by length, on one stream or on several at once."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from protocol import BATCH_SIZE, Encode, serve


class Runner:
    """A compiled model that gives finished vectors, and its tokenizer."""

    def __init__(self, settings: dict[str, Any]) -> None:
        import openvino
        from tokenizers import Tokenizer

        options = {"NUM_STREAMS": str(settings["n_streams"]), "INFERENCE_NUM_THREADS": settings["threads"]}
        self._model = openvino.Core().compile_model(settings["file"], "CPU", options)
        self._names = [port.get_any_name() for port in self._model.inputs]
        self._queue = openvino.AsyncInferQueue(self._model, settings["n_streams"] + 1)  # one is being filled
        self._queue.set_callback(self._keep)
        self._tokenizer = Tokenizer.from_file(settings["tokenizer"])
        self._tokenizer.enable_truncation(settings["max_tokens"])
        self._tokenizer.no_padding()
        self._padding = settings["padding"]
        self._dim = int(self._model.output(0).partial_shape[1].get_length())

    def encode(self, texts: list[str], is_sorted: bool) -> npt.NDArray[np.float32]:
        """One vector a text, in the order given."""
        sequences = [encoding.ids for encoding in self._tokenizer.encode_batch_fast(texts)]
        order = np.arange(len(texts))
        if is_sorted:  # the longest first, as sentence-transformers does
            order = np.argsort([-len(sequence) for sequence in sequences], kind="stable")
        self._vectors = np.empty((len(texts), self._dim), np.float32)
        for start in range(0, len(texts), BATCH_SIZE):
            rows = order[start : start + BATCH_SIZE]
            self._queue.start_async(self._padded([sequences[row] for row in rows]), rows)
        self._queue.wait_all()
        return self._vectors

    def _padded(self, sequences: list[list[int]]) -> dict[str, npt.NDArray[np.int64]]:
        shape = (len(sequences), max(map(len, sequences)))
        ids, mask = np.full(shape, self._padding, np.int64), np.zeros(shape, np.int64)
        for row, sequence in enumerate(sequences):
            ids[row, : len(sequence)] = sequence
            mask[row, : len(sequence)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros(shape, np.int64)}
        return {name: given[name] for name in self._names}

    def _keep(self, request: Any, rows: npt.NDArray[np.int64]) -> None:
        self._vectors[rows] = request.get_output_tensor(0).data


def load(settings: dict[str, Any]) -> dict[str, Encode]:
    """The model with sorting and without."""
    runner = Runner(settings)
    return {
        "as is": partial(runner.encode, is_sorted=True),
        "no smart batching": partial(runner.encode, is_sorted=False),
    }


if __name__ == "__main__":
    serve(load, ["openvino", "nncf", "tokenizers", "numpy"])
