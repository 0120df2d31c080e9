"""Both dialects of Sentence-Transformers folders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemel.checkpoint import POOLING_MODES, Dense, Pooling, dialects
from gemel.checkpoint.spec import ACTIVATIONS
from gemel.errors import InvalidModel

MODES = st.lists(st.sampled_from(POOLING_MODES), min_size=1, max_size=6, unique=True).map(tuple)


@given(modes=MODES, include_prompt=st.booleans())
def test_every_pooling_survives_being_written_and_read(modes: tuple[str, ...], include_prompt: bool) -> None:
    pooling = Pooling(modes, include_prompt=include_prompt)
    written = dialects.format_pooling(pooling, width=8)
    assert dialects.parse_pooling(written, "file") == (8, pooling)


def test_both_dialects_of_pooling_mean_the_same() -> None:
    old = {
        "word_embedding_dimension": 8,
        "pooling_mode_cls_token": True,
        "pooling_mode_mean_tokens": True,
        "pooling_mode_max_tokens": True,
        "include_prompt": True,
    }
    new = {"embedding_dimension": 8, "pooling_mode": ["cls", "max", "mean"], "include_prompt": True}
    assert dialects.parse_pooling(old, "old") == dialects.parse_pooling(new, "new")


def test_the_older_dialect_is_written_without_a_key_of_the_newer() -> None:
    written = dialects.format_pooling(Pooling(("cls", "mean")), width=8)
    assert written["pooling_mode_cls_token"] is True
    assert written["pooling_mode_max_tokens"] is False
    assert "pooling_mode" not in written
    assert "embedding_dimension" not in written


def test_an_unknown_pooling_key_is_named_with_the_known_ones() -> None:
    with pytest.raises(
        InvalidModel, match=r"Pooling.json has the unknown key 'pooling_mode_median'.*lasttoken"
    ):
        dialects.parse_pooling({"pooling_mode_median": True}, "Pooling.json")


def test_an_unknown_pooling_mode_is_named_with_the_known_ones() -> None:
    with pytest.raises(InvalidModel, match="unknown pooling mode 'median'; choose from cls, max, mean"):
        dialects.parse_pooling({"pooling_mode": "median"}, "Pooling.json")


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_survives_being_written_and_read(activation: str) -> None:
    dense = Dense(8, 4, bias=False, activation=activation, residual=True)
    assert dialects.parse_dense(dialects.format_dense(dense), "file") == dense


@pytest.mark.parametrize(
    ("settings", "tokenizer", "config", "expected"),
    [
        ({"max_seq_length": 128}, {"model_max_length": 512}, {"max_position_embeddings": 512}, 128),
        ({}, {"model_max_length": 256}, {"max_position_embeddings": 512}, 256),
        ({}, {"model_max_length": 1e30}, {"max_position_embeddings": 512}, 512),
        ({"max_seq_length": 900}, {}, {"max_position_embeddings": 512}, 512),
        ({}, {}, {"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ({}, {}, {"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 0}, 513),
        ({}, {}, {"model_type": "mpnet", "max_position_embeddings": 514, "pad_token_id": 0}, 512),
        ({}, {}, {"model_type": "t5"}, 512),
    ],
)
def test_the_token_limit_is_what_the_folder_says_and_what_fits(
    settings: dict[str, int], tokenizer: dict[str, float], config: dict[str, object], expected: int
) -> None:
    assert dialects.max_tokens(settings, tokenizer, config) == expected
