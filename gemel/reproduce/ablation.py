"""Table 6: a transformer is trained once for each cell and seed; a job that was killed goes on where it was.

All trainings have the same number of pairs, and those of one seed read the same pairs in the same order. What
is kept of a training is its curve and its score; its weights go when the score is written.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gemel.checkpoint import read_encoder_folder
from gemel.checkpoint.resolving import resolve
from gemel.data.catalogue import find_set
from gemel.data.example_files import read_examples
from gemel.data.examples import Examples
from gemel.data.places import hash_of
from gemel.errors import InvalidInput
from gemel.evaluate.scores import Scores
from gemel.evaluate.sts import validate_on_sts
from gemel.loading import load_trainable
from gemel.reproduce.lines import Line, Reproduction
from gemel.reproduce.orderings import orderings
from gemel.reproduce.paper import TABLE_6, PaperRow
from gemel.reproduce.stand_ins import short_name
from gemel.threads import once
from gemel.train import SentenceEncoderStep, TrainConfig, build_objective, train
from gemel.train.objectives import PAPER_CONCATENATION
from gemel.train.parallel import refuse_team

NLI, STSB = TABLE_6.columns
CHECKPOINT_STEPS = 100


@dataclass(frozen=True)
class AblationPlan:
    """What is trained and for how long: 36 trainings of 6,400 pairs take about four hours on two cores."""

    model: str
    n_pairs: int = 6_400  # of each training
    n_seeds: int = 3
    batch_size: int = 16
    learning_rate: float = 5e-5  # the paper's 2e-5 is for a hundred times as many pairs
    max_tokens: int = 75
    device: str | None = None

    def __post_init__(self) -> None:
        if self.n_pairs < self.batch_size or self.n_pairs % self.batch_size or self.n_seeds < 1:
            raise InvalidInput(
                f"{self.n_pairs} pairs and {self.n_seeds} seeds were asked for; expected a multiple of "
                f"{self.batch_size} pairs, which are a step, and at least one seed"
            )
        if not 0 < self.learning_rate < 1:
            raise InvalidInput(
                f"the learning rate is {self.learning_rate:g}; "
                "expected more than 0 and less than 1, such as 5e-5"
            )

    @property
    def n_trainings(self) -> int:
        """How many trainings all cells and seeds take."""
        return len(set(TRIALS.values())) * self.n_seeds


@dataclass(frozen=True)
class Trial:
    """What is trained for a cell, apart from the seed."""

    data: str
    pooling: str
    concatenation: tuple[str, ...] = ()  # of softmax; regression has none

    @property
    def name(self) -> str:
        """A name for a folder."""
        spoken = {"|u-v|": "difference", "u*v": "product"}
        return "-".join([self.data.lower(), self.pooling, *(spoken.get(p, p) for p in self.concatenation)])


def _trials() -> dict[tuple[str, str], Trial]:
    """Row and column of each cell -> its trial; two cells of the table are one and the same."""
    trials = {}
    for row in TABLE_6.rows:
        kind, _, what = row.name.partition(" ")
        for column in row.figures:
            if kind == "pooling":
                parts = PAPER_CONCATENATION if column == NLI else ()
                trials[row.name, column] = Trial(column, what.lower(), parts)
            else:
                trials[row.name, column] = Trial(column, "mean", tuple(what.strip("()").split(", ")))
    return trials


TRIALS = _trials()


class Ablation:
    """One job: every trial with every seed, all of one seed before the next."""

    def __init__(
        self,
        plan: AblationPlan,
        *,
        data: str | Path | None,
        work: Path,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.plan, self.tell = plan, tell
        self._nli_file, self._nli_rows = _nli_file(data)
        self._stsb_file, self._dev_file = (find_set("stsb", part, data) for part in ("train", "dev"))
        self._fingerprint = read_encoder_folder(resolve(plan.model)).fingerprint
        self._data_hash = hash_of(self._nli_file, self._stsb_file, self._dev_file)
        # Known by what goes into it: another model, other data or another plan do not find this one's work.
        # More seeds of the same do.
        settings = {**asdict(plan), "model": self._fingerprint, "n_seeds": None, "device": None}
        goes_in = json.dumps(settings, sort_keys=True) + self._data_hash
        self.place = work / f"table6-{hashlib.sha256(goes_in.encode()).hexdigest()[:12]}"

    def run(self) -> Reproduction:
        """The table with what every training came to."""
        refuse_team("table 6")
        found: dict[Trial, list[float]] = {trial: [] for trial in TRIALS.values()}
        n_done, n_all, began, n_trained = 0, self.plan.n_trainings, time.perf_counter(), 0
        for seed in range(1, self.plan.n_seeds + 1):
            for trial in found:
                score = self._kept(trial, seed)
                if score is None:
                    score, n_trained = self._train(trial, seed), n_trained + 1
                    minutes = (time.perf_counter() - began) / n_trained * (n_all - n_done - 1) / 60
                    self.tell(
                        f"table 6: {n_done + 1} of {n_all}, {trial.name}, seed {seed}: {100 * score:.2f}; "
                        f"about {minutes:,.0f} minutes left"
                    )
                found[trial].append(score)
                n_done += 1
        lines = tuple(self._line(row, found) for row in TABLE_6.rows)
        return Reproduction(TABLE_6, lines, remarks=orderings(TABLE_6, lines))

    @once
    def _examples(self) -> dict[str, Examples]:
        return {
            NLI: read_examples(self._nli_file, kind="classified pairs", where=self._nli_rows),
            STSB: read_examples(self._stsb_file, kind="scored pairs", score_range=(0, 5)),
        }

    @once
    def _dev(self) -> Examples:
        return read_examples(self._dev_file, kind="scored pairs", score_range=(0, 5))

    def _place(self, trial: Trial, seed: int) -> Path:
        return self.place / f"{trial.name}-seed-{seed}"

    def _kept(self, trial: Trial, seed: int) -> float | None:
        file = self._place(trial, seed) / "score.json"
        if not file.is_file():
            return None
        score: float = json.loads(file.read_text(encoding="utf-8"))["spearman"]
        return score

    def _train(self, trial: Trial, seed: int) -> float:
        plan, place, examples = self.plan, self._place(trial, seed), self._examples[trial.data]
        torch.manual_seed(seed)  # a new head starts from the seed as well
        limit = read_encoder_folder(resolve(plan.model)).spec.max_tokens
        encoder = load_trainable(
            plan.model, pooling=trial.pooling, max_tokens=min(limit, plan.max_tokens), device=plan.device
        )
        settings: dict[str, Any] = {"concatenation": trial.concatenation} if trial.concatenation else {}
        objective = build_objective(
            "softmax" if trial.concatenation else "cosine",
            examples.kind,
            dim=encoder.dim,
            n_labels=len(examples.label_names),
            **settings,
        )
        config = TrainConfig(
            epochs=math.ceil(plan.n_pairs / len(examples)) + 1,
            batch_size=plan.batch_size,
            learning_rate=plan.learning_rate,
            max_steps=plan.n_pairs // plan.batch_size,
            checkpoint_every=CHECKPOINT_STEPS,
            seed=seed,
        )
        if not (place / "last").is_dir():  # killed while it wrote its end, and before any checkpoint
            shutil.rmtree(place / "model", ignore_errors=True)
        step = SentenceEncoderStep(encoder, objective, examples.label_names)
        result = train(step, examples, place, config, resume=True)
        score = validate_on_sts(self._dev)(step.model)
        _write_score(place, {"spearman": score, "seconds": result.seconds, "steps": result.steps})
        for leftover in ("model", "last"):
            shutil.rmtree(place / leftover, ignore_errors=True)
        return score

    def _line(self, row: PaperRow, found: dict[Trial, list[float]]) -> Line:
        runs = {column: found[TRIALS[row.name, column]] for column in row.figures}
        many = self.plan.n_seeds > 1
        return Line(
            name=row.name,
            paper=row,
            model=short_name(self.plan.model),
            source=self.plan.model,
            note=f"{self.plan.n_pairs:,} pairs a training at {self.plan.learning_rate:g}, "
            f"{self.plan.n_seeds} {'seeds' if many else 'seed'}; NLI is {self._nli_file.parent.name}",
            figures={column: 100 * float(np.mean(scores)) for column, scores in runs.items()},
            spread={column: 100 * float(np.std(scores, ddof=1)) for column, scores in runs.items()}
            if many
            else {},
            scores=tuple(
                self._scores(TRIALS[row.name, column], seed, score)
                for column, scores in runs.items()
                for seed, score in enumerate(scores, start=1)
            ),
        )

    def _scores(self, trial: Trial, seed: int, score: float) -> Scores:
        return Scores(
            name=f"STSb dev after {trial.name}, seed {seed}",
            metrics={"spearman": score},
            primary="spearman",
            protocol=f"cosines of the vectors after {self.plan.n_pairs:,} pairs of {trial.data}",
            n_examples=len(self._dev),
            data_hash=self._data_hash,
            fingerprint=self._fingerprint,  # of the model that the training started from
            engine="torch float32",
        )


def _nli_file(data: str | Path | None) -> tuple[Path, dict[str, str]]:
    """The pairs to train on: SNLI and MultiNLI, or else a mixture of them without the sentences of SICK."""
    try:
        return find_set("allnli", "train", data), {}
    except InvalidInput as not_here:
        try:
            return find_set("nli_mix", "train", data), {"source": "!=sick"}
        except InvalidInput:
            raise not_here from None


def _write_score(place: Path, values: dict[str, float]) -> None:
    draft = place / "score.json.draft"
    draft.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    draft.replace(place / "score.json")
