"""Each objective against numbers and gradients worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from gemel.errors import InvalidInput
from gemel.train.objectives import (
    CROSS_OBJECTIVES,
    OBJECTIVES,
    CosineRegression,
    FeedForwardRegression,
    InBatchContrastive,
    PairClassification,
    PairRegression,
    Softmax,
    Triplet,
    build_objective,
    concatenate,
)


def leaf(values: list[list[float]]) -> torch.Tensor:
    return torch.tensor(values, requires_grad=True)


def test_the_concatenation_is_the_papers() -> None:
    u, v = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, -1.0]])
    joined = concatenate(u, v, ("u", "v", "|u-v|", "u*v"))
    assert joined.tolist() == [[1.0, 2.0, 3.0, -1.0, 2.0, 3.0, 3.0, -2.0]]


def test_softmax_by_hand() -> None:
    objective = Softmax(dim=1, n_labels=2)
    with torch.no_grad():
        objective.classifier.weight.copy_(torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]))
    u, v = leaf([[2.0]]), leaf([[1.0]])
    # logits: u = 2 and v + |u-v| = 2, so both classes have probability 1/2
    loss = objective([u, v], torch.tensor([0]))
    assert loss.item() == pytest.approx(math.log(2))
    loss.backward()
    # d loss / d logits = (-1/2, 1/2); d|u-v|/du = 1, so d/du = -1/2 + 1/2 and d/dv = 1/2 - 1/2
    assert u.grad is not None
    assert v.grad is not None
    assert u.grad.item() == pytest.approx(0.0)
    assert v.grad.item() == pytest.approx(0.0)
    assert objective.classifier.weight.grad is not None
    assert objective.classifier.weight.grad.tolist() == [[-1.0, -0.5, -0.5], [1.0, 0.5, 0.5]]


def test_cosine_regression_by_hand() -> None:
    u, v = leaf([[1.0, 0.0]]), leaf([[1.0, 1.0]])
    loss = CosineRegression()([u, v], torch.tensor([0.2]))
    cosine = 1 / math.sqrt(2)
    assert loss.item() == pytest.approx((cosine - 0.2) ** 2)
    loss.backward()
    # d cos / du = v/(|u||v|) - cos u/|u|^2 = (0, 1/sqrt 2)
    assert u.grad is not None
    assert u.grad.tolist() == [[pytest.approx(0.0), pytest.approx(2 * (cosine - 0.2) * cosine)]]


@pytest.mark.parametrize(
    ("distance", "near", "far"),
    [("euclidean", 5.0, 10.0), ("manhattan", 7.0, 14.0)],
)
def test_triplet_by_hand(distance: str, near: float, far: float) -> None:
    anchor, positive, negative = leaf([[0.0, 0.0]]), leaf([[3.0, 4.0]]), leaf([[6.0, 8.0]])
    assert Triplet(distance, margin=1.0)([anchor, positive, negative], None).item() == 0.0
    loss = Triplet(distance, margin=12.0)([anchor, positive, negative], None)
    assert loss.item() == pytest.approx(near - far + 12.0)
    loss.backward()
    # moving the positive away raises the loss, moving the negative away lowers it
    assert positive.grad is not None
    assert negative.grad is not None
    slope = [[0.6, 0.8]] if distance == "euclidean" else [[1.0, 1.0]]
    torch.testing.assert_close(positive.grad, torch.tensor(slope))
    torch.testing.assert_close(negative.grad, -torch.tensor(slope))


def test_triplet_with_cosine_by_hand() -> None:
    columns = [leaf([[1.0, 0.0]]), leaf([[0.0, 1.0]]), leaf([[1.0, 0.0]])]
    assert Triplet("cosine", margin=0.5)(columns, None).item() == pytest.approx(1.0 - 0.0 + 0.5)


def test_triplet_with_several_negatives_takes_their_mean() -> None:
    anchor, positive = leaf([[0.0]]), leaf([[2.0]])
    losses = Triplet(margin=1.0)([anchor, positive, leaf([[1.0]]), leaf([[9.0]])], None)
    assert losses.item() == pytest.approx((2.0 + 0.0) / 2)


def test_in_batch_contrastive_by_hand() -> None:
    anchors, positives = leaf([[1.0, 0.0], [0.0, 2.0]]), leaf([[3.0, 0.0], [0.0, 1.0]])
    negatives = leaf([[1.0, 0.0], [1.0, 0.0]])
    objective = InBatchContrastive(temperature=0.5)
    # cosines are 0 or 1; the first anchor sees 1, 0 and two copies of itself, the second 0, 1, 0, 0
    e = math.exp(1 / 0.5)
    expected = (-math.log(e / (3 * e + 1)) - math.log(e / (e + 3))) / 2
    assert objective([anchors, positives, negatives], None).item() == pytest.approx(expected)
    without = (-math.log(e / (e + 1)) * 2) / 2
    assert objective([anchors, positives], None).item() == pytest.approx(without)


def test_cross_encoder_objectives_by_hand() -> None:
    loss = PairRegression()([leaf([[0.0], [2.0]])], torch.tensor([0.3, 1.0]))
    assert loss.item() == pytest.approx((math.log(2) + math.log(1 + math.exp(-2.0))) / 2)
    loss = PairClassification()([leaf([[0.0, 0.0, 0.0]])], torch.tensor([2]))
    assert loss.item() == pytest.approx(math.log(3))


def batch_for(name: str) -> tuple[list[torch.Tensor], torch.Tensor | None, nn.Module]:
    torch.manual_seed(0)
    columns = [torch.randn(4, 6, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    scores = torch.tensor([0.1, 0.9, 0.5, 0.3], dtype=torch.float64)
    classes = torch.tensor([0, 2, 1, 1])
    made = {
        "softmax": (columns[:2], classes, Softmax(6, 3, ("u", "v", "|u-v|", "u*v"))),
        "cosine": (columns[:2], scores, CosineRegression()),
        "regression": (columns[:2], scores, FeedForwardRegression(6, hidden=5)),
        "triplet": (columns, None, Triplet(margin=3.0)),
        "contrastive": (columns, None, InBatchContrastive()),
        "pair-regression": ([columns[0][:, :1]], scores, PairRegression()),
        "pair-classification": ([columns[0][:, :3]], classes, PairClassification()),
    }
    columns, labels, objective = made[name]
    return columns, labels, objective.double()


@pytest.mark.parametrize("name", [*OBJECTIVES, *CROSS_OBJECTIVES])
def test_gradients_agree_with_differences(name: str) -> None:
    columns, labels, objective = batch_for(name)
    inputs = tuple(column.detach().requires_grad_() for column in columns)
    parameters = tuple(objective.parameters())
    assert torch.autograd.gradcheck(lambda *_: objective(inputs, labels), (*inputs, *parameters))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("classified pairs", "Softmax"),
        ("scored pairs", "CosineRegression"),
        ("pairs", "InBatchContrastive"),
        ("triplets", "InBatchContrastive"),
    ],
)
def test_the_objective_follows_from_the_data(kind: str, expected: str) -> None:
    assert type(build_objective(None, kind, dim=4, n_labels=3)).__name__ == expected


def test_what_does_not_fit_is_refused_with_what_does() -> None:
    with pytest.raises(
        InvalidInput, match=r"'softmax' eats classified pairs and the data holds triplets; for"
    ):
        build_objective("softmax", "triplets", dim=4)
    with pytest.raises(InvalidInput, match="for these choose contrastive or triplet"):
        build_objective("cosine", "triplets", dim=4)
    with pytest.raises(InvalidInput, match="'magic' is unknown; choose from softmax, cosine"):
        build_objective("magic", "pairs", dim=4)
    with pytest.raises(InvalidInput, match="does not take these settings"):
        build_objective("cosine", "scored pairs", dim=4, temperature=1.0)
    with pytest.raises(InvalidInput, match="join any of u, v"):
        build_objective("softmax", "classified pairs", dim=4, n_labels=3, concatenation=["u+v"])
    with pytest.raises(InvalidInput, match="at least 2 classes and the data has 1"):
        build_objective("softmax", "classified pairs", dim=4, n_labels=1)
