"""Collections in Milvus opened and made."""

from __future__ import annotations

from contextlib import closing

from gemel.index.milvus.backend import MilvusBackend
from gemel.index.milvus.client import Client, name_of, read_address
from gemel.index.milvus.schema import is_there, make_fields, read_settings
from gemel.index.settings import Settings


def open_backend(uri: str, *, read_only: bool, timeout_seconds: float) -> MilvusBackend:
    """The collection that an address names, which must be there."""
    client = Client(read_address(uri), timeout_seconds=timeout_seconds)
    try:
        settings = read_settings(client)
        client.run(lambda connected: connected.load_collection(client.address.collection))
        return MilvusBackend(client, settings)
    except BaseException:
        client.close()
        raise


def make_collection(uri: str, settings: Settings, *, timeout_seconds: float) -> None:
    """Make the collection that an address names, empty."""
    with closing(Client(read_address(uri), timeout_seconds=timeout_seconds)) as client:
        make_fields(client, settings)


def has_collection(uri: str, *, timeout_seconds: float) -> bool:
    """Whether the collection that an address names is there."""
    with closing(Client(read_address(uri), timeout_seconds=timeout_seconds)) as client:
        return is_there(client)


def collection_names(uri: str, *, timeout_seconds: float) -> list[str]:
    """The names of the collections of a server or a file."""
    with closing(Client(read_address(uri, has_name=False), timeout_seconds=timeout_seconds)) as client:
        found = client.run(lambda connected: connected.list_collections())
    return [name for name in map(name_of, found) if name is not None]


def shown_store(uri: str) -> str:
    """The address of a server or a file, without its password."""
    return read_address(uri, has_name=False).shown
