"""The encoder that runs on the native engine: no torch, no padding, the same bits in every batch."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from gemel import _native
from gemel.checkpoint import Dense, ModelFolder, read_weights, save_encoder_folder
from gemel.contracts import OnTruncate, Vectors
from gemel.engine.assembly import Assembly, EngineSettings, not_finite
from gemel.errors import InvalidInput
from gemel.progress import progress_bar
from gemel.text_encoder import FolderEncoder, Repeats
from gemel.tokens import Pieces

WINDOW = 8_192  # texts that are tokenised at once, while the window before them is encoded


class NativeEncoder(FolderEncoder):
    """Texts into vectors, on this machine's processor."""

    engine = "native"

    def __init__(
        self, folder: ModelFolder, settings: EngineSettings, *, on_truncate: OnTruncate = "warn"
    ) -> None:
        self._open_texts(folder, on_truncate)
        self.precision = settings.precision
        self._settings = settings
        self._open_engine()

    def _open_engine(self) -> None:
        folder = self.folder
        assembly = Assembly(folder.transformer, folder.config, folder.weight_files, self._settings)
        self._engine = assembly.build()
        self._operations = assembly.operations_per_token
        _add_tail(self._engine, folder)

    def __getstate__(self) -> dict[str, Any]:
        """Another process opens the folder anew: weights are not sent, only what they are known by."""
        _ = self.folder.fingerprint
        return {name: value for name, value in vars(self).items() if name != "_engine"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.folder = self.folder.reopened()
        with self.folder.seen.unchanged():
            self._open_engine()

    def _twin(self) -> NativeEncoder:
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other

    def __repr__(self) -> str:
        pooling = "+".join(self.spec.pooling.modes)
        return (
            f"NativeEncoder({str(self.folder.path)!r}, dim={self.dim}, max_tokens={self.spec.max_tokens}, "
            f"pooling={pooling!r}, engine='native', precision={self.precision!r}, "
            f"instruction_set={self.instruction_set!r}, threads={self.n_threads})"
        )

    @property
    def instruction_set(self) -> str:
        """Which of the engine's kernels compute."""
        return self._engine.instruction_set

    @property
    def n_threads(self) -> int:
        """How many threads compute."""
        return self._engine.n_threads

    @property
    def operations_per_token(self) -> int:
        """Multiplications and additions of the matrix products for one token."""
        return self._operations

    def save(self, target: str | Path, *, overwrite: bool = False) -> None:
        """Write a model folder that gemel, Sentence-Transformers and most servers open, in full precision."""
        with self.folder.seen.unchanged():
            weights = read_weights(self.folder.weight_files)
            dense = [read_weights((file,)) for file in self.folder.dense_files]
        save_encoder_folder(target, self.folder, weights, dense, overwrite=overwrite)
        self.note_saved(target)

    def _encode_texts(self, texts: list[str], vectors: Vectors, show_progress: bool | None) -> int:
        """Fill in the vectors; a text that occurs several times is encoded once."""
        repeats = Repeats(texts)
        try:
            cut = self._encode_distinct(repeats, vectors, show_progress)
        except InvalidInput:
            self.tokenizer.pieces(
                texts, self.prompt, self.on_truncate
            )  # the same error, naming the text given
            raise
        repeats.fill_in(vectors)
        return repeats.count(cut)

    def _encode_distinct(self, repeats: Repeats, vectors: Vectors, show_progress: bool | None) -> list[int]:
        """Fill in the vectors of texts that occur first; which of them were cut."""
        cut: list[int] = []
        with progress_bar(len(repeats.texts), "encode", show_progress) as bar:
            for start, pieces in self._tokenised(repeats.texts):
                with repeats.place(vectors, start, start + pieces.n_texts) as place:
                    self._encode_pieces(pieces, place)
                cut += [start + row for row in pieces.cut]
                bar.update(pieces.n_texts)
        return cut

    def _encode_pieces(self, pieces: Pieces, vectors: Vectors, show_progress: bool | None = None) -> None:
        if pieces.owners is None:
            self._run(pieces, "finished", vectors)
        else:
            self._engine.finish(self._merged(pieces), vectors)

    def _tokenised(self, texts: list[str]) -> Iterator[tuple[int, Pieces]]:
        """Windows of texts as token ids, each made while the one before it is encoded."""

        def tokenise(start: int) -> Pieces:
            return self.tokenizer.pieces(texts[start : start + WINDOW], self.prompt, self.on_truncate)

        if len(texts) <= WINDOW:
            yield 0, tokenise(0)
            return
        with ThreadPoolExecutor(1) as ahead:
            coming = ahead.submit(tokenise, 0)
            for start in range(0, len(texts), WINDOW):
                pieces = coming.result()
                if start + WINDOW < len(texts):
                    coming = ahead.submit(tokenise, start + WINDOW)
                yield start, pieces

    def encode_pieces(self, pieces: Pieces) -> Vectors:
        """One vector a text (n, dim), from its tokens: the same as `encode` gives for the text."""
        vectors = np.empty((pieces.n_texts, self.dim), np.float32)
        if pieces.n_texts:
            self._encode_pieces(pieces, vectors)
        return vectors

    def encode_tokens(self, pieces: Pieces) -> Vectors:
        """One vector a token (tokens, hidden_size), special ones included, before pooling."""
        vectors = np.empty((len(pieces.flat), self.spec.hidden_size), np.float32)
        if len(pieces.flat):
            self._run(pieces, "tokens", vectors)
        return vectors

    def _merged(self, pieces: Pieces) -> Vectors:
        """Of texts in several pieces, the mean of the pooled pieces by token count."""
        pooled_dim = self.spec.hidden_size * len(self.spec.pooling.modes)
        assert pieces.owners is not None
        assert pieces.weights is not None
        pooled = np.empty((len(pieces.owners), pooled_dim), np.float32)
        self._run(pieces, "pooled", pooled)
        sums = np.zeros((pieces.n_texts, pooled_dim), np.float32)
        np.add.at(sums, pieces.owners, pooled * pieces.weights[:, None])
        total = np.bincount(pieces.owners, pieces.weights, pieces.n_texts).astype(np.float32)
        merged: Vectors = sums / total[:, None]
        return merged

    def _run(self, pieces: Pieces, result: str, out: Vectors) -> None:
        self._check_vocabulary(int(pieces.flat.max()))
        modes, skipped = self.spec.pooling.modes, self._skipped_tokens()
        self._engine.encode(pieces.flat, pieces.starts, None, modes, skipped, result, out)


def _add_tail(engine: _native.Engine, folder: ModelFolder) -> None:
    files = iter(folder.dense_files)
    for layer in folder.spec.tail:
        if not isinstance(layer, Dense):
            engine.add_normalisation()
            continue
        file = next(files)
        tensors = {
            name: np.ascontiguousarray(array, np.float32) for name, array in read_weights((file,)).items()
        }
        for name, array in tensors.items():
            if not np.isfinite(array).all():
                raise not_finite(file.parent, name)
        engine.add_dense(
            tensors["linear.weight"],
            tensors.get("linear.bias"),
            layer.activation,
            layer.residual,
            tensors.get("residual.weight"),
        )
