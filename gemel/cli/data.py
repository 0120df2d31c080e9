"""`gemel data`: the catalogue of sets, what of it is here, and how to get the rest."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from gemel.table import format_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gemel.data.acquisition import Receipt
    from gemel.data.holdings import Holding


class NamesAreShown(click.Group):
    """A group in which the name of a set stands for `show` and that name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return super().resolve_command(ctx, args if args[0] in self.commands else ["show", *args])


in_folder = click.option(
    "--data", metavar="DIR", help="The folder of data sets.  [default: $GEMEL_DATA, else the cache]"
)
as_lines = click.option("--json", "as_json", is_flag=True, help="JSON lines, also on a terminal.")


@click.group("data", cls=NamesAreShown, invoke_without_command=True, subcommand_metavar="[NAME|get|show]...")
@in_folder
@click.option("--verify", is_flag=True, help="Read what is here and compare its sha256 with the catalogue's.")
@as_lines
@click.pass_context
def command(context: click.Context, data: str | None, verify: bool, as_json: bool) -> None:
    """List the data sets that gemel knows: task, whether they are here, rows, licence.

    With the name of a set, tell all about it; `get` brings sets here from where they are published. On a
    terminal a table is printed, elsewhere JSON lines.

    \b
    Examples:
      gemel data
      gemel data stsb
      gemel data get stsb sts12 --data ~/sets
      gemel data get afs --from ~/Downloads/afs.zip
    """
    if context.invoked_subcommand is not None:
        context.obj = {"data": data, "as_json": as_json}
        return
    from gemel.data.catalogue import CATALOGUE
    from gemel.data.holdings import holding

    root = _root(data)
    click.echo(f"gemel: looking in {root}", err=True)
    holdings = [holding(known, root, verify=verify) for known in CATALOGUE.values()]
    if as_json or not sys.stdout.isatty():
        _echo_lines(holdings)
    else:
        click.echo(_table(holdings, verify))


@command.command("show")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@in_folder
@as_lines
@click.pass_context
def show(context: click.Context, names: tuple[str, ...], data: str | None, as_json: bool) -> None:
    """Tell all about the sets NAME: files, rows, whether their content is right, licence, official source."""
    from gemel.data.catalogue import data_set
    from gemel.data.holdings import holding

    outer: dict[str, Any] = context.obj or {}
    root = _root(data or outer.get("data"))
    holdings = [holding(data_set(name), root, verify=True) for name in names]
    if as_json or outer.get("as_json") or not sys.stdout.isatty():
        _echo_lines(holdings)
    else:
        click.echo("\n\n".join(map(_description, holdings)))


@command.command("get")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@in_folder
@click.option("--from", "source", metavar="PATH", help="The official archive, file or folder that you have.")
@click.option("--url", "urls", metavar="URL", multiple=True, help="Another place to fetch from; repeatable.")
@click.option("--sha256", "hashes", metavar="HEX", multiple=True, help="What each fetched file must hash to.")
@click.option("--overwrite", is_flag=True, help="Replace the files that are here.")
@click.pass_context
def get(
    context: click.Context,
    names: tuple[str, ...],
    data: str | None,
    source: str | None,
    urls: tuple[str, ...],
    hashes: tuple[str, ...],
    overwrite: bool,
) -> None:
    """Bring the sets NAME into the data folder, and print a JSON line for each.

    They are fetched from where they are officially published, checked by hash where one is known, and
    converted to tables of tab-separated texts. A broken download goes on from where it was.
    """
    from gemel.data.acquisition import get_set
    from gemel.data.catalogue import data_set

    if len(names) > 1 and (urls or hashes):
        raise click.UsageError("--url and --sha256 are for one set: get the others by themselves")
    for name in names:
        data_set(name)  # a wrong name shall not be found out after the others have been fetched
    data = data or (context.obj or {}).get("data")
    for name in names:
        receipt = get_set(name, data, source=source, urls=urls, hashes=hashes, overwrite=overwrite)
        _report(receipt)
        click.echo(json.dumps(receipt.to_dict(), ensure_ascii=False))


def _root(data: str | None) -> Path:
    from gemel.data.places import data_folder

    return data_folder(data)


def _echo_lines(holdings: Sequence[Holding]) -> None:
    for each in holdings:
        click.echo(json.dumps(each.to_dict(), ensure_ascii=False))


def _table(holdings: Sequence[Holding], verify: bool) -> str:
    rows = []
    for each in holdings:
        known = each.data_set
        here = f"{each.here}, {each.state}" if verify and each.state else each.here
        n_rows = "" if known.rows is None else f"{known.rows:,}"
        how = "get" if known.downloads else "by hand"
        rows.append([known.name, known.task, here, how, n_rows, known.licence])
    header = ["name", "task", "here", "how to get", "rows", "licence"]
    table = format_table(header, rows)
    room = shutil.get_terminal_size((110, 24)).columns
    return "\n".join(line if len(line) <= room else f"{line[: room - 1]}…" for line in table.split("\n"))


def _description(each: Holding) -> str:
    known = each.data_set
    lines = [f"{known.name}: {known.description}", f"task      {known.task}", f"licence   {known.licence}"]
    lines.append(f"here      {each.here}, {each.folder}")
    for held in each.files:
        n_rows = "rows not known" if held.file.rows is None else f"{held.file.rows:,} rows"
        lines.append(f"  {held.file.path}: {n_rows}; {held.state or 'not here'}")
    if known.page:
        lines.append(f"page      {known.page}")
    for download in known.downloads:
        known_by = (
            f"sha256 {download.sha256} ({download.attested_by})" if download.sha256 else "no known sha256"
        )
        lines += [f"official  {download.url}", f"          {known_by}"]
    if known.obstacle:
        lines.append(f"but       it cannot be fetched: {known.obstacle}")
    return "\n".join(lines)


def _report(receipt: Receipt) -> None:
    """What a person should know about a set that was brought, on standard error."""
    from gemel.data.catalogue import data_set
    from gemel.data.holdings import DIFFERS, UNKNOWN, holding

    if not receipt.is_new:
        click.echo(f"gemel: {receipt.name} is here already; --overwrite fetches it again", err=True)
        return
    state = holding(data_set(receipt.name), receipt.folder.parent, verify=True).state
    remark = {
        DIFFERS: "its content differs from the copy that the catalogue knows",
        UNKNOWN: "the catalogue knows no hash of its content",
    }.get(state, f"its content is {state}")
    click.echo(f"gemel: {receipt.name} is in {receipt.folder}; {remark}", err=True)
