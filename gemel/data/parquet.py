"""The library behind parquet, which is an extra."""

from __future__ import annotations

from typing import Any

from gemel.errors import MissingExtra


def import_pyarrow(purpose: str = "writing parquet") -> Any:
    """pyarrow with its parquet, or what to install for this purpose."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra(purpose, "parquet") from error
    return pyarrow
