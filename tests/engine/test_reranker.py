"""The native cross-encoder scores what torch's scores."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from stand_ins import ARCHITECTURES, sentences

import gemel.tokens.pieces
from gemel import load_reranker
from gemel.checkpoint import read_encoder_folder
from gemel.contracts import Reranker
from gemel.engine import NativeReranker
from gemel.errors import InvalidInput, ModelMismatch, TruncationWarning
from gemel.model import CrossEncoder

PAIRS = list(zip(sentences(80, 1, 4), sentences(80, 2, 4), strict=True))


def saved(folder: Path, to: Path, labels: tuple[str, ...] = ("score",)) -> CrossEncoder:
    torch.manual_seed(0)
    model = CrossEncoder.from_encoder(read_encoder_folder(folder), labels, device="cpu")
    with torch.no_grad():
        for name, parameter in model.transformer.named_parameters():
            if "classifier" in name or "pooler" in name:
                parameter.add_(0.1 * torch.randn_like(parameter))
    model.save(to)
    return model


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_family_has_its_head(
    tiny_model: Callable[[str], Path], architecture: str, tmp_path: Path
) -> None:
    expected = saved(tiny_model(architecture), tmp_path / "ce").score(PAIRS)
    exact = load_reranker(tmp_path / "ce", precision="float32")
    assert isinstance(exact, NativeReranker)
    np.testing.assert_allclose(exact.score(PAIRS), expected, atol=1e-5)
    np.testing.assert_allclose(load_reranker(tmp_path / "ce").score(PAIRS), expected, atol=0.05)
    assert expected.std() > 1e-3


def test_several_labels_and_batches(tiny_bert: Path, tmp_path: Path) -> None:
    expected = saved(tiny_bert, tmp_path / "nli", ("no", "yes", "perhaps")).score(PAIRS)
    model = load_reranker(tmp_path / "nli", precision="float32", threads=2)
    together = model.score(PAIRS)
    np.testing.assert_allclose(together, expected, atol=1e-4)
    np.testing.assert_array_equal(together, np.concatenate([model.score([pair]) for pair in PAIRS]))
    assert model.score([]).shape == (0, 3)
    with pytest.raises(InvalidInput, match="ranking needs one score a pair"):
        model.rank("the", ["a"])


def test_a_folder_that_was_replaced_cannot_name_the_model_that_scores(
    tiny_bert: Path, tmp_path: Path
) -> None:
    saved(tiny_bert, tmp_path / "ce")
    sent, model = pickle.dumps(load_reranker(tmp_path / "ce")), load_reranker(tmp_path / "ce")
    assert pickle.loads(sent).fingerprint == load_reranker(tmp_path / "ce").fingerprint
    CrossEncoder.from_encoder(read_encoder_folder(tiny_bert), device="cpu").save(
        tmp_path / "ce", overwrite=True
    )
    with pytest.raises(ModelMismatch, match="has changed since this model was opened"):
        assert model.fingerprint
    with pytest.raises(ModelMismatch, match="was there when it was pickled"):
        pickle.loads(sent)


def test_pairs_are_scored_by_turns(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for model in (saved(tiny_bert, tmp_path / "ce"), load_reranker(tmp_path / "ce")):
        whole = model.score(PAIRS)
        monkeypatch.setattr(gemel.tokens.pieces, "CHARACTERS_AT_ONCE", 200)
        assert len(model.tokenizer.windows(PAIRS)) > 5
        np.testing.assert_allclose(model.score(PAIRS), whole, atol=1e-6)
        with pytest.warns(TruncationWarning, match="3 of 83 pairs"):
            model.score([*PAIRS, *[("the " * 60, "a")] * 3])
        monkeypatch.undo()


def test_raw_scores_and_shorter_pairs_are_chosen_at_load(tiny_bert: Path, tmp_path: Path) -> None:
    saved(tiny_bert, tmp_path / "ce")
    scores = load_reranker(tmp_path / "ce", precision="float32").score(PAIRS)
    raw = load_reranker(tmp_path / "ce", precision="float32", activation="identity").score(PAIRS)
    np.testing.assert_allclose(1 / (1 + np.exp(-raw)), scores, atol=1e-6)
    assert load_reranker(tmp_path / "ce", max_tokens=9).tokenizer.max_tokens == 9
    with pytest.raises(InvalidInput, match="max_tokens=41 does not fit this model; choose 3 to 40"):
        load_reranker(tmp_path / "ce", max_tokens=41)


def test_it_ranks_and_tells_what_was_cut(tiny_bert: Path, tmp_path: Path) -> None:
    saved(tiny_bert, tmp_path / "ce")
    model = load_reranker(tmp_path / "ce")
    assert isinstance(model, Reranker)
    assert "engine='native', precision='int8'" in repr(model)
    texts = sentences(20, 4, 10)
    scores = model.score([("the man", text) for text in texts])
    assert model.rank("the man", texts).tolist() == np.argsort(-scores, kind="stable").tolist()
    with pytest.warns(TruncationWarning, match="1 of 1"):
        model.score([("dog " * 60, "cat")])


def test_tokenised_pairs_give_the_scores_of_the_pairs(
    tiny_model: Callable[[str], Path], tmp_path: Path
) -> None:
    saved(tiny_model("bert"), tmp_path / "ce")
    reranker = load_reranker(tmp_path / "ce")
    ids, types, n_cut = reranker.tokenise(PAIRS)
    assert n_cut == 0
    assert reranker.score_tokens(ids, types)[:, 0].tobytes() == reranker.score(PAIRS).tobytes()
    assert reranker.score_tokens([], []).shape == (0, 1)
