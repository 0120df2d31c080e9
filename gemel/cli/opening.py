"""Collections and their models as the commands open them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemel.contracts import DOCUMENT_PROMPTS, QUERY_PROMPTS
from gemel.errors import InvalidInput

if TYPE_CHECKING:
    from gemel.contracts import Encoder
    from gemel.index import Collection
    from gemel.index.segment import DType
    from gemel.text_encoder import TextEncoder


def open_plain(path: str, *, read_only: bool = False) -> Collection:
    """The collection without a model, for what needs none."""
    from gemel.index import Collection
    from gemel.index.database import FILE_NAME

    if not (Path(path) / FILE_NAME).is_file():
        raise InvalidInput(f"{path} is no collection; make one with: gemel index add {path} FILE")
    return Collection.open(path, read_only=read_only)


def open_with_model(
    path: str, model: str | None, compute: Mapping[str, Any], *, read_only: bool = False
) -> Collection:
    """The collection with the model that it was made with, or the one that is named; another is refused."""
    from gemel.index import Collection

    with open_plain(path, read_only=True) as plain:
        name = model or plain.settings.model or None
    documents, queries = _both_sides(_load(name, compute))
    return Collection.open(path, documents, query_encoder=queries, read_only=read_only)


def open_or_make(
    path: str, model: str | None, compute: Mapping[str, Any], *, dtype: DType | None = None
) -> Collection:
    """The same, made if it is not there yet; its model's name is noted in it."""
    from gemel.index import Collection
    from gemel.index.database import FILE_NAME

    if (Path(path) / FILE_NAME).is_file():
        opened = open_with_model(path, model, compute)
        if dtype is not None and opened.settings.dtype != dtype:
            opened.close()
            raise InvalidInput(
                f"{path} keeps its vectors as {opened.settings.dtype}, and --dtype {dtype} was given; "
                "leave it out, or make another collection"
            )
        return opened
    encoder = _load(model, compute)
    Collection.create(path, encoder, dtype=dtype or "float32", model=_lasting_name(model)).close()
    documents, queries = _both_sides(encoder)
    return Collection.open(path, documents, query_encoder=queries)


def longest_passage(encoder: Encoder | None) -> int | None:
    """How many tokens the model of a collection reads; None where it has no limit."""
    longest = getattr(getattr(encoder, "spec", None), "max_tokens", None)
    return longest if isinstance(longest, int) else None


def _load(name: str | None, compute: Mapping[str, Any]) -> TextEncoder:
    from gemel.loading import load_encoder

    return load_encoder(name, **compute)


def _lasting_name(model: str | None) -> str:
    """The name by which the model will be found again, from whatever folder the command is called."""
    from gemel.loading import DEFAULT_MODEL

    if model is None:
        return DEFAULT_MODEL
    return str(Path(model).expanduser().resolve()) if Path(model).expanduser().is_dir() else model


def _both_sides(encoder: TextEncoder) -> tuple[TextEncoder, TextEncoder]:
    """The encoder with the prompts that its model has for documents and for queries."""
    prompts: Mapping[str, str] = getattr(getattr(encoder, "spec", None), "prompts", {})
    sides = []
    for names in (DOCUMENT_PROMPTS, QUERY_PROMPTS):
        name = next((name for name in names if name in prompts), None)
        sides.append(encoder if name is None else encoder.with_prompt(name))
    return sides[0], sides[1]
