"""Rows reach the file unchanged, whole or not at all, and those that are safe are never lost."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemel.data.spool import Layout
from gemel.data.texts import Id, TextRecord
from gemel.data.vectors import VectorWriter, format_of, json_lines
from gemel.errors import InvalidInput, MissingExtra, ModelMismatch, WriteFailed

FORMATS = ["npy", "npz", "parquet", "jsonl", "jsonl.gz"]
DIM = 5
IDS: dict[str, Sequence[Id]] = {
    "row numbers": range(7),
    "integers": [2**62, -5, 0, 3, 3, 8, -(2**63)],
    "strings": ["a", "", "日本", "a\u2028b", 'say "so"', "long" * 50, "nul\0l"],
}


def layout_for(path: Path, *, keeps_ids: bool = False, dtype: Any = "float32") -> Layout:
    return Layout("model-1", DIM, dtype, format_of(path), keeps_ids)


def records_for(ids: Sequence[Id]) -> list[TextRecord]:
    return [TextRecord(id_, f"text {row}") for row, id_ in enumerate(ids)]


def rows_for(n_rows: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n_rows, DIM)).astype(dtype)


def write(
    path: Path, layout: Layout, ids: Sequence[Id], *, upto: int | None = None, step: int = 2, **options: bool
) -> int:
    """Write the rows up to one of them, or all and finish; gives how many an earlier call had written."""
    records, rows = records_for(ids), rows_for(len(ids), layout.dtype)
    with VectorWriter(path, layout, **options) as writer:
        done = writer.rows
        writer.skip_done(iter(records))
        for start in range(done, len(ids) if upto is None else upto, step):
            writer.append(records[start : start + step], rows[start : start + step])
        if upto is None:
            writer.finish()
    return done


def load(path: Path) -> tuple[list[Id] | None, np.ndarray]:
    """What somebody else's reader makes of the file."""
    kind = format_of(path)
    if kind == "npy":
        return None, np.load(path)
    if kind == "npz":
        with np.load(path) as arrays:
            return arrays["ids"].tolist(), arrays["embeddings"]
    if kind == "parquet":
        table = pyarrow.parquet.read_table(path)
        vectors = table["embedding"].combine_chunks()
        values = vectors.values.to_numpy(zero_copy_only=False)
        return table["id"].to_pylist(), values.reshape(-1, vectors.type.list_size)
    data = gzip.decompress(path.read_bytes()) if kind == "jsonl.gz" else path.read_bytes()
    objects = [json.loads(line) for line in data.decode().split("\n")[:-1]]
    return [o["id"] for o in objects], np.array([o["embedding"] for o in objects]).reshape(-1, DIM)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_back_the_same_rows_and_ids(
    tmp_path: Path, kind: str, ids: str, dtype: str
) -> None:
    path = tmp_path / f"out.{kind}"
    write(path, layout_for(path, keeps_ids=ids != "row numbers", dtype=dtype), IDS[ids])
    found_ids, found_rows = load(path)
    np.testing.assert_array_equal(found_rows.astype(dtype), rows_for(7, dtype), strict=True)
    if "json" not in kind:
        assert found_rows.dtype == dtype
    if kind != "npy":
        assert found_ids == list(IDS[ids])
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", FORMATS)
def test_no_rows_make_a_valid_file_of_no_rows(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"out.{kind}"
    write(path, layout_for(path), [])
    ids, rows = load(path)
    assert rows.shape == (0, DIM)
    assert not ids
    assert list(tmp_path.iterdir()) == [path]


def test_parquet_says_the_dimension_and_the_type(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    write(path, layout_for(path, dtype="float16"), range(7))
    schema = pyarrow.parquet.read_schema(path)
    assert schema.field("embedding").type == pyarrow.list_(pyarrow.float16(), DIM)
    assert schema.field("id").type == pyarrow.int64()


@given(values=st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_decimals_of_json_name_every_float32_exactly(values: list[float]) -> None:
    rows = np.array([values], np.float32)
    (line,) = json_lines(["id"], rows)
    np.testing.assert_array_equal(np.array([json.loads(line)["embedding"]], np.float32), rows)


def test_decimals_of_json_name_every_float16_exactly() -> None:
    rows = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    rows = rows[np.isfinite(rows)].reshape(1, -1)
    (line,) = json_lines([0], rows)
    np.testing.assert_array_equal(np.array([json.loads(line)["embedding"]], np.float16), rows)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_continued_file_is_byte_for_byte_that_of_one_run(tmp_path: Path, kind: str) -> None:
    whole, broken = tmp_path / f"whole.{kind}", tmp_path / f"broken.{kind}"
    layout = layout_for(whole, keeps_ids=kind != "npy")
    write(whole, layout, IDS["strings"])
    assert write(broken, layout, IDS["strings"], upto=2) == 0
    assert not broken.exists()
    assert write(broken, layout, IDS["strings"], upto=6) == 2
    assert write(broken, layout, IDS["strings"]) == 6
    assert broken.read_bytes() == whole.read_bytes()


def test_what_a_crash_left_beyond_the_state_is_cut_off(tmp_path: Path) -> None:
    path, spool = tmp_path / "out.npz", tmp_path / "out.npz.partial"
    layout = layout_for(path, keeps_ids=True)
    write(path, layout, IDS["strings"], upto=4)
    for name in ("vectors.npy", "ids.jsonl", "state.json.new", "draft"):
        with (spool / name).open("ab") as file:
            file.write(b"half of a r")
    assert write(path, layout, IDS["strings"]) == 4
    ids, rows = load(path)
    assert ids == list(IDS["strings"])
    np.testing.assert_array_equal(rows, rows_for(7))


def test_the_state_is_the_truth_and_says_what_it_is_about(tmp_path: Path) -> None:
    path, spool = tmp_path / "out.npy", tmp_path / "out.npy.partial"
    write(path, layout_for(path), range(7), upto=4)
    state = json.loads((spool / "state.json").read_text())
    assert (state["rows"], state["layout"]["dim"], state["layout"]["fingerprint"]) == (4, DIM, "model-1")
    assert (spool / "vectors.npy").stat().st_size == 128 + 4 * DIM * 4
    assert sorted(file.name for file in spool.iterdir()) == ["lock", "state.json", "vectors.npy"]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"fingerprint": "model-2"},
            ModelMismatch,
            "4 rows with fingerprint 'model-1', and this run has 'model-2'",
        ),
        ({"dim": 6}, ModelMismatch, "dim 5, and this run has 6"),
        ({"dtype": "float16"}, InvalidInput, "dtype 'float32', and this run has 'float16'"),
        ({"format": "npz"}, InvalidInput, "format 'npy', and this run has 'npz'"),
        ({"keeps_ids": True}, InvalidInput, "keeps_ids False, and this run has True"),
    ],
)
def test_rows_of_another_kind_are_not_continued(
    tmp_path: Path, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    path = tmp_path / "out.npy"
    layout = layout_for(path)
    write(path, layout, range(7), upto=4)
    with pytest.raises(error, match=f"{message}.*--restart"):
        VectorWriter(path, replace(layout, **change))
    assert write(path, layout, range(7)) == 4


def test_restart_discards_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "out.npy"
    write(path, layout_for(path), range(7), upto=4)
    assert write(path, replace(layout_for(path), fingerprint="model-2"), range(7), restart=True) == 0
    np.testing.assert_array_equal(np.load(path), rows_for(7))


@pytest.mark.parametrize("changed", [0, 3])
def test_a_changed_input_is_refused(tmp_path: Path, changed: int) -> None:
    path = tmp_path / "out.npy"
    write(path, layout_for(path), range(7), upto=4)
    records = records_for(range(7))
    for other in (TextRecord(changed, "other"), TextRecord("0", records[changed].text)):
        with (
            VectorWriter(path, layout_for(path)) as writer,
            pytest.raises(
                InvalidInput, match=r"the input has changed since row 4 was written to .*--restart"
            ),
        ):
            writer.skip_done(iter([*records[:changed], other, *records[changed + 1 :]]))
    with VectorWriter(path, layout_for(path)) as writer, pytest.raises(InvalidInput, match="has changed"):
        writer.skip_done(iter(records[:3]))
    assert write(path, layout_for(path), range(7)) == 4


@pytest.mark.parametrize("damage", ["{", "{}", "[]", '{"layout": {}}', '{"layout": {}, "rows": 1, "new": 2}'])
def test_a_damaged_spool_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "out.npy"
    write(path, layout_for(path), range(7), upto=4)
    (tmp_path / "out.npy.partial" / "state.json").write_text(damage)
    with pytest.raises(InvalidInput, match=r"out\.npy\.partial is damaged .*--restart"):
        VectorWriter(path, layout_for(path))
    assert write(path, layout_for(path), range(7), restart=True) == 0


@pytest.mark.parametrize("name", ["vectors.npy", "ids.jsonl"])
def test_rows_that_the_state_promises_and_the_files_lack_are_noticed(tmp_path: Path, name: str) -> None:
    path = tmp_path / "out.npz"
    write(path, layout_for(path, keeps_ids=True), IDS["strings"], upto=4)
    with (tmp_path / "out.npz.partial" / name).open("r+b") as file:
        file.truncate(10)
    with pytest.raises(InvalidInput, match="is damaged"):
        VectorWriter(path, layout_for(path, keeps_ids=True))


def test_a_second_writer_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.npy"
    layout = layout_for(path)
    records, rows = records_for(range(7)), rows_for(7)
    with VectorWriter(path, layout) as writer:
        writer.skip_done(iter(records))
        writer.append(records, rows)
        for restart in (False, True):
            with pytest.raises(InvalidInput, match=r"another process is writing to .*out\.npy\.partial"):
                VectorWriter(path, layout, restart=restart)
        writer.finish()
    np.testing.assert_array_equal(np.load(path), rows)


def test_an_existing_file_is_replaced_only_on_demand_and_only_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("precious")
    with pytest.raises(InvalidInput, match=r"out\.jsonl exists already.*--overwrite"):
        write(path, layout_for(path), range(7))
    assert list(tmp_path.iterdir()) == [path]
    write(path, layout_for(path), range(7), upto=6, overwrite=True)
    assert path.read_text() == "precious"
    write(path, layout_for(path), range(7), overwrite=True)
    assert load(path)[0] == list(range(7))


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "out.npy"
    with VectorWriter(path, layout_for(path)) as writer:
        writer.skip_done(iter([]))
        writer.append(records_for(range(7)), rows_for(7))
        path.write_text("precious")
        with pytest.raises(InvalidInput, match="exists already"):
            writer.finish()
    assert path.read_text() == "precious"
    assert write(path, layout_for(path), range(7), overwrite=True) == 7


def test_a_spool_whose_vectors_were_published_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "out.npy"
    write(path, layout_for(path), range(7), upto=6)
    (tmp_path / "out.npy.partial" / "vectors.npy").rename(path)  # and then came the crash
    assert write(path, layout_for(path), range(7), overwrite=True) == 0
    np.testing.assert_array_equal(np.load(path), rows_for(7))
    assert list(tmp_path.iterdir()) == [path]


def test_files_of_others_in_the_folder_stay(tmp_path: Path) -> None:
    path, foreign = tmp_path / "out.npy", tmp_path / "out.npy.partial" / "notes.txt"
    foreign.parent.mkdir()
    foreign.write_text("mine")
    write(path, layout_for(path), range(7))
    assert foreign.read_text() == "mine"
    assert list(foreign.parent.iterdir()) == [foreign]


@pytest.mark.parametrize(
    ("name", "ids", "flaw"),
    [
        ("out.npz", [1, "a"], r"the id 'a': the ids before it are of type int"),
        ("out.parquet", ["a", 1], r"the id 1: the ids before it are of type str"),
        ("out.parquet", [2**63], "it has more than 64 bits"),
        ("out.npz", ["a\0"], "numpy drops a null"),
    ],
)
def test_ids_that_a_column_cannot_hold_unchanged_are_refused_at_once(
    tmp_path: Path, name: str, ids: list[Id], flaw: str
) -> None:
    path = tmp_path / name
    with pytest.raises(InvalidInput, match=flaw):
        write(path, layout_for(path, keeps_ids=True), ids, upto=len(ids), step=1)
    write(tmp_path / "out.jsonl", layout_for(tmp_path / "out.jsonl", keeps_ids=True), ids)
    assert load(tmp_path / "out.jsonl")[0] == ids


def test_the_type_of_ids_is_remembered_by_the_next_run(tmp_path: Path) -> None:
    path, ids = tmp_path / "out.npz", [1, 2, "a"]
    write(path, layout_for(path, keeps_ids=True), ids, upto=2)
    with pytest.raises(InvalidInput, match="the ids before it are of type int"):
        write(path, layout_for(path, keeps_ids=True), ids)


def test_an_impossible_output_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInput, match=r"cannot tell a format from .*out\.bin; expected \.npy"):
        format_of(tmp_path / "out.bin")
    (tmp_path / "folder.npy").mkdir()
    for path in (tmp_path / "nowhere" / "out.npy", tmp_path / "folder.npy"):
        with pytest.raises(InvalidInput, match=r"expected a file name in a folder that exists"):
            VectorWriter(path, layout_for(path))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="writing parquet"):
        VectorWriter(tmp_path / "out.parquet", layout_for(tmp_path / "out.parquet"))
    assert [path.name for path in tmp_path.iterdir()] == ["folder.npy"]


def test_a_spool_that_cannot_be_made_is_a_failed_write(tmp_path: Path) -> None:
    path = tmp_path / "out.npy"
    (tmp_path / "out.npy.partial").write_text("a file is in the way")
    with pytest.raises(WriteFailed, match=r"cannot write .*out\.npy: .*; nothing was written"):
        VectorWriter(path, layout_for(path))


def test_a_writer_without_rows_leaves_nothing_behind(tmp_path: Path) -> None:
    with VectorWriter(tmp_path / "out.npy", layout_for(tmp_path / "out.npy")):
        assert (tmp_path / "out.npy.partial").is_dir()
    assert list(tmp_path.iterdir()) == []
