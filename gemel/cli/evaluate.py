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

    as_lines = as_json or not sys.stdout.isatty()
    if is_list:
        _list({name: group.what for name, group in GROUPS.items()}, as_lines=as_lines)
        return
    if not models:
        raise click.UsageError("name at least one MODEL")
    opened = {name: open_group(name, data) for name in tasks}
    measured = [_Measured(model, tasks, compute, is_alone=len(models) == 1) for model in models]
    results = _Results(tasks, as_lines=as_lines)
    try:
        for number, model in enumerate(measured, 1):
            for name, evaluate in opened.items():
                _evaluate(model, name, evaluate, f"{number}/{len(models)} {model.name}", results)
    finally:  # what was measured is shown, also where something after it fails
        results.show()


def _list(groups: dict[str, str], *, as_lines: bool) -> None:
    if as_lines:
        for name, what in groups.items():
            click.echo(json.dumps({"name": name, "what": what}, ensure_ascii=False))
    else:
        click.echo(format_table(["name", "what"], [[name, what] for name, what in groups.items()]))


class _Results:
    """What has been measured: JSON lines at once, or tables in the end."""

    def __init__(self, tasks: list[str], *, as_lines: bool) -> None:
        self._as_lines = as_lines
        self._tables: dict[str, dict[_Measured, list[Scores]]] = {name: {} for name in tasks}

    def take(self, model: _Measured, task: str, scores: Scores) -> None:
        self._tables[task].setdefault(model, []).append(scores)
        if self._as_lines:
            line = {"model": model.name, "task": task, **scores.to_dict()}
            click.echo(json.dumps(line, ensure_ascii=False))

    def show(self) -> None:
        tables = [_table(task, lines) for task, lines in self._tables.items() if lines]
        if tables and not self._as_lines:
            click.echo("\n\n".join(tables))


class _Measured:
    """A model that is opened in the way that each group needs, once.

    What is wrong with it is found out at once, and not after others have taken their time.
    """

    def __init__(self, name: str, tasks: list[str], compute: dict[str, Any], *, is_alone: bool) -> None:
        from gemel.evaluate.suite import GROUPS
        from gemel.loading import check_encoder, check_pair_classifier, is_baseline

        check_encoder(name, pooling=compute["pooling"], precision=compute["precision"])
        if any(GROUPS[task].needs_head for task in tasks):
            check_pair_classifier(name)
            _without_pooling(compute)
        self.name = name
        # Beside others, choices are for those that have them.
        self.compute = {} if not is_alone and is_baseline(name) else compute
        self._opened: dict[bool, Any] = {}

    def opened(self, needs_head: bool) -> Any:
        from gemel.loading import load_encoder, load_pair_classifier

        if needs_head not in self._opened:
            self._opened[needs_head] = (
                load_pair_classifier(self.name, **_without_pooling(self.compute))
                if needs_head
                else load_encoder(self.name, **self.compute)
            )
        return self._opened[needs_head]


def _without_pooling(compute: dict[str, Any]) -> dict[str, Any]:
    """A classifier reads vectors that were pooled as in its training."""
    if compute.get("pooling") is not None:
        raise InvalidInput("--pooling was given with nli, whose classifier was trained for one pooling")
    return {name: value for name, value in compute.items() if name != "pooling"}


def _evaluate(measured: _Measured, name: str, evaluate: Evaluate, title: str, results: _Results) -> None:
    from gemel.evaluate.suite import GROUPS

    click.echo(f"gemel: {title}: {name}", err=True)
    began = time.perf_counter()
    with one_truncation_report():
        for last in evaluate(measured.opened(GROUPS[name].needs_head)):
            results.take(measured, name, last)
    seconds = time.perf_counter() - began
    click.echo(f"gemel: {title}: {name}: {last.name} {100 * last.score:.2f} in {seconds:.1f} s", err=True)


def _table(name: str, lines: dict[_Measured, list[Scores]]) -> str:
    """A line for each model; one that was broken off ends early."""
    from gemel.evaluate.suite import GROUPS

    header = ["model", *(each.name for each in max(lines.values(), key=len))]
    rows = [[model.name, *(f"{100 * each.score:.2f}" for each in scores)] for model, scores in lines.items()]
    rows = [[*row, *[""] * (len(header) - len(row))] for row in rows]
    return f"{name}: {GROUPS[name].what}\n\n{format_table(header, rows)}"
