"""One readable loop, which can be killed at any step and continued to the same bits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, SupportsFloat

import numpy as np
import torch
from torch import Tensor, nn

from gemel.data.examples import Examples
from gemel.errors import InvalidInput, ProcessLost
from gemel.train.alone import alone_in
from gemel.train.arguments import check_arguments, name_classes
from gemel.train.batches import Rows
from gemel.train.bfloat16 import check_bfloat16, decide, forward_in_bfloat16, is_apt_for_bfloat16
from gemel.train.card import write_card
from gemel.train.config import TrainConfig
from gemel.train.dropout import dropout_of
from gemel.train.interrupts import held_interrupts
from gemel.train.leaving import left_plain
from gemel.train.lora import merged
from gemel.train.metrics import MetricsFile
from gemel.train.mixing import MixedExamples, MultiTaskStep, are_others, digest_of, plan_batches
from gemel.train.parallel import WholeBatch, check_alike, join_team, start_alike
from gemel.train.result import TrainResult
from gemel.train.run_card import facts_of_run
from gemel.train.state import RunState, load_state, recover_run, save_state
from gemel.train.steps import Step, module_of, set_cache_chunk
from gemel.train.telling import Tell, told_steps
from gemel.train.tensorboard import EventFiles
from gemel.train.trained import adam, check_finite, trained_parts
from gemel.train.weight_mean import WeightMean

Validate = Callable[[Any], float]
LOG_EVERY = 10  # steps
CHECKPOINT_SECONDS = 600.0  # where a recipe says nothing of checkpoints


def train(
    step: Step,
    examples: Examples | MixedExamples,
    output: str | Path,
    config: TrainConfig | None = None,
    *,
    validate: Validate | None = None,
    resume: bool = False,
    show_progress: bool | None = None,
    tell: Tell | None = None,
) -> TrainResult:
    """Train a model on examples; everything that the run makes is under `output`.

    In processes that torchrun has started, each takes its share of every batch. Where no bar is shown, `tell`
    is called with a line a minute and after every evaluation.
    """
    check_arguments(step, examples, config)
    with left_plain(step):
        run = _Run(step, examples, Path(output), config or TrainConfig(), validate)
        with alone_in(run.output) if run.team.is_leader else nullcontext():
            name_classes(step, examples)
            run.begin(resume)
            _make_steps(run, show_progress, tell)
            result = run.finish()
            if run.team.is_leader:
                write_card(result.model, facts_of_run(step, examples, run.config, result))
    return result


def _make_steps(run: _Run, show_progress: bool | None, tell: Tell | None) -> None:
    is_shown = show_progress if run.team.is_leader else False
    is_late = run.is_over and not run.is_ended  # which all processes ask the first one together
    if is_late and tell is not None:
        tell(f"no time is left at step {run.state.step:,} of {run.n_steps:,}: raise max_minutes to go on")
    try:
        with (
            dropout_of(module_of(run.step), run.config.dropout),
            told_steps(run.n_steps, run.state.step, is_shown, tell) as told,
        ):
            while not run.is_over:
                run.one_step()
                told(run.state.step, run.status(), run.state.evaluated_at == run.state.step)
    except (KeyboardInterrupt, ProcessLost):
        with held_interrupts():  # who hears nothing asks a second time
            if tell is not None:
                tell(f"stopping after step {run.state.step:,}: a checkpoint is being written")
            run.checkpoint()
        raise


class _Run:
    def __init__(
        self,
        step: Step,
        examples: Examples | MixedExamples,
        output: Path,
        config: TrainConfig,
        validate: Validate | None,
    ) -> None:
        self.step, self.examples, self.output, self.config = step, examples, output, config
        self.validate = validate
        if validate is None and config.evaluate_every is not None:
            raise InvalidInput(
                f"evaluate_every is {config.evaluate_every} and there is nothing to validate with; give "
                "validate, or leave it out"
            )
        self.team = join_team()
        self.whole_batch = WholeBatch(self.team, module_of(step), config.batch_size)
        self.batches = plan_batches(examples, step.objective, config.batch_size, config.seed)
        self.n_steps = config.steps_in_all(self.batches.n_batches)
        set_cache_chunk(step, config.cache_chunk)
        self.trained = trained_parts(step, config)
        self.optimiser = adam(self.trained, config)
        # All processes have the same weights, and the leader alone validates and saves.
        n_plain = config.plain_steps(self.n_steps) if self.team.is_leader else self.n_steps
        self.mean = WeightMean(self.trained, n_plain)
        place = config.tensorboard if self.team.is_leader else None
        events = None if place is None else EventFiles(place)
        self.metrics = MetricsFile(output / "metrics.jsonl", events)
        self.state = RunState()
        self._logged_at = self._kept_at = self._began = time.perf_counter()
        self._kept_step = -1  # of the latest checkpoint
        self._pace: dict[str, float] = {}  # of the steps that were logged last

    @property
    def is_over(self) -> bool:
        return self.is_ended or self._out_of_time()

    @property
    def is_ended(self) -> bool:
        """Whether no step is left to be made, however much time there is."""
        return self.state.step >= self.n_steps or self.state.stopped_early

    def begin(self, resume: bool) -> None:
        # A machine that has not the model of the stage before may read with another prompt.
        read = {"prompt": getattr(self.step.model, "prompt", "")}
        digest = digest_of(self.examples)
        check_alike(self.team, module_of(self.step), digest, {**self.config.to_dict(), **read})
        self.state = self.team.from_leader(lambda: self._first_state(resume, digest))
        start_alike(self.team, module_of(self.step), self.trained, self.optimiser)
        if self.state.uses_bfloat16 is None:
            device = next(iter(self.trained.values())).device
            is_wanted = decide(self.config.bf16, device) and is_apt_for_bfloat16(self.step, self.config.bf16)
            self.state.uses_bfloat16 = self.team.all_say(is_wanted)
        elif self.state.uses_bfloat16:
            check_bfloat16(next(iter(self.trained.values())).device)
        if self._is_evaluation_due() or self.state.is_last_of_slice:  # broken off while it validated
            self._evaluate()

    def _first_state(self, resume: bool, digest: str) -> RunState:
        self.output.mkdir(parents=True, exist_ok=True)
        last = self.output / "last"
        if resume:
            recover_run(self.output)
        if resume and last.is_dir():
            state = load_state(last, self.step, self.trained, self.optimiser, self.config, self.mean)
            if are_others(state.examples, digest):
                raise InvalidInput(
                    f"{last} was made with other examples: resume with the same, or name another output"
                )
            if state.best_score is not None and not (self.output / "model").exists():
                raise InvalidInput(
                    f"{self.output} has no model: its best one, of step {state.best_step:,}, was removed, "
                    f"and {last} holds another; put it back, or remove {last} as well to begin anew"
                )
            self.metrics.forget_after(state.logged_at, state.evaluated_at)
            self._logged_at = time.perf_counter() - state.unlogged_seconds
            return state
        if resume and (self.output / "model").exists():
            raise InvalidInput(
                f"{self.output} has a model and no checkpoint to go on from, and training anew would replace "
                "it; name another output, or remove the model"
            )
        if not resume and ((self.output / "model").exists() or last.exists()):
            raise InvalidInput(
                f"{self.output} holds a run already: continue it (--resume, resume=True), or name another"
            )
        self.metrics.forget_after(-1, -1)  # resumed or not: a run without a checkpoint begins anew
        return RunState(examples=digest)

    def one_step(self) -> None:
        """Every random choice follows from seed and step, so that a resumed run makes the same ones."""
        number = self.state.step
        torch.manual_seed(self.team.seed(self.config.seed * 1_000_003 + number))
        _set_training(self.step, True)
        loss, n_pairs, n_tokens = 0.0, 0, 0
        by_task: list[tuple[str, float]] = []
        batches = self.config.batches_of(number, self.batches.n_batches)
        all_rows = [self.batches.rows(batch) for batch in batches]
        for rows in all_rows:
            share = len(rows) / sum(map(len, all_rows))  # the last batch of an epoch may be a small one
            with self._precision():  # of the backward pass too, which may make activations again
                part_loss, part_tokens = self.whole_batch.loss(self._loss, rows)
                torch.autograd.backward(part_loss * share)
            loss += float(part_loss.detach()) * share
            if isinstance(self.step, MultiTaskStep):
                by_task.append((self.step.task, float(part_loss.detach())))
            n_pairs, n_tokens = n_pairs + len(rows), n_tokens + part_tokens
        loss, tokens_each = self.team.average(list(self.trained.values()), [loss, n_tokens])
        n_tokens = round(tokens_each * self.team.size)
        norm = float(nn.utils.clip_grad_norm_(self.trained.values(), self.config.clip_norm))
        if not (np.isfinite(loss) and np.isfinite(norm)):
            what, value = ("loss", loss) if not np.isfinite(loss) else ("gradient's length", norm)
            raise InvalidInput(
                f"the {what} became {value} at step {number}: lower the learning rate, check the data"
            )
        for group in self.optimiser.param_groups:
            group["lr"] = self.config.learning_rate_at(number, self.n_steps)
        with held_interrupts():  # weights that have moved belong to the next step
            self.optimiser.step()
            self.optimiser.zero_grad(set_to_none=True)
            self.state.step += 1
            self.mean.add(self.state.step)
            self.state.n_pairs += n_pairs
            self.state.unlogged.append((loss, n_pairs, n_tokens))
            self.state.unlogged_by_task += by_task
        self._after_step()

    def checkpoint(self) -> None:
        if not self.team.is_leader:
            return
        check_finite(self.trained, self.state.step)
        self._kept_step, now = self.state.step, time.perf_counter()
        self.state.seconds, self._began = self.state.seconds + now - self._began, now
        self._kept_at, self.state.unlogged_seconds = now, now - self._logged_at
        save_state(
            self.output / "last", self.step, self.state, self.trained, self.optimiser, self.config, self.mean
        )

    def finish(self) -> TrainResult:
        if self.state.unlogged:
            self._log()
        if self.validate and self.state.evaluated_at != self.state.step:
            self.state.is_last_of_slice = True
            self.checkpoint()  # should validation fail, nothing is lost
            self._evaluate()
        _set_training(self.step, False)
        if self.state.best_score is None:
            self.state.best_step = self.state.step
            self.checkpoint()  # a model without one could not be gone on with
            self._save_model()
        self.checkpoint()
        self.metrics.close()
        return TrainResult(
            model=self.output / "model",
            steps=self.state.step,
            best_step=self.state.best_step,
            best_score=self.state.best_score,
            seconds=self._seconds(),
            stopped_early=self.state.stopped_early,
            is_complete=self.state.step >= self.n_steps,
            planned_steps=self.n_steps,
        )

    def status(self) -> str:
        """How it goes: by the steps that were logged last, and before any were by those made so far."""
        pace = self._pace or self._pace_now()
        told = (
            f"loss {pace['loss']:.3f}, {pace['pairs_per_second']:.0f} pairs/s, "
            f"{pace['tokens_per_second']:,.0f} tokens/s"
        )
        last, best = self.state.last_score, self.state.best_score
        if last is None or best is None:
            return told
        return f"{told}, dev {last:.4f}" + ("" if last == best else f" (best {best:.4f})")

    def _after_step(self) -> None:
        if self.state.step % LOG_EVERY == 0:
            self._log()
        if self._is_evaluation_due():
            self._evaluate()
        if self._is_checkpoint_due():
            self.checkpoint()

    def _is_checkpoint_due(self) -> bool:
        if self.config.checkpoint_every:
            return self.state.step % self.config.checkpoint_every == 0
        is_late = time.perf_counter() - self._kept_at >= CHECKPOINT_SECONDS
        return is_late or (self.state.evaluated_at == self.state.step and self._kept_step != self.state.step)

    def _is_evaluation_due(self) -> bool:
        every, step = self.config.evaluate_every, self.state.step
        is_time = bool(every and step and step % every == 0)
        return self.validate is not None and is_time and self.state.evaluated_at != step

    def _evaluate(self) -> None:
        _set_training(self.step, False)
        try:
            with self._beside_the_pace():
                score = self.team.from_leader(self._score)
        except Exception:
            self.checkpoint()  # nothing that was learnt is lost
            raise
        if self.state.is_best(score):
            # A run that goes on from here evaluates this step again, and has the model that belongs to it.
            if self._kept_step != self.state.step:
                self.checkpoint()
            with self._beside_the_pace():
                self._save_model()
        with held_interrupts():
            self.state.take_score(score, self.config)
            self._write(step=self.state.step, validation=score, seconds=self._seconds())

    @contextmanager
    def _beside_the_pace(self) -> Iterator[None]:
        """What takes time within is no part of the pace."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._logged_at += time.perf_counter() - began

    def _score(self) -> float:
        assert self.validate is not None
        with self.mean.in_place(), merged(self.step.model):
            score: Any = self.validate(self.step.model)
        if np.ndim(score) or not isinstance(score, SupportsFloat) or not np.isfinite(float(score)):
            raise InvalidInput(
                f"validation gave {score!r} at step {self.state.step}; expected a finite number, the larger "
                "the better"
            )
        return float(score)

    def _log(self) -> None:
        with held_interrupts():  # what was written is not written again
            self._pace, self._logged_at = self._pace_now(), time.perf_counter()
            self._write(
                step=self.state.step,
                learning_rate=self.config.learning_rate_at(self.state.step - 1, self.n_steps),
                seconds=self._seconds(),
                **self._pace,
                **self._losses_by_task(),
            )
            self.state.logged_at = self.state.step
            self.state.unlogged, self.state.unlogged_by_task = [], []

    def _pace_now(self) -> dict[str, float]:
        losses, pairs, tokens = zip(*self.state.unlogged, strict=True)
        elapsed = time.perf_counter() - self._logged_at
        return {
            "loss": float(np.mean(losses)),
            "pairs_per_second": sum(pairs) / elapsed,
            "tokens_per_second": sum(tokens) / elapsed,
        }

    def _losses_by_task(self) -> dict[str, dict[str, float]]:
        found: dict[str, list[float]] = {}
        for task, loss in self.state.unlogged_by_task:
            found.setdefault(task, []).append(loss)
        means = {task: float(np.mean(losses)) for task, losses in sorted(found.items())}
        return {"loss_by_task": means} if means else {}

    def _precision(self) -> AbstractContextManager[None]:
        return forward_in_bfloat16(self.step.model) if self.state.uses_bfloat16 else nullcontext()

    def _loss(self, rows: Rows) -> tuple[Tensor, int]:
        return self.step.loss(self.examples, rows)

    def _save_model(self) -> None:
        check_finite(self.trained, self.state.step)
        with self.mean.in_place(), merged(self.step.model):
            self.team.from_leader(lambda: self.step.save(self.output / "model"))

    def _write(self, **values: Any) -> None:
        if self.team.is_leader:
            self.metrics.add(**values)

    def _seconds(self) -> float:
        return self.state.seconds + time.perf_counter() - self._began

    def _out_of_time(self) -> bool:
        minutes = self.config.max_minutes
        return minutes is not None and self.team.from_leader(lambda: self._seconds() >= 60 * minutes)


def _set_training(step: Step, training: bool) -> None:
    module_of(step).train(training)
