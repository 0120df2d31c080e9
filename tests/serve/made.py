"""Tiny models to serve: unit vectors, prompts, a softmax head, a re-ranker."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gemel.checkpoint import Head, Normalise, read_encoder_folder, read_weights, save_encoder_folder
from gemel.loading import load_encoder, load_pair_classifier, load_reranker
from gemel.pair_scorer import PairScorer
from gemel.tasks.classify import PairClassifier
from gemel.text_encoder import FolderEncoder

LABELS = ("contradiction", "entailment", "neutral")


@dataclass(frozen=True)
class TinyModels:
    """The folders that the server has loaded, and the same models here."""

    encoder_folder: Path
    reranker_folder: Path

    def encoder(self) -> FolderEncoder:
        opened = load_encoder(self.encoder_folder, on_truncate="ignore")
        assert isinstance(opened, FolderEncoder)
        return opened

    def reranker(self) -> PairScorer:
        return load_reranker(self.reranker_folder)

    def classifier(self) -> PairClassifier:
        return load_pair_classifier(self.encoder_folder)


def save_tiny_encoder(source: Path, target: Path, *, seed: int = 0) -> None:
    """A folder with unit vectors, prompts and a softmax head; another seed gives another model."""
    folder = read_encoder_folder(source)
    prompts = {"query": "the man runs to ", "passage": "a big red house "}
    folder = folder.with_spec(replace(folder.spec, tail=(Normalise(),), prompts=prompts))
    generator = np.random.default_rng(seed)
    weights = dict(read_weights(folder.weight_files))
    if seed:
        name = "embeddings.word_embeddings.weight"
        weights[name] = generator.standard_normal(weights[name].shape).astype(np.float32)
    matrix = generator.standard_normal((len(LABELS), 3 * folder.spec.dim)).astype(np.float32)
    head = Head("softmax", ("u", "v", "|u-v|"), {"classifier.weight": matrix}, LABELS)
    save_encoder_folder(target, folder, weights, head=head, overwrite=True)
