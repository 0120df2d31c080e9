"""Tuning on a few examples: which pairs are drawn, what the loss is, and that classes come apart."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest
import torch
from stand_ins import ToyEncoder, sentences

from gemel import FewShotClassifier, load_classifier, load_encoder, load_trainable
from gemel.errors import InvalidInput
from gemel.train.few_shot import ContrastiveTuner, sample_pairs
from gemel.train.objectives import SupervisedContrastive

# One word among several tells the classes apart, which is not what an untrained model sees first.
NOISE = [text.replace("dog", "").replace("cat", "") for text in sentences(80, seed=1, max_words=9)]
TEXTS = [f"{text} {'dog' if row % 2 else 'cat'}" for row, text in enumerate(NOISE)]
LABELS = ["dogs" if row % 2 else "cats" for row in range(80)]
TUNER = ContrastiveTuner(max_pairs=640, batch_size=16, learning_rate=2e-3, seed=3)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def test_every_row_stands_once_a_round_beside_another_of_its_class() -> None:
    classes = np.array([0, 2, 1, 0, 2, 1, 0, 2])
    first, second = sample_pairs(classes, 24, seed=0)
    assert (classes[first] == classes[second]).all()
    assert (first != second).all()
    for start in range(0, 24, 8):
        assert sorted(first[start : start + 8]) == list(range(8))
    of_zero = {(int(a), int(b)) for a, b in zip(*sample_pairs(classes, 400, seed=0), strict=True) if a == 0}
    assert of_zero == {(0, 3), (0, 6)}


def test_as_many_pairs_are_drawn_as_are_asked_for_and_the_seed_decides_which() -> None:
    classes = np.repeat(np.arange(77), 64)  # of which 77 x 64 x 63 / 2 = 155,232 pairs could be made
    first, second = sample_pairs(classes, 1_000, seed=5)
    assert first.shape == second.shape == (1_000,)
    again, other = sample_pairs(classes, 1_000, seed=5), sample_pairs(classes, 1_000, seed=6)
    assert (again[0] == first).all()
    assert (again[1] == second).all()
    assert not (other[0] == first).all()


def test_the_loss_is_what_can_be_worked_out() -> None:
    # Two pairs of opposite directions: each text has one partner at cosine 1 and two others at cosine -1.
    east, west = torch.tensor([[1.0, 0.0]]), torch.tensor([[-3.0, 0.0]])
    columns = [torch.cat([east, west]), torch.cat([east * 2, west])]
    loss = SupervisedContrastive(temperature=0.5)(columns, torch.tensor([0, 1]))
    assert float(loss) == pytest.approx(np.log(np.exp(2) + 2 * np.exp(-2)) - 2, rel=1e-5)
    # Of one class, the three others are partners, each expected with a third.
    loss = SupervisedContrastive(temperature=0.5)([east.repeat(2, 1)] * 2, torch.tensor([0, 0]))
    assert float(loss) == pytest.approx(np.log(3), rel=1e-5)


def test_the_loss_has_finite_slopes() -> None:
    column = torch.randn(6, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    SupervisedContrastive()([column, column.flip(0)], torch.tensor([0, 1, 2, 2, 1, 0])).backward()
    assert column.grad is not None
    assert torch.isfinite(column.grad).all()
    assert column.grad.abs().max() > 0


def test_tuned_vectors_tell_apart_what_frozen_ones_do_not_and_do_so_again(tiny_bert: Path) -> None:
    encoder = load_encoder(tiny_bert)
    before = encoder.encode(TEXTS)
    frozen = FewShotClassifier(encoder, cost=1.0).fit(TEXTS, LABELS)
    tuned = FewShotClassifier(encoder, cost=1.0, tune=TUNER).fit(TEXTS, LABELS)
    assert frozen.score(TEXTS, LABELS) < tuned.score(TEXTS, LABELS) == 1.0
    assert (encoder.encode(TEXTS) == before).all()
    assert tuned.encoder_.fingerprint != encoder.fingerprint
    again = FewShotClassifier(encoder, cost=1.0, tune=TUNER).fit(TEXTS, LABELS)
    assert (again.predict_proba(TEXTS) == tuned.predict_proba(TEXTS)).all()
    assert again.encoder_.fingerprint == tuned.encoder_.fingerprint


def test_a_tuned_classifier_is_saved_with_its_encoder_and_served_by_the_engine(
    tiny_bert: Path, tmp_path: Path
) -> None:
    tuner = ContrastiveTuner(max_pairs=64, batch_size=16, learning_rate=3e-3, open_folder=load_encoder)
    given = load_encoder(tiny_bert, on_truncate="chunk")
    tuned = FewShotClassifier(given, tune=tuner).fit(TEXTS, LABELS)
    assert (tuned.encoder_.engine, tuned.encoder_.on_truncate) == ("native", "chunk")  # type: ignore[attr-defined]
    tuned.save(tmp_path / "c")
    opened = load_classifier(tmp_path / "c")
    assert (opened.predict_proba(TEXTS) == tuned.predict_proba(TEXTS)).all()
    assert opened.encoder_.fingerprint == tuned.encoder_.fingerprint


def test_the_run_is_kept_where_it_is_asked_for_and_else_goes_with_the_encoder(
    tiny_bert: Path, tmp_path: Path
) -> None:
    classes = np.arange(80) % 2
    settings = {"max_pairs": 32, "batch_size": 16}
    kept = ContrastiveTuner(**settings, output=tmp_path / "run")(load_trainable(tiny_bert), TEXTS, classes)
    assert (tmp_path / "run" / "metrics.jsonl").is_file()
    assert kept.folder.path == tmp_path / "run" / "model"  # type: ignore[attr-defined]
    with pytest.raises(InvalidInput, match="holds a run already; expected a place for this tuning alone"):
        ContrastiveTuner(**settings, output=str(tmp_path / "run"))(load_trainable(tiny_bert), TEXTS, classes)
    passing = ContrastiveTuner(**settings)(load_trainable(tiny_bert), TEXTS, classes)
    place = passing.folder.path  # type: ignore[attr-defined]
    assert place.is_dir()
    assert (passing.encode(TEXTS) == kept.encode(TEXTS)).all()
    del passing
    gc.collect()
    assert not place.exists()


def test_what_cannot_be_tuned_is_named(tiny_bert: Path) -> None:
    with pytest.raises(InvalidInput, match="1 of 2 classes have a single example, such as 'a dog'; expected"):
        ContrastiveTuner()(load_encoder(tiny_bert), ["a dog", "a cat", "cats"], np.array([0, 1, 1]))
    with pytest.raises(InvalidInput, match="a ToyEncoder has no transformer to tune"):
        ContrastiveTuner()(ToyEncoder(), ["a", "b", "c", "d"], np.array([0, 0, 1, 1]))
    with pytest.raises(InvalidInput, match="max_pairs is 1 and n_rounds 16; expected at least 2 pairs"):
        ContrastiveTuner(max_pairs=1)
    with pytest.raises(InvalidInput, match="temperature is 0; expected more than 0"):
        ContrastiveTuner(temperature=0)
