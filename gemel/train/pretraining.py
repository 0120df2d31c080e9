"""Objectives that need more of a model than its vectors, and so are steps of their own; by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gemel.errors import InvalidInput
from gemel.model import SentenceEncoder
from gemel.train.condenser import CondenserStep
from gemel.train.denoising import DenoisingStep
from gemel.train.objectives.registry import PRETRAINED_BY
from gemel.train.settings import build_with_settings
from gemel.train.steps import Step

_STEPS: tuple[Callable[..., Step], ...] = (DenoisingStep, CondenserStep)
PRETRAINING = dict(zip(PRETRAINED_BY, _STEPS, strict=True))


def build_pretraining(name: str, model: SentenceEncoder, kind: str, settings: Mapping[str, Any]) -> Step:
    """The named step; it eats plain texts, for coCondenser documents."""
    if kind != "texts":
        raise InvalidInput(
            f"the objective {name!r} eats texts and the data holds {kind}; read its columns as texts with "
            'kind = "texts"'
        )
    return build_with_settings(name, PRETRAINING[name], settings, model)
