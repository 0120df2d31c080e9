"""What every cross-encoder does around its engine: checks, tokens, order."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gemel.checkpoint import RerankerFolder, read_reranker_folder
from gemel.contracts import checked_pairs, checked_texts
from gemel.errors import InvalidInput, TruncationWarning
from gemel.progress import progress_bar
from gemel.tokens import Ids, PairTokenizer

Scores = npt.NDArray[np.float32]


class PairScorer(ABC):
    """Text pairs into scores, whichever engine computes them."""

    engine: str
    precision: str
    folder: RerankerFolder
    tokenizer: PairTokenizer

    def _open_pairs(self, folder: RerankerFolder) -> None:
        self.folder = folder
        self.tokenizer = PairTokenizer(
            folder.transformer, folder.config, lowercase=folder.lowercase, max_tokens=folder.max_tokens
        )

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the folder that the weights came from."""
        return self.folder.fingerprint

    @property
    def labels(self) -> tuple[str, ...]:
        """What each score stands for."""
        return self.folder.labels

    def note_saved(self, target: str | Path) -> None:
        """Go on with the new files where this very model was just saved into its own folder."""
        if Path(target).resolve() == self.folder.path.resolve():
            saved, own = read_reranker_folder(target), self.folder
            self.folder = replace(saved, max_tokens=own.max_tokens, activation=own.activation)

    def score(self, pairs: Sequence[tuple[str, str]], *, show_progress: bool | None = None) -> Scores:
        """One score a pair (n,), or one a label (n, labels); larger is better."""
        pairs = checked_pairs(pairs)
        scores = np.zeros((len(pairs), len(self.labels)), np.float32)
        n_truncated = self._score_windows(pairs, scores, show_progress)
        if n_truncated:
            warnings.warn(
                TruncationWarning(n_truncated, len(pairs), self.folder.max_tokens, "pairs"), stacklevel=2
            )
        return scores[:, 0] if len(self.labels) == 1 else scores

    def _score_windows(self, pairs: list[tuple[str, str]], scores: Scores, show_progress: bool | None) -> int:
        """Fill in the scores, by turns: the tokens of all pairs would take far more memory than the pairs."""
        windows, n_truncated = self.tokenizer.windows(pairs), 0
        with progress_bar(len(pairs), "score", show_progress if len(windows) > 1 else False, "pairs") as bar:
            for window in windows:
                ids, types, n_cut = self.tokenizer.pieces(pairs[window], window.start)
                self._score(ids, types, scores[window], show_progress if len(windows) == 1 else False)
                n_truncated += n_cut
                bar.update(len(ids))
        return n_truncated

    def tokenise(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[Ids], list[Ids], int]:
        """Token ids and token types of each pair as this model reads them, and how many were cut."""
        return self.tokenizer.pieces(checked_pairs(pairs))

    def score_tokens(self, ids: list[Ids], types: list[Ids]) -> Scores:
        """The scores (n, labels) of tokenised pairs: the same as `score` gives for the pairs."""
        scores = np.zeros((len(ids), len(self.labels)), np.float32)
        if ids:
            self._score(ids, types, scores, False)
        return scores

    def rank(self, query: str, texts: Sequence[str]) -> npt.NDArray[np.int64]:
        """The rows of the texts, the best fit for the query first."""
        if len(self.labels) != 1:
            raise InvalidInput(f"ranking needs one score a pair; this model gives {', '.join(self.labels)}")
        scores = self.score([(query, text) for text in checked_texts(texts)])
        return np.argsort(-scores, kind="stable")

    @abstractmethod
    def _score(self, ids: list[Ids], types: list[Ids], scores: Scores, show_progress: bool | None) -> None:
        """Fill in the scores (n, labels) of tokenised pairs."""
