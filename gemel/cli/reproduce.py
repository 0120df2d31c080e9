"""`gemel reproduce`: the paper's tables, run again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gemel.cli import options
from gemel.cli.reports import one_truncation_report

if TYPE_CHECKING:
    from gemel.reproduce.ablation import AblationPlan
    from gemel.reproduce.lines import Reproduction

TABLES = [f"table{number}" for number in range(1, 8)]


class RowOfModel(click.ParamType[tuple[str, str]]):
    """A line of the paper's tables and the model for it."""

    name = "ROW=MODEL"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Both parts, or a usage error."""
        row, sign, model = str(value).partition("=")
        if not sign or not model:
            self.fail(f"{value!r} has no '='; expected such as 'BERT average=FOLDER'")
        return row.strip(), model.strip()


@click.command("reproduce")
@click.argument("tables", nargs=-1, required=True, type=click.Choice([*TABLES, "all"]), metavar="TABLE...")
@click.option("-m", "--model", "models", multiple=True, metavar="NAME", help="A model to measure as well.")
@click.option(
    "--row",
    "rows",
    multiple=True,
    type=RowOfModel(),
    help="The model for a line of the paper, such as 'BERT average=FOLDER'; a folder of several seeds that "
    "gemel train has written gives mean and deviation.",
)
@click.option(
    "--data", metavar="DIR", help="The folder of data sets.  [default: $GEMEL_DATA, else what gemel data got]"
)
@click.option("--download", is_flag=True, help="Fetch published models that are not on this machine.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write report.html with tables and plots there, and keep what was measured.",
)
@click.option(
    "--train",
    "trained",
    metavar="NAME",
    help="The raw transformer that table 6 trains anew for each cell and seed, which takes hours.",
)
@click.option("--budget", type=int, metavar="PAIRS", help="Pairs of each such training.  [default: 6400]")
@click.option("--seeds", type=int, metavar="N", help="How often each is repeated.  [default: 3]")
@click.option("--learning-rate", type=float, metavar="RATE", help="Of each of them.  [default: 5e-5]")
@options.compute
@click.option("--json", "as_json", is_flag=True, help="JSON lines, also on a terminal.")
def command(tables: tuple[str, ...], report: Path | None, as_json: bool, **choices: Any) -> None:
    """Run the tables of the Sentence-BERT paper again, every line that can be run here.

    TABLE is table1 to table7, or all. Lines whose weights or data are not at hand say so; the paper's figure
    stands beside ours and never in its place. The trainings of table 6 go on where they were when the same
    command is given again.

    \b
    table1  similarity without training on it     table5  SentEval
    table2  the STS benchmark                     table6  ablation
    table3  arguments (AFS)                       table7  speed
    table4  sections of Wikipedia

    \b
    Examples:
      gemel reproduce table1 -m all-MiniLM-L6-v2
      gemel reproduce table1 table5 --row 'BERT average=raw/' --row 'BERT [CLS]=raw/'
      gemel reproduce table2 --row 'SBERT-STSb-base=out/stsb_regression'
      gemel reproduce table6 --train raw/ --budget 6400 --seeds 3 --report out/
      gemel reproduce all -m all-MiniLM-L6-v2 --report out/
    """
    from gemel.loading import check_encoder
    from gemel.reproduce.notebook import Notebook
    from gemel.reproduce.stand_ins import Cast
    from gemel.reproduce.workbench import Workbench

    names = TABLES if "all" in tables else list(dict.fromkeys(tables))
    _refuse_idle(names, choices)
    for model in choices["models"]:
        check_encoder(model)
    bench = Workbench(
        Cast(dict(choices["rows"]), choices["models"], may_download=choices["download"]),
        data=choices["data"],
        compute={name: choices[name] for name in ("device", "precision", "threads")},
        notebook=Notebook(None if report is None else report / "scores.jsonl"),
        work=Path("out") if report is None else report,
        ablation=_ablation(choices),
        tell=lambda line: click.echo(f"gemel: {line}", err=True),
    )
    reproductions = []
    for name in names:
        with one_truncation_report():
            reproductions.append(bench.reproduce(int(name.removeprefix("table"))))
        _show(reproductions[-1], as_json or not sys.stdout.isatty())
    if report is not None:
        from gemel.reproduce.pages import write_pages

        with one_truncation_report():
            page = write_pages(report, bench, reproductions)
        click.echo(f"gemel: {page}", err=True)


def _refuse_idle(names: list[str], choices: dict[str, Any]) -> None:
    """Nothing that was named shall go unused in silence."""
    rows = [row for row, _ in choices["rows"]]
    repeated = next((row for row in rows if rows.count(row) > 1), None)
    if repeated is not None:
        raise click.UsageError(f"--row {repeated!r} was given more than once; a folder of seeds is one model")
    if choices["trained"] is not None and "table6" not in names:
        raise click.UsageError("--train goes with table6")


def _ablation(choices: dict[str, Any]) -> AblationPlan | None:
    plan = {
        "n_pairs": choices["budget"],
        "n_seeds": choices["seeds"],
        "learning_rate": choices["learning_rate"],
    }
    given = {name: value for name, value in plan.items() if value is not None}
    if choices["trained"] is None:
        if given:
            raise click.UsageError(
                "--budget, --seeds and --learning-rate go with --train NAME, what table 6 trains"
            )
        return None
    from gemel.reproduce.ablation import AblationPlan

    return AblationPlan(choices["trained"], device=choices["device"], **given)


def _show(reproduction: Reproduction, as_lines: bool) -> None:
    from gemel.reproduce.printing import formatted

    if as_lines:
        click.echo(json.dumps(reproduction.to_dict(), ensure_ascii=False))
    else:
        click.echo(formatted(reproduction) + "\n")
