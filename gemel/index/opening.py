"""Collections by their address, wherever they are: a folder, a PostgreSQL database, Milvus.

reviews, ./data/reviews                                a folder
postgresql://user:password@host:port/database/reviews  a schema of a database that has pgvector
milvus://user:password@host:port/reviews               a collection of a Milvus server
milvus:notes.db/reviews                                a collection in a file of Milvus Lite's

A store is where several of them are: the same without the last part, or a folder of folders.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from gemel.contracts import Encoder
from gemel.errors import InvalidInput
from gemel.index.collection import TIMEOUT_SECONDS, Collection
from gemel.index.database import FILE_NAME
from gemel.index.lexical import checked_tokenizers
from gemel.index.remote import RemoteCollection
from gemel.index.remote_index import RemoteIndex
from gemel.index.segment import DType
from gemel.index.settings import KnownModel, Settings
from gemel.index.store import Store

# Who opens an address that begins so; imported when it is needed, with the libraries that it needs.
_OPENERS = {
    "postgresql": "gemel.index.postgres.opening",
    "postgres": "gemel.index.postgres.opening",
    "milvus": "gemel.index.milvus.opening",
    "milvus+https": "gemel.index.milvus.opening",
}
PLAIN_VECTORS = "plain-vectors"  # the fingerprint of an index, whose vectors may be of any model
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")  # two letters at least: one is a drive of Windows's


def open_collection(
    address: str,
    encoder: Encoder | None = None,
    *,
    query_encoder: Encoder | None = None,
    read_only: bool = False,
    keeps_index: bool = True,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> Store:
    """Open the collection at an address; without an encoder, vectors go in and queries come as vectors.

    With `keeps_index`, adding builds the index when it has become worthwhile. Where a server goes away, each
    call tries for `timeout_seconds` to reach it again.
    """
    opener = _opener(address)
    if opener is None:
        return Collection.open(
            address,
            encoder,
            query_encoder=query_encoder,
            read_only=read_only,
            keeps_index=keeps_index,
            timeout_seconds=timeout_seconds,
        )
    backend = opener.open_backend(address, read_only=read_only, timeout_seconds=timeout_seconds)
    return RemoteCollection(backend, encoder, query_encoder, read_only=read_only, keeps_index=keeps_index)


def create_collection(
    address: str,
    encoder: Encoder | KnownModel,
    *,
    dtype: DType = "float32",
    measure: str = "cosine",
    text_search: Sequence[str] = ("word", "trigram"),
    model: str = "",
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> Store:
    """Make an empty collection for the vectors of this encoder (`model` is its name), and open it."""
    tokenizers = checked_tokenizers(text_search)
    settings = Settings(encoder.fingerprint, encoder.dim, dtype, measure, tokenizers, model=model)
    return make_alike(address, settings, encoder, timeout_seconds=timeout_seconds)


def make_alike(
    address: str,
    settings: Settings,
    encoder: Encoder | KnownModel | None = None,
    *,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> Store:
    """Make an empty collection with the settings of another, and open it."""
    used = None if isinstance(encoder, KnownModel) else encoder
    opener = _opener(address)
    if opener is not None:
        opener.make_collection(address, settings, timeout_seconds=timeout_seconds)
        return open_collection(address, used, timeout_seconds=timeout_seconds)
    Collection.create(
        address,
        KnownModel(settings.fingerprint, settings.dim),
        dtype=settings.dtype,
        measure=settings.measure,
        text_search=settings.text_search,
        model=settings.model,
    ).close()
    return Collection.open(address, used, timeout_seconds=timeout_seconds)


def open_index(
    address: str,
    dim: int,
    *,
    measure: str = "cosine",
    dtype: DType = "float32",
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> RemoteIndex:
    """An index of plain vectors on a server, which is made if it is not there: ids are integers."""
    opener = _opener(address)
    if opener is None:
        raise InvalidInput(f"{address} is a folder; use HnswIndex for an index in a file, or a Collection")
    settings = Settings(PLAIN_VECTORS, dim, dtype, measure, ())
    if not opener.has_collection(address, timeout_seconds=timeout_seconds):
        opener.make_collection(address, settings, timeout_seconds=timeout_seconds)
    backend = opener.open_backend(address, read_only=False, timeout_seconds=timeout_seconds)
    try:
        backend.settings.check_model(PLAIN_VECTORS, dim, backend.name)
        if (backend.settings.measure, backend.settings.dtype) != (measure, dtype):
            raise InvalidInput(
                f"{backend.name} measures by {backend.settings.measure} in {backend.settings.dtype}, and "
                f"{measure} in {dtype} was asked for; open it as it was made"
            )
    except BaseException:
        backend.close()
        raise
    return RemoteIndex(backend)


def has_collection(address: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> bool:
    """Whether there is a collection at an address."""
    opener = _opener(address)
    if opener is None:
        return (Path(address) / FILE_NAME).is_file()
    return bool(opener.has_collection(address, timeout_seconds=timeout_seconds))


def collection_names(store: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> list[str]:
    """The names of the collections in a store, in the order of the alphabet."""
    opener = _opener(store)
    if opener is None:
        folders = Path(store).iterdir() if Path(store).is_dir() else ()
        return sorted(folder.name for folder in folders if (folder / FILE_NAME).is_file())
    return sorted(opener.collection_names(store, timeout_seconds=timeout_seconds))


def address_in(store: str, name: str) -> str:
    """The address of a collection by its name in a store."""
    if not is_remote(store):
        return str(Path(store) / name)
    if is_remote(name) or "/" in name:
        raise InvalidInput(
            f"a store and the whole address {shown_address(name)} were given; with a store, give the "
            "collection's name in it"
        )
    if store.partition(":")[0] == "milvus" and "://" not in store:
        return f"{store.rstrip('/')}/{name}"
    parts = urlsplit(store)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{name}"))


def shown_store(store: str) -> str:
    """What the names of the collections in a store begin with."""
    opener = _opener(store)
    return store if opener is None else str(opener.shown_store(store))


def is_remote(address: str) -> bool:
    """Whether an address leads to a server, or looks as if it were meant to; paths do not."""
    found = _SCHEME.match(address)
    return found is not None and (found[1].lower() in _OPENERS or address.startswith("//", found.end()))


def shown_address(address: str) -> str:
    """An address as others may read it: without user, password and options."""
    if not is_remote(address):
        return address
    scheme, _, rest = address.partition(":")
    if not rest.startswith("//"):  # a file
        return address
    place, _, options = rest[2:].partition("?")
    if "@" in options:  # of a password, perhaps, that was not written as it should be, or of an option
        return f"{scheme}://..."
    return f"{scheme}://{place.rpartition('@')[2]}"


def _opener(address: str) -> Any:
    """The module that opens an address; None for a folder."""
    if not is_remote(address):
        return None
    scheme = address.partition(":")[0].lower()
    if scheme not in _OPENERS:
        raise InvalidInput(
            f"{shown_address(address)} begins with {scheme}:, which is no store that gemel knows; expected a "
            "folder, postgresql://... or milvus:..."
        )
    return import_module(_OPENERS[scheme])
