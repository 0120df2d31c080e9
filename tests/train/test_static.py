"""Static tables that imitate an encoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from encoders.made import write_model2vec
from stand_ins import ARCHITECTURES, read_json, sentences

from gemel import load_encoder
from gemel.errors import InvalidInput
from gemel.train.static import StaticConfig, distil_static

CORPUS = sentences(400, seed=1)
SMALL = StaticConfig(dim=16)


def test_a_tuned_table_agrees_better_with_its_teacher(tiny_bert: Path) -> None:
    teacher = load_encoder(tiny_bert)
    made = distil_static(teacher, CORPUS, SMALL)
    assert made.encoder.encode(CORPUS).shape == (400, 16)
    assert (made.n_read, made.n_tuned) == (400, 380)
    assert made.agreement is not None
    before, after = made.agreement
    assert after > before + 0.05


def test_an_untuned_table_is_the_weighted_vectors_of_lone_tokens(tiny_bert: Path) -> None:
    teacher = load_encoder(tiny_bert, precision="float32")
    made = distil_static(teacher, None, StaticConfig(dim=32, tunes=False, smoothing=0.01))
    rows, tokenizer = made.encoder.table.rows, teacher.tokenizer
    dog, guitar = (int(tokenizer.pieces([word]).flat[1]) for word in ("dog", "guitar"))
    words = [number for number in range(tokenizer.n_tokens) if number > 4]  # the first five are special
    alone = teacher.encode_ids([np.array([number], np.int32) for number in words])
    np.testing.assert_allclose(alone[dog - 5], teacher.encode_one("dog"), atol=1e-6)
    shares = 1 / (np.arange(tokenizer.n_tokens) + 2.7)
    weights = 0.01 / (0.01 + shares / shares.sum())
    centred = (alone - alone.mean(axis=0)) * weights[5:, None]
    expected = centred[dog - 5] @ centred[guitar - 5] / np.linalg.norm(centred, axis=1).mean() ** 2
    # All 32 dimensions are kept, so that the axes only turn the rows: products stay as they are.
    np.testing.assert_allclose(rows[dog] @ rows[guitar], expected, atol=1e-4)


def test_special_and_unknown_tokens_have_no_say(tiny_bert: Path) -> None:
    table = distil_static(load_encoder(tiny_bert), CORPUS, SMALL).encoder
    assert not table.table.rows[:5].any()
    np.testing.assert_array_equal(table.encode(["dog 한국어"]), table.encode(["dog"]))


def test_the_same_corpus_gives_the_same_bits(tiny_bert: Path) -> None:
    teacher = load_encoder(tiny_bert)
    config = replace(SMALL, n_sentences=150)
    first, second = (distil_static(teacher, iter(CORPUS), config) for _ in range(2))
    assert first.encoder.fingerprint == second.encoder.fingerprint
    other = distil_static(teacher, CORPUS, replace(config, seed=1))
    assert other.encoder.fingerprint != first.encoder.fingerprint
    assert (other.n_read, other.n_tuned) == (400, 143)  # one in 20 is held out


def test_repeated_and_blank_texts_are_not_tuned_on(tiny_bert: Path) -> None:
    made = distil_static(load_encoder(tiny_bert), [*CORPUS[:10] * 3, "", "  "], SMALL)
    assert (made.n_read, made.n_tuned, made.agreement) == (32, 10, None)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_can_be_distilled_and_saved(
    architecture: str, tiny_model: Callable[..., Path], tmp_path: Path
) -> None:
    made = distil_static(load_encoder(tiny_model(architecture), on_truncate="ignore"), CORPUS[:60], SMALL)
    made.save(tmp_path / "table", base_model="tiny")
    opened = load_encoder(tmp_path / "table")
    assert opened.fingerprint == made.encoder.fingerprint
    np.testing.assert_array_equal(opened.encode(CORPUS), made.encoder.encode(CORPUS))
    np.testing.assert_allclose(np.linalg.norm(opened.encode(CORPUS), axis=1), 1, atol=1e-5)


def test_the_folder_is_model2vecs_and_tells_how_it_was_made(tiny_bert: Path, tmp_path: Path) -> None:
    distil_static(load_encoder(tiny_bert), CORPUS, SMALL).save(tmp_path / "table", base_model="tiny/bert")
    config = read_json(tmp_path / "table" / "config.json")
    assert (config["model_type"], config["normalize"], config["hidden_dim"]) == ("model2vec", True, 16)
    assert config["max_length"] is None
    card = (tmp_path / "table" / "README.md").read_text(encoding="utf-8")
    assert 'base_model: "tiny/bert"' in card
    assert "the encoder's vectors of 380 sentences" in card


def test_a_static_table_is_not_distilled_again(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match="a StaticEncoder was given to be distilled; expected a transformer"
    ):
        distil_static(load_encoder(write_model2vec(tmp_path)), CORPUS)


@pytest.mark.parametrize(
    ("corpus", "config", "said"),
    [
        (CORPUS, StaticConfig(dim=33), "dim is 33, .* have 32 numbers; choose 1 to 32"),
        ([], SMALL, "the corpus has 0 texts and no word that this model knows"),
        (["한국어", ""], SMALL, "the corpus has 2 texts and no word"),
        (None, SMALL, "tuning was asked for without a corpus"),
    ],
)
def test_what_cannot_be_distilled_is_told(
    corpus: list[str] | None, config: StaticConfig, said: str, tiny_bert: Path
) -> None:
    with pytest.raises(InvalidInput, match=said):
        distil_static(load_encoder(tiny_bert), corpus, config)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"dim": 0}, "dim is 0; expected at least 1"),
        ({"n_sentences": 0}, "n_sentences is 0"),
        ({"ridge": 0.0}, r"ridge is 0\.0; expected a finite number above 0"),
        ({"smoothing": float("nan")}, "smoothing is nan"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, float], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        StaticConfig(**settings)  # type: ignore[arg-type]


def test_sequences_longer_than_the_model_reads_are_refused(tiny_bert: Path) -> None:
    encoder = load_encoder(tiny_bert)
    with pytest.raises(InvalidInput, match="a sequence of 41 tokens was given"):
        encoder.encode_ids([np.full(39, 7, np.int32)])
    assert encoder.encode_ids([]).shape == (0, 32)
