"""Collections and their models as the commands open them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemel.contracts import DOCUMENT_PROMPTS, QUERY_PROMPTS
from gemel.errors import InvalidInput

if TYPE_CHECKING:
    from gemel.contracts import Encoder
    from gemel.index import Collection, Store
    from gemel.index.segment import DType
    from gemel.text_encoder import TextEncoder


def address_of(path: str, store: str | None) -> str:
    """Where a collection is: a path or an address as it stands, or a name in a store."""
    from gemel.index.opening import address_in

    return path if store is None else address_in(store, path)


def open_plain(path: str, *, read_only: bool = False) -> Store:
    """The collection without a model, for what needs none."""
    from gemel.index.opening import has_collection, is_remote, open_collection

    if not is_remote(path) and not has_collection(path):
        raise InvalidInput(f"{path} is no collection; make one with: gemel index add {path} FILE")
    return open_collection(path, read_only=read_only)


def open_folder(path: str) -> Collection:
    """The same, for reading, where only a collection in a folder will do."""
    from gemel.index import Collection
    from gemel.index.opening import is_remote, shown_address

    if is_remote(path):
        raise InvalidInput(
            f"{shown_address(path)} is kept by a server, which looks after what it holds itself; expected a "
            "collection in a folder"
        )
    opened = open_plain(path, read_only=True)
    assert isinstance(opened, Collection)
    return opened


def open_with_model(
    path: str, model: str | None, compute: Mapping[str, Any], *, read_only: bool = False
) -> Store:
    """The collection with the model that it was made with, or the one that is named; another is refused."""
    with open_plain(path, read_only=True) as plain:
        name = model or plain.settings.model or None
    return _open_for(_load(name, compute), path, read_only=read_only)


def open_or_make(
    path: str, model: str | None, compute: Mapping[str, Any], *, dtype: DType | None = None
) -> Store:
    """The same, made if it is not there yet; its model's name is noted in it."""
    from gemel.index.opening import create_collection, has_collection

    if has_collection(path):
        opened = open_with_model(path, model, compute)
        if dtype is not None and opened.settings.dtype != dtype:
            opened.close()
            raise InvalidInput(
                f"{opened.name} keeps its vectors as {opened.settings.dtype}, and --dtype {dtype} was given; "
                "leave it out, or make another collection"
            )
        return opened
    encoder = _load(model, compute)
    create_collection(path, encoder, dtype=dtype or "float32", model=lasting_name(model)).close()
    return _open_for(encoder, path)


def _open_for(encoder: TextEncoder, path: str, *, read_only: bool = False) -> Store:
    from gemel.index.opening import is_remote, open_collection

    documents, queries = _both_sides(encoder)
    # On a server, an index that grows with each of many windows takes longer than one made at the end.
    return open_collection(
        path, documents, query_encoder=queries, read_only=read_only, keeps_index=not is_remote(path)
    )


def keep_index(opened: Store) -> None:
    """Let a server build its index where that has become worthwhile; a folder has done so already."""
    from gemel.index.remote import RemoteCollection

    if isinstance(opened, RemoteCollection):
        opened.keep_index()


def longest_passage(encoder: Encoder | None) -> int | None:
    """How many tokens the model of a collection reads; None where it has no limit."""
    longest = getattr(getattr(encoder, "spec", None), "max_tokens", None)
    return longest if isinstance(longest, int) else None


def _load(name: str | None, compute: Mapping[str, Any]) -> TextEncoder:
    from gemel.loading import load_encoder

    return load_encoder(name, **compute)


def lasting_name(model: str | None) -> str:
    """The name by which the model will be found again, from whatever folder the command is called."""
    from gemel.checkpoint.resolving import DEFAULT_MODEL

    if model is None:
        return DEFAULT_MODEL
    return str(Path(model).expanduser().resolve()) if Path(model).expanduser().is_dir() else model


def document_prompt(encoder: Encoder | None) -> str | None:
    """The name of the prompt that documents get from this model, if it has one."""
    return _prompt_among(encoder, DOCUMENT_PROMPTS)


def _both_sides(encoder: TextEncoder) -> tuple[TextEncoder, TextEncoder]:
    """The encoder with the prompts that its model has for documents and for queries."""
    sides = []
    for names in (DOCUMENT_PROMPTS, QUERY_PROMPTS):
        name = _prompt_among(encoder, names)
        sides.append(encoder if name is None else encoder.with_prompt(name))
    return sides[0], sides[1]


def _prompt_among(encoder: Encoder | None, names: Sequence[str]) -> str | None:
    prompts: Mapping[str, str] = getattr(getattr(encoder, "spec", None), "prompts", {})
    return next((name for name in names if name in prompts), None)
