"""Reading and writing model folders, whole and broken."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from stand_ins import read_json, write_json

from gemel.checkpoint import (
    Dense,
    Normalise,
    Pooling,
    read_encoder_folder,
    read_weights,
    save_encoder_folder,
)
from gemel.checkpoint.folder import UNFINISHED
from gemel.errors import InvalidInput, InvalidModel, ModelNotFound, WriteFailed


def test_a_plain_transformer_gets_mean_pooling(tiny_bert: Path) -> None:
    model = read_encoder_folder(tiny_bert)
    assert model.spec.pooling == Pooling(("mean",))
    assert not model.names_its_pooling
    assert model.spec.dim == 32


def test_a_saved_folder_reads_back_as_it_was(folder: Path) -> None:
    model = read_encoder_folder(folder)
    assert model.spec.pooling.modes == ("cls", "mean")
    assert model.spec.tail == (Dense(64, 8), Normalise())
    assert model.spec.dim == 8
    assert model.spec.max_tokens == 20
    assert model.spec.prompts == {"query": "the "}
    assert read_json(folder / "tokenizer_config.json")["model_max_length"] == 20


def test_the_newer_dialect_gives_the_same_fingerprint(folder: Path) -> None:
    before = read_encoder_folder(folder).fingerprint
    write_json(
        folder / "1_Pooling" / "config.json",
        {"embedding_dimension": 32, "pooling_mode": ["cls", "mean"], "include_prompt": True},
    )
    write_json(folder / "sentence_bert_config.json", {"transformer_task": "feature-extraction"})
    modules = read_json(folder / "modules.json")
    modules[0]["type"] = "sentence_transformers.base.modules.transformer.Transformer"
    modules[1]["type"] = "sentence_transformers.sentence_transformer.modules.pooling.Pooling"
    write_json(folder / "modules.json", modules)
    assert read_encoder_folder(folder).fingerprint == before


def test_the_fingerprint_changes_with_weights_pooling_and_tokenizer(folder: Path) -> None:
    seen = {read_encoder_folder(folder).fingerprint}
    weights = load_file(folder / "model.safetensors")
    name = sorted(weights)[0]
    weights[name] = weights[name] + 1e-3
    save_file(weights, folder / "model.safetensors")
    seen.add(read_encoder_folder(folder).fingerprint)
    pooling = read_json(folder / "1_Pooling" / "config.json")
    pooling["include_prompt"] = False
    write_json(folder / "1_Pooling" / "config.json", pooling)
    seen.add(read_encoder_folder(folder).fingerprint)
    tokenizer = read_json(folder / "tokenizer.json")
    tokenizer["version"] = "1.1"
    write_json(folder / "tokenizer.json", tokenizer)
    seen.add(read_encoder_folder(folder).fingerprint)
    assert len(seen) == 4


def test_a_first_module_in_its_own_folder_is_found(folder: Path) -> None:
    inner = folder / "0_Transformer"
    inner.mkdir()
    for file in list(folder.iterdir()):
        if file.is_file() and file.name not in ("modules.json", "config_sentence_transformers.json"):
            shutil.move(file, inner / file.name)
    modules = read_json(folder / "modules.json")
    modules[0]["path"] = "0_Transformer"
    write_json(folder / "modules.json", modules)
    model = read_encoder_folder(folder)
    assert model.transformer.name == "0_Transformer"
    assert model.spec.max_tokens == 20


def test_legacy_names_of_the_transformer_settings_are_read(folder: Path) -> None:
    (folder / "sentence_bert_config.json").rename(folder / "sentence_roberta_config.json")
    write_json(folder / "sentence_roberta_config.json", {"max_seq_length": 9})
    assert read_encoder_folder(folder).spec.max_tokens == 9


@pytest.mark.parametrize("name", ["config.json", "1_Pooling/config.json", "2_Dense/config.json"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(InvalidModel, match=r"has no config\.json, which a .* needs"):
        read_encoder_folder(folder)


def test_missing_weights_are_named(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(InvalidModel, match=r"has no model\.safetensors"):
        read_encoder_folder(folder)


@pytest.mark.parametrize("kept", [0, 4, 100, 5_000])
def test_truncated_weights_are_refused(folder: Path, kept: int) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(InvalidModel, match=r"model\.safetensors is (damaged|not a whole safetensors file)"):
        read_encoder_folder(folder)


def test_a_damaged_header_is_refused(folder: Path) -> None:
    file = folder / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[8:12] = b"oops"
    file.write_bytes(content)
    with pytest.raises(InvalidModel, match="damaged safetensors header"):
        read_encoder_folder(folder)


def test_a_wrong_shape_names_the_tensor_the_expected_and_the_found(folder: Path) -> None:
    save_file({"linear.weight": np.ones((8, 63), np.float32)}, folder / "2_Dense" / "model.safetensors")
    with pytest.raises(InvalidModel, match=r"'linear.weight' has shape \(8, 63\), expected \(8, 64\)"):
        read_encoder_folder(folder)


def test_a_pickle_is_refused_and_the_way_out_named(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(InvalidModel, match=r"pickle \(pytorch_model.bin\).*gemel convert"):
        read_encoder_folder(folder)


def test_broken_json_is_named(folder: Path) -> None:
    (folder / "modules.json").write_text("[{", encoding="utf-8")
    with pytest.raises(InvalidModel, match=r"modules\.json is not valid JSON"):
        read_encoder_folder(folder)


def test_an_unknown_module_is_named_with_the_known_ones(folder: Path) -> None:
    modules = read_json(folder / "modules.json")
    modules[2]["type"] = "sentence_transformers.models.LSTM"
    write_json(folder / "modules.json", modules)
    with pytest.raises(
        InvalidModel, match=r"models\.LSTM'; gemel knows Transformer, Pooling, Dense, Normalize"
    ):
        read_encoder_folder(folder)


def test_a_module_outside_of_the_folder_is_refused(folder: Path) -> None:
    modules = read_json(folder / "modules.json")
    modules[1]["path"] = "../elsewhere"
    write_json(folder / "modules.json", modules)
    with pytest.raises(InvalidModel, match="points outside of its folder"):
        read_encoder_folder(folder)


def test_a_pooling_of_another_width_is_refused(folder: Path) -> None:
    pooling = read_json(folder / "1_Pooling" / "config.json")
    pooling["word_embedding_dimension"] = 31
    write_json(folder / "1_Pooling" / "config.json", pooling)
    with pytest.raises(InvalidModel, match="Pooling expects vectors of 31, the transformer has 32"):
        read_encoder_folder(folder)


def test_a_missing_folder_is_a_file_not_found_error(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="there is no model folder"):
        read_encoder_folder(tmp_path / "nowhere")
    assert issubclass(ModelNotFound, FileNotFoundError)


def test_an_unfinished_folder_can_never_be_loaded(folder: Path) -> None:
    (folder / UNFINISHED).touch()
    with pytest.raises(InvalidModel, match="was not written to its end"):
        read_encoder_folder(folder)


def test_a_failing_save_leaves_no_folder_and_no_litter(folder: Path, tmp_path: Path) -> None:
    model = read_encoder_folder(folder)
    (folder / "vocab.txt").symlink_to("/proc/self/mem")  # reading this file fails
    with pytest.raises(WriteFailed, match="nothing was changed"):
        save_encoder_folder(tmp_path / "copy", model, {}, [{}])
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_an_existing_folder_is_kept_unless_told_otherwise(folder: Path) -> None:
    model = read_encoder_folder(folder)
    weights = read_weights(model.weight_files)
    dense = [read_weights((file,)) for file in model.dense_files]
    before = model.fingerprint
    with pytest.raises(InvalidInput, match="exists already"):
        save_encoder_folder(folder, model, weights, dense)
    save_encoder_folder(folder, model, weights, dense, overwrite=True)
    assert read_encoder_folder(folder).fingerprint == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_shards_are_read_as_one_model(folder: Path) -> None:
    whole = read_encoder_folder(folder).fingerprint
    weights = load_file(folder / "model.safetensors")
    names = sorted(weights)
    halves = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
    for file, part in halves.items():
        save_file({name: weights[name] for name in part}, folder / file)
    index = {name: file for file, part in halves.items() for name in part}
    write_json(folder / "model.safetensors.index.json", {"weight_map": index})
    (folder / "model.safetensors").unlink()
    assert read_encoder_folder(folder).fingerprint == whole
    (folder / "model-2.safetensors").unlink()
    with pytest.raises(InvalidModel, match=r"names 'model-2\.safetensors', which is not in the folder"):
        read_encoder_folder(folder)


def test_bfloat16_weights_are_widened_exactly(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file as save_torch

    values = torch.tensor([1.5, -2.25, 3e38, 1e-30], dtype=torch.bfloat16)
    save_torch({"x": values}, tmp_path / "model.safetensors")
    read = read_weights((tmp_path / "model.safetensors",))["x"]
    assert read.dtype == np.float32
    assert read.tolist() == values.float().tolist()


@pytest.mark.parametrize("name", ["custom_st.Transformer", "my_code.Pooling", "Transformer"])
def test_modules_of_others_are_not_taken_for_those_of_the_library(folder: Path, name: str) -> None:
    modules = read_json(folder / "modules.json")
    for module in modules:
        if module["type"].endswith(name.rpartition(".")[2]):
            module["type"] = name
    write_json(folder / "modules.json", modules)
    with pytest.raises(
        InvalidModel, match=f"has the module '{name}'; gemel knows .* of sentence_transformers"
    ):
        read_encoder_folder(folder)


def test_code_of_a_model_is_refused_where_it_would_compute_the_vectors(folder: Path) -> None:
    config = read_json(folder / "config.json")
    write_json(folder / "config.json", {**config, "auto_map": {"AutoModelForMaskedLM": "modeling.Masked"}})
    read_encoder_folder(folder)
    write_json(folder / "config.json", {**config, "auto_map": {"AutoModel": "modeling.BothWays"}})
    with pytest.raises(InvalidModel, match=r"names code of its own, modeling.BothWays \(auto_map\)"):
        read_encoder_folder(folder)


@pytest.mark.parametrize("kind", ["relative_key", "relative_key_query", "alibi"])
def test_positions_that_no_engine_computes_are_refused_by_name(folder: Path, kind: str) -> None:
    config = read_json(folder / "config.json")
    write_json(folder / "config.json", {**config, "position_embedding_type": kind})
    with pytest.raises(InvalidModel, match=f"sets position_embedding_type to '{kind}', which neither"):
        read_encoder_folder(folder)
    write_json(folder / "config.json", {**config, "position_embedding_type": "absolute"})
    read_encoder_folder(folder)
