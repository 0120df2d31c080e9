"""Pickles become safetensors, or are refused with a sentence."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from stand_ins import read_json, write_json

from gemel.checkpoint import Dense, read_encoder_folder, read_weights, save_encoder_folder
from gemel.errors import InvalidInput, InvalidModel, ModelNotFound
from gemel.model.convert import convert

PICKLE = "pytorch_model.bin"


@pytest.fixture
def old(tiny_bert: Path, tmp_path: Path) -> Path:
    """A folder as it was before safetensors."""
    folder = tmp_path / "old"
    shutil.copytree(tiny_bert, folder)
    torch.save(as_tensors(load_file(folder / "model.safetensors")), folder / PICKLE)
    (folder / "model.safetensors").unlink()
    return folder


def as_tensors(arrays: dict[str, Any]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def only_vocabulary(folder: Path) -> None:
    """Take tokenizer.json away and leave the vocabulary that it can be made of."""
    words = read_json(folder / "tokenizer.json")["model"]["vocab"]
    (folder / "vocab.txt").write_text("\n".join(sorted(words, key=words.__getitem__)), encoding="utf-8")
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "BertTokenizer", "do_lower_case": True})
    (folder / "tokenizer.json").unlink()


def test_a_converted_folder_is_the_same_model(old: Path, tiny_bert: Path, tmp_path: Path) -> None:
    assert convert(old, tmp_path / "new") == [PICKLE]
    assert read_encoder_folder(tmp_path / "new").fingerprint == read_encoder_folder(tiny_bert).fingerprint
    assert not (tmp_path / "new" / PICKLE).exists()


def test_parameters_views_and_bfloat16_become_plain_arrays(old: Path, tmp_path: Path) -> None:
    values = torch.arange(6.0).reshape(2, 3)
    state = {
        "parameter": torch.nn.Parameter(values),
        "turned": values.T,
        "every second": torch.arange(6)[::2],
        "narrow": values.bfloat16(),
        "number": torch.tensor(3.0),
    }
    torch.save(state, old / PICKLE)
    convert(old, tmp_path / "new")
    saved = load_file(tmp_path / "new" / "model.safetensors")
    assert set(saved) == set(state)
    for name, tensor in state.items():
        np.testing.assert_array_equal(saved[name], tensor.detach().float().numpy())
        assert saved[name].shape == tuple(tensor.shape)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"a": torch.eye(3).to_sparse()}, r"the tensor 'a' is torch\.sparse_coo of torch\.float32"),
        ({"a": torch.ones(2, dtype=torch.complex64)}, r"of torch\.complex64, and plain numbers are needed"),
        ({3: torch.ones(2)}, "names a tensor 3, and a text was expected"),
        ({"a": 3}, "holds no tensors"),
        ([torch.ones(2)], "holds a list, and a table of tensors was expected"),
    ],
)
def test_a_pickle_of_anything_else_is_refused(old: Path, tmp_path: Path, state: Any, message: str) -> None:
    torch.save(state, old / PICKLE)
    with pytest.raises(InvalidModel, match=message):
        convert(old, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("content", [b"", b"junk", b"\x80"])
def test_a_damaged_pickle_is_refused(old: Path, tmp_path: Path, content: bytes) -> None:
    (old / PICKLE).write_bytes(content)
    with pytest.raises(InvalidModel, match=rf"{PICKLE} holds more than weights, or is damaged \(.+\)"):
        convert(old, tmp_path / "new")


@pytest.mark.parametrize(
    "index", [{}, [], {"weight_map": None}, {"weight_map": {"a": 3}}, {"weight_map": "x"}]
)
def test_an_index_without_a_map_of_weights_is_refused(old: Path, tmp_path: Path, index: Any) -> None:
    write_json(old / f"{PICKLE}.index.json", index)
    with pytest.raises(InvalidModel, match=rf"{PICKLE}\.index\.json .* expected"):
        convert(old, tmp_path / "new")


def test_shards_of_a_pickle_become_one_file(old: Path, tiny_bert: Path, tmp_path: Path) -> None:
    weights = torch.load(old / PICKLE, weights_only=True)
    (old / PICKLE).unlink()
    parts = {name: f"part-{number % 2}.bin" for number, name in enumerate(sorted(weights))}
    for part in set(parts.values()):
        torch.save({name: weights[name] for name in weights if parts[name] == part}, old / part)
    write_json(old / f"{PICKLE}.index.json", {"weight_map": parts})
    convert(old, tmp_path / "new")
    assert read_encoder_folder(tmp_path / "new").fingerprint == read_encoder_folder(tiny_bert).fingerprint


@pytest.mark.parametrize("target", ["old", "old/new", "old/deep/new", "."])
def test_a_target_in_or_around_the_source_is_refused(old: Path, tmp_path: Path, target: str) -> None:
    with pytest.raises(InvalidInput, match="name a target outside of the source"):
        convert(old, tmp_path / target, overwrite=True)
    assert (old / PICKLE).is_file()


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="there is no model folder"):
        convert(tmp_path / "nowhere", tmp_path / "new")


def test_a_transformer_in_its_own_folder_gets_its_tokenizer_and_the_dense_layer_gets_none(
    tiny_bert: Path, tmp_path: Path
) -> None:
    plain = read_encoder_folder(tiny_bert)
    spec = plain.spec.__class__(hidden_size=32, max_tokens=20, tail=(Dense(32, 8, bias=False),))
    layer = {"linear.weight": np.ones((8, 32), np.float32)}
    whole, inner = tmp_path / "old", tmp_path / "old" / "0_Transformer"
    save_encoder_folder(whole, plain.with_spec(spec), read_weights(plain.weight_files), [layer])
    inner.mkdir()
    for file in [file for file in whole.iterdir() if file.is_file() and file.name != "modules.json"]:
        file.rename(inner / file.name)
    modules = read_json(whole / "modules.json")
    modules[0]["path"] = inner.name
    write_json(whole / "modules.json", modules)
    only_vocabulary(inner)
    for part in (inner, whole / "2_Dense"):
        torch.save(as_tensors(load_file(part / "model.safetensors")), part / PICKLE)
        (part / "model.safetensors").unlink()
    assert convert(whole, tmp_path / "new") == [f"0_Transformer/{PICKLE}", f"2_Dense/{PICKLE}"]
    assert (tmp_path / "new" / "0_Transformer" / "tokenizer.json").is_file()
    assert not (tmp_path / "new" / "2_Dense" / "tokenizer.json").exists()
    assert read_encoder_folder(tmp_path / "new").spec.tail == spec.tail


def test_a_tokenizer_that_cannot_be_made_is_said_so(old: Path, tmp_path: Path) -> None:
    (old / "tokenizer.json").unlink()
    write_json(old / "tokenizer_config.json", {"tokenizer_class": "XLMRobertaTokenizer"})
    (old / "sentencepiece.bpe.model").write_bytes(b"junk")
    with pytest.raises(InvalidModel, match=r"has no tokenizer\.json, and none could be made for it \(.+\)"):
        convert(old, tmp_path / "new")


def test_a_folder_with_nothing_to_convert_is_refused(tiny_bert: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="there is nothing to convert"):
        convert(tiny_bert, tmp_path / "new")
