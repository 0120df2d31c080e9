"""Writes a model folder for onnxruntime, in float32 and in int8: `export_onnx.py MODEL TARGET MAX_TOKENS`.

sentence-transformers does the work; the quantisation is its own, dynamic, for AVX-512 VNNI.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from sentence_transformers import SentenceTransformer, export_dynamic_quantized_onnx_model


def export(model_folder: str, target: Path, max_tokens: int) -> None:
    """Fill the target folder, with the tokenizer told where sentence-transformers would cut."""
    model = SentenceTransformer(model_folder, device="cpu", backend="onnx", model_kwargs={"export": True})
    model.save_pretrained(str(target))
    file = target / "tokenizer_config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    config.update(model_max_length=max_tokens, max_length=max_tokens)
    file.write_text(json.dumps(config, indent=2), encoding="utf-8")
    # Last: this file says that the export is whole.
    export_dynamic_quantized_onnx_model(model, "avx512_vnni", str(target))


if __name__ == "__main__":
    export(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
