"""What a caller hands to a training, checked before anything is read."""

from __future__ import annotations

from torch import nn

from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.train.config import TrainConfig
from gemel.train.mixing import MixedExamples, MultiTaskStep
from gemel.train.steps import SentenceEncoderStep


def check_arguments(step: object, examples: object, config: object) -> None:
    """Refuse what cannot be trained, trained on or trained by, with what was expected in its place."""
    if not isinstance(step, nn.Module) or not hasattr(step, "loss"):
        raise InvalidInput(
            f"train was given a {type(step).__name__} to train; expected a step, such as "
            "SentenceEncoderStep(load_trainable(), objective)"
        )
    if not isinstance(examples, Examples | MixedExamples):
        raise InvalidInput(
            f"train was given a {type(examples).__name__} as examples; expected Examples, such as "
            "read_examples(file) gives"
        )
    if config is not None and not isinstance(config, TrainConfig):
        raise InvalidInput(
            f"train was given a {type(config).__name__} as its config; expected a TrainConfig(...)"
        )


def name_classes(step: object, examples: Examples | MixedExamples) -> None:
    """Let the heads of a step know what their classes are called, where nobody has said it."""
    if isinstance(step, SentenceEncoderStep) and isinstance(examples, Examples):
        step.labels = step.said_labels or examples.label_names
    elif isinstance(step, MultiTaskStep) and isinstance(examples, MixedExamples):
        parts = examples.parts.items()
        step.labels = {name: step.said_labels.get(name) or part.label_names for name, part in parts}
