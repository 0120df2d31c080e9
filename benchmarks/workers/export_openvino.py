"""Writes an int8 model for OpenVINO: `export_openvino.py ONNX TOKENIZER TEXTS MAX_TOKENS TARGET`.

Static quantisation, calibrated on real sentences (TEXTS is a JSON list). Pooling and normalisation become
part of the graph, so that the peer does nothing in Python that it can do natively.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import nncf
import numpy as np
import openvino
from openvino import opset13 as ops
from tokenizers import Tokenizer


def with_pooling(model: openvino.Model) -> openvino.Model:
    """The model with the mean over each text's tokens, of length 1, as its only output."""
    mask_input = next(port for port in model.inputs if "attention_mask" in port.names)
    mask = ops.unsqueeze(ops.convert(mask_input, "f32"), ops.constant(np.int64(2)))
    one, two = ops.constant(np.array([1], np.int64)), ops.constant(np.float32(2))
    tokens = model.output(0).get_node().input_value(0)
    total = ops.reduce_sum(ops.multiply(tokens, mask), one)
    mean = ops.divide(total, ops.reduce_sum(mask, one))
    length = ops.sqrt(ops.reduce_sum(ops.power(mean, two), one, keep_dims=True))
    vectors = ops.divide(mean, ops.maximum(length, ops.constant(np.float32(1e-12))))
    return openvino.Model([ops.result(vectors)], model.get_parameters(), "encoder")


def inputs_of(tokenizer: Tokenizer, text: str, names: list[str]) -> dict[str, Any]:
    ids = np.array([tokenizer.encode(text).ids], np.int64)
    given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    return {name: given[name] for name in names}


def export(onnx: str, tokenizer_file: str, texts_file: str, max_tokens: int, target: str) -> None:
    """Convert, quantise and save."""
    tokenizer = Tokenizer.from_file(tokenizer_file)
    tokenizer.enable_truncation(max_tokens)
    tokenizer.no_padding()
    model = with_pooling(openvino.Core().read_model(onnx))
    names = [port.get_any_name() for port in model.inputs]
    texts = json.loads(Path(texts_file).read_text(encoding="utf-8"))
    calibration = nncf.Dataset(texts, lambda text: inputs_of(tokenizer, text, names))
    quantised = nncf.quantize(
        model, calibration, subset_size=len(texts), model_type=nncf.ModelType.TRANSFORMER
    )
    openvino.save_model(quantised, target, compress_to_fp16=False)


if __name__ == "__main__":
    export(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
