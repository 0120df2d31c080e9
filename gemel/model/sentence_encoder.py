"""The siamese encoder of the paper: a transformer, a pooling, one vector a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from gemel.checkpoint import Head, ModelFolder, first_position, read_weights, save_encoder_folder
from gemel.contracts import OnTruncate, Vectors
from gemel.model.backbone import arrays_of, choose_device, load_backbone, without_dropout
from gemel.model.batches import PaddedBatch, length_sorted_batches, padded
from gemel.model.packing import ATTENTION, PACKABLE, PackedBatch, pack
from gemel.model.pooling import pool, pooling_mask
from gemel.model.tail import Tail
from gemel.progress import progress_bar
from gemel.text_encoder import FolderEncoder
from gemel.tokens import Ids, Pieces

TokenBatch = PackedBatch | PaddedBatch


class SentenceEncoder(nn.Module, FolderEncoder):
    """Texts into vectors, with torch; the weights can be trained."""

    engine = "torch"
    precision = "float32"

    def __init__(
        self, folder: ModelFolder, *, device: str | None = None, on_truncate: OnTruncate = "warn"
    ) -> None:
        super().__init__()
        self._open_texts(folder, on_truncate)
        self._packs = folder.config.get("model_type") in PACKABLE
        attention = ATTENTION if self._packs else None
        self.backbone = load_backbone(folder, attention)
        self.tail = Tail(folder.spec)
        self.tail.load([read_weights((file,)) for file in folder.dense_files])
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
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.backbone.parameters()).device

    def forward(self, batch: TokenBatch) -> Tensor:
        """Token ids into sentence vectors (sequences, dim), with gradients."""
        vectors: Tensor = self.tail(self._pooled(batch))
        return vectors[:, : self.dim]

    def batch(self, sequences: Sequence[Ids]) -> TokenBatch:
        """Token sequences as one batch on this encoder's device: packed where the architecture allows."""
        config = self.folder.config
        self._check_vocabulary(max(int(ids.max()) for ids in sequences))
        if self._packs:
            return pack(sequences, first_position(config), self.device)
        return PaddedBatch(*padded(sequences, int(config.get("pad_token_id") or 0), self.device))

    def save(self, target: str | Path, *, head: Head | None = None, overwrite: bool = False) -> None:
        """Write a model folder that gemel, Sentence-Transformers and most servers open."""
        weights = arrays_of(self.backbone)
        dense = [arrays_of(layer) for layer in self.tail.dense]
        save_encoder_folder(target, self.folder, weights, dense, head=head, overwrite=overwrite)
        self.note_saved(target)

    def encode_pieces(self, pieces: Pieces) -> Vectors:
        """One vector a text (n, dim), from its tokens: the same as `encode` gives for the text."""
        vectors = np.zeros((pieces.n_texts, self.dim), np.float32)
        if pieces.n_texts:
            self._encode_pieces(pieces, vectors, show_progress=False)
        return vectors

    def encode_tokens(self, pieces: Pieces) -> Vectors:
        """One vector a token (tokens, hidden_size), special ones included, before pooling."""
        vectors = np.zeros((len(pieces.flat), self.spec.hidden_size), np.float32)
        with torch.inference_mode(), without_dropout(self):
            for start, ids in zip(pieces.starts.tolist(), pieces.ids, strict=False):
                ((tokens, _),) = self.batch([ids]).blocks(self.backbone)
                vectors[start : start + len(ids)] = tokens[0, : len(ids)].cpu().numpy()
        return vectors

    def _encode_texts(self, texts: list[str], vectors: Vectors, show_progress: bool | None) -> int:
        pieces = self.tokenizer.pieces(texts, self.prompt, self.on_truncate)
        self._encode_pieces(pieces, vectors, show_progress)
        return pieces.n_truncated

    def _encode_pieces(self, pieces: Pieces, vectors: Vectors, show_progress: bool | None) -> None:
        """Fill in the vectors; a text of several pieces is their mean by token count, before the tail."""
        pooled_dim = self.spec.hidden_size * len(self.spec.pooling.modes)
        owners, weights, sequences = pieces.owners, pieces.weights, pieces.ids
        sums = None if owners is None else np.zeros((pieces.n_texts, pooled_dim), np.float32)
        lengths = [len(ids) for ids in sequences]
        bar_of = progress_bar(len(lengths), "encode", show_progress)
        with torch.inference_mode(), without_dropout(self), bar_of as bar:
            for rows in length_sorted_batches(lengths, self.device):
                pooled = self._pooled(self.batch([sequences[row] for row in rows]))
                if sums is None or owners is None or weights is None:
                    vectors[rows] = self.tail(pooled)[:, : self.dim].cpu().numpy()
                else:
                    np.add.at(sums, owners[rows], pooled.cpu().numpy() * weights[rows, None])
                bar.update(len(rows))
            if sums is not None and owners is not None:
                total = np.bincount(owners, weights, pieces.n_texts).astype(np.float32)
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
