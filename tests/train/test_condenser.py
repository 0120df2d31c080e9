"""coCondenser: what the head sees, what is masked, and spans that find each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from pretrained import pretrained
from safetensors.numpy import load_file
from stand_ins import ARCHITECTURES, sentences

from gemel import load_encoder
from gemel.checkpoint import read_encoder_folder
from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.model import SentenceEncoder
from gemel.train import TrainConfig, train
from gemel.train.condenser import CondenserHead, CondenserStep, SpanContrast
from gemel.train.metrics import MetricsFile
from gemel.train.parallel import Team, WholeBatch

DOCUMENTS = sentences(24, seed=8, max_words=60)
EXAMPLES = Examples("texts", {"text": DOCUMENTS})


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def step_of(folder: Path, **settings: float) -> CondenserStep:
    torch.manual_seed(1)
    model = SentenceEncoder(read_encoder_folder(folder), device="cpu")
    return CondenserStep(model, **settings)  # type: ignore[arg-type]


def test_the_contrast_by_hand() -> None:
    # Documents a and b; spans a1, b1, a2, b2. Each span's other half has the product 1, all others 0.
    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]], requires_grad=True)
    loss = SpanContrast()([vectors[:2], vectors[2:]], None)
    assert loss.item() == pytest.approx(math.log(math.e + 2) - 1)
    loss.backward()
    share = math.e / (math.e + 2)
    # a1 is drawn to a2 twice, as the one that asks and as the one asked for; pushed from b1 and b2 likewise
    assert vectors.grad is not None
    near, far = 2 * (share - 1) / 4, 2 * 2 * (1 / (math.e + 2)) / 4
    assert vectors.grad[0].tolist() == pytest.approx([near, far], rel=1e-5)


def test_gradients_are_those_of_the_loss() -> None:
    torch.manual_seed(0)
    head = CondenserHead(hidden=4, width=3).double().eval()
    early, late = (torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    mask, table = torch.tensor([[1, 1, 1], [1, 1, 0]]), torch.randn(5, 3, dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda e, v: head.predict(head.read(e, v, mask)[mask > 0], table), (early, late)
    )
    vectors = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda both: SpanContrast()(both.chunk(2), None), (vectors,))


def test_spans_are_told_apart_from_those_of_all_processes(tiny_bert: Path) -> None:
    gathered: list[tuple[int, list[int]]] = []

    class FirstOfTwo(Team):
        def gather(self, own: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
            gathered.append((len(own), list(sizes)))
            return torch.cat([own, own.new_ones(sizes[1], own.shape[1])])

    step = step_of(tiny_bert)
    whole = WholeBatch(FirstOfTwo(0, 2), step, batch_size=5)
    seen: list[int] = []
    step.head.span_contrast.register_forward_hook(lambda _, given, __: seen.append(len(given[0][0])))
    loss, _ = whole.loss(lambda rows: step.loss(EXAMPLES, rows), np.arange(5))
    assert torch.isfinite(loss)
    assert (gathered, seen) == ([(3, [3, 2])], [5])


def test_the_head_sees_of_the_late_layers_the_first_token_alone() -> None:
    torch.manual_seed(0)
    head = CondenserHead(hidden=32, width=8).eval()
    early, late, mask = torch.randn(1, 4, 32), torch.randn(1, 4, 32), torch.ones(1, 4)
    other_late, other_early = late.clone(), early.clone()
    other_late[:, 1:] = 0
    other_early[:, 0] = 0
    expected = head.read(early, late, mask)
    torch.testing.assert_close(head.read(other_early, other_late, mask), expected)
    other_late[:, 0] = 0
    assert not torch.allclose(head.read(early, other_late, mask), expected)


def test_the_spans_of_a_document_share_no_token_place(tiny_bert: Path) -> None:
    step = step_of(tiny_bert, span_tokens=12)
    texts = [" ".join(f"{word}" for word in document.split()) for document in DOCUMENTS]
    spans = step.spans(texts)
    assert len(spans) == 2 * len(texts)
    contents = step.model.tokenizer.contents(texts)
    for content, first, second in zip(contents, spans[:24], spans[24:], strict=True):
        inner = [ids[1:-1].tolist() for ids in (first, second)]
        assert all(1 <= len(ids) <= 10 for ids in inner)
        if len(content) > 1:
            assert len(inner[0]) + len(inner[1]) <= len(content)
        text = content.tolist()
        assert all(any(text[at : at + len(ids)] == ids for at in range(len(text))) for ids in inner)


def test_a_share_of_the_tokens_is_masked_and_no_special_one(tiny_bert: Path) -> None:
    step = step_of(tiny_bert)
    mask = step.model.tokenizer.pieces(["[MASK]"], "", "ignore").ids[0][1]
    ids = np.concatenate([[2], np.full(20_000, 9), [3]]).astype(np.int32)
    chosen = step._chosen(ids)
    assert (chosen[0], chosen[-1]) == (0, 0)
    assert chosen.mean() == pytest.approx(0.15, abs=0.01)
    masked = step._masked(ids, chosen)
    assert np.array_equal(masked[chosen == 0], ids[chosen == 0])
    of_chosen = masked[chosen == 1]
    assert (of_chosen == mask).mean() == pytest.approx(0.8, abs=0.03)
    assert (of_chosen == 9).mean() == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_part_moves_and_the_head_is_dropped(
    architecture: str, tiny_model: Callable[..., Path], tmp_path: Path
) -> None:
    folder = tiny_model(architecture)
    step = step_of(folder)
    config = TrainConfig(batch_size=6, learning_rate=1e-2)
    saved, unmoved = pretrained(step, EXAMPLES, tmp_path / "run", config)
    assert unmoved == []
    assert load_file(saved / "model.safetensors").keys() == load_file(folder / "model.safetensors").keys()
    assert load_encoder(saved).dim == 32


def test_packed_and_padded_batches_have_one_loss(tiny_bert: Path) -> None:
    losses = []
    for packs in (True, False):
        step = step_of(tiny_bert).eval()
        if not packs:
            step.model._packs = False
            step.model.backbone.set_attn_implementation("sdpa")
        torch.manual_seed(4)
        losses.append(step.loss(EXAMPLES, np.arange(6))[0].item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_the_loss_falls(tiny_bert: Path, tmp_path: Path) -> None:
    config = TrainConfig(batch_size=12, epochs=20, learning_rate=3e-3)
    train(step_of(tiny_bert), EXAMPLES, tmp_path / "run", config, show_progress=False)
    losses = [line["loss"] for line in MetricsFile(tmp_path / "run" / "metrics.jsonl").read()]
    assert losses[-1] < losses[0] - 1.5


@pytest.mark.parametrize("settings", [{"masked": 0}, {"contrast": -1}, {"n_layers": 0}, {"span_tokens": 2}])
def test_settings_that_mean_nothing_are_refused(settings: dict[str, float], tiny_bert: Path) -> None:
    with pytest.raises(InvalidInput, match="expected"):
        step_of(tiny_bert, **settings)
