"""Static tables: what a folder says is what is computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from encoders.made import table, word_pieces, write_model2vec, write_static_embedding
from safetensors.numpy import save_file
from stand_ins import WORDS, read_json, sentences, write_json

from gemel import load_encoder, load_trainable
from gemel.encoders import StaticEncoder, open_static
from gemel.encoders.static import BLOCK_TOKENS, LONG_TEXT
from gemel.errors import InvalidInput, InvalidModel, UnknownWordsWarning
from gemel.inventory import describe

TEXTS = [*sentences(40, seed=1), "dogs and cats", "The DOG.", "one two " * 300]
PIECES = ["[UNK]", *WORDS, "##s"]


def model2vec_vectors(
    folder: Path, tensors: dict[str, np.ndarray], texts: list[str], normalises: bool
) -> np.ndarray:
    """What model2vec computes, written down plainly."""
    tokenizer = word_pieces(PIECES)
    found = []
    for text in texts:
        ids = [token for token in tokenizer.encode(text, add_special_tokens=False).ids if token != 0]
        rows = tensors["embeddings"][tensors["mapping"][ids] if "mapping" in tensors else ids]
        rows = rows * tensors["weights"][ids][:, None] if "weights" in tensors else rows
        found.append(rows.astype(np.float64).mean(axis=0) if ids else np.zeros(rows.shape[1]))
    vectors = np.array(found)
    return vectors / (np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-32) if normalises else vectors


@pytest.mark.parametrize("quantised", [False, True])
@pytest.mark.parametrize("normalises", [False, True])
def test_model2vec_folders_give_model2vecs_vectors(quantised: bool, normalises: bool, tmp_path: Path) -> None:
    encoder = load_encoder(write_model2vec(tmp_path, quantised=quantised, normalises=normalises))
    tensors = {"embeddings": table(7 if quantised else len(PIECES))}
    if quantised:
        tensors |= {"mapping": np.arange(len(PIECES)) % 7, "weights": np.linspace(0.5, 2, len(PIECES))}
    expected = model2vec_vectors(tmp_path, tensors, TEXTS, normalises)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=2e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8])
def test_tables_of_other_types_are_read_as_numbers(dtype: Any, tmp_path: Path) -> None:
    rows = (table(len(PIECES)) * 20).astype(dtype)
    encoder = load_encoder(write_model2vec(tmp_path, embeddings=rows))
    expected = model2vec_vectors(tmp_path, {"embeddings": rows}, TEXTS, True)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=2e-6)


def test_in_sentence_transformers_folders_unknown_words_count(tmp_path: Path) -> None:
    encoder = load_encoder(write_static_embedding(tmp_path))
    rows = table(len(WORDS) + 1, seed=3)
    dog, cat = rows[1 + WORDS.index("dog")], rows[1 + WORDS.index("cat")]
    vectors = encoder.encode(["dog cat", "Dog xqzz", "xqzz"])
    np.testing.assert_allclose(vectors, [(dog + cat) / 2, (dog + rows[0]) / 2, rows[0]], atol=1e-6)


def test_normalize_and_truncation_of_a_folder_are_honoured(tmp_path: Path) -> None:
    settings = {"prompts": {"query": ""}, "default_prompt_name": "query", "truncate_dim": 5}
    encoder = load_encoder(write_static_embedding(tmp_path, normalises=True, settings=settings))
    assert encoder.dim == 5
    whole = encoder.with_dim(8).encode(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(encoder.encode(TEXTS), whole[:, :5])


def test_long_texts_are_read_whole(tmp_path: Path) -> None:
    encoder = load_encoder(write_model2vec(tmp_path, normalises=False))
    for n_tokens in (LONG_TEXT, LONG_TEXT + 1, BLOCK_TOKENS + LONG_TEXT):
        words = [WORDS[number % len(WORDS)] for number in range(n_tokens)]
        rows = table(len(PIECES))[[PIECES.index(word) for word in words]]
        np.testing.assert_allclose(encoder.encode_one(" ".join(words)), rows.mean(axis=0), atol=1e-5)


@pytest.mark.parametrize("dim", [1, 2, 3, 8, 300])
@pytest.mark.parametrize("quantised", [False, True])
def test_a_text_has_the_same_bits_alone_and_among_many(dim: int, quantised: bool, tmp_path: Path) -> None:
    rows = table(7 if quantised else len(PIECES), dim)
    encoder = load_encoder(write_model2vec(tmp_path, quantised=quantised, embeddings=rows))
    together = encoder.encode(TEXTS)
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])
    assert alone.tobytes() == together.tobytes()


def test_texts_without_a_token_are_zero_also_at_unit_length(tmp_path: Path) -> None:
    encoder = load_encoder(write_model2vec(tmp_path))
    with pytest.warns(UnknownWordsWarning, match="2 of 3 texts"):
        assert encoder.encode(["", "xqzz", "dog"]).any(axis=1).tolist() == [False, False, True]


@pytest.mark.parametrize("writes", [write_model2vec, write_static_embedding])
def test_a_saved_table_is_the_same_encoder(writes: Any, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    encoder = open_static(writes(tmp_path / "first", normalises=True))
    encoder.save(tmp_path / "second")
    opened = open_static(tmp_path / "second")
    assert opened.fingerprint == encoder.fingerprint
    np.testing.assert_array_equal(opened.encode(TEXTS), encoder.encode(TEXTS))
    kinds = [module["type"].rsplit(".")[-1] for module in read_json(tmp_path / "second" / "modules.json")]
    assert kinds == ["StaticEmbedding", "Normalize"]


def test_the_fingerprint_tells_apart_what_computes_otherwise(tmp_path: Path) -> None:
    found = set()
    for number, changes in enumerate(
        ({}, {"normalises": False}, {"quantised": True}, {"embeddings": table(len(PIECES), seed=9)})
    ):
        (tmp_path / str(number)).mkdir()
        found.add(load_encoder(write_model2vec(tmp_path / str(number), **changes)).fingerprint)
    assert len(found) == 4


def test_it_is_described_as_a_model(tmp_path: Path) -> None:
    card = describe(write_model2vec(tmp_path))
    assert (card.kind, card.architecture, card.dim, card.max_tokens) == ("encoder", "static table", 8, None)
    assert card.fingerprint == load_encoder(tmp_path).fingerprint


@pytest.mark.parametrize(
    ("choice", "value"),
    [("precision", "int8"), ("device", "cuda"), ("pooling", "cls"), ("max_tokens", 8)],
)
def test_choices_of_transformers_are_refused(choice: str, value: Any, tmp_path: Path) -> None:
    write_model2vec(tmp_path)
    with pytest.raises(
        InvalidInput, match=rf"{choice}={value!r} was given, and the static table .* leave it out"
    ):
        load_encoder(tmp_path, **{choice: value})
    assert isinstance(load_encoder(tmp_path, precision="float32", device="cpu", threads=2), StaticEncoder)


def test_it_cannot_be_trained_as_a_transformer(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=r"is a static table .*: use load_encoder"):
        load_trainable(write_static_embedding(tmp_path))


def without_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def with_another_tokenizer(folder: Path) -> None:
    word_pieces([*PIECES, "more"]).save(str(folder / "tokenizer.json"))


def with_damaged_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")


def with_other_tensors(folder: Path) -> None:
    save_file({"weights": table(3)}, folder / "model.safetensors")


def with_a_far_mapping(folder: Path) -> None:
    save_file({"embeddings": table(3), "mapping": np.full(len(PIECES), 3)}, folder / "model.safetensors")


def with_short_weights(folder: Path) -> None:
    save_file({"embeddings": table(len(PIECES)), "weights": np.ones(3)}, folder / "model.safetensors")


def with_flat_rows(folder: Path) -> None:
    save_file({"embeddings": np.ones(3, np.float32)}, folder / "model.safetensors")


def with_another_module(folder: Path) -> None:
    kinds = ("StaticEmbedding", "Dense")
    write_json(
        folder / "modules.json",
        [{"type": f"sentence_transformers.models.{kind}", "path": ""} for kind in kinds],
    )


def with_a_prompt(folder: Path) -> None:
    settings = {"prompts": {"query": "query: "}, "default_prompt_name": "query"}
    write_json(folder / "config_sentence_transformers.json", settings)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (without_tokenizer, r"has no tokenizer\.json"),
        (with_another_tokenizer, "different models"),
        (with_damaged_tokenizer, "is not a tokenizer"),
        (
            with_other_tensors,
            "holds weights; a table 'embeddings' or 'embedding.weight' of rows was expected",
        ),
        (with_a_far_mapping, "different models"),
        (with_short_weights, "for 3 of them; tokenizer and table are from different models"),
        (with_flat_rows, "of rows was expected"),
        (
            with_another_module,
            "StaticEmbedding > Dense; StaticEmbedding, or StaticEmbedding > Normalize is needed",
        ),
        (with_a_prompt, "sets a default prompt"),
    ],
)
def test_a_damaged_folder_is_told_before_anything_is_computed(damage: Any, said: str, tmp_path: Path) -> None:
    write_model2vec(tmp_path)
    damage(tmp_path)
    with pytest.raises(InvalidModel, match=said):
        load_encoder(tmp_path)
