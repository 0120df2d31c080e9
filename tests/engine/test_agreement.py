"""The native engine computes what torch computes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from engine.native import INSTRUCTION_SETS, PRECISIONS, changed, cosines, native
from safetensors.numpy import load_file, save_file
from stand_ins import ARCHITECTURES, read_json, sentences, write_json

from gemel.checkpoint import POOLING_MODES, Dense, Normalise, Pooling, read_encoder_folder
from gemel.checkpoint.spec import ACTIVATIONS
from gemel.engine import NativeEncoder
from gemel.model import SentenceEncoder

TEXTS = sentences(60, seed=5, max_words=45)


def by_torch(model: object) -> SentenceEncoder:
    folder = read_encoder_folder(model) if isinstance(model, Path) else model
    return SentenceEncoder(folder, device="cpu", on_truncate="ignore")  # type: ignore[arg-type]


def quietly(encoder: NativeEncoder) -> NativeEncoder:
    return encoder.with_on_truncate("ignore")


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_family_on_every_instruction_set(
    tiny_model: Callable[[str], Path], architecture: str, instruction_set: str
) -> None:
    folder = tiny_model(architecture)
    expected = by_torch(folder).encode(TEXTS)
    exact = quietly(native(folder, "float32", instruction_set)).encode(TEXTS)
    np.testing.assert_allclose(exact, expected, rtol=1e-4, atol=2e-5)
    assert cosines(exact, expected).min() > 0.99999
    assert cosines(quietly(native(folder, "int8", instruction_set)).encode(TEXTS), expected).min() > 0.97


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("architecture", ["bert", "mpnet"])
def test_every_length_up_to_the_limit(
    tiny_model: Callable[[str], Path], architecture: str, precision: str
) -> None:
    folder = tiny_model(architecture)
    texts = [" ".join(["dog", "the", "sleeps", "man"][i % 4] for i in range(n)) for n in range(39)]
    cosine = cosines(native(folder, precision).encode(texts), by_torch(folder).encode(texts))
    assert cosine.min() > (0.99999 if precision == "float32" else 0.97)


def test_five_hundred_and_twelve_tokens(tmp_path: Path) -> None:
    folder = tmp_path / "long"
    made = transformer("BertConfig", "BertModel", max_position_embeddings=512, num_attention_heads=2)
    made.save_pretrained(folder)
    ids = np.random.default_rng(0).integers(0, 50, 512).astype(np.int32)
    engine = engine_of(folder)
    for n in (1, 2, 15, 16, 17, 31, 33, 255, 511, 512):
        out = np.zeros((n, 48), np.float32)
        engine.encode(ids[:n], np.array([0, n]), None, [], [0, 0, 0], "tokens", out)
        np.testing.assert_allclose(out, token_vectors(made, ids[:n]), rtol=1e-3, atol=1e-4)


def test_mpnet_knows_distances_beyond_its_buckets(tmp_path: Path) -> None:
    folder = tmp_path / "long"
    made = transformer("MPNetConfig", "MPNetModel", max_position_embeddings=514, num_attention_heads=3)
    made.save_pretrained(folder)
    ids = np.random.default_rng(1).integers(5, 50, 400).astype(np.int32)
    out = np.zeros((400, 48), np.float32)
    engine_of(folder).encode(ids, np.array([0, 400]), None, [], [0, 0, 0], "tokens", out)
    np.testing.assert_allclose(out, token_vectors(made, ids), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("padding", [{}, {"pad_token_id": 0}, {"pad_token_id": 3}])
@pytest.mark.parametrize("family", ["Roberta", "MPNet"])
def test_positions_start_where_the_padding_token_says(
    family: str, padding: dict[str, int], tmp_path: Path
) -> None:
    settings = {"max_position_embeddings": 42, "num_attention_heads": 3, **padding}
    made = transformer(f"{family}Config", f"{family}Model", **settings)
    made.save_pretrained(tmp_path)
    ids = np.random.default_rng(2).integers(5, 50, 30).astype(np.int32)
    expected = token_vectors(made, ids)
    out = np.zeros((30, 48), np.float32)
    engine_of(tmp_path).encode(ids, np.array([0, 30]), None, [], [0, 0, 0], "tokens", out)
    np.testing.assert_allclose(out, expected, rtol=1e-3, atol=1e-4)


def token_vectors(model: torch.nn.Module, ids: np.ndarray) -> np.ndarray:
    with torch.inference_mode():
        return model(torch.tensor(ids[None].astype(np.int64))).last_hidden_state[0].numpy()


def transformer(config_class: str, model_class: str, **settings: int) -> torch.nn.Module:
    """A transformer of odd sizes: 48 wide, heads that fill no vector, a feed-forward layer of 100."""
    import transformers

    torch.manual_seed(0)
    size = {"hidden_size": 48, "num_hidden_layers": 2, "intermediate_size": 100, "vocab_size": 50}
    model = getattr(transformers, model_class)(getattr(transformers, config_class)(**size, **settings)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    module: torch.nn.Module = model
    return module


def engine_of(folder: Path) -> object:
    from gemel.engine.assembly import Assembly, EngineSettings

    config = read_json(folder / "config.json")
    settings = EngineSettings("float32", "", 2)
    return Assembly(folder, config, (folder / "model.safetensors",), settings).build()


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu", "silu"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_activation(tiny_bert: Path, tmp_path: Path, activation: str, precision: str) -> None:
    folder = copied(tiny_bert, tmp_path)
    write_json(folder / "config.json", {**read_json(folder / "config.json"), "hidden_act": activation})
    cosine = cosines(quietly(native(folder, precision)).encode(TEXTS), by_torch(folder).encode(TEXTS))
    assert cosine.min() > (0.99999 if precision == "float32" else 0.97)


@pytest.mark.parametrize("includes_special", [True, False])
@pytest.mark.parametrize("mode", POOLING_MODES)
def test_every_pooling(tiny_bert: Path, mode: str, includes_special: bool) -> None:
    pooling = Pooling((mode,), include_special_tokens=includes_special)
    model = changed(tiny_bert, pooling=pooling)
    texts = ["", *TEXTS]
    np.testing.assert_allclose(
        quietly(native(model)).encode(texts), by_torch(model).encode(texts), rtol=1e-4, atol=2e-5
    )


def test_poolings_in_any_order_with_a_prompt_that_does_not_count(tiny_bert: Path) -> None:
    model = changed(
        tiny_bert,
        pooling=Pooling(("max", "lasttoken", "mean", "cls"), include_prompt=False),
        prompts={"query": "the man and "},
        default_prompt="query",
    )
    np.testing.assert_allclose(
        quietly(native(model)).encode(TEXTS), by_torch(model).encode(TEXTS), rtol=1e-4, atol=2e-5
    )


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_tail(tiny_bert: Path, tmp_path: Path, activation: str) -> None:
    folder = tmp_path / "tail"
    layers = (
        Dense(32, 20, activation=activation),
        Dense(20, 20, bias=False, activation="identity", residual=True),
        Dense(20, 8, residual=True),
        Normalise(),
    )
    SentenceEncoder(changed(tiny_bert, tail=()), device="cpu").save(folder)
    model = with_tail(folder, layers)
    expected = by_torch(model).encode(TEXTS)
    np.testing.assert_allclose(quietly(native(model)).encode(TEXTS), expected, rtol=1e-4, atol=2e-5)


def with_tail(folder: Path, layers: tuple[Dense | Normalise, ...]) -> Path:
    """The folder with a tail of random weights."""
    generator = np.random.default_rng(0)
    modules = read_json(folder / "modules.json")[:2]
    for number, layer in enumerate(layers, 2):
        name = type(layer).__name__.replace("Normalise", "Normalize")
        modules.append({"idx": number, "name": str(number), "path": f"{number}_{name}"})
        modules[-1]["type"] = f"sentence_transformers.models.{name}"
        (folder / f"{number}_{name}").mkdir()
        if isinstance(layer, Dense):
            tensors = {
                key: generator.standard_normal(shape).astype(np.float32) * 0.3
                for key, shape in layer.tensor_shapes().items()
            }
            save_file(tensors, folder / f"{number}_{name}" / "model.safetensors")
            classes = {
                "silu": "SiLU",
                "relu": "ReLU",
                "gelu": "GELU",
                "elu": "ELU",
                "leaky_relu": "LeakyReLU",
            }
            named = classes.get(layer.activation, layer.activation.title())
            write_json(
                folder / f"{number}_{name}" / "config.json",
                {
                    "in_features": layer.in_features,
                    "out_features": layer.out_features,
                    "bias": layer.bias,
                    "activation_function": f"torch.nn.modules.activation.{named}"
                    if layer.activation != "identity"
                    else "torch.nn.modules.linear.Identity",
                    **({"use_residual": True} if layer.residual else {}),
                },
            )
    write_json(folder / "modules.json", modules)
    return folder


def copied(folder: Path, to: Path) -> Path:
    import shutil

    return Path(shutil.copytree(folder, to / "copy"))


def test_the_last_word_of_the_vocabulary_and_none_beyond(tiny_bert: Path) -> None:
    encoder = native(tiny_bert)
    last = int(encoder.folder.config["vocab_size"]) - 1
    out = np.zeros((1, 32), np.float32)
    ids = np.array([0, last], np.int32)
    encoder._engine.encode(ids, np.array([0, 2]), None, ["mean"], [0, 0, 0], "pooled", out)
    assert np.abs(out).max() > 0
    with pytest.raises(ValueError, match="not in the vocabulary"):
        encoder._engine.encode(ids + 1, np.array([0, 2]), None, ["mean"], [0, 0, 0], "pooled", out)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_checkpoints(tiny_bert: Path, tmp_path: Path, dtype: str) -> None:
    folder = copied(tiny_bert, tmp_path)
    from safetensors.torch import load_file as load_tensors
    from safetensors.torch import save_file as save_tensors

    file = folder / "model.safetensors"
    save_tensors({name: x.to(getattr(torch, dtype)) for name, x in load_tensors(file).items()}, file)
    assert cosines(quietly(native(folder)).encode(TEXTS), by_torch(folder).encode(TEXTS)).min() > 0.99999


def test_a_prefix_and_old_names_of_tensors_are_found(tiny_bert: Path, tmp_path: Path) -> None:
    folder = copied(tiny_bert, tmp_path)
    tensors = load_file(folder / "model.safetensors")
    old = {
        "bert."
        + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): x
        for name, x in tensors.items()
    }
    save_file(old, folder / "model.safetensors")
    np.testing.assert_array_equal(
        quietly(native(folder)).encode(TEXTS), quietly(native(tiny_bert)).encode(TEXTS)
    )
