"""One training job a line: sentence-transformers' own trainer. Runs in the peers' environment."""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time

os.environ["HF_HUB_OFFLINE"] = "1"

from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import SoftmaxLoss
from torch.utils.data import BatchSampler, SequentialSampler
from transformers import TrainerCallback

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # whatever the library prints is not an answer


class InTheOrderGiven(SentenceTransformerTrainer):
    def get_batch_sampler(self, dataset, batch_size, drop_last, **_):
        return BatchSampler(SequentialSampler(dataset), batch_size, drop_last)


class Watch(TrainerCallback):
    """Times the steps alone: neither setting up nor saving."""

    def on_train_begin(self, *_, **__):
        self.began = time.perf_counter()

    def on_train_end(self, *_, **__):
        self.seconds = time.perf_counter() - self.began


for line in sys.stdin:
    job = json.loads(line)
    given = job["examples"]
    dataset = Dataset.from_dict(
        {"sentence1": given["first"], "sentence2": given["second"], "label": given["labels"]}
    )
    # As stored it might be float16, which a CPU computes at a crawl; gemel trains in float32 too.
    model = SentenceTransformer(job["model"], device="cpu", model_kwargs={"dtype": "float32"})
    loss = SoftmaxLoss(model, model.get_embedding_dimension(), num_labels=3)
    watch = Watch()
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            max_steps=job["n_steps"],
            per_device_train_batch_size=job["batch_size"],
            learning_rate=2e-5,
            warmup_ratio=0.1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = InTheOrderGiven(
            model=model, args=arguments, train_dataset=dataset, loss=loss, callbacks=[watch]
        )
        trainer.train()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    answers.write(json.dumps({"seconds": watch.seconds, "peak_mb": peak_mb}) + "\n")
    answers.flush()
