"""Objectives that need more of a model than its vectors, and so are steps of their own; by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gemel.errors import InvalidInput
from gemel.model import SentenceEncoder
from gemel.train.condenser import CondenserStep
from gemel.train.denoising import DenoisingStep
from gemel.train.steps import Step

PRETRAINING: dict[str, type[DenoisingStep] | type[CondenserStep]] = {
    "denoising": DenoisingStep,
    "cocondenser": CondenserStep,
}


def build_pretraining(name: str, model: SentenceEncoder, kind: str, settings: Mapping[str, Any]) -> Step:
    """The named step; it eats plain texts, for coCondenser documents."""
    if kind != "texts":
        raise InvalidInput(
            f"the objective {name!r} eats texts and the data holds {kind}; read its columns as texts with "
            'kind = "texts"'
        )
    try:
        return PRETRAINING[name](model, **settings)
    except TypeError as error:
        raise InvalidInput(f"the objective {name!r} does not take these settings: {error}") from None
