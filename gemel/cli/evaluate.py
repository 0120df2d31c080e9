"""`gemel evaluate`: how good models are, by published protocols."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from gemel.cli import options
from gemel.cli.reports import one_truncation_report
from gemel.errors import InvalidInput
from gemel.table import format_table

if TYPE_CHECKING:
    from gemel.evaluate.scores import Scores
    from gemel.evaluate.suite import Evaluate


class Tasks(click.ParamType[list[str]]):
    """Names of groups of sets, with commas between them."""

    name = "NAMES"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """The names, or a usage error that lists the known ones."""
        from gemel.evaluate.suite import GROUPS

        names = [name.strip() for name in str(value).split(",")]
        for name in names:
            if name not in GROUPS:
                self.fail(f"{name!r} is unknown; choose from {', '.join(GROUPS)}")
        return list(dict.fromkeys(names))


@click.command("evaluate")
@click.argument("models", nargs=-1, metavar="MODEL...")
@click.option(
    "--tasks",
    type=Tasks(),
    default="sts",
    show_default=True,
    help="What to measure; several names with commas between them. --list tells which there are.",
)
@click.option("--list", "is_list", is_flag=True, help="List what can be measured, and stop.")
@click.option(
    "--data", metavar="DIR", help="The folder of data sets.  [default: $GEMEL_DATA, else what gemel data got]"
)
@options.pooling
@options.compute
@click.option("--json", "as_json", is_flag=True, help="JSON lines, also on a terminal.")
def command(
    models: tuple[str, ...], tasks: list[str], is_list: bool, data: str | None, as_json: bool, **compute: Any
) -> None:
    """Measure MODELS by published protocols: similarity, transfer, retrieval, duplicates, clusters.

    A MODEL is a folder or a hub name, or a baseline without a transformer: glove[:FILE] (averaged word
    vectors; glove-content leaves out stop words), tfidf:FILE (fitted on a file of texts), use-multilingual.

    Tables have the main figure of each set, times 100; for sts that is Spearman's correlation of cosines
    with gold scores as in the Sentence-BERT paper. JSON lines have everything: the other figures, 95%
    intervals, the protocol in words, hashes of data and model.

    \b
    Examples:
      gemel evaluate all-MiniLM-L6-v2
      gemel evaluate before/ after/ --data ~/sts --json > scores.jsonl
      gemel evaluate all-MiniLM-L6-v2 --tasks sts,transfer,retrieval,clustering
      gemel evaluate glove-content:glove.6B.300d.txt minishlab/potion-base-8M use-multilingual
      gemel evaluate bert-base-uncased --pooling cls
    """
    from gemel.evaluate.suite import GROUPS, open_group
    from gemel.loading import check_encoder

    if is_list:
        click.echo(format_table(["name", "what"], [[name, group.what] for name, group in GROUPS.items()]))
        return
    if not models:
        raise click.UsageError("name at least one MODEL")
    opened = {name: open_group(name, data) for name in tasks}
    for model in models:  # a name that is wrong shall not be found out after the others have taken their time
        check_encoder(model)
    as_lines = as_json or not sys.stdout.isatty()
    tables: dict[str, list[tuple[str, list[Scores]]]] = {name: [] for name in tasks}
    for number, model in enumerate(models, 1):
        measured = _Measured(model, compute)
        for name, evaluate in opened.items():
            scores = _evaluate(measured, name, evaluate, f"{number}/{len(models)} {model}")
            tables[name].append((model, scores))
            for each in scores if as_lines else ():
                click.echo(json.dumps({"model": model, "task": name, **each.to_dict()}, ensure_ascii=False))
    if not as_lines:
        click.echo("\n\n".join(_table(name, lines) for name, lines in tables.items()))


class _Measured:
    """A model that is opened in the way that each group needs, once."""

    def __init__(self, model: str, compute: dict[str, Any]) -> None:
        self.model, self.compute = model, compute
        self._opened: dict[bool, Any] = {}

    def opened(self, needs_head: bool) -> Any:
        from gemel.loading import load_encoder, load_pair_classifier

        if needs_head not in self._opened:
            self._opened[needs_head] = (
                load_pair_classifier(self.model, **_without_pooling(self.compute))
                if needs_head
                else load_encoder(self.model, **self.compute)
            )
        return self._opened[needs_head]


def _without_pooling(compute: dict[str, Any]) -> dict[str, Any]:
    """A classifier reads vectors that were pooled as in its training."""
    if compute["pooling"] is not None:
        raise InvalidInput("--pooling was given with nli, whose classifier was trained for one pooling")
    return {name: value for name, value in compute.items() if name != "pooling"}


def _evaluate(measured: _Measured, name: str, evaluate: Evaluate, title: str) -> list[Scores]:
    from gemel.evaluate.suite import GROUPS

    click.echo(f"gemel: {title}: {name}", err=True)
    began = time.perf_counter()
    with one_truncation_report():
        scores = list(evaluate(measured.opened(GROUPS[name].needs_head)))
    seconds = time.perf_counter() - began
    last = scores[-1]
    click.echo(f"gemel: {title}: {name}: {last.name} {100 * last.score:.2f} in {seconds:.1f} s", err=True)
    return scores


def _table(name: str, lines: list[tuple[str, list[Scores]]]) -> str:
    from gemel.evaluate.suite import GROUPS

    header = ["model", *(each.name for each in lines[0][1])]
    rows = [[model, *(f"{100 * each.score:.2f}" for each in scores)] for model, scores in lines]
    return f"{name}: {GROUPS[name].what}\n\n{format_table(header, rows)}"
