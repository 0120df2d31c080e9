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
    BatchHardTriplet,
    CoSent,
    CosineRegression,
    FeedForwardRegression,
    InBatchContrastive,
    Matryoshka,
    Objective,
    OnlineContrastive,
    PairClassification,
    PairRegression,
    Softmax,
    SupervisedContrastive,
    TextSoftmax,
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


def test_the_symmetric_loss_also_picks_the_anchor_of_each_positive() -> None:
    anchors, positives = leaf([[1.0, 0.0], [1.0, 0.0]]), leaf([[1.0, 0.0], [0.0, 1.0]])
    loss = InBatchContrastive(temperature=1.0, symmetric=True)([anchors, positives], None)
    e = math.e
    # cosines: both anchors see (1, 0); the positives see (1, 1) and (0, 0)
    forth = (-math.log(e / (e + 1)) - math.log(1 / (e + 1))) / 2
    back = math.log(2)
    assert loss.item() == pytest.approx((forth + back) / 2)


def test_the_positive_must_lead_by_the_margin() -> None:
    anchors, positives = leaf([[1.0, 0.0], [0.0, 1.0]]), leaf([[1.0, 0.0], [0.0, 1.0]])
    loss = InBatchContrastive(temperature=0.5, margin=0.3)([anchors, positives], None)
    right = math.exp((1 - 0.3) / 0.5)
    assert loss.item() == pytest.approx(-math.log(right / (right + 1)))
    loss.backward()
    # d loss / d cosine of the first anchor with the other positive = share of that candidate / 0.5 / batch;
    # the anchor may only turn, towards (0, 1)
    assert anchors.grad is not None
    share = 1 / (right + 1)
    assert anchors.grad[0].tolist() == [pytest.approx(0.0), pytest.approx(share / 0.5 / 2)]


def test_the_same_text_is_never_a_negative() -> None:
    torch.manual_seed(0)
    columns = [torch.randn(4, 5, requires_grad=True) for _ in range(3)]
    # Rows 0 and 1 have one positive (10), rows 2 and 3 one anchor (3); the negative of row 0 is the anchor of
    # row 1 (2) and that of row 2 the positive of row 3 (12).
    texts = torch.tensor([[1, 10, 2], [2, 10, 20], [3, 11, 12], [3, 12, 21]])
    loss = InBatchContrastive(temperature=0.5)(columns, texts)
    anchors, positives, negatives = [column / column.norm(dim=1, keepdim=True) for column in columns]
    candidates = torch.cat([positives, negatives])
    allowed = {
        0: [0, 2, 3, 4, 5, 6, 7],  # not the same positive in row 1
        1: [1, 2, 3, 5, 6, 7],  # nor itself as the negative of row 0
        2: [2, 0, 1, 4, 5, 6, 7],  # not the other positive of the same anchor
        3: [3, 0, 1, 4, 5, 7],  # nor its positive as the negative of row 2
    }
    expected = 0.0
    for row, places in allowed.items():
        shares = (candidates[places] @ anchors[row] / 0.5).exp()
        own = (candidates[row] @ anchors[row] / 0.5).exp()
        expected -= (own / shares.sum()).log().item() / 4
    assert loss.item() == pytest.approx(expected)
    both = InBatchContrastive(temperature=0.5, symmetric=True)([column[:2] for column in columns], texts[:2])
    # In the way back both positives are one text: neither anchor is the other's negative there.
    back = 0.0
    forth = InBatchContrastive(temperature=0.5)([column[:2] for column in columns], texts[:2])
    assert both.item() == pytest.approx((forth.item() + back) / 2)


def test_cosent_by_hand() -> None:
    u = leaf([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    v = leaf([[0.0, 1.0], [1.0, 0.0], [3.0, 4.0]])  # cosines 0, 1, 0.6
    loss = CoSent(temperature=0.5)([u, v], torch.tensor([1.0, 0.2, 0.2]))
    # the first is scored above both others: their leads are 1 and 0.6; the others are scored alike
    terms = [1.0, math.exp(1 / 0.5), math.exp(0.6 / 0.5)]
    assert loss.item() == pytest.approx(math.log(sum(terms)))
    loss.backward()
    # d loss / d cos_0 = -(share of both) / 0.5, and d cos_0 / d v_0 = (1, 0) at v_0 = (0, 1)
    assert v.grad is not None
    assert v.grad[0].tolist() == [
        pytest.approx(-(terms[1] + terms[2]) / sum(terms) / 0.5),
        pytest.approx(0.0),
    ]
    assert CoSent()([u, v], torch.tensor([0.5, 0.5, 0.5])).item() == 0.0


def test_online_contrastive_by_hand() -> None:
    cosines = [0.6, 1.0, 0.8, 0.0]  # distances 0.4 and 0 for positives, 0.2 and 1 for negatives
    u = leaf([[1.0, 0.0]] * 4)
    v = leaf([[cosine, math.sqrt(1 - cosine**2)] for cosine in cosines])
    labels = torch.tensor([1, 1, 0, 0])
    # hard: the positive at 0.4, beyond the negative at 0.2; that negative, nearer than the positive
    loss = OnlineContrastive(margin=0.5)([u, v], labels)
    assert loss.item() == pytest.approx((0.4**2 + (0.5 - 0.2) ** 2) / 4)
    loss.backward()
    assert v.grad is not None
    assert v.grad[1].tolist() == v.grad[3].tolist() == [0.0, 0.0]
    # d loss / d v_0 = 2 0.4 / 4 (-d cos / d v_0), with d cos / d v = (1, 0) - cos v
    assert v.grad[0].tolist() == [pytest.approx(-0.2 * 0.64), pytest.approx(0.2 * 0.48)]
    assert OnlineContrastive(positive=0)([u, v], 1 - labels).item() == pytest.approx(loss.item())
    named = OnlineContrastive(2, ("duplicate", "other"), positive="duplicate")
    assert named([u, v], 1 - labels).item() == pytest.approx(loss.item())
    assert "'duplicate' together" in named.describe()
    assert OnlineContrastive(2, ("Yes", "no")).positive == 0
    with pytest.raises(
        InvalidInput, match="positive is None; expected one of the classes, 'duplicate' or 'other'"
    ):
        OnlineContrastive(2, ("duplicate", "other"))
    alone = OnlineContrastive()([u, v], torch.tensor([1, 1, 1, 1]))
    assert alone.item() == pytest.approx((0.4**2 + 0.2**2 + 1) / 4)


@pytest.mark.parametrize("margin", [None, 2.0])
def test_batch_hard_by_hand(margin: float | None) -> None:
    vectors = leaf([[0.0], [3.0], [1.0], [10.0]])
    labels = torch.tensor([0, 0, 1, 2])  # the last two are alone in their classes
    loss = BatchHardTriplet(margin=margin)([vectors], labels)
    leads = [3.0 - 1.0, 3.0 - 2.0]  # from 0: alike at 3, other at 1; from 3: alike at 0, other at 1
    hinges = [math.log(1 + math.exp(lead)) if margin is None else lead + margin for lead in leads]
    assert loss.item() == pytest.approx(sum(hinges) / 2)
    loss.backward()
    # d/dx of |x0-x1| - |x0-x2| and |x0-x1| - |x1-x2|, weighted by the slope of the hinge
    slopes = [1 / (1 + math.exp(-lead)) if margin is None else 1.0 for lead in leads]
    expected = [
        [(-slopes[0] + slopes[0] - slopes[1]) / 2],
        [(slopes[0] + slopes[1] - slopes[1]) / 2],
        [(-slopes[0] + slopes[1]) / 2],
        [0.0],
    ]
    assert vectors.grad is not None
    torch.testing.assert_close(vectors.grad, torch.tensor(expected))


def test_batch_hard_without_positives_or_negatives_loses_nothing() -> None:
    vectors = leaf([[1.0, 0.0], [0.0, 1.0]])
    for labels in ([0, 0], [0, 1]):
        loss = BatchHardTriplet("cosine")([vectors], torch.tensor(labels))
        loss.backward()
        assert loss.item() == 0.0
    assert vectors.grad is not None
    assert not vectors.grad.any()


def test_supervised_contrastive_leaves_out_who_is_alone_in_a_class() -> None:
    vectors = leaf([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    loss = SupervisedContrastive(temperature=1.0)([vectors], torch.tensor([0, 0, 1]))
    assert loss.item() == pytest.approx(-math.log(math.e / (math.e + 1)))  # the first two, each for the other
    alone = SupervisedContrastive()([vectors], torch.tensor([0, 1, 2]))
    alone.backward()
    assert alone.item() == 0.0


def test_text_softmax_by_hand() -> None:
    objective = TextSoftmax(dim=1, n_labels=2)
    with torch.no_grad():
        objective.classifier.weight.copy_(torch.tensor([[1.0], [-1.0]]))
        objective.classifier.bias.zero_()
    loss = objective([leaf([[2.0]])], torch.tensor([1]))
    assert loss.item() == pytest.approx(math.log(1 + math.exp(4.0)))


def test_matryoshka_sums_the_loss_of_every_length() -> None:
    torch.manual_seed(0)
    u, v = (torch.randn(3, 6, requires_grad=True) for _ in range(2))
    scores = torch.tensor([0.1, 0.9, 0.4])
    objective = build_objective(
        "cosine", "scored pairs", dim=6, matryoshka={"dimensions": [6, 2], "weights": [1.0, 0.5]}
    )
    expected = CosineRegression()([u, v], scores) + 0.5 * CosineRegression()([u[:, :2], v[:, :2]], scores)
    assert objective([u, v], scores).item() == pytest.approx(expected.item())
    grads = torch.autograd.grad(objective([u, v], scores), u)[0]
    torch.testing.assert_close(grads, torch.autograd.grad(expected, u)[0])


def test_matryoshka_gives_each_length_a_head_of_its_own() -> None:
    objective = build_objective(
        "softmax", "classified pairs", dim=6, n_labels=3, matryoshka={"dimensions": [4, 6]}
    )
    assert isinstance(objective, Matryoshka)
    assert [tuple(value.shape) for value in objective.parameters()] == [(3, 12), (3, 18)]
    assert objective.whole is objective.parts[1]
    contrastive = build_objective("contrastive", "pairs", dim=6, matryoshka={"dimensions": [4]})
    assert isinstance(contrastive, Matryoshka)
    assert (contrastive.whole, contrastive.min_batch) == (None, 2)


def test_the_loss_of_guessing_is_the_loss_of_vectors_that_say_nothing() -> None:
    same = [torch.ones(4, 6) for _ in range(3)]
    classes = torch.tensor([0, 2, 1, 1])
    assert InBatchContrastive().loss_of_guessing(same) == pytest.approx(
        InBatchContrastive()(same, None).item()
    )
    for objective in (Softmax(6, 3), TextSoftmax(6, 3)):
        nn.init.zeros_(objective.classifier.weight)
        if objective.classifier.bias is not None:
            nn.init.zeros_(objective.classifier.bias)
        assert objective.loss_of_guessing(same) == pytest.approx(objective(same[:2], classes).item())
    assert CosineRegression().loss_of_guessing(same) == 1.0


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
        "contrastive": (columns, None, InBatchContrastive(0.5, symmetric=True, margin=0.2)),
        "cosent": (columns[:2], scores, CoSent(0.5)),
        "online-contrastive": (columns[:2], classes.clamp(max=1), OnlineContrastive(margin=2.0)),
        "batch-hard": (columns[:1], classes, BatchHardTriplet()),
        "supervised-contrastive": (columns[:1], classes, SupervisedContrastive(0.5)),
        "text-softmax": (columns[:1], classes, TextSoftmax(6, 3)),
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
        ("texts", "InBatchContrastive"),
        ("classified texts", "BatchHardTriplet"),
    ],
)
def test_the_objective_follows_from_the_data(kind: str, expected: str) -> None:
    assert type(build_objective(None, kind, dim=4, n_labels=3)).__name__ == expected


@pytest.mark.parametrize("name", OBJECTIVES)
def test_gradients_of_every_objective_inside_matryoshka_agree_with_differences(name: str) -> None:
    columns, labels, _ = batch_for(name)

    def make(dim: int) -> Objective:
        told = {"dim": dim, "n_labels": 2 if name == "online-contrastive" else 3, "label_names": ()}
        return OBJECTIVES[name](**{need: told[need] for need in OBJECTIVES[name].needs})

    objective = Matryoshka(make, 6, [6, 3], [1.0, 0.3]).double()
    inputs = tuple(column.detach().requires_grad_() for column in columns)
    assert torch.autograd.gradcheck(lambda *_: objective(inputs, labels), (*inputs, *objective.parameters()))


def test_what_does_not_fit_is_refused_with_what_does() -> None:
    with pytest.raises(
        InvalidInput, match=r"'softmax' eats classified pairs and the data holds triplets; for"
    ):
        build_objective("softmax", "triplets", dim=4)
    with pytest.raises(InvalidInput, match="for these choose contrastive or triplet"):
        build_objective("cosine", "triplets", dim=4)
    with pytest.raises(InvalidInput, match="holds pairs, from which a cross-encoder cannot learn; expected"):
        build_objective(None, "pairs", dim=0, cross_encoder=True)
    with pytest.raises(InvalidInput, match=r"matryoshka is \{'dimensions': 4\}, which has wrong types"):
        build_objective("contrastive", "pairs", dim=4, matryoshka={"dimensions": 4})
    with pytest.raises(InvalidInput, match="'magic' is unknown; choose from softmax, cosine"):
        build_objective("magic", "pairs", dim=4)
    with pytest.raises(InvalidInput, match="does not take these settings: temperature; it takes matryoshka"):
        build_objective("cosine", "scored pairs", dim=4, temperature=1.0)
    with pytest.raises(InvalidInput, match="settings: heat; it takes temperature, symmetric, margin, matryo"):
        build_objective("contrastive", "pairs", dim=4, heat=1.0)
    with pytest.raises(InvalidInput, match="symmetric in the objective 'contrastive' is 'no'; expected true"):
        build_objective("contrastive", "pairs", dim=4, symmetric="no")
    with pytest.raises(InvalidInput, match="hidden is -1; expected a whole number, at least 1"):
        build_objective("regression", "scored pairs", dim=4, hidden=-1)
    with pytest.raises(InvalidInput, match="all of the classified texts are of one class"):
        build_objective("batch-hard", "classified texts", dim=4, n_labels=1)
    with pytest.raises(InvalidInput, match=r"temperature in the objective 'cosent' is .*; expected a number"):
        build_objective("cosent", "scored pairs", dim=4, temperature="warm")
    with pytest.raises(InvalidInput, match="join any of u, v"):
        build_objective("softmax", "classified pairs", dim=4, n_labels=3, concatenation=["u+v"])
    with pytest.raises(InvalidInput, match="at least 2 classes and the data has 1"):
        build_objective("softmax", "classified pairs", dim=4, n_labels=1)
    with pytest.raises(InvalidInput, match="tells 2 classes apart and the data has 3"):
        build_objective("online-contrastive", "classified pairs", dim=4, n_labels=3)
    with pytest.raises(InvalidInput, match="margin is 3; expected a difference of cosines"):
        build_objective("contrastive", "pairs", dim=4, margin=3)
    with pytest.raises(InvalidInput, match="temperature is 0; expected more than 0"):
        build_objective("cosent", "scored pairs", dim=4, temperature=0)
    with pytest.raises(InvalidInput, match="'manhattan' is unknown; choose from euclidean, cosine"):
        build_objective("batch-hard", "classified texts", dim=4, distance="manhattan")


@pytest.mark.parametrize(
    ("matryoshka", "message"),
    [
        ({"dimensions": [8, 4]}, r"are \[8, 4\]; expected different numbers from 1 to 6"),
        ({"dimensions": [4, 4]}, "expected different numbers"),
        ({"dimensions": []}, "expected different numbers"),
        ({"dimensions": [2.5]}, "expected different numbers"),
        ({"dimensions": [4, 2], "weights": [1]}, "for each of the 2 dimensions"),
        ({"dims": [4]}, r"expected dimensions = \[...\]"),
        ([4, 2], r"expected dimensions = \[...\]"),
    ],
)
def test_a_wrong_matryoshka_is_refused(matryoshka: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        build_objective("cosine", "scored pairs", dim=6, matryoshka=matryoshka)
    with pytest.raises(InvalidInput, match="a cross-encoder gives scores, no vectors"):
        build_objective(None, "scored pairs", dim=0, cross_encoder=True, matryoshka={"dimensions": [1]})
