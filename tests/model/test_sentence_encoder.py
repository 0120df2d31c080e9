"""The torch encoder: shapes, order, prompts, long texts, bad input."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from stand_ins import ARCHITECTURES, read_json, sentences, write_json

from gemel.checkpoint import Dense, Normalise, Pooling, read_encoder_folder
from gemel.checkpoint.spec import EncoderSpec
from gemel.contracts import Encoder
from gemel.errors import InvalidInput, InvalidModel, TruncationWarning
from gemel.model import SentenceEncoder


@pytest.fixture(scope="module")
def encoder(tiny_bert: Path) -> SentenceEncoder:
    return open_encoder(tiny_bert)


def open_encoder(folder: Path, **changes: object) -> SentenceEncoder:
    model = read_encoder_folder(folder)
    if changes:
        model = model.with_spec(EncoderSpec(**{**vars(model.spec), **changes}))
    return SentenceEncoder(model, device="cpu")


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def test_it_is_an_encoder(encoder: SentenceEncoder) -> None:
    assert isinstance(encoder, Encoder)


def test_one_shape_in_one_shape_out(encoder: SentenceEncoder) -> None:
    for texts in ([], ["the man"], ("the", "a"), np.array(["the", "a", "dog"])):
        vectors = encoder.encode(texts)
        assert vectors.shape == (len(texts), 32)
        assert vectors.dtype == np.float32
    assert encoder.encode_one("the man").shape == (32,)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_order_is_restored_and_batches_do_not_matter(
    tiny_model: Callable[[str], Path], architecture: str
) -> None:
    encoder = open_encoder(tiny_model(architecture))
    texts = sentences(200, seed=3, max_words=7)
    together = encoder.encode(texts)
    alone = np.stack([encoder.encode_one(text) for text in texts])
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-5)


def test_vectors_differ_between_texts(encoder: SentenceEncoder) -> None:
    vectors = encoder.encode(["the man is eating", "the dog sleeps in the garden", "a red house"])
    similarity = np.corrcoef(vectors)
    assert similarity[np.triu_indices(3, 1)].max() < 0.99


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\0", "a\0b", "🙂", "한국어"])
def test_odd_texts_get_finite_vectors(encoder: SentenceEncoder, text: str) -> None:
    assert np.isfinite(encoder.encode_one(text)).all()


def test_ten_megabytes_in_one_text_are_cut(encoder: SentenceEncoder) -> None:
    huge = "the man is eating food . " * 400_000
    with pytest.warns(TruncationWarning):
        vector = encoder.encode_one(huge)
    np.testing.assert_allclose(
        vector, encoder.with_on_truncate("ignore").encode_one(huge[:1_000]), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("a bare string", r"one str was given; use encode_one\(text\)"),
        (b"bytes", "one bytes was given"),
        (["fine", None], "text 1 is None"),
        (["fine", "fine", 3.5], "text 2 is the float 3.5"),
        ([["nested"]], "text 0 is the list"),
        (7, "a int was given"),
        ({"a": 1}, "a dict was given"),
        (["lone \ud800"], "text 0 holds a lone surrogate"),
    ],
)
def test_bad_input_gets_one_clear_sentence(encoder: SentenceEncoder, texts: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        encoder.encode(texts)  # type: ignore[arg-type]


def test_encode_one_refuses_a_list(encoder: SentenceEncoder) -> None:
    with pytest.raises(InvalidInput, match="encode_one takes one str and a list was given"):
        encoder.encode_one(["a"])  # type: ignore[arg-type]


def test_a_model_in_training_gives_its_true_vectors(tiny_bert: Path) -> None:
    encoder = open_encoder(tiny_bert)
    expected = encoder.encode(["the man sleeps"])
    encoder.train()
    np.testing.assert_array_equal(encoder.encode(["the man sleeps"]), expected)
    assert encoder.training


def test_the_class_token_stays_when_the_mean_leaves_special_tokens_out(tiny_bert: Path) -> None:
    pooling = Pooling(("cls", "mean"), include_special_tokens=False)
    both = open_encoder(tiny_bert, pooling=pooling).encode(["the man sleeps"])
    cls = open_encoder(tiny_bert, pooling=Pooling(("cls",))).encode(["the man sleeps"])
    mean = open_encoder(tiny_bert, pooling=Pooling(("mean",), include_special_tokens=False))
    np.testing.assert_allclose(both[:, :32], cls, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(both[:, 32:], mean.encode(["the man sleeps"]), rtol=1e-5, atol=1e-6)


def test_a_prompt_can_be_left_out_of_the_mean(tiny_bert: Path) -> None:
    prompts = {"query": "the red "}
    pooling = Pooling(("mean",), include_prompt=False)
    encoder = open_encoder(tiny_bert, prompts=prompts, pooling=pooling).with_prompt("query")
    batch = encoder.batch(encoder.tokenizer.pieces(["the red dog sleeps"]).ids)
    with torch.inference_mode():
        ((tokens, _),) = batch.blocks(encoder.backbone)
    expected = tokens[0, 3:].mean(0).numpy()  # behind [CLS] the red
    np.testing.assert_allclose(encoder.encode_one("dog sleeps"), expected, rtol=1e-5, atol=1e-6)


def test_the_encoder_of_an_encoder_decoder_is_opened(tiny_bert: Path, tmp_path: Path) -> None:
    import shutil

    import transformers

    config = transformers.T5Config(
        vocab_size=400, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0
    )
    torch.manual_seed(0)
    transformers.T5EncoderModel(config).save_pretrained(tmp_path / "t5")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tiny_bert / name, tmp_path / "t5" / name)
    vectors = open_encoder(tmp_path / "t5").encode(["the man", "a dog sleeps", ""])
    assert vectors.shape == (3, 32)
    assert np.isfinite(vectors).all()


def test_what_transformers_cannot_open_is_told_in_one_sentence(tiny_bert: Path, tmp_path: Path) -> None:
    open_encoder(tiny_bert).save(tmp_path / "m")
    config = read_json(tmp_path / "m" / "config.json")
    for changes in ({"model_type": "unheard-of"}, {"num_attention_heads": 5}, {"hidden_act": "magic"}):
        write_json(tmp_path / "m" / "config.json", {**config, **changes})
        with pytest.raises(InvalidModel, match="cannot be opened by transformers"):
            open_encoder(tmp_path / "m")


def test_a_bad_text_in_a_stream_is_placed(encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gemel.text_encoder.STREAM_WINDOW", 10)
    texts: list[object] = ["the"] * 25
    texts[23] = None
    with pytest.raises(InvalidInput, match=r"text 3 is None.*text 0 is text 20 of the stream"):
        list(encoder.encode_iter(texts))  # type: ignore[arg-type]


def test_it_introduces_itself_in_one_line(encoder: SentenceEncoder) -> None:
    assert "dim=32, max_tokens=40, pooling='mean', engine='torch'" in repr(encoder)


def test_a_stream_gives_the_vectors_of_the_list(encoder: SentenceEncoder) -> None:
    texts = sentences(50, seed=5)
    streamed = np.stack(list(encoder.encode_iter(text for text in texts)))
    np.testing.assert_allclose(streamed, encoder.encode(texts), rtol=1e-5, atol=1e-6)


def test_truncation_is_counted_and_told(encoder: SentenceEncoder) -> None:
    texts = ["the " * 100, "short", "a " * 39]
    with pytest.warns(TruncationWarning, match="2 of 3 texts were longer than 40 tokens") as caught:
        encoder.encode(texts)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.with_on_truncate("ignore").encode(texts)
        encoder.with_on_truncate("chunk").encode(texts)
    with pytest.raises(InvalidInput, match="text 0 is longer"):
        encoder.with_on_truncate("error").encode(texts)


def test_an_unknown_policy_is_refused(encoder: SentenceEncoder) -> None:
    with pytest.raises(InvalidInput, match="choose from warn, error, ignore, chunk"):
        encoder.with_on_truncate("explode")  # type: ignore[arg-type]


def test_chunks_are_the_mean_of_their_windows_by_token_count(tiny_bert: Path) -> None:
    encoder = open_encoder(tiny_bert, max_tokens=12).with_on_truncate("chunk")
    words = sentences(1, seed=9, max_words=200)[0].split() + ["dog"] * 23
    text = " ".join(words)
    pieces = encoder.tokenizer.pieces([text], on_truncate="chunk")
    assert len(pieces.ids) > 2
    with torch.inference_mode():
        windows = [encoder(encoder.batch([ids]))[0].numpy() for ids in pieces.ids]
    expected = np.average(np.stack(windows), axis=0, weights=[len(ids) - 2 for ids in pieces.ids])
    np.testing.assert_allclose(encoder.encode_one(text), expected, rtol=1e-4, atol=1e-5)
    short = "the man"
    np.testing.assert_allclose(
        encoder.encode([text, short])[1], encoder.encode_one(short), rtol=1e-4, atol=1e-5
    )


def test_prompts_stand_before_the_text(tiny_bert: Path) -> None:
    prompts = {"query": "the red ", "nothing": ""}
    encoder = open_encoder(tiny_bert, prompts=prompts, default_prompt="query")
    plain = open_encoder(tiny_bert)
    expected = plain.encode(["the red dog"])
    np.testing.assert_allclose(encoder.encode(["dog"]), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        encoder.with_prompt("nothing").encode(["the red dog"]), expected, rtol=1e-5, atol=1e-6
    )
    with pytest.raises(InvalidInput, match="no prompt 'passage'; it has nothing, query"):
        encoder.with_prompt("passage")


def test_special_tokens_can_be_left_out_of_the_mean(tiny_bert: Path) -> None:
    encoder = open_encoder(tiny_bert, pooling=Pooling(("mean",), include_special_tokens=False))
    batch = encoder.batch(encoder.tokenizer.pieces(["the man sleeps"]).ids)
    with torch.inference_mode():
        ((tokens, _),) = batch.blocks(encoder.backbone)
    np.testing.assert_allclose(
        encoder.encode_one("the man sleeps"), tokens[0, 1:-1].mean(0).numpy(), rtol=1e-5, atol=1e-6
    )
    assert np.isfinite(encoder.encode_one("")).all()


def test_dense_layers_normalisation_and_truncation_are_applied_in_order(
    tiny_bert: Path, tmp_path: Path
) -> None:
    from gemel.checkpoint import read_weights, save_encoder_folder

    plain = read_encoder_folder(tiny_bert)
    generator = np.random.default_rng(0)
    dense = {
        "linear.weight": generator.standard_normal((6, 32)).astype(np.float32),
        "linear.bias": generator.standard_normal(6).astype(np.float32),
    }
    tail = (Normalise(), Dense(32, 6, activation="tanh"), Normalise())
    spec = EncoderSpec(hidden_size=32, max_tokens=40, tail=tail, truncate_dim=4)
    save_encoder_folder(tmp_path / "m", plain.with_spec(spec), read_weights(plain.weight_files), [dense])
    encoder = open_encoder(tmp_path / "m")
    pooled = open_encoder(tiny_bert).encode(["the man", "a dog sleeps"])
    pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)
    expected = np.tanh(pooled @ dense["linear.weight"].T + dense["linear.bias"])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert encoder.dim == 4
    np.testing.assert_allclose(encoder.encode(["the man", "a dog sleeps"]), expected[:, :4], atol=1e-5)
    assert encoder.with_dim(2).encode(["the man"]).shape == (1, 2)
    assert encoder.with_dim(2).fingerprint != encoder.fingerprint


def test_a_saved_encoder_gives_the_same_vectors_and_fingerprint(tiny_bert: Path, tmp_path: Path) -> None:
    encoder = open_encoder(tiny_bert)
    encoder.save(tmp_path / "copy")
    again = open_encoder(tmp_path / "copy")
    np.testing.assert_array_equal(again.encode(["the man", "a dog"]), encoder.encode(["the man", "a dog"]))
    again.save(tmp_path / "copy2")
    assert open_encoder(tmp_path / "copy2").fingerprint == again.fingerprint


def test_a_misshapen_tensor_is_named(tiny_bert: Path, tmp_path: Path) -> None:
    open_encoder(tiny_bert).save(tmp_path / "m")
    weights = load_file(tmp_path / "m" / "model.safetensors")
    name = "encoder.layer.0.output.dense.weight"
    weights[name] = np.ascontiguousarray(weights[name][:, :-1])
    save_file(weights, tmp_path / "m" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InvalidModel, match=rf"'{name}' has shape \(32, 63\), expected \(32, 64\)"):
        open_encoder(tmp_path / "m")


def test_a_missing_tensor_is_never_made_up(tiny_bert: Path, tmp_path: Path) -> None:
    open_encoder(tiny_bert).save(tmp_path / "m")
    weights = load_file(tmp_path / "m" / "model.safetensors")
    del weights["encoder.layer.1.attention.self.query.weight"]
    save_file(weights, tmp_path / "m" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InvalidModel, match=r"lack the tensor 'encoder.layer.1.attention.self.query.weight'"):
        open_encoder(tmp_path / "m")


def test_a_pooler_that_the_weights_lack_is_not_made_up(tiny_bert: Path, tmp_path: Path) -> None:
    open_encoder(tiny_bert).save(tmp_path / "m")
    file = tmp_path / "m" / "model.safetensors"
    weights = {name: value for name, value in load_file(file).items() if not name.startswith("pooler.")}
    save_file(weights, file, metadata={"format": "pt"})
    encoder = open_encoder(tmp_path / "m")
    encoder.save(tmp_path / "again")
    assert set(load_file(tmp_path / "again" / "model.safetensors")) == set(weights)
    assert open_encoder(tmp_path / "again").fingerprint == encoder.fingerprint


def test_a_tokenizer_of_another_model_is_noticed(tiny_bert: Path, tmp_path: Path) -> None:
    open_encoder(tiny_bert).save(tmp_path / "m")
    tokenizer = read_json(tmp_path / "m" / "tokenizer.json")
    tokenizer["model"]["vocab"]["the"] = 99_999
    write_json(tmp_path / "m" / "tokenizer.json", tokenizer)
    with pytest.raises(InvalidModel, match=r"gives token 99999, but config.json has a vocabulary of"):
        open_encoder(tmp_path / "m").encode(["the man"])


def test_an_unusable_device_is_refused(tiny_bert: Path) -> None:
    with pytest.raises(InvalidInput, match=r"the device 'quantum' cannot be used here .*try device='cpu'"):
        SentenceEncoder(read_encoder_folder(tiny_bert), device="quantum")


def test_gradients_reach_every_weight_that_is_used(tiny_bert: Path) -> None:
    encoder = open_encoder(tiny_bert)
    texts = ["the man", "a dog sleeps in the garden"]
    encoder(encoder.batch(encoder.tokenizer.pieces(texts).ids)).sum().backward()
    without = [
        name
        for name, parameter in encoder.backbone.named_parameters()
        if parameter.grad is None and not name.startswith("pooler.")
    ]
    assert without == []


def test_a_model_saved_over_its_own_source_is_that_of_the_folder(tiny_bert: Path, tmp_path: Path) -> None:
    SentenceEncoder(read_encoder_folder(tiny_bert), device="cpu").save(tmp_path / "own")
    encoder = SentenceEncoder(read_encoder_folder(tmp_path / "own"), device="cpu")
    before = encoder.fingerprint
    with torch.no_grad():
        next(encoder.parameters()).add_(1.0)
    encoder.save(tmp_path / "own", overwrite=True)
    assert encoder.fingerprint != before
    assert encoder.fingerprint == read_encoder_folder(tmp_path / "own").fingerprint
