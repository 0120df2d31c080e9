"""A server with tiny models, shared by the tests that only talk to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from serve.made import TinyModels, save_tiny_encoder
from serving_process import RunningServer

from gemel.checkpoint import read_encoder_folder
from gemel.model import CrossEncoder


@pytest.fixture(scope="session")
def tiny_models(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> TinyModels:
    place = tmp_path_factory.mktemp("served")
    save_tiny_encoder(tiny_bert, place / "tiny-encoder")
    torch.manual_seed(0)
    scorer = CrossEncoder.from_encoder(read_encoder_folder(tiny_bert), ("score",), device="cpu")
    with torch.no_grad():
        for parameter in scorer.transformer.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    scorer.save(place / "tiny-reranker")
    return TinyModels(place / "tiny-encoder", place / "tiny-reranker")


@pytest.fixture(scope="session")
def server(tiny_models: TinyModels) -> Iterator[RunningServer]:
    running = RunningServer(
        "--model", str(tiny_models.encoder_folder), "--reranker", str(tiny_models.reranker_folder)
    )
    yield running
    assert running.stop() == 0
