"""What students imitate, against numbers worked out by hand, and the loop that teaches them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stand_ins import sentences

from gemel import load_encoder
from gemel.checkpoint import read_encoder_folder
from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.model import CrossEncoder, SentenceEncoder
from gemel.train import TrainConfig, targets, train
from gemel.train.distillation import DistillationStep
from gemel.train.imitation import (
    Imitation,
    MarginImitation,
    SimilarityImitation,
    VectorImitation,
    build_imitation,
)
from gemel.train.metrics import MetricsFile
from gemel.train.targets import margins, scored_by, teacher_scores, teacher_vectors

TEXTS = sentences(60, seed=5, max_words=8)


def leaf(values: list[list[float]]) -> torch.Tensor:
    return torch.tensor(values, requires_grad=True)


def test_vector_imitation_by_hand() -> None:
    student = leaf([[3.0, 4.0], [0.0, 2.0]])
    teacher = torch.tensor([[1.0, 0.0], [0.0, 5.0]])
    # (0.6, 0.8) is sqrt(0.8) away from (1, 0), squared 0.8; the second points where its teacher does
    loss = VectorImitation()([student], teacher)
    assert loss.item() == pytest.approx(0.4)
    loss.backward()
    # |s/|s| - t|^2 = 2 - 2 cos; d cos / d s = (t - cos s/|s|) / |s| = (0.64, -0.48) / 5; times -2 / 2
    assert student.grad is not None
    assert student.grad[0].tolist() == pytest.approx([-0.128, 0.096])
    assert student.grad[1].tolist() == pytest.approx([0.0, 0.0])
    assert VectorImitation(normalise=False)([student], teacher).item() == pytest.approx((4 + 16 + 9) / 2)


def test_a_translation_is_drawn_to_the_teachers_vector_of_its_source() -> None:
    source, translation = leaf([[1.0, 0.0]]), leaf([[0.0, 1.0]])
    loss = VectorImitation()([source, translation], torch.tensor([[2.0, 0.0]]))
    assert loss.item() == pytest.approx((0 + 2) / 2)


def test_similarity_imitation_by_hand() -> None:
    student = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    teacher = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # of another length
    loss = SimilarityImitation(temperature=0.5)([student], teacher)
    # The teacher has shares (1/2, 1/2) in each row; the student in rows 1 and 2 those of e^2 and 1.
    large, small = math.exp(2) / (math.exp(2) + 1), 1 / (math.exp(2) + 1)
    divergence = 0.5 * math.log(0.5 / large) + 0.5 * math.log(0.5 / small)
    assert loss.item() == pytest.approx(2 * divergence / 3, rel=1e-5)
    both = Imitation(vectors=0.0, similarities=2.0, temperature=0.5)([student], teacher)
    assert both.item() == pytest.approx(2 * loss.item())


def test_margin_imitation_by_hand() -> None:
    anchor, positive, negative = leaf([[1.0, 0.0]]), leaf([[2.0, 1.0]]), leaf([[0.5, 3.0]])
    loss = MarginImitation("dot")([anchor, positive, negative], torch.tensor([[1.0]]))
    assert loss.item() == pytest.approx(0.25)  # (2 - 0.5 - 1)^2
    loss.backward()
    assert anchor.grad is not None
    assert anchor.grad.tolist() == [[1.5, -2.0]]  # 2 x 0.5 x (positive - negative)
    cosine = MarginImitation()([anchor, positive, negative], torch.tensor([[0.0]]))
    assert cosine.item() == pytest.approx((2 / math.sqrt(5) - 0.5 / math.sqrt(9.25)) ** 2, rel=1e-5)


@pytest.mark.parametrize(
    ("objective", "n_columns", "shape"),
    [
        (VectorImitation(), 2, (4, 3)),
        (SimilarityImitation(), 1, (4, 5)),
        (Imitation(), 1, (4, 3)),
        (MarginImitation(), 4, (4, 2)),
    ],
)
def test_gradients_are_those_of_the_loss(
    objective: torch.nn.Module, n_columns: int, shape: tuple[int, int]
) -> None:
    torch.manual_seed(0)
    columns = [torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(n_columns)]
    targets = torch.randn(shape, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda *given: objective(given, targets), columns)


def test_what_does_not_fit_is_told() -> None:
    with pytest.raises(
        InvalidInput, match="student's vectors have 2 numbers and the teacher's 3; add a projection"
    ):
        VectorImitation()([torch.ones(1, 2)], torch.ones(1, 3))
    with pytest.raises(InvalidInput, match="'margin-imitation' eats triplets and the data holds texts"):
        build_imitation("margin-imitation", "texts", {})
    with pytest.raises(InvalidInput, match="'softmax' does not learn from a teacher"):
        build_imitation("softmax", "texts", {})
    with pytest.raises(InvalidInput, match="does not take these settings: margin; it takes normalise"):
        build_imitation(None, "texts", {"margin": 3})
    with pytest.raises(InvalidInput, match="one of them above 0"):
        build_imitation("imitation", "texts", {"vectors": 0, "similarities": 0})


def test_teacher_vectors_are_made_once_and_belong_to_their_texts(tiny_bert: Path, tmp_path: Path) -> None:
    teacher = load_encoder(tiny_bert)
    file = tmp_path / "run" / "teacher.npy"
    vectors = teacher_vectors(teacher, TEXTS, file)
    np.testing.assert_array_equal(vectors, teacher.encode(TEXTS))
    assert isinstance(vectors, np.memmap)
    made = file.stat().st_mtime_ns
    teacher_vectors(teacher, TEXTS, file)
    assert file.stat().st_mtime_ns == made
    other = teacher_vectors(teacher, TEXTS[:7], file)
    np.testing.assert_array_equal(other, teacher.encode(TEXTS[:7]))
    exact = load_encoder(tiny_bert, precision="float32")
    np.testing.assert_array_equal(teacher_vectors(exact, TEXTS, file), exact.encode(TEXTS))


def test_vectors_that_were_begun_are_continued_unless_they_are_of_other_texts(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gemel.train.targets.WINDOW_TEXTS", 10)
    teacher, file = load_encoder(tiny_bert), tmp_path / "teacher.npy"
    asked: list[int] = []
    encode = teacher.encode

    def broken(texts: list[str], **others: object) -> np.ndarray:
        asked.append(len(texts))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return encode(texts, **others)  # type: ignore[arg-type]

    monkeypatch.setattr(teacher, "encode", broken)
    with pytest.raises(KeyboardInterrupt):
        teacher_vectors(teacher, TEXTS, file)
    np.testing.assert_array_equal(teacher_vectors(teacher, TEXTS, file), encode(TEXTS))
    assert asked == [10] * 7  # two of them before, four after, and the one that was broken off
    file.unlink()
    asked.clear()
    with pytest.raises(KeyboardInterrupt):
        teacher_vectors(teacher, TEXTS, file)
    others = TEXTS[::-1]
    np.testing.assert_array_equal(teacher_vectors(teacher, others, file), encode(others))


def test_vectors_of_other_texts_are_not_taken_for_the_right_ones_after_a_kill(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    teacher, file = load_encoder(tiny_bert), tmp_path / "teacher.npy"
    teacher_vectors(teacher, TEXTS, file)
    write = targets._write_vectors

    def killed(*given: Any) -> None:
        write(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(targets, "_write_vectors", killed)
        with pytest.raises(KeyboardInterrupt):
            teacher_vectors(teacher, TEXTS[::-1], file)
    np.testing.assert_array_equal(teacher_vectors(teacher, TEXTS, file), teacher.encode(TEXTS))


def step_of(folder: Path, targets: np.ndarray, objective: torch.nn.Module | None = None) -> DistillationStep:
    student = SentenceEncoder(read_encoder_folder(folder), device="cpu")
    return DistillationStep(student, objective or VectorImitation(), targets)  # type: ignore[arg-type]


def test_a_student_learns_its_teachers_vectors_and_frozen_parts_stay(tiny_bert: Path, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    # What the teacher says is turned about: nothing that the student could know before.
    turned = load_encoder(tiny_bert).encode(TEXTS)[:, ::-1].copy()
    step = step_of(tiny_bert, turned)
    before = {name: value.detach().clone() for name, value in step.named_parameters()}
    config = TrainConfig(epochs=30, batch_size=20, learning_rate=3e-3, freeze=("backbone.embeddings",))
    train(step, Examples("texts", {"text": TEXTS}), tmp_path / "run", config, show_progress=False)
    losses = [line["loss"] for line in MetricsFile(tmp_path / "run" / "metrics.jsonl").read()]
    assert losses[-1] < losses[0] / 3
    still = {name for name, value in step.named_parameters() if torch.equal(value, before[name])}
    assert {name for name in still if ".pooler." not in name} == {
        name for name in before if name.startswith("model.backbone.embeddings.")
    }


def test_a_teacher_of_other_examples_is_refused(tiny_bert: Path) -> None:
    step = step_of(tiny_bert, np.zeros((3, 32), np.float32))
    with pytest.raises(InvalidInput, match="spoke of 3 examples and there are 60"):
        step.loss(Examples("texts", {"text": TEXTS}), np.arange(4))


def cross_encoder(folder: Path, labels: tuple[str, ...] = ("score",)) -> CrossEncoder:
    torch.manual_seed(1)
    return CrossEncoder.from_encoder(read_encoder_folder(folder), labels, device="cpu")


def test_a_cross_encoders_scores_become_labels_and_margins(tiny_bert: Path, tmp_path: Path) -> None:
    teacher = cross_encoder(tiny_bert)
    pairs = Examples("pairs", {"first": TEXTS[:20], "second": TEXTS[20:40]})
    scored = scored_by(teacher, pairs, tmp_path / "pairs.npy")
    expected = teacher.score(list(zip(TEXTS[:20], TEXTS[20:40], strict=True)))
    assert scored.kind == "scored pairs"
    np.testing.assert_array_equal(scored.labels, expected)
    columns = {"anchor": TEXTS[:20], "positive": TEXTS[20:40], "negative": TEXTS[40:]}
    triplets = Examples("triplets", columns)
    found = margins(teacher_scores(teacher, triplets, tmp_path / "triplets.npy"))
    worse = teacher.score(list(zip(TEXTS[:20], TEXTS[40:], strict=True)))
    np.testing.assert_allclose(found[:, 0], expected - worse, atol=1e-6)
    raw = cross_encoder(tiny_bert)
    raw.folder, raw.activation = replace(raw.folder, activation="identity"), torch.nn.Identity()
    np.testing.assert_allclose(scored_by(raw, pairs, tmp_path / "raw.npy").labels, expected, atol=1e-6)
    step = step_of(tiny_bert, found, MarginImitation())
    loss, n_tokens = step.loss(triplets, np.arange(4))
    assert loss.item() > 0
    assert n_tokens > 0
    with pytest.raises(InvalidInput, match="triplets were given to be scored; expected pairs"):
        scored_by(teacher, triplets, tmp_path / "pairs.npy")
    with pytest.raises(InvalidInput, match=r"the teacher gives 2 scores \(no, yes\); expected 1"):
        teacher_scores(cross_encoder(tiny_bert, ("no", "yes")), pairs, tmp_path / "two.npy")
