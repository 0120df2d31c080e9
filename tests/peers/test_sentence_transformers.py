"""gemel and sentence-transformers 6.2 open each other's folders and give the same vectors."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import warnings
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from encoders.made import write_glove, write_static_embedding
from stand_ins import ARCHITECTURES, read_json, sentences, write_json
from training_process import run

from gemel import load_encoder
from gemel.checkpoint import POOLING_MODES, EncoderSpec, Pooling, read_encoder_folder, read_reranker_folder
from gemel.data.examples import Examples
from gemel.encoders import open_static, open_word_vectors
from gemel.errors import UnknownWordsWarning
from gemel.model import CrossEncoder, SentenceEncoder
from gemel.similarity import normalise
from gemel.tasks.negatives import HardNegatives, NegativeRules
from gemel.train.objectives import BatchHardTriplet, CoSent, InBatchContrastive, Objective, OnlineContrastive
from gemel.train.static import StaticConfig, distil_static

pytestmark = pytest.mark.extras

TINY = [name for name in ARCHITECTURES if name != "electra"]
MODE_SETS = [(mode,) for mode in POOLING_MODES] + list(combinations(POOLING_MODES, 2)) + [POOLING_MODES]
TEXTS = [*sentences(60, seed=1, max_words=7), "", "  ", "Unknowable WORDS, here!", "the " * 90, "한국어"]
NEWER_NAMES = {"mean_sqrt_len": "mean_sqrt_len_tokens"}


class Peer:
    """A running worker in the environment of the peers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def do(self, job: str, **values: Any) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"job": job, **values}) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline().strip() == "done"

    def encode(self, folder: Path, output: Path, texts: list[str] = TEXTS, **values: Any) -> np.ndarray:
        self.do("encode", folder=str(folder), output=str(output), texts=texts, **values)
        vectors: np.ndarray = np.load(output)
        return vectors


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    python = Path(os.environ.get("GEMEL_PEERS", ".venv-peers")) / "bin" / "python"
    assert python.exists(), f"{python} is missing: `make test-extras` makes it"
    worker = Path(__file__).with_name("sentence_transformers_worker.py")
    with subprocess.Popen(
        [python, worker], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        yield Peer(process)
        assert process.stdin is not None
        process.stdin.close()


def assert_same(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert ours.shape == theirs.shape
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    cosine = (ours * theirs).sum(axis=1) / lengths
    assert cosine.min() >= 0.99999
    np.testing.assert_allclose(np.linalg.norm(ours, axis=1), np.linalg.norm(theirs, axis=1), rtol=1e-4)


def open_quietly(folder: Path) -> SentenceEncoder:
    return SentenceEncoder(read_encoder_folder(folder), device="cpu", on_truncate="ignore")


@pytest.mark.parametrize("architecture", TINY)
def test_their_folders_load_here_with_every_pooling(
    peer: Peer, tiny_model: Callable[[str], Path], tmp_path: Path, architecture: str
) -> None:
    for number, modes in enumerate(MODE_SETS):
        theirs = tmp_path / f"theirs-{number}"
        spelled = [NEWER_NAMES.get(mode, mode) for mode in modes]
        peer.do("save", folder=str(tiny_model(architecture)), output=str(theirs), modes=spelled)
        encoder = open_quietly(theirs)
        assert encoder.spec.pooling.modes == modes
        assert_same(encoder.encode(TEXTS), peer.encode(theirs, tmp_path / "v.npy"))


@pytest.mark.parametrize("architecture", TINY)
def test_our_folders_load_there_with_every_pooling(
    peer: Peer, tiny_model: Callable[[str], Path], tmp_path: Path, architecture: str
) -> None:
    plain = read_encoder_folder(tiny_model(architecture))
    for number, modes in enumerate([*MODE_SETS, ("mean", "cls")]):
        ours = tmp_path / f"ours-{number}"
        spec = EncoderSpec(**{**vars(plain.spec), "pooling": Pooling(modes)})
        encoder = SentenceEncoder(plain.with_spec(spec), device="cpu", on_truncate="ignore")
        encoder.save(ours)
        assert_same(encoder.encode(TEXTS), peer.encode(ours, tmp_path / "v.npy"))


@pytest.mark.parametrize("architecture", TINY)
def test_a_plain_transformer_means_the_same_to_both(
    peer: Peer, tiny_model: Callable[[str], Path], tmp_path: Path, architecture: str
) -> None:
    folder = tiny_model(architecture)
    assert_same(open_quietly(folder).encode(TEXTS), peer.encode(folder, tmp_path / "v.npy"))


@pytest.mark.parametrize("include_prompt", [True, False])
def test_dense_prompts_and_truncation_travel_both_ways(
    peer: Peer, tiny_bert: Path, tmp_path: Path, include_prompt: bool
) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    prompts = {"query": "the red ", "document": ""}
    peer.do(
        "save",
        folder=str(tiny_bert),
        output=str(theirs),
        modes=["max", "mean"],
        dense=12,
        prompts=prompts,
        include_prompt=include_prompt,
        truncate_dim=10,
        max_tokens=30,
    )
    encoder = open_quietly(theirs)
    assert encoder.dim == 10
    assert encoder.spec.max_tokens == 30
    encoder.save(ours)
    assert read_json(ours / "sentence_bert_config.json")["max_seq_length"] == 30
    for prompt in ("query", "document"):
        expected = peer.encode(theirs, tmp_path / "t.npy", prompt=prompt)
        assert_same(encoder.with_prompt(prompt).encode(TEXTS), expected)
        assert_same(peer.encode(ours, tmp_path / "o.npy", prompt=prompt), expected)


def test_the_default_model_gives_the_same_vectors(peer: Peer, default_weights: Path, tmp_path: Path) -> None:
    texts = ["A man is eating food.", "", "How do I compress a file?", "word " * 400, "Ça va? 한국어 文字 🙂"]
    encoder = open_quietly(default_weights)
    expected = peer.encode(default_weights, tmp_path / "t.npy", texts=texts)
    assert_same(encoder.encode(texts), expected)
    encoder.save(tmp_path / "ours")
    assert_same(peer.encode(tmp_path / "ours", tmp_path / "o.npy", texts=texts), expected)


@pytest.mark.parametrize("labels", [("score",), ("contradiction", "entailment", "neutral")])
@pytest.mark.parametrize("architecture", TINY)
def test_cross_encoders_travel_both_ways(
    peer: Peer, tiny_model: Callable[[str], Path], tmp_path: Path, architecture: str, labels: tuple[str, ...]
) -> None:
    torch.manual_seed(0)
    model = CrossEncoder.from_encoder(read_encoder_folder(tiny_model(architecture)), labels, device="cpu")
    model.save(tmp_path / "ours")
    pairs = list(zip(sentences(40, 1, 5), sentences(40, 2, 5), strict=True))
    peer.do(
        "score",
        folder=str(tmp_path / "ours"),
        pairs=pairs,
        output=str(tmp_path / "s.npy"),
        save_to=str(tmp_path / "theirs"),
    )
    expected = np.load(tmp_path / "s.npy")
    np.testing.assert_allclose(model.score(pairs), expected, rtol=1e-4, atol=1e-5)
    again = CrossEncoder(read_reranker_folder(tmp_path / "theirs"), device="cpu")
    np.testing.assert_allclose(again.score(pairs), expected, rtol=1e-4, atol=1e-5)


def test_what_training_writes_opens_there_with_the_same_vectors(
    peer: Peer, tiny_bert: Path, tmp_path: Path
) -> None:
    model = run(tiny_bert, tmp_path / "run", "softmax").model
    assert (model / "gemel_head").is_dir()
    assert_same(open_quietly(model).encode(TEXTS), peer.encode(model, tmp_path / "v.npy"))
    reranker = run(tiny_bert, tmp_path / "cross", "pair-regression").model
    pairs = list(zip(sentences(40, 1, 5), sentences(40, 2, 5), strict=True))
    peer.do("score", folder=str(reranker), pairs=pairs, output=str(tmp_path / "s.npy"))
    ours = CrossEncoder(read_reranker_folder(reranker), device="cpu").score(pairs)
    np.testing.assert_allclose(ours, np.load(tmp_path / "s.npy"), rtol=1e-4, atol=1e-5)


def test_capitals_that_only_the_tokenizer_file_speaks_of_count_there_too(
    peer: Peer, tiny_bert: Path, tmp_path: Path
) -> None:
    cased = tmp_path / "cased"
    shutil.copytree(tiny_bert, cased, ignore=shutil.ignore_patterns("tokenizer_config.json"))
    tokenizer = read_json(cased / "tokenizer.json")
    tokenizer["normalizer"]["lowercase"] = False
    write_json(cased / "tokenizer.json", tokenizer)
    texts = ["The Man plays THE guitar", "the man plays the guitar"]
    ours = open_quietly(cased)
    ours.save(tmp_path / "saved")
    assert_same(ours.encode(texts), peer.encode(tmp_path / "saved", tmp_path / "theirs.npy", texts))
    assert not np.allclose(*ours.encode(texts))


@pytest.mark.parametrize("normalises", [False, True])
def test_static_tables_travel_both_ways(peer: Peer, tmp_path: Path, normalises: bool) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    encoder = open_static(write_static_embedding(theirs, normalises=normalises))
    encoder.save(ours)
    texts = [text for text in TEXTS if text.strip()]
    expected = peer.encode(theirs, tmp_path / "t.npy", texts)
    assert_same(encoder.encode(texts), expected)
    assert_same(peer.encode(ours, tmp_path / "o.npy", texts), expected)


def test_a_distilled_table_is_the_same_there(peer: Peer, tiny_bert: Path, tmp_path: Path) -> None:
    made = distil_static(load_encoder(tiny_bert), sentences(200, seed=2), StaticConfig(dim=16))
    made.save(tmp_path / "table", base_model="tiny")
    texts = [*sentences(60, seed=1, max_words=7), "A dog, 한국어!", "the dog " * 700]
    assert_same(made.encoder.encode(texts), peer.encode(tmp_path / "table", tmp_path / "t.npy", texts))


def test_averaged_word_vectors_point_the_same_way_there(peer: Peer, tmp_path: Path) -> None:
    """There an unknown word counts as a vector of zeros: the mean is shorter, its direction the same."""
    write_glove(tmp_path / "glove.txt")
    encoder = open_word_vectors(tmp_path / "glove.txt")
    encoder.save(tmp_path / "ours")
    texts = [*sentences(60, seed=1, max_words=7), "A dog, unknowable!"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownWordsWarning)
        vectors = encoder.encode(texts)
    is_known = vectors.any(axis=1)
    found = peer.encode(tmp_path / "ours", tmp_path / "o.npy", texts)
    cosines = np.einsum("ij,ij->i", normalise(vectors), normalise(found))
    assert is_known.sum() > 50
    np.testing.assert_allclose(cosines[is_known], 1, atol=1e-5)


SCORES = [0.1, 0.9, 0.4, 0.4, 0.7, 1.0, 0.0, 0.3]
# their name and settings; ours; columns, labels, and what their loss is of ours
LOSSES: dict[str, tuple[dict[str, Any], Objective, int, list[float] | None, float]] = {
    "CoSENTLoss": ({"scale": 20.0}, CoSent(0.05), 2, SCORES, 1),
    "OnlineContrastiveLoss": ({"margin": 0.5}, OnlineContrastive(), 2, [1, 0, 0, 1, 1, 0, 1, 0], 8),  # a sum
    "MultipleNegativesRankingLoss": ({"scale": 20.0}, InBatchContrastive(0.05), 3, None, 1),
    "MultipleNegativesSymmetricRankingLoss": (
        {"scale": 20.0},
        InBatchContrastive(0.05, symmetric=True),
        2,
        None,
        1,
    ),
    "BatchHardTripletLoss": ({"margin": 5.0}, BatchHardTriplet(margin=5.0), 1, [0, 1, 2, 0, 1, 2, 0, 1], 1),
    "BatchHardSoftMarginTripletLoss": ({}, BatchHardTriplet(), 1, [0, 1, 2, 0, 1, 2, 0, 1], 1),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_their_gradients_are_the_same(peer: Peer, tmp_path: Path, name: str) -> None:
    settings, objective, n_columns, labels, factor = LOSSES[name]
    torch.manual_seed(0)
    columns = [torch.randn(8, 6, requires_grad=True) for _ in range(n_columns)]
    loss = objective(columns, None if labels is None else torch.tensor(labels))
    loss.backward()
    given = [column.detach().tolist() for column in columns]
    output = tmp_path / "loss.npz"
    peer.do("loss", name=name, settings=settings, columns=given, labels=labels, output=str(output))
    theirs = np.load(output)
    assert loss.item() * factor == pytest.approx(float(theirs["value"]), rel=1e-5)
    for column, gradient in zip(columns, theirs["gradients"], strict=True):
        assert column.grad is not None
        np.testing.assert_allclose(column.grad.numpy() * factor, gradient, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("rules", "options"),
    [
        ({"relative_margin": None}, {}),
        ({"relative_margin": 0.02}, {"relative_margin": 0.02}),
        ({"relative_margin": None, "margin": 0.01}, {"absolute_margin": 0.01}),
        (
            {"relative_margin": None, "max_score": 0.96, "min_score": 0.9},
            {"max_score": 0.96, "min_score": 0.9},
        ),
        ({"relative_margin": None, "skip_first": 4}, {"range_min": 4}),
    ],
)
def test_hard_negatives_are_those_of_the_peer(
    peer: Peer, tiny_bert: Path, tmp_path: Path, rules: dict[str, Any], options: dict[str, Any]
) -> None:
    texts = list(dict.fromkeys(sentences(260, seed=9, max_words=6)))
    anchors, corpus = texts[:60], texts[60:]
    positives = [f"{anchor} and" for anchor in anchors]
    peer.do(
        "negatives",
        folder=str(tiny_bert),
        anchors=anchors,
        positives=positives,
        options={"corpus": corpus, "num_negatives": 3, "range_max": 150, **options},
        output=str(tmp_path / "negatives.json"),
    )
    expected = read_json(tmp_path / "negatives.json")
    pairs = Examples("pairs", {"anchor": anchors, "positive": positives})
    skipped = rules.get("skip_first", 0)
    found = HardNegatives(
        pairs,
        SentenceEncoder(read_encoder_folder(tiny_bert), device="cpu"),
        NegativeRules(n_negatives=3, n_candidates=150 - skipped, **rules),
        corpus=corpus,
    )
    ours = {(pair.anchor, text) for pair in found for text in pair.negatives}
    theirs = {(anchor, negative) for anchor, _, negative in expected}
    assert len(ours) > 30
    # Two texts at a border may differ by a last bit, which either side rounds its own way: another rule, or
    # a rank more or less, changes nearly every anchor.
    assert len({anchor for anchor, _ in ours ^ theirs}) <= 2
