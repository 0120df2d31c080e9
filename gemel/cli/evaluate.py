"""`gemel evaluate`: how good models are, by published protocols."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from gemel.cli import options
from gemel.cli.reports import one_truncation_report
from gemel.table import format_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gemel.evaluate.scores import Scores
    from gemel.evaluate.sts import StsData

TASKS = ("sts",)


@click.command("evaluate")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option(
    "--tasks",
    type=click.Choice(TASKS),
    default="sts",
    show_default=True,
    help="What to measure: sts is STS12 to STS16, STSb and SICK-R.",
)
@click.option("--data", metavar="DIR", help="The folder of data sets.  [default: $GEMEL_DATA]")
@options.pooling
@options.compute
@click.option("--json", "as_json", is_flag=True, help="JSON lines, also on a terminal.")
def command(models: tuple[str, ...], tasks: str, data: str | None, as_json: bool, **compute: Any) -> None:
    """Measure how well the similarities of each MODEL agree with those that people gave.

    A MODEL is a folder or a hub name, or a baseline without a transformer: glove[:FILE] (averaged word
    vectors; glove-content leaves out stop words), tfidf:FILE (fitted on a file of texts), use-multilingual.

    The table has Spearman's correlation of cosines with gold scores, times 100, as the Sentence-BERT paper
    does it: all pairs of a year as one list, the test splits of STSb and SICK, and the mean of the seven.
    JSON lines have everything: Pearson and the other measures, the protocol, hashes of data and model.

    \b
    Examples:
      gemel evaluate all-MiniLM-L6-v2
      gemel evaluate before/ after/ --data ~/sts --json > scores.jsonl
      gemel evaluate glove-content:glove.6B.300d.txt minishlab/potion-base-8M use-multilingual
      gemel evaluate bert-base-uncased --pooling cls
    """
    from gemel.evaluate.sts import read_sts
    from gemel.loading import check_encoder

    for model in models:
        check_encoder(
            model
        )  # a name that is wrong shall not be found out after the others have taken their time
    sets = read_sts(data)
    as_lines = as_json or not sys.stdout.isatty()
    rows = []
    for number, model in enumerate(models, 1):
        scores = _evaluate(model, sets, compute, f"{number}/{len(models)} {model}")
        rows.append([model, *(f"{100 * each.score:.2f}" for each in scores)])
        for each in scores if as_lines else ():
            click.echo(json.dumps({"model": model, "task": tasks, **each.to_dict()}, ensure_ascii=False))
    if not as_lines:
        click.echo(format_table(["model", *(each.name for each in scores)], rows))


def _evaluate(model: str, sets: Sequence[StsData], compute: dict[str, Any], title: str) -> list[Scores]:
    from gemel.evaluate.sts import average_of, evaluate_sts
    from gemel.loading import load_encoder

    click.echo(f"gemel: {title}: {sum(len(each.pairs) for each in sets):,} pairs", err=True)
    began = time.perf_counter()
    encoder = load_encoder(model, **compute)
    with one_truncation_report():
        scores = evaluate_sts(encoder, sets)
    scores.append(average_of(scores))
    seconds = time.perf_counter() - began
    click.echo(f"gemel: {title}: {100 * scores[-1].score:.2f} in {seconds:.1f} s", err=True)
    return scores
