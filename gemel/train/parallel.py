"""One run in several processes: each encodes its share of every batch, and all make the same step.

The objective sees the whole batch in every process. That costs the vectors' journey and one more product of
small matrices, and gives, for every objective, the loss and the gradients of one process with all rows:
in-batch negatives come from everybody, and shares need not be equal. What a step predicts token by token
beside its objective, as pre-training does, is the mean of the processes' means.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as processes
from torch import Tensor, nn

from gemel.errors import GemelError, InvalidInput, ProcessLost
from gemel.train.objectives import Objective

LAUNCHED_BY = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what torchrun sets
PATIENCE = timedelta(hours=2)  # the others wait for process 0 while it validates
SEED_STRIDE = 1 << 40  # each process drops out other units than its neighbours

Rows = npt.NDArray[np.int64]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Team:
    """The processes of a run; process 0 leads: it alone validates, logs and writes."""

    rank: int = 0
    size: int = 1

    @property
    def is_leader(self) -> bool:
        """Whether this process writes what the run makes."""
        return self.rank == 0

    def shares(self, n_rows: int) -> list[int]:
        """How many of a batch's rows each process takes: as equal as can be."""
        return [n_rows // self.size + (rank < n_rows % self.size) for rank in range(self.size)]

    def share(self, rows: Rows) -> Rows:
        """This process's rows of a batch."""
        sizes = self.shares(len(rows))
        first = sum(sizes[: self.rank])
        return rows[first : first + sizes[self.rank]]

    def seed(self, seed: int) -> int:
        """The seed of this process's own random choices."""
        return seed + self.rank * SEED_STRIDE

    def from_leader(self, work: Callable[[], Result]) -> Result:
        """What the leader's work gives, in every process; where it fails, all fail."""
        if self.size == 1:
            return work()
        if not self.is_leader:
            told: list[Any] = [None, None]
            with _told_of_losses():
                processes.broadcast_object_list(told, src=0)
            if told[1] is not None:
                raise GemelError(f"process 0 of the run has failed: {told[1]}")
            result: Result = told[0]
            return result
        try:
            given = work()
        except Exception as error:
            with _told_of_losses():
                processes.broadcast_object_list([None, str(error) or type(error).__name__], src=0)
            raise
        with _told_of_losses():
            processes.broadcast_object_list([given, None], src=0)
        return given

    def leader_first(self, work: Callable[[], Result]) -> Result:
        """The same work in every process, the leader's first: the others find the files it has made."""
        made: list[Result] = []
        self.from_leader(lambda: made.append(work()))
        return made[0] if made else work()

    def all_say(self, claim: bool) -> bool:
        """Whether the claim holds in every process."""
        if self.size == 1:
            return claim
        said: list[Any] = [None] * self.size
        with _told_of_losses():
            processes.all_gather_object(said, claim)
        return all(said)

    def average(self, parameters: Sequence[nn.Parameter], numbers: Sequence[float]) -> list[float]:
        """Put the mean gradient of all processes into every process; gives the means of the numbers.

        A parameter that no process has a gradient for keeps none, so that Adam does not decay it.
        """
        if self.size == 1:
            return list(numbers)
        device, dtype = parameters[0].device, torch.promote_types(parameters[0].dtype, torch.float32)
        grads = [
            torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            for parameter in parameters
        ]
        has_grad = [float(parameter.grad is not None) for parameter in parameters]
        extra = torch.tensor([*has_grad, *numbers], dtype=dtype, device=device)
        flat = torch.cat([*(grad.reshape(-1).to(dtype) for grad in grads), extra])
        with _told_of_losses():
            processes.all_reduce(flat)
        flat /= self.size
        *means, extra = torch.split(flat, [*(parameter.numel() for parameter in parameters), len(extra)])
        told: list[float] = extra.tolist()
        for parameter, mean, share in zip(parameters, means, told, strict=False):
            parameter.grad = mean.view_as(parameter).to(parameter.dtype) if share else None
        return told[len(parameters) :]

    def spread(self, tensors: Sequence[Tensor]) -> None:
        """Put the leader's numbers into the tensors of every process."""
        if self.size > 1:
            with _told_of_losses(), torch.no_grad():
                for tensor in tensors:
                    processes.broadcast(tensor, src=0)

    def gather(self, own: Tensor, sizes: Sequence[int]) -> Tensor:
        """Everybody's rows, in the order of the processes, which have `sizes` of them; with gradients."""
        apply: Callable[..., Tensor] = _Gather.apply  # torch gives it no types
        return apply(own, tuple(sizes), self.rank)


def join_team() -> Team:
    """The team that torchrun has started this process in, or a team of one."""
    if processes.is_available() and processes.is_initialized():
        return Team(processes.get_rank(), processes.get_world_size())
    if _n_launched() == 1:
        return Team()
    backend = "gloo"
    if torch.cuda.is_available():
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    with _told_of_losses():
        processes.init_process_group(backend, timeout=PATIENCE)
    atexit.register(_leave)
    return Team(processes.get_rank(), processes.get_world_size())


def refuse_team(what: str) -> None:
    """End in a sentence what is the work of one process, where torchrun has started several."""
    if _n_launched() > 1:
        raise InvalidInput(
            f"torchrun has started {_n_launched()} processes, and {what} is the work of one; start it without"
        )


def _n_launched() -> int:
    return int(os.environ["WORLD_SIZE"]) if all(name in os.environ for name in LAUNCHED_BY) else 1


class WholeBatch:
    """Lets the objectives of a step see the rows of all processes, however the step asks them."""

    def __init__(self, team: Team, step: nn.Module, batch_size: int) -> None:
        if batch_size < team.size:
            raise InvalidInput(
                f"batch_size is {batch_size} and there are {team.size} processes, which share every batch; "
                "expected a row for each: take a larger batch, or start fewer"
            )
        self.team = team
        self._objectives = [module for module in step.modules() if isinstance(module, Objective)]
        self._sizes: list[int] = []
        self._depth = 0  # of objectives within objectives: the outermost one gathers
        self._was_seen = False

    def loss(self, compute: Callable[[Rows], tuple[Tensor, int]], rows: Rows) -> tuple[Tensor, int]:
        """The loss to go backward from, and the tokens that this process has read, of a batch's rows."""
        if self.team.size == 1:
            return compute(rows)
        self._sizes, self._depth, self._was_seen = self.team.shares(len(rows)), 0, False
        own = self.team.share(rows)
        with ExitStack() as hooks:
            for objective in self._objectives:
                hooks.callback(objective.register_forward_pre_hook(self._enter).remove)
                hooks.callback(objective.register_forward_hook(self._leave, always_call=True).remove)
            # A process without a row computes one that does not count, so that all meet in the objective.
            loss, n_tokens = compute(own if len(own) else rows[:1])
        if not self._was_seen:  # nothing was asked about vectors: the loss is a mean over own rows
            loss = loss * (len(own) * self.team.size / len(rows))
        return loss, n_tokens

    def _enter(self, objective: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
        self._depth += 1
        n_computed = max(1, self._sizes[self.team.rank])
        if self._depth > 1 or not given or not _are_rows(given[0], n_computed):
            return None
        self._was_seen = True
        columns, *others = given
        return (
            self._gathered_columns(columns),
            *(self._gathered(other) if _are_rows([other], n_computed) else other for other in others),
        )

    def _leave(self, *_: object) -> None:
        self._depth -= 1

    def _gathered_columns(self, columns: Sequence[Tensor]) -> list[Tensor]:
        """One journey for all columns."""
        flat = [column.reshape(len(column), -1) for column in columns]
        whole = self._gathered(torch.cat(flat, dim=1))
        parts = torch.split(whole, [part.shape[1] for part in flat], dim=1)
        return [part.reshape(-1, *column.shape[1:]) for part, column in zip(parts, columns, strict=True)]

    def _gathered(self, own: Tensor) -> Tensor:
        return self.team.gather(own[: self._sizes[self.team.rank]], self._sizes)


def _are_rows(columns: object, n_rows: int) -> bool:
    return isinstance(columns, list | tuple) and all(
        isinstance(column, Tensor) and column.dim() > 0 and len(column) == n_rows for column in columns
    )


def check_alike(team: Team, step: nn.Module, examples: str, settings: Mapping[str, Any]) -> None:
    """Refuse processes, on another machine perhaps, that were not given the same model, data and settings.

    `examples` is a digest of them.
    """
    if team.size == 1:
        return
    shapes = {name: tuple(value.shape) for name, value in step.named_parameters()}
    own = {"model": str(shapes), "examples": examples, "settings": str(sorted(settings.items()))}
    led = team.from_leader(lambda: own)
    differs = [name for name in own if own[name] != led[name]]
    if differs:
        raise InvalidInput(
            f"process {team.rank} of the run has another {differs[0]} than process 0: give every machine the "
            "same model, data and settings"
        )


def start_alike(
    team: Team, step: nn.Module, trained: Mapping[str, nn.Parameter], optimiser: torch.optim.Optimizer
) -> None:
    """Give every process the leader's weights and moments, wherever it has them from."""
    if team.size == 1:
        return
    _check_devices(trained)
    team.spread([value for value in step.state_dict().values() if isinstance(value, Tensor)])
    known = team.from_leader(
        lambda: {
            name: sorted(optimiser.state[parameter])
            for name, parameter in trained.items()
            if parameter in optimiser.state
        }
    )
    for name, moments in known.items():
        own = optimiser.state[trained[name]]
        for moment in moments:
            if moment not in own:
                shape = () if moment == "step" else trained[name].shape
                own[moment] = torch.zeros(shape, device=trained[name].device)
        team.spread([own[moment] for moment in moments])


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, own: Tensor, sizes: tuple[int, ...], rank: int) -> Tensor:
        ctx.sizes, ctx.rank = sizes, rank
        sent = own.new_zeros((max(sizes), *own.shape[1:]))
        sent[: len(own)] = own
        received = [torch.empty_like(sent) for _ in sizes]
        with _told_of_losses():
            processes.all_gather(received, sent)
        return torch.cat([rows[:size] for rows, size in zip(received, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        """Every process has the same loss: the gradient of its own rows, which the mean will divide."""
        own = torch.split(grads[0], ctx.sizes)[ctx.rank]
        return own * len(ctx.sizes), None, None


def _check_devices(trained: Mapping[str, nn.Parameter]) -> None:
    device = next(iter(trained.values())).device
    if device.type == "cuda" and device.index != torch.cuda.current_device():
        raise InvalidInput(
            f"the model is on {device} and this process was given cuda:{torch.cuda.current_device()}: call "
            "join_team() before the model is opened, and name no device"
        )


@contextmanager
def _told_of_losses() -> Iterator[None]:
    """What a broken connection makes torch raise, in our words."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[0]
        raise ProcessLost(
            f"another process of the run has ended or cannot be reached ({reason}); see what it said, and "
            "continue with --resume"
        ) from error


def _leave() -> None:
    if processes.is_initialized():
        processes.destroy_process_group()
