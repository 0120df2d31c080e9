"""The cross-encoder: scores, ranking, folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from stand_ins import ARCHITECTURES, sentences

from gemel.checkpoint import read_encoder_folder, read_reranker_folder
from gemel.contracts import Reranker
from gemel.errors import InvalidInput, InvalidModel, TruncationWarning
from gemel.model import CrossEncoder, SentenceEncoder


def untrained(folder: Path, labels: tuple[str, ...] = ("score",)) -> CrossEncoder:
    torch.manual_seed(0)
    return CrossEncoder.from_encoder(read_encoder_folder(folder), labels, device="cpu")


def pairs(n: int) -> list[tuple[str, str]]:
    return list(zip(sentences(n, 1, 5), sentences(n, 2, 5), strict=True))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_scores_do_not_depend_on_the_batch(tiny_model: Callable[[str], Path], architecture: str) -> None:
    model = untrained(tiny_model(architecture))
    together = model.score(pairs(100))
    alone = np.concatenate([model.score([pair]) for pair in pairs(100)])
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-5)
    assert together.shape == (100,)
    assert together.std() > 0
    assert ((together > 0) & (together < 1)).all()


def test_it_is_a_reranker(tiny_bert: Path) -> None:
    assert isinstance(untrained(tiny_bert), Reranker)


def test_several_labels_give_several_scores(tiny_bert: Path, tmp_path: Path) -> None:
    model = untrained(tiny_bert, ("contradiction", "entailment", "neutral"))
    scores = model.score(pairs(7))
    assert scores.shape == (7, 3)
    assert model.score([]).shape == (0, 3)
    model.save(tmp_path / "nli")
    again = CrossEncoder(read_reranker_folder(tmp_path / "nli"), device="cpu")
    assert again.labels == ("contradiction", "entailment", "neutral")
    np.testing.assert_array_equal(again.score(pairs(7)), scores)
    with pytest.raises(InvalidInput, match="ranking needs one score a pair"):
        again.rank("the", ["a"])


def test_ranking_orders_by_score(tiny_bert: Path) -> None:
    model = untrained(tiny_bert)
    texts = sentences(20, 4, 10)
    scores = model.score([("the man", text) for text in texts])
    assert model.rank("the man", texts).tolist() == np.argsort(-scores, kind="stable").tolist()


@pytest.mark.parametrize("bad", [["text"], [("a",)], [("a", 1)], [("a", "b", "c")], "ab", None])
def test_what_is_no_pair_is_named(tiny_bert: Path, bad: object) -> None:
    with pytest.raises(InvalidInput, match=r"pair 0 is|a sequence of text pairs was expected"):
        untrained(tiny_bert).score(bad)  # type: ignore[arg-type]


def test_cut_pairs_are_told(tiny_bert: Path) -> None:
    with pytest.warns(TruncationWarning, match="1 of 2 pairs"):
        untrained(tiny_bert).score([("the " * 60, "a"), ("the", "a")])


def test_encoders_and_rerankers_are_not_mistaken_for_each_other(tiny_bert: Path, tmp_path: Path) -> None:
    untrained(tiny_bert).save(tmp_path / "reranker")
    with pytest.raises(InvalidModel, match=r"is a cross-encoder .*use load_reranker"):
        read_encoder_folder(tmp_path / "reranker")
    with pytest.raises(InvalidModel, match=r"is not a cross-encoder.*load_encoder"):
        read_reranker_folder(tiny_bert)


def test_the_backbone_of_an_encoder_is_taken_over(tiny_bert: Path) -> None:
    model = untrained(tiny_bert)
    encoder = SentenceEncoder(read_encoder_folder(tiny_bert), device="cpu")
    theirs = dict(model.transformer.named_parameters())
    for name, parameter in encoder.backbone.named_parameters():
        torch.testing.assert_close(theirs[f"bert.{name}"], parameter)
