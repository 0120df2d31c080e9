"""InferSent in numpy: the LSTM worked out by its formulas, its words, its folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from encoders.made import KNOWN, write_glove, write_infersent
from safetensors.numpy import load_file, save_file
from stand_ins import WORDS, read_json, sentences, write_json

from gemel import load_encoder, load_trainable
from gemel.encoders import infersent as module
from gemel.encoders.infersent import choose_words
from gemel.errors import InvalidInput, InvalidModel, UnknownWordsWarning
from gemel.inventory import describe


def by_the_formulas(folder: Path, rows: list[int]) -> np.ndarray:
    """One state after the other, one gate after the other, in float64."""
    tensors = {
        name: array.astype(np.float64) for name, array in load_file(folder / "model.safetensors").items()
    }
    halves = []
    for direction, order in (("", rows), ("_reverse", rows[::-1])):
        into, recurrent = (tensors[f"lstm.weight_{part}_l0{direction}"] for part in ("ih", "hh"))
        bias = tensors[f"lstm.bias_ih_l0{direction}"] + tensors[f"lstm.bias_hh_l0{direction}"]
        state, cell, states = np.zeros(recurrent.shape[1]), np.zeros(recurrent.shape[1]), []
        for row in order:
            i, f, g, o = np.split(into @ tensors["words"][row] + recurrent @ state + bias, 4)
            cell = cell / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
            state = np.tanh(cell) / (1 + np.exp(-o))
            states.append(state)
        halves.append(np.max(states, axis=0))
    return np.concatenate(halves)


def test_vectors_are_the_maxima_of_the_formulas(tmp_path: Path) -> None:
    encoder = load_encoder(write_infersent(tmp_path / "model"))
    vectors = encoder.encode(["The man plays.", "dog", "the dog, the man and the dog"])
    expected = [by_the_formulas(tmp_path / "model", rows) for rows in ([0, 1, 3], [2], [0, 2, 0, 1, 0, 2])]
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_unknown_words_are_left_out_and_a_text_of_them_is_zero(tmp_path: Path) -> None:
    encoder = load_encoder(write_infersent(tmp_path / "model"))
    np.testing.assert_array_equal(encoder.encode_one("the purple man !"), encoder.encode_one("the man"))
    with pytest.warns(UnknownWordsWarning, match="1 of 2"):
        vectors = encoder.encode(["purple", "dog"])
    assert not vectors[0].any()
    assert vectors[1].all()


def test_batches_of_other_texts_change_a_vector_by_rounding_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = load_encoder(write_infersent(tmp_path / "model", WORDS, 32))
    texts = sentences(60, seed=1)
    vectors = encoder.encode(texts)
    monkeypatch.setattr(module, "TEXTS_AT_ONCE", 3)
    np.testing.assert_allclose(encoder.encode(texts), vectors, atol=1e-5)


def test_words_of_the_texts_and_frequent_words_are_known(tmp_path: Path) -> None:
    vectors = write_glove(tmp_path / "glove.txt", ["the", "of", "rare", "man", "seldom"], dim=5)
    words, rows = choose_words(["The Seldom man!", "no"], tmp_path / "glove.txt", n_frequent=2)
    assert words == ["the", "of", "man", "seldom"]
    np.testing.assert_allclose(rows, vectors[[0, 1, 3, 4]], atol=1e-6)


def test_a_model_is_described(tmp_path: Path) -> None:
    card = describe(write_infersent(tmp_path / "model"))
    assert (card.architecture, card.dim, card.pooling, card.max_tokens) == ("infersent", 12, "max", None)
    assert card.fingerprint == load_encoder(tmp_path / "model").fingerprint
    other = describe(write_infersent(tmp_path / "other", [*KNOWN[:-1], "sleeps"]))
    assert other.fingerprint != card.fingerprint


def test_choices_that_it_has_not_are_refused(tmp_path: Path) -> None:
    folder = write_infersent(tmp_path / "model")
    with pytest.raises(InvalidInput, match="pooling='mean' was given, and the InferSent encoder"):
        load_encoder(folder, pooling="mean")
    with pytest.raises(InvalidInput, match="max_tokens=9 was given"):
        load_trainable(folder, max_tokens=9)


def test_damage_is_told_by_name(tmp_path: Path) -> None:
    folder = write_infersent(tmp_path / "model")
    words = (folder / "vocabulary.txt").read_text(encoding="utf-8")
    (folder / "vocabulary.txt").write_text(words + "dog\n", encoding="utf-8")
    with pytest.raises(InvalidModel, match="an empty or a repeated word"):
        load_encoder(folder)
    (folder / "vocabulary.txt").write_text(words + "cat\n", encoding="utf-8")
    with pytest.raises(InvalidModel, match=r"tensor 'words' has shape \(4, 5\), expected \(5, 5\)"):
        load_encoder(folder)
    (folder / "vocabulary.txt").unlink()
    with pytest.raises(InvalidModel, match=r"vocabulary.txt is not there"):
        load_encoder(folder)
    (folder / "vocabulary.txt").write_text(words, encoding="utf-8")
    tensors = load_file(folder / "model.safetensors")
    save_file({**tensors, "more": tensors["words"]}, folder / "model.safetensors")
    with pytest.raises(InvalidModel, match="has the tensor 'more'"):
        load_encoder(folder)
    write_json(folder / "config.json", {**read_json(folder / "config.json"), "hidden_size": "six"})
    with pytest.raises(InvalidModel, match="hidden_size"):
        load_encoder(folder)
