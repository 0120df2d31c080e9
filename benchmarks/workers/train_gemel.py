"""One training job a line: gemel's own loop."""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gemel.train.trainer
from gemel.checkpoint import read_encoder_folder
from gemel.data.examples import Examples
from gemel.model import SentenceEncoder
from gemel.train import SentenceEncoderStep, TrainConfig, build_objective

LABELS = ("contradiction", "entailment", "neutral")


class OrderGiven:
    """Batches as the examples stand, so that both sides train on the same ones."""

    def __init__(self, n_examples: int, batch_size: int) -> None:
        self.n_batches = -(-n_examples // batch_size)
        self.order, self.batch_size = np.arange(n_examples), batch_size

    def rows(self, number: int) -> np.ndarray[Any, Any]:
        start = number % self.n_batches * self.batch_size
        return self.order[start : start + self.batch_size]


for line in sys.stdin:
    job = json.loads(line)
    given = job["examples"]
    examples = Examples(
        "classified pairs",
        {"first": given["first"], "second": given["second"]},
        np.array(given["labels"], np.int64),
        LABELS,
    )
    torch.manual_seed(0)
    encoder = SentenceEncoder(read_encoder_folder(job["model"]), device="cpu")
    objective = build_objective("softmax", examples.kind, dim=encoder.dim, n_labels=3)
    with tempfile.TemporaryDirectory() as folder:
        run = gemel.train.trainer._Run(
            SentenceEncoderStep(encoder, objective, LABELS),
            examples,
            Path(folder),
            TrainConfig(batch_size=job["batch_size"], max_steps=job["n_steps"]),
            None,
        )
        run.batches = OrderGiven(len(examples), job["batch_size"])
        run.begin(resume=False)
        began = time.perf_counter()
        while not run.is_over:
            run.one_step()
        seconds = time.perf_counter() - began
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(json.dumps({"seconds": seconds, "peak_mb": peak_mb}) + "\n")
    sys.stdout.flush()
