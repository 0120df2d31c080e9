"""A training run that a test kills: python training_process.py MODEL OUTPUT OBJECTIVE [resume]."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from stand_ins import sentences

from gemel.checkpoint import read_encoder_folder
from gemel.data.examples import Examples
from gemel.model import CrossEncoder, SentenceEncoder
from gemel.train import (
    CrossEncoderStep,
    SentenceEncoderStep,
    TrainConfig,
    TrainResult,
    build_objective,
    train,
)

KINDS = {
    "softmax": "classified pairs",
    "cosine": "scored pairs",
    "regression": "scored pairs",
    "triplet": "triplets",
    "contrastive": "triplets",
    "cosent": "scored pairs",
    "online-contrastive": "classified pairs",
    "batch-hard": "classified texts",
    "supervised-contrastive": "classified texts",
    "text-softmax": "classified texts",
    "pair-regression": "scored pairs",
    "pair-classification": "classified pairs",
}


def examples_of(kind: str, n: int = 60) -> Examples:
    names: tuple[str, ...] = ("first", "second")
    if kind == "triplets":
        names = ("anchor", "positive", "negative")
    elif kind.endswith("texts"):
        names = ("text",)
    columns = {name: sentences(n, seed, max_words=8) for seed, name in enumerate(names)}
    generator = np.random.default_rng(0)
    if kind == "scored pairs":
        return Examples(kind, columns, generator.random(n, np.float32))
    if kind.startswith("classified"):
        labels = ("contradiction", "entailment", "neutral")
        return Examples(kind, columns, generator.integers(0, 3, n), labels)
    return Examples(kind, columns)


def examples_for(name: str, n: int = 60) -> Examples:
    examples = examples_of(KINDS[name], n)
    if name != "online-contrastive":
        return examples
    assert examples.labels is not None
    return Examples(examples.kind, examples.columns, examples.labels % 2, ("0", "1"))


def step_for(folder: Path, name: str) -> SentenceEncoderStep | CrossEncoderStep:
    examples = examples_for(name)
    torch.manual_seed(1)
    if name.startswith("pair-"):
        labels = examples.label_names or ("score",)
        model = CrossEncoder.from_encoder(read_encoder_folder(folder), labels, device="cpu")
        objective = build_objective(name, examples.kind, dim=0, cross_encoder=True)
        return CrossEncoderStep(model, objective)
    encoder = SentenceEncoder(read_encoder_folder(folder), device="cpu")
    objective = build_objective(name, examples.kind, dim=encoder.dim, n_labels=len(examples.label_names))
    return SentenceEncoderStep(encoder, objective, examples.label_names)


CONFIG = TrainConfig(
    epochs=3,
    batch_size=4,
    learning_rate=1e-3,
    checkpoint_every=3,
    evaluate_every=5,
    accumulate=2,
    average_last=0.5,
)


def run(folder: Path, output: Path, name: str, *, resume: bool = False) -> TrainResult:
    torch.set_num_threads(1)
    step = step_for(folder, name)

    def validate(model: torch.nn.Module) -> float:
        return float(sum(parameter.detach().sum() for parameter in model.parameters()))

    examples = examples_for(name)
    return train(step, examples, output, CONFIG, validate=validate, resume=resume, show_progress=False)


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], resume="resume" in sys.argv)
