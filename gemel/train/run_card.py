"""What a run knows of itself, for the card of its model; a recipe, which knows more, writes another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gemel.checkpoint import EncoderSpec, read_encoder_folder, read_licence, special_tokens_note
from gemel.checkpoint.infersent import is_infersent_folder
from gemel.data.examples import Examples
from gemel.errors import InvalidModel
from gemel.model import CrossEncoder
from gemel.train.card import CardFacts
from gemel.train.config import TrainConfig
from gemel.train.mixing import MixedExamples
from gemel.train.result import TrainResult
from gemel.train.steps import Step

_HUB_CACHE = "models--"


def facts_of_run(
    step: Step,
    examples: Examples | MixedExamples,
    config: TrainConfig,
    result: TrainResult,
) -> CardFacts:
    """The facts of a run whose model is in a folder."""
    model, best_score = result.model, result.best_score
    spec = _spec(model)
    return CardFacts(
        name=model.parent.name,
        base_model=_started_from(step),
        licence=read_licence(model),  # that of the model it came from, which saving has kept
        objective=step.objective.describe(),
        losses=step.objective.losses(),
        truncations=step.objective.truncations(),
        n_examples=len(examples),
        data=_told(examples),
        steps=result.course,
        prompts={} if spec is None else {name: text for name, text in spec.prompts.items() if text},
        notes=() if spec is None else special_tokens_note(spec),
        # No folder of this machine.
        settings={**_shape(spec, step.model), **config.to_dict(), "tensorboard": None},
        scores={} if best_score is None else {"validation": best_score},
        is_cross_encoder=isinstance(step.model, CrossEncoder),
        labels=() if isinstance(examples, MixedExamples) else examples.label_names,
        is_infersent=is_infersent_folder(model),
    )


def _started_from(step: Step) -> str:
    """The name of the model on the hub, if it lies in the hub's cache, or its folder."""
    folder = getattr(step.model, "folder", None)
    if folder is None:
        return type(step.model).__name__
    hub = next((part for part in folder.path.parts if part.startswith(_HUB_CACHE)), None)
    return str(folder.path) if hub is None else hub.removeprefix(_HUB_CACHE).replace("--", "/")


def _spec(model: Path) -> EncoderSpec | None:
    try:
        return read_encoder_folder(model).spec
    except InvalidModel:  # a cross-encoder, or no transformer
        return None


def _shape(spec: EncoderSpec | None, model: object) -> dict[str, Any]:
    """What the model makes of a text, where its folder says so."""
    if isinstance(model, CrossEncoder):
        return {"max_tokens": model.folder.max_tokens}
    if spec is None:
        return {}
    return {"pooling": "+".join(spec.pooling.modes), "max_tokens": spec.max_tokens}


def _told(examples: Examples | MixedExamples) -> str:
    """Where the examples are from, without the folders of this machine."""
    parts = examples.parts.values() if isinstance(examples, MixedExamples) else [examples]
    return ", ".join(part.public_origin for part in parts)
