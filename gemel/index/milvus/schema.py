"""The fields of a collection in Milvus: how it is made, and known by its settings."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gemel.errors import Damaged, InvalidInput
from gemel.index.milvus.client import Client, MilvusAddress, driver
from gemel.index.settings import Settings

VERSION = 1  # of the fields; a newer one is refused
MAX_BYTES = 65_535  # of a text, its metadata, an id
MAX_KEY_BYTES = 64
PROPERTY, VERSION_PROPERTY = "gemel.settings", "gemel.version"
TERM_FIELDS = {"word": ("word_terms", "words"), "trigram": ("trigram_terms", "trigrams")}
METRICS = {"cosine": "COSINE", "dot": "IP", "euclidean": "L2"}
CONNECTIVITY, EFFORT_BUILDING = 16, 200


def make_fields(client: Client, settings: Settings) -> None:
    """Make an empty collection."""
    address = client.address
    if settings.measure not in METRICS:
        raise InvalidInput(
            f"Milvus does not measure by {settings.measure}; expected one of {', '.join(METRICS)}"
        )
    if is_there(client):
        raise InvalidInput(f"{address} exists already; open it, or choose another name")
    described = json.dumps(asdict(settings))

    def make(connected: Any) -> None:
        connected.create_collection(
            address.collection,
            schema=_fields(connected, settings, described),
            index_params=_indexes(connected, settings),
            consistency_level="Strong",  # a reader sees what was acknowledged before it asked
            properties={PROPERTY: described, VERSION_PROPERTY: str(VERSION)},
        )

    client.run(make)


def read_settings(client: Client) -> Settings:
    """The settings of a collection that is there."""
    address = client.address
    if not is_there(client):
        raise InvalidInput(
            f"there is no collection {address.name!r} in {address.shown}; make one with: "
            f"gemel index add {address} FILE"
        )
    found = client.run(lambda connected: connected.describe_collection(address.collection))
    properties = found.get("properties") or {}
    version = int(properties.get(VERSION_PROPERTY, VERSION))
    if version > VERSION:
        raise InvalidInput(
            f"{address} was made by a newer gemel (version {version} of its fields, and this one knows "
            f"{VERSION}); use a gemel that is as new"
        )
    return _read_settings(properties.get(PROPERTY) or found.get("description") or "", address)


def is_there(client: Client) -> bool:
    """Whether the collection of an address has been made; asking makes no file."""
    if client.address.is_file and not Path(client.address.uri).exists():
        return False
    return bool(client.run(lambda connected: connected.has_collection(client.address.collection)))


def _fields(connected: Any, settings: Settings, described: str) -> Any:
    pymilvus = driver()
    kinds = pymilvus.DataType
    schema = connected.create_schema(auto_id=False, enable_dynamic_field=False, description=described)
    schema.add_field("key", kinds.VARCHAR, is_primary=True, max_length=MAX_KEY_BYTES)
    schema.add_field("number", kinds.INT64)
    for name in ("id", "text", "metadata_text"):
        schema.add_field(name, kinds.VARCHAR, max_length=MAX_BYTES)
    schema.add_field("content", kinds.VARCHAR, max_length=MAX_KEY_BYTES)
    schema.add_field("metadata", kinds.JSON)
    schema.add_field("embedding", kinds.FLOAT_VECTOR, dim=settings.dim)
    for tokenizer in settings.text_search:
        terms, ranked = TERM_FIELDS[tokenizer]
        schema.add_field(
            terms,
            kinds.VARCHAR,
            max_length=MAX_BYTES,
            enable_analyzer=True,
            analyzer_params={"tokenizer": "standard"},
        )
        schema.add_field(ranked, kinds.SPARSE_FLOAT_VECTOR)
        schema.add_function(
            pymilvus.Function(
                name=f"bm25_{tokenizer}",
                function_type=pymilvus.FunctionType.BM25,
                input_field_names=[terms],
                output_field_names=[ranked],
            )
        )
    return schema


def _indexes(connected: Any, settings: Settings) -> Any:
    indexes = connected.prepare_index_params()
    indexes.add_index(
        "embedding",
        index_type="HNSW",
        metric_type=METRICS[settings.measure],
        params={"M": CONNECTIVITY, "efConstruction": EFFORT_BUILDING},
    )
    for tokenizer in settings.text_search:
        indexes.add_index(
            TERM_FIELDS[tokenizer][1],
            index_type="SPARSE_INVERTED_INDEX",
            metric_type="BM25",
            params={"bm25_k1": 1.2, "bm25_b": 0.75},  # as SQLite has them
        )
    return indexes


def _read_settings(described: str, address: MilvusAddress) -> Settings:
    try:
        values = json.loads(described)
        return Settings(**{**values, "text_search": tuple(values["text_search"])})
    except (ValueError, TypeError, KeyError) as error:
        raise Damaged(
            f"{address} is not a collection of gemel's, or its settings cannot be read ({error})"
        ) from error
