"""Columns of texts into columns of vectors, for pandas, polars and Arrow: fixed-size lists, never copied."""

from __future__ import annotations

import sys
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from gemel.adapters.opening import EncoderLike, open_encoder
from gemel.contracts import Vectors
from gemel.errors import InvalidInput, MissingExtra

try:
    import pyarrow
except ImportError:
    raise MissingExtra("columns of vectors", "parquet") from None

Column: TypeAlias = "pyarrow.FixedSizeListArray"
Frame = TypeVar("Frame")


def embed(column: Any, model: EncoderLike = None, **choices: Any) -> Column:
    """The vectors of a column of texts as Arrow's fixed_size_list<float>[dim], null where the text is null.

    The column is a Series of pandas or polars, an Arrow array or a list; the choices are those of
    `gemel.load_encoder`.
    """
    encoder = open_encoder(model, **choices)
    texts = _texts(column)
    vectors = encoder.encode([text for text in texts if text is not None])
    if len(vectors) < len(texts):
        is_text = np.array([text is not None for text in texts])
        spread = np.zeros((len(texts), encoder.dim), np.float32)
        spread[is_text] = vectors
        mask = pyarrow.array(~is_text)
        return pyarrow.FixedSizeListArray.from_arrays(_flat(spread), encoder.dim, mask=mask)
    return pyarrow.FixedSizeListArray.from_arrays(_flat(vectors), encoder.dim)


def with_embeddings(
    frame: Frame, column: str, model: EncoderLike = None, *, into: str = "embedding", **choices: Any
) -> Frame:
    """The frame with one column more: the vectors of its texts. It may be of pandas, polars or Arrow.

    A frame of pandas that was written to Parquet is read with `dtype_backend="pyarrow"`: without it, pandas
    refuses columns of lists.
    """
    given: Any = frame
    names = list(given.column_names if isinstance(given, pyarrow.Table) else given.columns)
    if column not in names:
        raise InvalidInput(f"there is no column {column!r}; the frame has {', '.join(map(str, names))}")
    made = embed(given[column], model, **choices)
    if isinstance(given, pyarrow.Table):
        if into in names:
            given = given.drop_columns([into])
        return cast(Frame, given.append_column(into, made))
    if _is_of(given, "polars", "DataFrame"):
        polars = sys.modules["polars"]
        return cast(Frame, given.with_columns(polars.from_arrow(made).alias(into)))
    if _is_of(given, "pandas", "DataFrame"):
        pandas = sys.modules["pandas"]
        values = pandas.arrays.ArrowExtensionArray(made)
        return cast(Frame, given.assign(**{into: pandas.Series(values, index=given.index)}))
    raise InvalidInput(
        f"a {type(frame).__name__} was given; expected a DataFrame of pandas or polars, or an Arrow table"
    )


def vectors_of(column: Any) -> Vectors:
    """A column of vectors as rows (n, dim) of float32, on the same memory where it is in one piece."""
    array = _arrow(column)
    if isinstance(array, pyarrow.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    if not pyarrow.types.is_fixed_size_list(array.type):
        raise InvalidInput(f"the column is of type {array.type}; expected a fixed-size list of floats")
    if array.null_count:
        raise InvalidInput(f"{array.null_count:,} rows of the column have no vector; leave them out first")
    dim = array.type.list_size
    values = array.flatten()
    floats = values.to_numpy(zero_copy_only=pyarrow.types.is_float32(values.type))
    rows: Vectors = floats.astype(np.float32, copy=False).reshape(len(array), dim)
    return rows


def _flat(vectors: Vectors) -> Any:
    return pyarrow.array(vectors.reshape(-1))  # on the same memory


def _texts(column: Any) -> list[str | None]:
    """The texts of a column; what pandas writes for a missing text is None."""
    if isinstance(column, str):
        raise InvalidInput("one str was given and a column of texts was expected; put it into a list")
    array = _arrow(column)
    if not (
        pyarrow.types.is_string(array.type)
        or pyarrow.types.is_large_string(array.type)
        or pyarrow.types.is_string_view(array.type)
        or pyarrow.types.is_null(array.type)
    ):
        raise InvalidInput(f"the column is of type {array.type}, and texts were expected")
    texts: list[str | None] = array.to_pylist()
    return texts


def _arrow(column: Any) -> Any:
    if isinstance(column, pyarrow.Array | pyarrow.ChunkedArray):
        return column
    if _is_of(column, "polars", "Series"):
        return column.to_arrow()
    try:
        return pyarrow.array(column, from_pandas=True)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
        raise InvalidInput(f"the column cannot be read ({error}); expected texts") from None


def _is_of(value: Any, package: str, name: str) -> bool:
    """Whether a value is of a package's class; who has one has imported that package."""
    module = sys.modules.get(package)
    return module is not None and isinstance(value, getattr(module, name))
