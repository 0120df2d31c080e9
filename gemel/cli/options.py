"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from gemel.checkpoint.resolving import DEFAULT_MODEL

model = click.option(
    "-m",
    "--model",
    metavar="NAME",
    default=None,
    help="A model folder, a hub name, glove[:FILE], tfidf:FILE or use-multilingual.  "
    f"[default: {DEFAULT_MODEL}]",
)
pooling = click.option(
    "--pooling",
    metavar="MODE",
    default=None,
    help="How tokens become one vector: mean, cls, max, or several as in mean+max.  [default: the model's]",
)
device = click.option(
    "--device",
    metavar="NAME",
    default=None,
    help="cpu, cuda, mps …  [default: cuda with an NVIDIA card and torch, else cpu]",
)
_precision = click.option(
    "--precision",
    type=click.Choice(["int8", "float32"]),
    default=None,
    help="How exactly to compute; int8 is three times as fast.  [default: int8 on a CPU]",
)
_threads = click.option(
    "--threads",
    type=click.IntRange(1, 4096),
    default=None,
    help="How many threads compute.  [default: the cores this process may use]",
)
measure = click.option(
    "--measure",
    type=click.Choice(["cosine", "dot", "euclidean", "manhattan"]),
    default="cosine",
    show_default=True,
    help="Distances are negated: larger is always more similar.",
)
on_truncate = click.option(
    "--on-truncate",
    type=click.Choice(["warn", "error", "ignore", "chunk"]),
    default="warn",
    show_default=True,
    help="What happens to texts that are longer than the model reads; chunk reads them in windows.",
)

_runner = click.option(
    "--runner",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Who does the work: this machine, or a Ray cluster.",
)
_ray_address = click.option(
    "--ray-address",
    metavar="ADDRESS",
    default=None,
    help="The head of the cluster, such as 10.0.0.1:6379.  [default: $RAY_ADDRESS, or one started here]",
)
store = click.option(
    "--store",
    metavar="ADDRESS",
    help="Where COLLECTION is kept by its name: a folder, postgresql://..., milvus:...",
)

Command = TypeVar("Command", bound=Callable[..., Any])


def was_given(option: str) -> bool:
    """Whether the user has said it, and not its default."""
    source = click.get_current_context().get_parameter_source(option)
    return source is not click.core.ParameterSource.DEFAULT


def collection(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which collection: `path` becomes its path, or its address on a server."""

    @wraps(command)
    def located(*, path: str, store: str | None, **others: Any) -> Any:
        from gemel.cli.opening import address_of

        return command(path=address_of(path, store), **others)

    return click.argument("path", metavar="COLLECTION")(store(located))


def compute(command: Command) -> Command:
    """Where and how to compute: `device`, `precision` and `threads`, as `load_encoder` takes them.

    As many threads also compare vectors.
    """

    @wraps(command)
    def limited(*arguments: Any, threads: int | None, **others: Any) -> Any:
        if threads is None:
            return command(*arguments, threads=threads, **others)
        from gemel.similarity import using_threads

        with using_threads(threads):
            return command(*arguments, threads=threads, **others)

    return cast(Command, device(_precision(_threads(limited))))


def runner(command: Command) -> Command:
    """Who does the work: `runner` and `ray_address`, as `gemel.scale.make_runner` takes them."""
    return _runner(_ray_address(command))
