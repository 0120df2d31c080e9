"""Wrong types in a folder's JSON are refused by name, never guessed at and never a TypeError."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stand_ins import read_json, write_json

from gemel.checkpoint import Head, dialects, read_encoder_folder, read_head, read_reranker_folder
from gemel.checkpoint.head import HEAD_FOLDER
from gemel.errors import InvalidModel

BERT = "sentence_bert_config.json"
OWN = "config_sentence_transformers.json"
POOLING = "1_Pooling/config.json"
DENSE = "2_Dense/config.json"

WRONG: list[tuple[str, str, Any]] = [
    *((BERT, "max_seq_length", value) for value in ("12", 0, -1, 2.5, True, [])),
    *((BERT, "do_lower_case", value) for value in ("false", "no", 0)),
    *((BERT, key, "x") for key in ("config_args", "model_args", "tokenizer_args")),
    *((OWN, "truncate_dim", value) for value in (-3, "4", 2.5, 0)),
    *((OWN, "prompts", value) for value in ("x", {"q": 3}, ["ab"])),
    (OWN, "default_prompt_name", 3),
    (OWN, "similarity_fn_name", 3),
    *((POOLING, "pooling_mode", value) for value in (None, 3, [], [3], {})),
    *((POOLING, "include_prompt", value) for value in ("false", "no", 1)),
    (POOLING, "pooling_mode_cls_token", "false"),
    (POOLING, "word_embedding_dimension", "32"),
    *((DENSE, "in_features", value) for value in (None, -1, "64", 64.0)),
    (DENSE, "bias", "false"),
    (DENSE, "use_residual", "no"),
    (DENSE, "activation_function", 3),
    ("gemel.json", "include_special_tokens", "no"),
    *(("config.json", "max_position_embeddings", value) for value in ("40", 0, -5, 2.5, [40])),
    ("config.json", "hidden_size", "32"),
    ("tokenizer_config.json", "model_max_length", [20]),
]


def change(file: Path, **values: Any) -> None:
    write_json(file, {**(read_json(file) if file.is_file() else {}), **values})


def broken_value(case: tuple[str, str, Any]) -> str:
    return f"{case[1]}={case[2]!r}"


@pytest.mark.parametrize("case", WRONG, ids=broken_value)
def test_a_value_of_the_wrong_type_names_the_file_the_key_and_what_was_expected(
    folder: Path, case: tuple[str, str, Any]
) -> None:
    name, key, value = case
    change(folder / BERT, max_seq_length=None)
    change(folder / name, **{key: value})
    with pytest.raises(InvalidModel, match="expected") as caught:
        read_encoder_folder(folder)
    assert str(folder / name) in str(caught.value)
    assert key in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [BERT, OWN, "config.json", "tokenizer_config.json", POOLING, DENSE])
@pytest.mark.parametrize("content", ["[]", "3", "null", '"x"', "[" * 100_000, '{"a":' * 100_000])
def test_a_file_that_is_no_object_is_named(folder: Path, name: str, content: str) -> None:
    (folder / name).write_text(content, encoding="utf-8")
    with pytest.raises(
        InvalidModel, match=r"JSON object was expected|nested too deeply|not valid JSON"
    ) as caught:
        read_encoder_folder(folder)
    assert str(folder / name) in str(caught.value)


def test_null_means_not_given(folder: Path) -> None:
    before = read_encoder_folder(folder).spec
    change(folder / BERT, max_seq_length=None, do_lower_case=None, model_args=None)  # model_max_length is 20
    change(folder / OWN, default_prompt_name=None, truncate_dim=None, similarity_fn_name=None)
    change(folder / POOLING, include_prompt=None, pooling_mode_max_tokens=None)
    change(folder / DENSE, use_residual=None)
    assert read_encoder_folder(folder).spec == before


@pytest.mark.parametrize("length", [1e30, 10**30, float("inf")])
def test_a_huge_model_max_length_means_no_limit(length: float) -> None:
    assert dialects.max_tokens({}, {"model_max_length": length}, {"max_position_embeddings": 40}) == 40


@pytest.mark.parametrize("length", ["20", 0, -1, 2.5, float("nan")])
def test_an_odd_model_max_length_is_refused(length: Any) -> None:
    with pytest.raises(InvalidModel, match=r"tokenizer_config\.json sets model_max_length to .* expected"):
        dialects.max_tokens({}, {"model_max_length": length}, {})


@pytest.mark.parametrize("padding", [None, "1", -1, 41, 100])
def test_a_padding_id_that_leaves_no_positions_is_refused(padding: Any) -> None:
    config = {"model_type": "roberta", "max_position_embeddings": 42, "pad_token_id": padding}
    with pytest.raises(InvalidModel, match=r"config\.json sets pad_token_id to .* expected"):
        dialects.max_tokens({}, {}, config)


@pytest.mark.parametrize("modules", [["a"], {}, [None], 3, [{"type": 3}], [{"type": "x.Pooling", "path": 3}]])
def test_a_modules_file_of_another_shape_is_refused(folder: Path, modules: Any) -> None:
    write_json(folder / "modules.json", modules)
    with pytest.raises(InvalidModel, match=r"modules\.json .*expected"):
        read_encoder_folder(folder)


@pytest.mark.parametrize("path", ["1_Pooling\0", "\ud800"])
def test_a_module_path_that_no_file_system_knows_is_refused(folder: Path, path: str) -> None:
    modules = read_json(folder / "modules.json")
    modules[1]["path"] = path
    write_json(folder / "modules.json", modules)
    with pytest.raises(InvalidModel, match=r"modules\.json points outside of its folder"):
        read_encoder_folder(folder)


@pytest.mark.parametrize("names", [[None], "BertModel", [3], {"a": 1}])
def test_odd_architectures_are_refused(tiny_bert: Path, tmp_path: Path, names: Any) -> None:
    shutil.copytree(tiny_bert, tmp_path / "m")
    change(tmp_path / "m" / "config.json", architectures=names)
    for read in (read_encoder_folder, read_reranker_folder):
        with pytest.raises(
            InvalidModel, match=r"config\.json sets architectures to .* list of texts was expected"
        ):
            read(tmp_path / "m")


@pytest.fixture
def reranker(tiny_bert: Path, tmp_path: Path) -> Path:
    """A folder that reads as a cross-encoder; its weights are never loaded."""
    shutil.copytree(tiny_bert, tmp_path / "reranker")
    change(tmp_path / "reranker" / "config.json", architectures=["BertForSequenceClassification"])
    return tmp_path / "reranker"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("id2label", ["a"]),
        ("id2label", {"a": "x"}),
        ("id2label", {"1": "x"}),
        ("id2label", {"0": 3}),
        ("num_labels", "2"),
        ("num_labels", -1),
        ("num_labels", 10**12),
        ("sentence_transformers", "x"),
        ("sbert_ce_default_activation_function", 3),
    ],
)
def test_odd_labels_and_activations_of_a_reranker_are_refused(reranker: Path, key: str, value: Any) -> None:
    change(reranker / "config.json", **{key: value})
    with pytest.raises(InvalidModel, match=rf"config\.json sets {key} to .* expected"):
        read_reranker_folder(reranker)


def test_labels_are_read_in_the_order_of_their_numbers(reranker: Path) -> None:
    change(reranker / "config.json", id2label={str(i): f"label {i}" for i in reversed(range(11))})
    assert read_reranker_folder(reranker).labels == tuple(f"label {i}" for i in range(11))
    change(reranker / "config.json", id2label=None, num_labels=3)
    assert read_reranker_folder(reranker).labels == ("0", "1", "2")


def test_an_unknown_activation_of_a_reranker_is_named_with_the_known_ones(reranker: Path) -> None:
    change(reranker / OWN, activation_fn="torch.nn.modules.activation.Wobble")
    with pytest.raises(InvalidModel, match=r"unknown activation 'torch.*Wobble'; gemel knows identity, tanh"):
        read_reranker_folder(reranker)


@pytest.mark.parametrize("key", dialects.READER_ARGUMENTS)
def test_arguments_that_would_change_the_vectors_are_refused(folder: Path, key: str) -> None:
    harmless = {"trust_remote_code": False, "torch_dtype": "float16", "revision": None}
    change(folder / BERT, **{key: harmless})
    read_encoder_folder(folder)
    for name, value in {"do_lower_case": True, "trust_remote_code": True, "hidden_act": "relu"}.items():
        change(folder / BERT, **{key: {**harmless, name: value}})
        with pytest.raises(InvalidModel, match=rf"sentence_bert_config\.json sets '{name}' in {key}"):
            read_encoder_folder(folder)


def test_processing_kwargs_are_refused(folder: Path) -> None:
    change(folder / BERT, processing_kwargs={"text": {"padding": "max_length"}})
    with pytest.raises(InvalidModel, match=r"sentence_bert_config\.json sets processing_kwargs"):
        read_encoder_folder(folder)


@pytest.mark.parametrize("key", ["module_input_name", "module_output_name"])
def test_a_dense_layer_on_anything_but_the_sentence_is_refused(folder: Path, key: str) -> None:
    change(folder / DENSE, **{key: "sentence_embedding"})
    read_encoder_folder(folder)
    change(folder / DENSE, **{key: "token_embeddings"})
    with pytest.raises(InvalidModel, match=r"2_Dense/config\.json works on 'token_embeddings'"):
        read_encoder_folder(folder)


def test_lowercasing_and_special_tokens_are_read(folder: Path) -> None:
    spec = read_encoder_folder(folder).spec
    assert not spec.lowercase
    assert spec.pooling.include_special_tokens
    change(folder / BERT, do_lower_case=True)
    change(folder / "gemel.json", include_special_tokens=False)
    spec = read_encoder_folder(folder).spec
    assert spec.lowercase
    assert not spec.pooling.include_special_tokens


def test_an_unknown_key_in_gemels_own_settings_is_refused(folder: Path) -> None:
    change(folder / "gemel.json", include_prompts=True)
    with pytest.raises(InvalidModel, match=r"gemel\.json has the unknown key 'include_prompts'"):
        read_encoder_folder(folder)


def test_a_folder_stays_the_same_after_a_change_of_directory(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = read_encoder_folder("model")
    (tmp_path / "elsewhere").mkdir()
    os.chdir(tmp_path / "elsewhere")
    assert model.path == folder
    assert model.fingerprint == read_encoder_folder(folder).fingerprint


def into_own_folder(folder: Path) -> Path:
    inner = folder / "0_Transformer"
    inner.mkdir()
    for file in list(folder.iterdir()):
        if file.is_file() and file.name not in ("modules.json", OWN):
            shutil.move(file, inner / file.name)
    modules = read_json(folder / "modules.json")
    modules[0]["path"] = inner.name
    write_json(folder / "modules.json", modules)
    return inner


def lose_tokenizer(part: Path) -> None:
    (part / "tokenizer.json").unlink()


def pickle_weights(part: Path) -> None:
    (part / "model.safetensors").rename(part / "pytorch_model.bin")


@pytest.mark.parametrize("damage", [lose_tokenizer, pickle_weights])
def test_the_advice_to_convert_names_the_whole_model(folder: Path, damage: Callable[[Path], None]) -> None:
    inner = into_own_folder(folder)
    read_encoder_folder(folder)
    damage(inner)
    with pytest.raises(InvalidModel, match=rf"gemel convert {folder} NEW_FOLDER"):
        read_encoder_folder(folder)


def test_a_pickled_dense_layer_names_the_whole_model(folder: Path) -> None:
    pickle_weights(folder / "2_Dense")
    with pytest.raises(InvalidModel, match=rf"gemel convert {folder} NEW_FOLDER"):
        read_encoder_folder(folder)


@pytest.mark.parametrize(
    "config", [[], {"kind": 3}, {"kind": "softmax"}, {"kind": "softmax", "concatenation": "uv"}]
)
def test_a_damaged_head_is_named(tmp_path: Path, config: Any) -> None:
    write_json(tmp_path / HEAD_FOLDER / "config.json", config)
    with pytest.raises(InvalidModel, match=rf"{HEAD_FOLDER}/config\.json"):
        read_head(tmp_path)


def test_a_folder_without_a_head_has_none(folder: Path) -> None:
    head: Head | None = read_head(folder)
    assert head is None
