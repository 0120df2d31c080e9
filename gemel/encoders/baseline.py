"""What every encoder without a transformer does around its table: repeats, windows, texts it cannot read."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from typing import TypeVar

import numpy as np

from gemel.contracts import OnTruncate, Vectors, checked_on_truncate
from gemel.errors import InvalidInput, UnknownWordsWarning
from gemel.progress import progress_bar
from gemel.text_encoder import Repeats, TextEncoder
from gemel.tokens.pieces import not_unicode

Self = TypeVar("Self", bound="Baseline")


class Baseline(TextEncoder):
    """An encoder that computes in numpy: it reads texts of any length, and has no prompts and no devices."""

    engine = "numpy"
    precision = "float32"
    window_texts = 1_024  # texts at a time: enough for numpy, few enough for the cache
    _n_kept: int | None = None  # of the numbers of each vector

    @property
    @abstractmethod
    def full_dim(self) -> int:
        """The length of a vector before any cut by `with_dim`."""

    @property
    def dim(self) -> int:
        """The length of every vector."""
        return self.full_dim if self._n_kept is None else self._n_kept

    @property
    @abstractmethod
    def full_fingerprint(self) -> str:
        """A hash of all that was learnt or chosen, but for a cut by `with_dim`."""

    @property
    def fingerprint(self) -> str:
        """The same with the cut: vectors of other lengths are others."""
        if self.dim == self.full_dim:
            return self.full_fingerprint
        return hashlib.sha256(f"{self.full_fingerprint}, {self.dim} numbers".encode()).hexdigest()[:32]

    @property
    def settings(self) -> str:
        """What moves a vector besides the model: the engine, and whether vectors are cut."""
        return f"{self.engine} {self.precision}, {self.dim} of {self.full_dim} numbers"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dim={self.dim}, engine={self.engine!r})"

    def with_prompt(self: Self, name: str) -> Self:
        """Refused: no encoder of this kind has prompts."""
        raise InvalidInput(f"this model has no prompt {name!r}; it has none")

    def with_on_truncate(self: Self, policy: OnTruncate) -> Self:
        """The same encoder: every policy is kept by one that never cuts a text."""
        checked_on_truncate(policy)
        return self

    def with_dim(self: Self, dim: int) -> Self:
        """The same encoder with its vectors cut to the first `dim` numbers."""
        if not hasattr(dim, "__index__") or not 1 <= dim <= self.full_dim:
            raise InvalidInput(
                f"vectors of {self.full_dim} numbers cannot be cut to {dim!r}; choose 1 to {self.full_dim}"
            )
        return self._copy(_n_kept=dim)

    @abstractmethod
    def _encode_window(self, texts: list[str], vectors: Vectors) -> list[int]:
        """Fill in the vectors (texts, full_dim), which hold zeros; the rows of texts without a known word."""

    def _encode_texts(self, texts: list[str], vectors: Vectors, show_progress: bool | None) -> int:
        """Fill in the vectors; a text that occurs several times is encoded once."""
        repeats = Repeats(texts)
        try:
            unknown = self._encode_distinct(repeats, vectors, show_progress)
        except UnicodeEncodeError:
            raise not_unicode(texts, 0) from None
        repeats.fill_in(vectors)
        return repeats.count(unknown)

    def _encode_distinct(self, repeats: Repeats, vectors: Vectors, show_progress: bool | None) -> list[int]:
        unknown: list[int] = []
        texts = repeats.texts
        with progress_bar(len(texts), "encode", show_progress) as bar:
            for start in range(0, len(texts), self.window_texts):
                window = texts[start : start + self.window_texts]
                full = np.zeros((len(window), self.full_dim), np.float32)
                unknown += [start + row for row in self._encode_window(window, full)]
                with repeats.place(vectors, start, start + len(window)) as place:
                    place[:] = full[:, : self.dim]
                bar.update(len(window))
        return unknown

    def _warning(self, n_flawed: int, n_texts: int) -> Warning | None:
        return UnknownWordsWarning(n_flawed, n_texts)


def unit_rows(vectors: Vectors) -> None:
    """Scale every row to unit length, in place; a row of zeros stays zero."""
    # In float32 throughout: a sum that numpy has to convert goes through a buffer, whose borders depend on
    # the rows before, and with them the last bit.
    lengths = np.sqrt(np.square(vectors).sum(axis=1))
    vectors /= np.where(lengths > 0, lengths, np.float32(1))[:, None]
