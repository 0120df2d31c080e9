"""A small cross-encoder for the adapters that rerank."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemel import load_reranker
from gemel.pair_scorer import PairScorer


def pytest_configure(config: pytest.Config) -> None:
    for mark in ("benchmark", "vcr"):
        config.addinivalue_line("markers", f"{mark}: a mark in LangChain's own suites")


@pytest.fixture(scope="session")
def tiny_reranker_folder(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    from gemel.checkpoint import read_encoder_folder
    from gemel.model import CrossEncoder

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("reranker") / "model"
    CrossEncoder.from_encoder(read_encoder_folder(tiny_bert), device="cpu").save(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_reranker(tiny_reranker_folder: Path) -> PairScorer:
    return load_reranker(tiny_reranker_folder)


@pytest.fixture(scope="session")
def prompted_folder(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has a prompt for queries and another for documents."""
    from gemel.adapters.sentence_transformers import SentenceTransformer

    folder = tmp_path_factory.mktemp("prompted") / "model"
    prompts = {"query": "the red ", "document": "a big "}
    SentenceTransformer(str(tiny_bert), prompts=prompts).save(folder)
    return folder
