"""What a cell calls a class, alike in all formats."""

from __future__ import annotations

from gemel.data.tables import is_text


def class_name(value: object) -> str | None:
    """The name or the number of a class: 1, 1.0 and true are "1"; None where the cell holds neither."""
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    return (value.strip() or None) if is_text(value) else None
