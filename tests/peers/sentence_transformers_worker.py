"""Runs inside the peers' environment: answers JSON lines, one job each, with sentence-transformers."""

from __future__ import annotations

import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
from sentence_transformers import CrossEncoder, SentenceTransformer


def encode(job: dict) -> None:
    model = SentenceTransformer(job["folder"], device="cpu")
    vectors = model.encode(
        job["texts"],
        prompt_name=job.get("prompt"),
        batch_size=job.get("batch_size", 32),
        show_progress_bar=False,
    )
    np.save(job["output"], vectors)


def save(job: dict) -> None:
    """Open a plain transformer, put a pooling and a tail on it, save in this version's own dialect."""
    from sentence_transformers.models import Dense, Normalize, Pooling, Transformer
    from torch import manual_seed

    manual_seed(0)
    transformer = Transformer(job["folder"], max_seq_length=job.get("max_tokens", 40))
    width = transformer.get_embedding_dimension()
    modes = job["modes"]
    pooling = Pooling(width, pooling_mode=modes, include_prompt=job.get("include_prompt", True))
    modules = [transformer, pooling]
    if job.get("dense"):
        modules += [Dense(width * len(modes), job["dense"]), Normalize()]
    model = SentenceTransformer(modules=modules, device="cpu", prompts=job.get("prompts"))
    model.truncate_dim = job.get("truncate_dim")
    model.save(job["output"])


def score(job: dict) -> None:
    model = CrossEncoder(job["folder"], device="cpu")
    np.save(job["output"], model.predict(job["pairs"], show_progress_bar=False))
    if "save_to" in job:
        model.save(job["save_to"])


def loss(job: dict) -> None:
    """The value of one of its losses on given embeddings, and the gradients for them."""
    import torch
    from sentence_transformers import losses

    columns = [torch.tensor(column, requires_grad=True) for column in job["columns"]]

    class Given(torch.nn.Module):
        def forward(self, features: dict) -> dict:
            return {"sentence_embedding": columns[features["place"]]}

    labels = None if job["labels"] is None else torch.tensor(job["labels"])
    made = getattr(losses, job["name"])(Given(), **job["settings"])
    value = made([{"place": place} for place in range(len(columns))], labels)
    value.backward()
    np.savez(job["output"], value=value.item(), gradients=[column.grad.numpy() for column in columns])


JOBS = {"encode": encode, "save": save, "score": score, "loss": loss}
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # whatever the library prints is not an answer
for line in sys.stdin:
    job = json.loads(line)
    try:
        JOBS[job["job"]](job)
        answers.write("done\n")
    except Exception as error:
        answers.write(f"{type(error).__name__}: {error}".replace("\n", " ") + "\n")
    answers.flush()
