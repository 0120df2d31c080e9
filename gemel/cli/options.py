"""Options that several verbs share."""

from __future__ import annotations

import click

from gemel.loading import DEFAULT_MODEL

model = click.option(
    "-m",
    "--model",
    metavar="NAME",
    default=None,
    help=f"A model folder or a hub name.  [default: {DEFAULT_MODEL}]",
)
device = click.option(
    "--device", metavar="NAME", default=None, help="cpu, cuda, mps …  [default: the fastest here]"
)
on_truncate = click.option(
    "--on-truncate",
    type=click.Choice(["warn", "error", "ignore", "chunk"]),
    default="warn",
    show_default=True,
    help="What happens to texts that are longer than the model reads; chunk reads them in windows.",
)
