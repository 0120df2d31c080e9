"""Columns of texts into columns of vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from adapters.packages import imported
from stand_ins import ToyEncoder

from gemel.adapters.frames import embed, vectors_of, with_embeddings
from gemel.errors import InvalidInput

TEXTS = ["the dog runs", "a cat", "", "the piano"]


class RememberingEncoder(ToyEncoder):
    """Keeps what it gave, to see whether that is what comes out."""

    def encode(self, texts: Any) -> np.ndarray:
        self.given = super().encode(texts)
        return self.given


def test_the_column_is_the_encoders_own_memory() -> None:
    encoder = RememberingEncoder()
    column = embed(TEXTS, encoder)
    assert column.type == pyarrow.list_(pyarrow.float32(), 16)
    rows = vectors_of(column)
    assert np.shares_memory(rows, encoder.given)
    assert np.array_equal(rows, encoder.given)


@pytest.mark.parametrize("kind", [pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()])
def test_arrow_texts_of_every_kind_are_read(toy_encoder: ToyEncoder, kind: Any) -> None:
    for column in (pyarrow.array(TEXTS, kind), pyarrow.chunked_array([TEXTS[:1], TEXTS[1:]], kind)):
        assert np.array_equal(vectors_of(embed(column, toy_encoder)), toy_encoder.encode(TEXTS))


def test_where_there_is_no_text_there_is_no_vector(toy_encoder: ToyEncoder) -> None:
    column = embed(["a dog", None, "a cat"], toy_encoder)
    assert column.is_null().to_pylist() == [False, True, False]
    assert np.array_equal(vectors_of(column.drop_null()), toy_encoder.encode(["a dog", "a cat"]))
    with pytest.raises(InvalidInput, match="1 rows of the column have no vector"):
        vectors_of(column)
    assert len(embed([], toy_encoder)) == 0


def test_an_arrow_table_gets_a_column_and_a_slice_of_it_is_read_right(toy_encoder: ToyEncoder) -> None:
    table = with_embeddings(pyarrow.table({"text": TEXTS}), "text", toy_encoder)
    assert table.column_names == ["text", "embedding"]
    assert np.array_equal(vectors_of(table["embedding"].slice(1, 2)), toy_encoder.encode(TEXTS[1:3]))
    again = with_embeddings(table, "text", toy_encoder)
    assert again.column_names == ["text", "embedding"]


@pytest.mark.parametrize(
    ("column", "message"),
    [("a dog", "put it into a list"), ([1, 2], "type int64, and texts"), (["a", 1], "cannot be read")],
)
def test_what_is_no_column_of_texts_is_refused(toy_encoder: ToyEncoder, column: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        embed(column, toy_encoder)


def test_a_column_that_is_not_there_is_named(toy_encoder: ToyEncoder) -> None:
    with pytest.raises(InvalidInput, match="no column 'body'; the frame has text"):
        with_embeddings(pyarrow.table({"text": TEXTS}), "body", toy_encoder)


@pytest.mark.extras
def test_pandas_frames_keep_their_index_and_get_an_arrow_column() -> None:
    pandas = imported("pandas")
    encoder = RememberingEncoder()
    frame = pandas.DataFrame({"text": ["a dog", None, "a cat"]}, index=[7, 8, 9])
    made = with_embeddings(frame, "text", encoder)
    assert made.index.tolist() == [7, 8, 9]
    assert made["embedding"].isna().tolist() == [False, True, False]
    whole = with_embeddings(frame.dropna(), "text", encoder)
    rows = vectors_of(whole["embedding"])
    assert np.array_equal(rows, encoder.given)
    assert np.shares_memory(rows, encoder.given)
    assert "embedding" not in frame


@pytest.mark.extras
@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_a_pandas_frame_is_read_again_with_arrows_types(
    tmp_path: Path, toy_encoder: ToyEncoder, ending: str
) -> None:
    pandas = imported("pandas")
    path = tmp_path / f"frame.{ending}"
    made = with_embeddings(pandas.DataFrame({"text": TEXTS}), "text", toy_encoder)
    getattr(made, f"to_{ending}")(path)
    again = getattr(pandas, f"read_{ending}")(path, dtype_backend="pyarrow")
    assert again["text"].tolist() == TEXTS
    assert np.array_equal(vectors_of(again["embedding"]), toy_encoder.encode(TEXTS))


@pytest.mark.extras
def test_polars_frames_get_an_array_column() -> None:
    polars = imported("polars")
    encoder = RememberingEncoder()
    made = with_embeddings(polars.DataFrame({"text": TEXTS}), "text", encoder, into="vector")
    assert made.schema["vector"] == polars.Array(polars.Float32, 16)
    rows = vectors_of(made["vector"])
    assert np.array_equal(rows, encoder.given)
    assert np.shares_memory(rows, encoder.given)
