"""safetensors files that lie about themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from stand_ins import read_json, write_json

from gemel.checkpoint import WeightFile, read_encoder_folder, read_weights
from gemel.errors import InvalidModel


def write_tensors(file: Path, header: Any, n_bytes: int = 16) -> Path:
    content = header if isinstance(header, bytes) else json.dumps(header).encode()
    file.write_bytes(len(content).to_bytes(8, "little") + content + bytes(range(n_bytes)))
    return file


def tensor(start: Any, end: Any, shape: Any = (2,), dtype: Any = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


@pytest.mark.parametrize(
    "header",
    [
        [],
        None,
        b"[" * 100_000,
        {"a": []},
        {"a": None},
        {"a": {}},
        {"a": tensor(0, 16, [-2, -2])},
        {"a": tensor(0, 16, [4.0])},
        {"a": tensor(0, 16, ["4"])},
        {"a": tensor(0, 16, "4")},
        {"a": tensor(0, 16, [True, 4])},
        {"a": tensor(0, 16, [2**62, 4, 2**62])},
        {"a": tensor(0, 0, [2**32, 2**32])},  # 2**64 elements are 0 in 64 bits
        {"a": tensor(0, 16, [4], dtype=["F32"])},
        {"a": tensor(0, 16, [4], dtype="F99")},
        {"a": tensor(-16, 0, [4])},
        {"a": tensor("0", 16, [4])},
        {"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16, 3]}},
        {"a": tensor(0, 8), "b": tensor(0, 8), "c": tensor(8, 16)},
        {"a": tensor(0, 8), "b": tensor(4, 12), "c": tensor(12, 16, [1])},
        {"a": tensor(8, 16)},
        {"a": tensor(0, 4, [1]), "b": tensor(8, 16)},
        {"__metadata__": 3, "a": tensor(0, 16, [4])},
        {"__metadata__": {"format": 3}, "a": tensor(0, 16, [4])},
    ],
    ids=lambda header: str(header)[:60],
)
def test_a_header_that_cannot_be_true_is_refused(tmp_path: Path, header: Any) -> None:
    with pytest.raises(InvalidModel, match=r"model\.safetensors has a damaged safetensors header"):
        WeightFile.open(write_tensors(tmp_path / "model.safetensors", header))


def test_tensors_are_read_from_where_they_start_whatever_the_order_of_their_names(tmp_path: Path) -> None:
    header = {
        "__metadata__": {"format": "pt"},
        "a": tensor(8, 16, [8], "U8"),
        "b": tensor(0, 8, [2, 4], "U8"),
        "c": tensor(8, 8, [0], "U8"),
    }
    read = read_weights((write_tensors(tmp_path / "model.safetensors", header),))
    assert read["a"].tolist() == list(range(8, 16))
    assert read["b"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert read["c"].shape == (0,)


def test_bytes_after_the_last_tensor_are_refused(tmp_path: Path) -> None:
    file = write_tensors(tmp_path / "model.safetensors", {"a": tensor(0, 16, [4])}, n_bytes=17)
    with pytest.raises(
        InvalidModel, match=r"its header promises \d+ bytes and the file has \d+; get it again"
    ):
        WeightFile.open(file)


@pytest.mark.parametrize(
    "index",
    [
        *("{", "[]", "null", "{}"),
        *('{"weight_map": null}', '{"weight_map": {}}', '{"weight_map": ["a"]}', '{"weight_map": {"a": 3}}'),
        *('{"weight_map": {"a": "x\\u0000"}}', '{"weight_map": {"a": "../x"}}'),
    ],
)
def test_a_damaged_index_of_shards_is_named(folder: Path, index: str) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(index, encoding="utf-8")
    with pytest.raises(InvalidModel, match=r"model\.safetensors\.index\.json"):
        read_encoder_folder(folder)


def test_a_dense_layer_in_several_files_is_refused(folder: Path) -> None:
    dense = folder / "2_Dense"
    (dense / "model.safetensors").unlink()
    save_file({"linear.weight": np.ones((8, 64), np.float32)}, dense / "a.safetensors")
    save_file({"linear.bias": np.ones(8, np.float32)}, dense / "b.safetensors")
    names = {"linear.weight": "a.safetensors", "linear.bias": "b.safetensors"}
    write_json(dense / "model.safetensors.index.json", {"weight_map": names})
    with pytest.raises(InvalidModel, match=r"2_Dense holds its weights in 2 files, and one was expected"):
        read_encoder_folder(folder)


def test_a_dense_layer_without_weights_is_named(folder: Path) -> None:
    (folder / "2_Dense" / "model.safetensors").unlink()
    with pytest.raises(InvalidModel, match=r"2_Dense has no model\.safetensors"):
        read_encoder_folder(folder)


def test_a_tensor_that_a_dense_layer_has_no_place_for_is_named(folder: Path) -> None:
    config = read_json(folder / "2_Dense" / "config.json")
    write_json(folder / "2_Dense" / "config.json", {**config, "bias": False})
    with pytest.raises(InvalidModel, match=r"2_Dense/model\.safetensors has the tensor 'linear\.bias'"):
        read_encoder_folder(folder)
