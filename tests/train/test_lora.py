"""Adapters: only they move, and what is saved is a plain model that does the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from stand_ins import sentences
from training_process import KINDS, examples_of, step_for

from gemel import load_encoder, load_reranker
from gemel.checkpoint import read_encoder_folder
from gemel.errors import InvalidInput
from gemel.model import SentenceEncoder
from gemel.train import TrainConfig, train
from gemel.train.lora import AdaptedLinear, Lora, add_adapters, merged, settle_adapters

TEXTS = sentences(20, seed=3, max_words=12)
CONFIG = TrainConfig(batch_size=10, learning_rate=1e-2, lora=Lora(rank=4, alpha=8))


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def test_an_adapted_map_by_hand() -> None:
    linear = torch.nn.Linear(2, 1)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[1.0, 2.0]]))
        linear.bias.fill_(0.5)
    adapted = AdaptedLinear.around(linear, Lora(rank=1, alpha=3), torch.Generator().manual_seed(0))
    given = torch.tensor([[1.0, 1.0]])
    assert adapted(given).item() == 3.5  # B is zero at first
    with torch.no_grad():
        adapted.lora_a.copy_(torch.tensor([[2.0, -1.0]]))
        adapted.lora_b.fill_(0.5)
    # A x = 1, B A x = 0.5, scaled by 3 / 1
    assert adapted(given).item() == 5.0
    plain = adapted.merged()
    assert plain.weight.tolist() == [[4.0, 0.5]]  # (1, 2) + 3 x 0.5 x (2, -1)
    assert plain(given).item() == 5.0


def test_an_adapted_model_starts_as_the_model_it_was(tiny_bert: Path) -> None:
    model = SentenceEncoder(read_encoder_folder(tiny_bert), device="cpu")
    before = model.encode(TEXTS)
    assert add_adapters(model, Lora(), seed=0) == 12  # two layers of six maps
    np.testing.assert_array_equal(model.encode(TEXTS), before)
    with pytest.raises(InvalidInput, match="trained with adapters already"):
        add_adapters(model, Lora(), seed=0)


@pytest.mark.parametrize("name", KINDS)
def test_nothing_but_adapters_and_new_heads_moves(tiny_bert: Path, tmp_path: Path, name: str) -> None:
    step = step_for(tiny_bert, name)
    before = {key: value.detach().clone() for key, value in step.named_parameters()}
    train(step, examples_of(KINDS[name]), tmp_path / "run", CONFIG, show_progress=False)
    after = dict(step.named_parameters())
    moved = {key for key in before if not torch.equal(before[key], after[key])}
    of_heads = ("objective.", "model.transformer.classifier.", "model.transformer.bert.pooler.")
    heads = {key for key in before if key.startswith(of_heads)}
    adapted = {key for key in moved if key not in heads}
    assert moved - adapted == heads
    assert len(adapted) == 12
    assert before.keys() == after.keys()  # the adapters are gone, and what they have learnt is in the maps
    for key in adapted:
        assert torch.linalg.matrix_rank(after[key] - before[key], rtol=1e-3) <= CONFIG.lora.rank


def test_the_saved_model_is_plain_and_equals_the_adapted_one(tiny_bert: Path, tmp_path: Path) -> None:
    step = step_for(tiny_bert, "contrastive")
    result = train(step, examples_of("triplets"), tmp_path / "run", CONFIG, show_progress=False)
    saved = load_file(result.model / "model.safetensors")
    assert saved.keys() == load_file(tiny_bert / "model.safetensors").keys()
    left = step.model.encode(TEXTS)
    opened = load_encoder(result.model, precision="float32", on_truncate="ignore").encode(TEXTS)
    np.testing.assert_allclose(opened, left, atol=1e-5)
    first = load_encoder(tiny_bert, precision="float32", on_truncate="ignore").encode(TEXTS)
    assert np.abs(opened - first).max() > 1e-2
    step.model.save(tmp_path / "by hand")
    again = load_encoder(tmp_path / "by hand", precision="float32", on_truncate="ignore").encode(TEXTS)
    np.testing.assert_array_equal(again, opened)


def test_merged_for_a_while_and_then_as_it_was(tiny_bert: Path) -> None:
    model = SentenceEncoder(read_encoder_folder(tiny_bert), device="cpu")
    add_adapters(model, Lora(rank=4), seed=0)
    with torch.no_grad():
        for name, value in model.named_parameters():
            if name.endswith("lora_b"):
                value.normal_(std=0.1)
    bits, adapted = {key: value.clone() for key, value in model.state_dict().items()}, model.encode(TEXTS)
    with merged(model):
        assert not any(isinstance(module, AdaptedLinear) for module in model.modules())
        np.testing.assert_allclose(model.encode(TEXTS), adapted, atol=1e-5)
    assert all(torch.equal(value, bits[key]) for key, value in model.state_dict().items())
    settle_adapters(model)
    np.testing.assert_allclose(model.encode(TEXTS), adapted, atol=1e-5)


def test_a_model_that_has_been_merged_does_not_go_on_with_adapters(tiny_bert: Path, tmp_path: Path) -> None:
    step, examples = step_for(tiny_bert, "contrastive"), examples_of("triplets")
    train(step, examples, tmp_path / "run", CONFIG, show_progress=False)
    for output in ("run", "another"):
        with pytest.raises(InvalidInput, match="trained with adapters already"):
            train(step, examples, tmp_path / output, CONFIG, resume=True, show_progress=False)
    fresh = step_for(tiny_bert, "contrastive")
    assert train(fresh, examples, tmp_path / "run", CONFIG, resume=True, show_progress=False).is_complete


def test_what_breaks_off_leaves_a_plain_model(tiny_bert: Path, tmp_path: Path) -> None:
    step, examples = step_for(tiny_bert, "contrastive"), examples_of("triplets")
    before = {key: value.clone() for key, value in step.state_dict().items()}
    (tmp_path / "run" / "last").mkdir(parents=True)
    with pytest.raises(InvalidInput, match="holds a run already"):
        train(step, examples, tmp_path / "run", CONFIG, show_progress=False)
    assert all(torch.equal(value, before[key]) for key, value in step.state_dict().items())

    def broken(model: SentenceEncoder) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(step, examples, tmp_path / "other", CONFIG, validate=broken, show_progress=False)
    assert step.state_dict().keys() == before.keys()
    assert not torch.equal(
        *(
            each["model.backbone.encoder.layer.0.attention.self.query.weight"]
            for each in (before, step.state_dict())
        )
    )


def test_a_cross_encoder_has_adapters_too(tiny_bert: Path, tmp_path: Path) -> None:
    step = step_for(tiny_bert, "pair-regression")
    result = train(step, examples_of("scored pairs"), tmp_path / "run", CONFIG, show_progress=False)
    pairs = list(zip(TEXTS[:10], TEXTS[10:], strict=True))
    np.testing.assert_allclose(
        load_reranker(result.model, precision="float32").score(pairs), step.model.score(pairs), atol=1e-5
    )


def test_a_checkpoint_holds_adapters_alone_and_belongs_to_one_base(
    tiny_bert: Path, tiny_model: Callable[..., Path], tmp_path: Path
) -> None:
    examples = examples_of("classified pairs")
    train(step_for(tiny_bert, "softmax"), examples, tmp_path / "run", CONFIG, show_progress=False)
    names = load_file(tmp_path / "run" / "last" / "weights.safetensors")
    assert {name for name in names if ".lora_" not in name} == {"objective.classifier.weight"}
    assert len(names) == 25
    other = step_for(tiny_model("electra"), "softmax")
    with pytest.raises(InvalidInput, match=r"adapters of .* belong to another model"):
        train(other, examples, tmp_path / "run", CONFIG, resume=True, show_progress=False)


@pytest.mark.parametrize("architecture", ["distilbert", "roberta", "mpnet"])
def test_every_architecture_can_be_adapted(
    architecture: str, tiny_model: Callable[..., Path], tmp_path: Path
) -> None:
    step = step_for(tiny_model(architecture), "cosine")
    result = train(step, examples_of("scored pairs", 20), tmp_path / "run", CONFIG, show_progress=False)
    opened = SentenceEncoder(read_encoder_folder(result.model), device="cpu")
    np.testing.assert_allclose(opened.encode(TEXTS[:5]), step.model.encode(TEXTS[:5]), atol=1e-5)


def test_chosen_maps_alone_are_adapted_and_unknown_ones_told(tiny_bert: Path) -> None:
    model = SentenceEncoder(read_encoder_folder(tiny_bert), device="cpu")
    with pytest.raises(InvalidInput, match="no linear map of this model is named qery; choose the targets"):
        add_adapters(model, Lora(targets=("qery", "value")), seed=0)
    assert add_adapters(model, Lora(targets=("query", "value")), seed=0) == 4


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"rank": 0}, "the rank of adapters is 0"),
        ({"rank": "8"}, "the rank of adapters is '8'"),
        ({"alpha": 0}, "the alpha of adapters is 0"),
        ({"r": 8}, "lora has the unknown key 'r'; the known keys are rank, alpha, targets"),
    ],
)
def test_settings_are_checked(values: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        TrainConfig.from_dict({"lora": values})
    assert TrainConfig.from_dict({"lora": {"rank": 8, "alpha": 16}}).lora == Lora(8, 16)
    assert TrainConfig.from_dict({"lora": {"targets": "query"}}).lora == Lora(targets=("query",))


def test_a_new_pooler_is_trained_and_kept_as_the_head_is(tiny_bert: Path, tmp_path: Path) -> None:
    step = step_for(tiny_bert, "pair-regression")
    before = {name: value.detach().clone() for name, value in step.named_parameters()}
    train(step, examples_of("scored pairs"), tmp_path / "run", CONFIG, show_progress=False)
    moved = [
        name
        for name, value in step.named_parameters()
        if name in before and not torch.equal(value, before[name])
    ]
    assert [name for name in moved if ".pooler." in name]
    assert [
        name for name in load_file(tmp_path / "run" / "last" / "weights.safetensors") if ".pooler." in name
    ]


def test_a_new_head_that_stays_as_it_is_goes_on_with_the_run(tiny_bert: Path, tmp_path: Path) -> None:
    config = TrainConfig(batch_size=10, max_steps=2, lora=Lora(rank=2), freeze=("objective",))
    heads = []
    for seed, resume in ((1, False), (2, True)):
        step = step_for(tiny_bert, "softmax")
        torch.manual_seed(seed)
        torch.nn.init.normal_(step.objective.classifier.weight)  # type: ignore[arg-type, union-attr]
        train(step, examples_of("classified pairs"), tmp_path / "run", config, resume=resume)
        heads.append(step.objective.classifier.weight.detach().clone())  # type: ignore[operator, union-attr]
    assert torch.equal(*heads)
