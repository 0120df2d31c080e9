"""Fields of a filter that no record has: a slip of the pen, most likely, which lets nothing through."""

from __future__ import annotations

from gemel.index import Filter, Store
from gemel.index.filter_tree import Field, fields_of


def unknown_fields(collection: Store, filter: str | Filter) -> list[str]:
    """The names of the fields in a filter that are in no record's metadata, or null in all."""
    read = filter if isinstance(filter, Filter) else Filter(filter)
    names = sorted(map(_named, fields_of(read.tree)))
    return [name.strip("`") for name in names if not collection.count(Filter(f"{name} != null"))]


def _named(field: Field) -> str:
    """A field as filters spell it."""
    return f"`{field[0]}`" if len(field) == 1 else ".".join(field)
