"""One few-shot job a line: SetFit's own trainer. Runs in SetFit's environment."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time

os.environ["HF_HUB_OFFLINE"] = "1"

from datasets import Dataset
from setfit import SetFitModel, Trainer, TrainingArguments
from sklearn.linear_model import LogisticRegression

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # whatever the library prints is not an answer


def tuned(job):
    """A model trained on the job's examples, with its classifier, and the seconds that it took."""
    model = SetFitModel.from_pretrained(job["model"], device="cpu")
    examples = Dataset.from_dict({"text": job["texts"], "label": job["labels"]})
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            batch_size=job["batch_size"],
            max_steps=job["max_steps"],
            seed=job["seed"],
            save_strategy="no",
            report_to="none",
            show_progress_bar=False,
        )
        trainer = Trainer(model=model, args=arguments, train_dataset=examples)
        began = time.perf_counter()
        trainer.train()
        return model, time.perf_counter() - began


last, model, seconds = {}, None, 0.0
for line in sys.stdin:
    job = json.loads(line)
    if "cost" in job:  # the model of the job before, with another classifier on top
        began = time.perf_counter()
        model.model_head = LogisticRegression(C=job["cost"], max_iter=1_000)
        model.model_head.fit(model.encode(last["texts"], show_progress_bar=False), last["labels"])
        seconds += time.perf_counter() - began
    else:
        last = job
        model, seconds = tuned(job)
    began = time.perf_counter()
    predicted = [int(label) for label in model.predict(last["test"], show_progress_bar=False)]
    answer = {
        "predicted": predicted,
        "learning_seconds": seconds,
        "predicting_seconds": time.perf_counter() - began,
    }
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
