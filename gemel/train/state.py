"""All that a run needs to go on to the same bits: weights, Adam's moments and a few numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from gemel.checkpoint import recover, whole_folder
from gemel.errors import InvalidInput, InvalidModel
from gemel.model import CrossEncoder
from gemel.train.config import TrainConfig
from gemel.train.lora import of_base_model
from gemel.train.objectives import Objective
from gemel.train.steps import Step, module_of
from gemel.train.weight_mean import WeightMean

KEPT = ("last", "model")  # the folders that a run leaves
MEAN = "mean.safetensors"  # of the last weights, once there is one
MOMENTS = ("exp_avg", "exp_avg_sq")
# May differ when a run goes on: they move no weight.
FREE_SETTINGS = ("max_minutes", "checkpoint_every", "patience", "tensorboard")


@dataclass
class RunState:
    """The numbers of a run, apart from its tensors."""

    step: int = 0
    logged_at: int = 0
    n_pairs: int = 0
    evaluated_at: int = -1
    is_last_of_slice: bool = False  # and so is evaluated, whatever its number
    last_score: float | None = None
    best_score: float | None = None
    best_step: int = 0
    best_in_turn: float | None = None  # of the evaluations that patience counts
    n_worse: int = 0
    stopped_early: bool = False
    examples: str = ""  # a digest of what is learnt from: a run goes on with the same
    seconds: float = 0.0
    unlogged_seconds: float = 0.0  # that the unlogged steps have taken
    uses_bfloat16: bool | None = None  # found out once: a resumed run must not find otherwise
    unlogged: list[tuple[float, int, int]] = field(default_factory=list)  # loss, pairs, tokens of a step
    unlogged_by_task: list[tuple[str, float]] = field(default_factory=list)  # of batches of several tasks

    def is_best(self, score: float) -> bool:
        """Whether no evaluation so far has a score as good."""
        return self.best_score is None or score > self.best_score

    def take_score(self, score: float, config: TrainConfig) -> None:
        """Note the evaluation of this step.

        One that was made because time ran out counts neither for nor against anybody's patience: a run in
        slices has more of them, and goes on for as long as a whole one.
        """
        self.evaluated_at, self.last_score, self.is_last_of_slice = self.step, score, False
        if self.is_best(score):
            self.best_score, self.best_step = score, self.step
        if config.evaluate_every and self.step % config.evaluate_every == 0:
            is_better = self.best_in_turn is None or score > self.best_in_turn
            self.best_in_turn = score if is_better else self.best_in_turn
            self.n_worse = 0 if is_better else self.n_worse + 1
        self.stopped_early = config.patience is not None and self.n_worse >= config.patience


def recover_run(output: Path) -> None:
    """Put back what a run was replacing when it was killed, and clear away what it left."""
    for name in KEPT:
        recover(output / name)


def save_state(
    folder: Path,
    step: Step,
    state: RunState,
    trained: dict[str, nn.Parameter],
    optimiser: torch.optim.Optimizer,
    config: TrainConfig,
    mean: WeightMean,
) -> None:
    """Write a checkpoint whole or not at all; the one before it stays until then."""
    assert isinstance(step, nn.Module)
    with whole_folder(folder, overwrite=True) as draft:
        save_file(_here(_kept(step, config)), draft / "weights.safetensors")
        save_file(_moments(trained, optimiser), draft / "optimiser.safetensors")
        if mean.values:
            save_file(_here(mean.values), draft / MEAN)
        values = {
            "state": asdict(state),
            "config": config.to_dict(),
            "beside": _beside(step, config),
            "objective": _told(step),
            "reading": _reading(step),
            "moves": len(trained),
        }
        (draft / "state.json").write_text(json.dumps(values, indent=2), encoding="utf-8")


def load_state(
    folder: Path,
    step: Step,
    trained: dict[str, nn.Parameter],
    optimiser: torch.optim.Optimizer,
    config: TrainConfig,
    mean: WeightMean,
) -> RunState:
    """Put a checkpoint's weights and moments back; another recipe is refused."""
    assert isinstance(step, nn.Module)
    try:
        saved = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        weights = load_file(folder / "weights.safetensors")
        moments = load_file(folder / "optimiser.safetensors")
        averaged = load_file(folder / MEAN) if (folder / MEAN).exists() else {}
        state, recipe = _state_of(saved["state"]), dict(saved["config"])
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise InvalidModel(
            f"the checkpoint {folder} cannot be read ({type(error).__name__}: {error}); delete it to begin "
            "anew"
        ) from None
    _check_same_recipe(recipe, config, folder)
    _check_same_objective(saved.get("objective"), step, folder)
    _check_same_reading(saved.get("reading"), step, folder)
    if saved.get("moves", len(trained)) != len(trained):
        raise InvalidInput(
            f"{folder} is of a run that moved {saved['moves']} tensors, and now {len(trained)} would move: "
            "freeze the same parts, or name another output"
        )
    if saved.get("beside") != _beside(step, config):
        raise InvalidInput(
            f"the adapters of {folder} belong to another model; resume from the one that the run began with"
        )
    _check_same_weights(weights, _kept(step, config), folder)
    step.load_state_dict(weights, strict=False)  # adapters are all that has been kept, where there are any
    for name, parameter in trained.items():
        if f"{name}.step" in moments:
            own = {moment: moments[f"{name}.{moment}"].to(parameter.device) for moment in MOMENTS}
            optimiser.state[parameter] = {"step": moments[f"{name}.step"].to(parameter.device), **own}
    mean.put_back(averaged)
    # Patience may have grown since.
    state.stopped_early = config.patience is not None and state.n_worse >= config.patience
    return state


def _state_of(saved: Mapping[str, Any]) -> RunState:
    """The numbers of a run; an older program noted fewer of them."""
    older = {"logged_at": saved["step"], "best_in_turn": saved["best_score"]}
    return RunState(**{**older, **saved})


def _here(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """As files want them: what has two names, such as T5's table of tokens, twice."""
    here: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, value in tensors.items():
        own = value.detach().cpu().contiguous()
        here[name] = own.clone() if own.data_ptr() in seen else own
        seen.add(own.data_ptr())
    return here


def _kept(step: Step, config: TrainConfig) -> dict[str, Tensor]:
    """All weights; of a run with adapters those that do not stand in the base model."""
    base = set() if config.lora is None else of_base_model(step.model)
    return {
        name: value
        for name, value in module_of(step).state_dict(keep_vars=True).items()
        if id(value) not in base
    }


def _is_number_or_text(value: object) -> bool:
    return isinstance(value, bool | int | float | str)


def _is_plain(value: object) -> bool:
    """Whether a value is a setting: no tensor, function or module."""
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.values()))
    return value is None or _is_number_or_text(value)


def _told(step: Step, is_setting: Callable[[object], bool] = _is_plain) -> str:
    """What a run learns by, with all plain settings of the objective and of those inside of it."""
    settings = [
        f"{name} = {value!r}"
        for part in step.objective.modules()
        if isinstance(part, Objective)
        for name, value in sorted(vars(part).items())
        if not name.startswith("_") and name != "training" and is_setting(value)
    ]
    return f"{step.objective.describe()} ({', '.join(settings)})" if settings else step.objective.describe()


def _reading(step: Step) -> dict[str, object]:
    """How the model reads texts and makes vectors of them, apart from its weights."""
    spec = getattr(step.model, "spec", None)
    values = {} if spec is None else asdict(spec)
    if isinstance(step.model, CrossEncoder):
        values["max_tokens"] = step.model.folder.max_tokens
    values["prompt"] = getattr(step.model, "prompt", "")
    values["prompts of the columns"] = list(getattr(step, "prompts", ()))
    plain: dict[str, object] = json.loads(json.dumps(values))
    return plain


def _beside(step: Step, config: TrainConfig) -> str | None:
    """The fingerprint of the model that adapters stand beside; their checkpoint has none of its weights."""
    return None if config.lora is None else str(step.model.fingerprint)


def _moments(trained: dict[str, nn.Parameter], optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    return _here(
        {
            f"{name}.{key}": value
            for name, parameter in trained.items()
            for key, value in optimiser.state.get(parameter, {}).items()
        }
    )


def _check_same_objective(saved: str | None, step: Step, folder: Path) -> None:
    # Older programs did not note it, or numbers and texts alone.
    if saved not in (None, _told(step), _told(step, _is_number_or_text)):
        raise InvalidInput(
            f"{folder} was made by {saved} and now it is {_told(step)}: resume with the same, or name "
            "another output"
        )


def _check_same_reading(saved: Mapping[str, object] | None, step: Step, folder: Path) -> None:
    now = _reading(step)
    for name in [] if saved is None else sorted(saved.keys() | now.keys()):  # an older program noted nothing
        if saved is not None and saved.get(name) != now.get(name):
            raise InvalidInput(
                f"{folder} was made with {name} = {saved.get(name)!r} and now it is {now.get(name)!r}: "
                "resume with the same model, or name another output"
            )


def _check_same_weights(saved: Mapping[str, Tensor], kept: Mapping[str, Tensor], folder: Path) -> None:
    shapes, now = ({name: tuple(value.shape) for name, value in each.items()} for each in (saved, kept))
    other = sorted(name for name in shapes.keys() | now.keys() if shapes.get(name) != now.get(name))
    if other:
        raise InvalidInput(
            f"{folder} has {other[0]} as {shapes.get(other[0], 'nothing')}, and the model and objective at "
            f"hand {now.get(other[0], 'nothing')}: resume with the same, or name another output"
        )


def _check_same_recipe(saved: dict[str, object], config: TrainConfig, folder: Path) -> None:
    now = json.loads(json.dumps(config.to_dict()))
    saved = {
        **json.loads(json.dumps(TrainConfig().to_dict())),
        **saved,
    }  # a setting may be younger than a run
    for name in sorted(set(now) - set(FREE_SETTINGS)):
        if saved[name] != now[name]:
            raise InvalidInput(
                f"{folder} was made with {name} = {saved[name]!r} and now it is {now[name]!r}: "
                "resume with the same recipe, or name another output"
            )
