"""`gemel negatives`: pairs into triplets with hard negatives."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gemel.cli import corpora, options
from gemel.cli.reports import one_truncation_report
from gemel.progress import progress_of

if TYPE_CHECKING:
    from gemel.data.examples import Examples
    from gemel.tasks.negatives import HardNegatives, NegativeRules

RULES = (
    *("n_negatives", "skip_first", "n_candidates", "max_score", "min_score"),
    *("margin", "relative_margin", "rerank_margin", "sampling", "seed", "is_transitive"),
)


@click.command("negatives")
@click.argument("pairs", metavar="PAIRS")
@click.option("--corpus", metavar="FILE", help="More texts that may become negatives.")
@click.option(
    "--column", default="text", show_default=True, help="The column of the corpus that has the text."
)
@click.option("--anchor-column", metavar="NAME", help="[default: by the usual names]")
@click.option("--positive-column", metavar="NAME", help="[default: by the usual names]")
@click.option(
    "--where",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Read only such pairs: label=1, or label!=0; may be given several times, and all count.",
)
@click.option("-n", "--n-negatives", type=int, default=1, show_default=True, help="Negatives a pair.")
@click.option("--skip-first", type=int, default=0, show_default=True, help="Nearest candidates to pass over.")
@click.option("--n-candidates", type=int, default=100, show_default=True, help="How many to look at then.")
@click.option("--max-score", type=float, metavar="T", help="Drop what is more similar to the anchor.")
@click.option("--min-score", type=float, metavar="T", help="Drop what is less similar to the anchor.")
@click.option("--margin", type=float, metavar="M", help="Drop what scores above the positive's score - M.")
@click.option(
    "--relative-margin",
    type=float,
    default=0.05,
    show_default=True,
    metavar="M",
    help="Drop what scores above the positive's score x (1 - M); 0 drops what is nearer than the positive.",
)
@click.option(
    "--transitive", "is_transitive", is_flag=True, help="Partners of partners are no negatives either."
)
@click.option("--no-margin", is_flag=True, help="Keep also what is as near as the positive.")
@click.option("--rerank", metavar="NAME", help="A cross-encoder that has to agree that a text is a negative.")
@click.option("--rerank-margin", type=float, default=0.1, show_default=True, help="By how much it must.")
@click.option(
    "--sampling",
    type=click.Choice(["top", "random"]),
    default="top",
    show_default=True,
    help="The nearest candidates, or any of them.",
)
@click.option("--seed", type=click.IntRange(0), default=42, show_default=True, help="Of random sampling.")
@click.option(
    "--layout",
    type=click.Choice(["triplets", "tuples", "labelled"]),
    default="triplets",
    show_default=True,
    help="A row for each negative, or one for each pair with all its negatives, or labelled pairs.",
)
@click.option("--scores", "has_scores", is_flag=True, help="Write how similar each text is, too.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="A .jsonl, .csv, .tsv (also .gz) or .parquet file.  [default: JSON lines to standard output]",
)
@options.measure
@options.model
@options.pooling
@click.option("--anchor-prompt", metavar="NAME", help="One of the model's prompts for anchors, as query.")
@click.option("--prompt", metavar="NAME", help="One of the model's prompts for all other texts.")
@options.on_truncate
@options.compute
@corpora.overwrite
def command(pairs: str, output: str | None, **choices: Any) -> None:
    """Find hard negatives for PAIRS of anchor and positive: texts that are similar and not meant.

    PAIRS is a .tsv, .csv, .jsonl or .parquet file. Candidates are all positives, and the texts of --corpus.
    Never a negative are the anchor, any text that the file pairs with it, and copies of these but for case
    and blanks. gemel train reads what is written.

    \b
    Examples:
      gemel negatives pairs.tsv -o triplets.tsv
      gemel negatives questions.jsonl --corpus passages.txt -n 4 --layout tuples -o train.parquet
      gemel negatives quora.tsv --where is_duplicate=1 --rerank my-cross-encoder -o triplets.jsonl
    """
    from gemel.data.results import ResultWriter
    from gemel.tasks.negatives import NegativeRows

    began = time.perf_counter()
    rules = _rules(choices)
    _check_output(output, choices["overwrite"])
    examples = _read_pairs(pairs, choices)
    rows = NegativeRows(choices["layout"], rules.n_negatives, choices["has_scores"])
    scrolls = output in (None, "-") and sys.stdout.isatty()  # where a bar would run through the results
    with corpora.partial_report(output):
        with one_truncation_report(), progress_of("encode") as tell_encoding:
            found = _search(examples, rules, choices, tell_encoding)
        with (
            one_truncation_report(),
            progress_of("negatives", False if scrolls else None, unit="pairs") as tell,
            ResultWriter(output, rows.columns, overwrite=choices["overwrite"]) as results,
        ):
            for number, pair in enumerate(found, start=1):
                results.write(rows.of(pair))
                tell(number, len(examples))
    report = {**found.report.to_dict(), "rows": results.n_rows}
    if output not in (None, "-"):
        seconds = round(time.perf_counter() - began, 3)
        click.echo(json.dumps({"output": output, **report, "seconds": seconds}))
    else:
        click.echo(f"gemel: {json.dumps(report)}", err=True)


def _rules(choices: Mapping[str, Any]) -> NegativeRules:
    from gemel.tasks.negatives import NegativeRules

    values = {name: choices[name] for name in RULES}
    if choices["no_margin"]:
        if values["margin"] is not None or options.was_given("relative_margin"):
            raise click.UsageError("a margin and --no-margin were given; expected one of them")
        values["relative_margin"] = None
    if options.was_given("rerank_margin") and not choices["rerank"]:
        raise click.UsageError("--rerank-margin goes with --rerank, the cross-encoder that it is for")
    return NegativeRules(**values)


def _check_output(output: str | None, overwrite: bool) -> None:
    from gemel.data.results import format_of_results

    corpora.check_outputs(overwrite, output)
    if output not in (None, "-"):
        format_of_results(str(output))


def _read_pairs(path: str, choices: Mapping[str, Any]) -> Examples:
    from gemel.data.example_files import read_examples
    from gemel.data.roles import role_of

    columns = {"first": choices["anchor_column"], "second": choices["positive_column"]}
    where: dict[str, list[str]] = {}
    for condition in choices["where"]:
        column, sign, value = condition.partition("=")
        if not sign:
            raise click.UsageError(f"--where {condition} has no '='; expected such as label=1")
        wanted = f"!={value}" if column.endswith("!") else value
        where.setdefault(column.removesuffix("!"), []).append(wanted)
    examples = read_examples(
        Path(path), kind="pairs", columns={k: v for k, v in columns.items() if v}, where=where
    )
    telling = next((column for column in examples.unused if role_of(column) in ("label", "score")), None)
    if telling is not None:
        click.echo(
            f"gemel: every row of {path} is read as a positive, whatever its column {telling!r} says; choose "
            f"with --where {telling}=VALUE",
            err=True,
        )
    return examples


def _search(examples: Examples, rules: NegativeRules, choices: Mapping[str, Any], tell: Any) -> HardNegatives:
    from gemel.data.texts import TextSource
    from gemel.loading import load_encoder
    from gemel.tasks.negatives import HardNegatives

    compute = {name: choices[name] for name in ("device", "precision", "threads", "pooling", "on_truncate")}
    encoder = load_encoder(choices["model"], **compute)
    anchor_encoder = encoder.with_prompt(choices["anchor_prompt"]) if choices["anchor_prompt"] else encoder
    texts = []
    if choices["corpus"]:
        source = TextSource(choices["corpus"], column=choices["column"], options=("--column",))
        texts = [record.text for record in source.records()]
    return HardNegatives(
        examples,
        encoder.with_prompt(choices["prompt"]) if choices["prompt"] else encoder,
        rules,
        corpus=texts,
        anchor_encoder=anchor_encoder,
        reranker=corpora.load_confirmation(choices),
        measure=choices["measure"],
        on_progress=tell,
    )
