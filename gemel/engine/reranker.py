"""The cross-encoder on the native engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from gemel.checkpoint import RerankerFolder
from gemel.engine.assembly import Assembly, EngineSettings
from gemel.pair_scorer import PairScorer, Scores
from gemel.progress import progress_bar
from gemel.tokens import Ids, Pieces

WINDOW = 1_024  # pairs between two steps of the progress bar


class NativeReranker(PairScorer):
    """Text pairs into scores, on this machine's processor."""

    engine = "native"

    def __init__(self, folder: RerankerFolder, settings: EngineSettings) -> None:
        self._open_pairs(folder)
        self.precision = settings.precision
        self._settings = settings
        self._open_engine()

    def _open_engine(self) -> None:
        folder = self.folder
        assembly = Assembly(folder.transformer, folder.config, folder.weight_files, self._settings)
        self._engine = assembly.build()
        assembly.add_classifier(len(folder.labels), folder.activation)
        has_types = "embeddings.token_type_embeddings.weight" in assembly.tensors
        self._wants_types = has_types and folder.gives_types

    def __getstate__(self) -> dict[str, Any]:
        """Another process opens the folder anew: weights are not sent, only what they are known by."""
        _ = self.folder.fingerprint
        return {name: value for name, value in vars(self).items() if name != "_engine"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.folder = self.folder.reopened()
        with self.folder.seen.unchanged():
            self._open_engine()

    def __repr__(self) -> str:
        return (
            f"NativeReranker({str(self.folder.path)!r}, labels={list(self.labels)}, engine='native', "
            f"precision={self.precision!r}, instruction_set={self._engine.instruction_set!r}, "
            f"threads={self._engine.n_threads})"
        )

    def _score(self, ids: list[Ids], types: list[Ids], scores: Scores, show_progress: bool | None) -> None:
        with progress_bar(len(ids), "score", show_progress, "pairs") as bar:
            for start in range(0, len(ids), WINDOW):
                window = slice(start, start + WINDOW)
                pieces = Pieces.of(ids[window], len(ids[window]))
                kinds = np.concatenate(types[window]) if self._wants_types else None
                rows = scores[window]
                self._engine.encode(pieces.flat, pieces.starts, kinds, ["cls"], [0, 0, 0], "finished", rows)
                bar.update(pieces.n_texts)
