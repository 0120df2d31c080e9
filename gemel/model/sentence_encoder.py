"""The siamese encoder of the paper: a transformer, a pooling, one vector a sentence."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from gemel.checkpoint import (
    OFFSET_POSITIONS,
    EncoderSpec,
    Head,
    ModelFolder,
    read_weights,
    save_encoder_folder,
)
from gemel.contracts import OnTruncate, Vector, Vectors, checked_on_truncate, checked_texts
from gemel.errors import InvalidInput, InvalidModel, TruncationWarning
from gemel.model.backbone import arrays_of, choose_device, load_backbone, without_dropout
from gemel.model.batches import PaddedBatch, length_sorted_batches, padded
from gemel.model.packing import ATTENTION, PACKABLE, PackedBatch, pack
from gemel.model.pooling import pool, pooling_mask
from gemel.model.tail import Tail
from gemel.progress import progress_bar
from gemel.tokens import Ids, Pieces, TextTokenizer

TokenBatch = PackedBatch | PaddedBatch
STREAM_WINDOW = 8_192  # texts that a stream holds at once


class SentenceEncoder(nn.Module):
    """Texts into vectors, with torch; the weights can be trained."""

    engine = "torch"

    def __init__(
        self, folder: ModelFolder, *, device: str | None = None, on_truncate: OnTruncate = "warn"
    ) -> None:
        super().__init__()
        self.folder = folder
        self.on_truncate = checked_on_truncate(on_truncate)
        self._packs = folder.config.get("model_type") in PACKABLE
        attention = ATTENTION if self._packs else None
        self.backbone = load_backbone(folder, attention)
        self.tail = Tail(folder.spec)
        self.tail.load([read_weights((file,)) for file in folder.dense_files])
        self.tokenizer = TextTokenizer(
            folder.transformer,
            folder.config,
            lowercase=folder.spec.lowercase,
            max_tokens=folder.spec.max_tokens,
        )
        self._prompt_name: str | None = None
        self.to(choose_device(device))
        self.eval()

    def __repr__(self) -> str:
        spec = self.spec
        pooling = "+".join(spec.pooling.modes)
        return (
            f"SentenceEncoder({str(self.folder.path)!r}, dim={self.dim}, max_tokens={spec.max_tokens}, "
            f"pooling={pooling!r}, engine={self.engine!r}, device={str(self.device)!r})"
        )

    @property
    def spec(self) -> EncoderSpec:
        """Everything about this encoder that is not a weight."""
        return self.folder.spec

    @property
    def dim(self) -> int:
        """The length of every vector."""
        return self.spec.dim

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the folder that the weights came from."""
        return self.folder.fingerprint

    @property
    def settings(self) -> str:
        """What moves a vector besides the model: the prompt, and whether long texts are read whole."""
        return f"prompt {self.prompt!r}, long texts {'whole' if self.on_truncate == 'chunk' else 'cut'}"

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.backbone.parameters()).device

    @property
    def prompt(self) -> str:
        """The text that stands before every input; often none."""
        return self.spec.prompt_text(self._prompt_name)

    def with_prompt(self, name: str) -> SentenceEncoder:
        """The same encoder with one of the model's prompts before every text."""
        self.spec.prompt_text(name)
        return self._copy(_prompt_name=name)

    def with_on_truncate(self, policy: OnTruncate) -> SentenceEncoder:
        """The same encoder with another way to treat texts that are too long."""
        return self._copy(on_truncate=checked_on_truncate(policy))

    def with_dim(self, dim: int) -> SentenceEncoder:
        """The same encoder with its vectors cut to the first `dim` numbers."""
        return self._copy(folder=self.folder.with_spec(self.spec.truncated_to(dim)))

    def encode(self, texts: Sequence[str], *, show_progress: bool | None = None) -> Vectors:
        """One vector a text, in the order given: float32 (n, dim), also for n = 0."""
        texts = checked_texts(texts)
        pieces = self.tokenizer.pieces(texts, self.prompt, self.on_truncate)
        if pieces.n_truncated and self.on_truncate == "warn":
            warnings.warn(
                TruncationWarning(pieces.n_truncated, len(texts), self.spec.max_tokens), stacklevel=2
            )
        vectors = np.zeros((len(texts), self.dim), np.float32)
        if texts:
            self._encode_pieces(pieces, vectors, show_progress)
        return vectors

    def encode_one(self, text: str) -> Vector:
        """The vector of one text: float32 (dim,)."""
        if not isinstance(text, str):
            raise InvalidInput(f"encode_one takes one str and a {type(text).__name__} was given; use encode")
        vector: Vector = self.encode([text])[0]
        return vector

    def encode_iter(self, texts: Iterable[str]) -> Iterator[Vector]:
        """One vector a text, as a stream: the texts may come from a generator of any length."""
        if isinstance(texts, str):
            checked_texts(texts)
        remaining, n_before = iter(texts), 0
        while window := list(islice(remaining, STREAM_WINDOW)):
            try:
                vectors = self.encode(window, show_progress=False)
            except InvalidInput as error:
                raise InvalidInput(f"{error} (text 0 is text {n_before} of the stream)") from None
            yield from vectors
            n_before += len(window)

    def count_tokens(self, texts: Sequence[str]) -> npt.NDArray[np.int64]:
        """How many tokens each text has, special ones and prompt included, before any cut."""
        return self.tokenizer.count(checked_texts(texts), self.prompt)

    def forward(self, batch: TokenBatch) -> Tensor:
        """Token ids into sentence vectors (sequences, dim), with gradients."""
        vectors: Tensor = self.tail(self._pooled(batch))
        return vectors[:, : self.dim]

    def batch(self, sequences: Sequence[Ids]) -> TokenBatch:
        """Token sequences as one batch on this encoder's device: packed where the architecture allows."""
        config = self.folder.config
        vocabulary = config.get("vocab_size")
        largest = max(int(ids.max()) for ids in sequences)
        if isinstance(vocabulary, int) and largest >= vocabulary:
            raise InvalidModel(
                f"{self.folder.path}: the tokenizer gives token {largest}, but config.json has a vocabulary "
                f"of {vocabulary}; tokenizer and weights are from different models"
            )
        padding = int(config.get("pad_token_id") or 0)
        if self._packs:
            first_position = padding + 1 if config.get("model_type") in OFFSET_POSITIONS else 0
            return pack(sequences, first_position, self.device)
        return PaddedBatch(*padded(sequences, padding, self.device))

    def save(self, target: str | Path, *, head: Head | None = None, overwrite: bool = False) -> None:
        """Write a model folder that gemel, Sentence-Transformers and most servers open."""
        weights = arrays_of(self.backbone)
        dense = [arrays_of(layer) for layer in self.tail.dense]
        save_encoder_folder(target, self.folder, weights, dense, head=head, overwrite=overwrite)

    def _encode_pieces(self, pieces: Pieces, vectors: Vectors, show_progress: bool | None) -> None:
        """Fill in the vectors; a text of several pieces is their mean by token count, before the tail."""
        pooled_dim = self.spec.hidden_size * len(self.spec.pooling.modes)
        sums = None if pieces.one_each else np.zeros((pieces.n_texts, pooled_dim), np.float32)
        lengths = [len(ids) for ids in pieces.ids]
        bar_of = progress_bar(len(lengths), "encode", show_progress)
        with torch.inference_mode(), without_dropout(self), bar_of as bar:
            for rows in length_sorted_batches(lengths, self.device):
                pooled = self._pooled(self.batch([pieces.ids[row] for row in rows]))
                if sums is None:
                    vectors[rows] = self.tail(pooled)[:, : self.dim].cpu().numpy()
                else:
                    weighted = pooled.cpu().numpy() * pieces.weights[rows, None]
                    np.add.at(sums, pieces.owners[rows], weighted)
                bar.update(len(rows))
            if sums is not None:
                total = np.bincount(pieces.owners, pieces.weights, pieces.n_texts).astype(np.float32)
                merged = torch.from_numpy(sums / total[:, None]).to(self.device)
                vectors[:] = self.tail(merged)[:, : self.dim].cpu().numpy()

    def _pooled(self, batch: TokenBatch) -> Tensor:
        n_prompt, n_first, n_last = self._skipped_tokens()
        pooled = []
        for tokens, attention in batch.blocks(self.backbone):
            mask = pooling_mask(attention, n_prompt, 0)
            mean_mask = pooling_mask(attention, max(n_prompt, n_first), n_last)
            pooled.append(pool(tokens, mask, self.spec.pooling.modes, mean_mask))
        joined = torch.cat(pooled)
        return joined if batch.restore is None else joined[batch.restore]

    def _skipped_tokens(self) -> tuple[int, int, int]:
        """Tokens that the pooling leaves out: the prompt for all modes, the special ones for the means."""
        pooling, tokenizer = self.spec.pooling, self.tokenizer
        n_prompt = n_first = n_last = 0
        if not pooling.include_prompt and self.prompt:
            n_prompt = len(tokenizer.prefix) + tokenizer.prompt_tokens(self.prompt)
        if not pooling.include_special_tokens:
            n_first, n_last = len(tokenizer.prefix), len(tokenizer.suffix)
        return n_prompt, n_first, n_last

    def _copy(self, **changes: Any) -> SentenceEncoder:
        other = copy.copy(self)
        for name, value in changes.items():
            setattr(other, name, value)
        return other
