"""What every adapter needs: a model by its name or as it is, with the prompts of either side."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from gemel.contracts import DOCUMENT_PROMPTS, QUERY_PROMPTS, Encoder, Reranker
from gemel.errors import InvalidInput
from gemel.loading import load_encoder, load_reranker

EncoderLike: TypeAlias = "Encoder | str | os.PathLike[str] | None"
RerankerLike: TypeAlias = "Reranker | str | os.PathLike[str]"


def open_encoder(model: EncoderLike = None, **choices: Any) -> Encoder:
    """The encoder that was given, or the one of that name, opened as `load_encoder` does."""
    if model is None or isinstance(model, str | os.PathLike):
        return load_encoder(model if model is None else _named(model), **choices)
    if not isinstance(model, Encoder):
        raise InvalidInput(
            f"the model is of type {type(model).__name__}; expected a name, a folder or an encoder"
        )
    _refuse(choices)
    return model


def open_reranker(model: RerankerLike, **choices: Any) -> Reranker:
    """The reranker that was given, or the one of that name, opened as `load_reranker` does."""
    if isinstance(model, str | os.PathLike):
        return load_reranker(_named(model), **choices)
    if not isinstance(model, Reranker):
        raise InvalidInput(
            f"the model is of type {type(model).__name__}; expected a name, a folder or a reranker"
        )
    _refuse(choices)
    return model


def for_queries(encoder: Encoder) -> Encoder:
    """The encoder with its model's prompt for queries, where it has one."""
    return _prompted(encoder, QUERY_PROMPTS)


def for_documents(encoder: Encoder) -> Encoder:
    """The encoder with its model's prompt for documents, where it has one."""
    return _prompted(encoder, DOCUMENT_PROMPTS)


def _named(model: str | os.PathLike[str]) -> str | Path:
    """A name as it stands; any other path can only mean a folder."""
    return model if isinstance(model, str) else Path(model)


def _prompted(encoder: Any, names: Sequence[str]) -> Encoder:
    prompts: Mapping[str, str] = getattr(getattr(encoder, "spec", None), "prompts", {})
    name = next((name for name in names if name in prompts), None)
    chosen: Encoder = encoder if name is None else encoder.with_prompt(name)
    return chosen


def _refuse(choices: Mapping[str, Any]) -> None:
    given = [name for name, value in choices.items() if value is not None]
    if given:
        raise InvalidInput(
            f"{', '.join(given)} was given with a model that is open already; choose it where that is opened"
        )
