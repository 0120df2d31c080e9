"""The cross-encoder that the paper compares with: both texts are read at once, one score a pair."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification

from gemel.checkpoint import ModelFolder, RerankerFolder, save_reranker_folder
from gemel.model.backbone import accepts, arrays_of, choose_device, load_transformer, without_dropout
from gemel.model.batches import length_sorted_batches, padded
from gemel.model.tail import ACTIVATIONS
from gemel.pair_scorer import PairScorer, Scores
from gemel.progress import progress_bar
from gemel.tokens import Ids


class CrossEncoder(nn.Module, PairScorer):
    """Text pairs into scores, with torch; the weights can be trained."""

    engine = "torch"
    precision = "float32"

    def __init__(self, folder: RerankerFolder, *, device: str | None = None) -> None:
        super().__init__()
        self._open(folder, load_transformer(AutoModelForSequenceClassification, folder.transformer), device)

    @classmethod
    def from_encoder(
        cls, folder: ModelFolder, labels: Sequence[str] = ("score",), *, device: str | None = None
    ) -> CrossEncoder:
        """An untrained head on a pretrained transformer: where the training of a cross-encoder starts."""
        model = load_transformer(
            AutoModelForSequenceClassification,
            folder.transformer,
            with_new_head=True,
            **_settings_of_head(labels),
        )
        reranker = RerankerFolder(
            path=folder.path,
            transformer=folder.transformer,
            config=folder.config,
            tokenizer_config=folder.tokenizer_config,
            max_tokens=folder.spec.max_tokens,
            weight_files=folder.weight_files,
            lowercase=folder.spec.lowercase,
        )
        return cls._untrained(reranker, model, labels, device)

    @classmethod
    def with_new_head(
        cls, folder: RerankerFolder, labels: Sequence[str], *, device: str | None = None
    ) -> CrossEncoder:
        """An untrained head on the transformer of a cross-encoder that has learnt something else before."""
        trained: Any = load_transformer(AutoModelForSequenceClassification, folder.transformer)
        config = copy.deepcopy(trained.config)
        config.update(_settings_of_head(labels))
        model = type(trained)(config)
        pretrained = trained.base_model_prefix
        getattr(model, pretrained).load_state_dict(getattr(trained, pretrained).state_dict())
        return cls._untrained(folder, model.eval(), labels, device)

    @classmethod
    def _untrained(
        cls, folder: RerankerFolder, model: nn.Module, labels: Sequence[str], device: str | None
    ) -> CrossEncoder:
        encoder = cls.__new__(cls)
        nn.Module.__init__(encoder)
        settings: Any = model.config
        reranker = replace(
            folder,
            config={**settings.to_diff_dict(), "architectures": [type(model).__name__]},
            activation="sigmoid" if len(labels) == 1 else "identity",
            labels=tuple(labels),
        )
        encoder._open(reranker, model, device)
        return encoder

    def _open(self, folder: RerankerFolder, transformer: nn.Module, device: str | None) -> None:
        self._open_pairs(folder)
        self.transformer = transformer
        self.activation = ACTIVATIONS[folder.activation]()
        self._wants_types = accepts(transformer, "token_type_ids") and folder.gives_types
        self.to(choose_device(device))
        self.eval()

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.transformer.parameters()).device

    def _score(self, ids: list[Ids], types: list[Ids], scores: Scores, show_progress: bool | None) -> None:
        bar_of = progress_bar(len(ids), "score", show_progress, "pairs")
        with torch.inference_mode(), without_dropout(self), bar_of as bar:
            for rows in length_sorted_batches([len(sequence) for sequence in ids], self.device):
                batch = self.batch([ids[row] for row in rows], [types[row] for row in rows])
                scores[rows] = self.activation(self(**batch)).cpu().numpy()
                bar.update(len(rows))

    def forward(self, **batch: Tensor) -> Tensor:
        """Token ids, mask and types (batch, tokens) into raw scores (batch, labels), with gradients."""
        logits: Tensor = self.transformer(**batch).logits
        return logits

    def save(self, target: str | Path, *, overwrite: bool = False) -> None:
        """Write a model folder that gemel, Sentence-Transformers and most servers open."""
        save_reranker_folder(target, self.folder, arrays_of(self.transformer), overwrite=overwrite)
        self.note_saved(target)

    def batch(self, ids: list[Ids], types: list[Ids]) -> dict[str, Tensor]:
        """Token ids and types of pairs as one padded batch on this model's device."""
        input_ids, mask = padded(ids, int(self.folder.config.get("pad_token_id") or 0), self.device)
        batch = {"input_ids": input_ids, "attention_mask": mask}
        return {**batch, "token_type_ids": padded(types, 0, self.device)[0]} if self._wants_types else batch


def _settings_of_head(labels: Sequence[str]) -> dict[str, Any]:
    """What transformers calls the labels."""
    names = dict(enumerate(labels))
    return {
        "num_labels": len(names),
        "id2label": names,
        "label2id": {name: index for index, name in names.items()},
    }
