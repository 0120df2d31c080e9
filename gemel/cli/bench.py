"""`gemel bench`: how fast models encode on this machine."""

from __future__ import annotations

import json
import sys
from itertools import islice
from typing import TYPE_CHECKING

import click

from gemel.cli import options
from gemel.progress import progress_bar
from gemel.table import format_table

if TYPE_CHECKING:
    from gemel.engine import NativeEncoder
    from gemel.evaluate.speed import Speed

N_TEXTS = 10_000
CEILING_SECONDS = 0.3


@click.command("bench")
@options.model
@click.option("--corpus", metavar="FILE", help="Your own texts.  [default: Python's own documentation]")
@click.option("--column", default="text", show_default=True, help="The column of FILE that holds the text.")
@click.option(
    "--limit", type=click.IntRange(min=2), default=N_TEXTS, show_default=True, help="How many texts to take."
)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--threads", type=click.IntRange(1, 4096), default=None, help="[default: the cores here]")
@click.option("--json", "as_json", is_flag=True, help="JSON lines, also on a terminal.")
def command(
    model: str | None,
    corpus: str | None,
    column: str,
    limit: int,
    rounds: int,
    threads: int | None,
    as_json: bool,
) -> None:
    """Measure how fast a model encodes here, in int8 and float32, and what int8 costs in exactness.

    Both take turns on the same texts, tokenising included; the best round counts. The ceiling is what the
    bare matrix products would take on this machine, measured in the same minutes. p50 and p99 are of
    texts one at a time.

    \b
    Examples:
      gemel bench
      gemel bench -m my-model --corpus reviews.csv --column review --limit 2000
    """
    from gemel.engine import NativeEncoder
    from gemel.errors import InvalidInput
    from gemel.evaluate.speed import SpeedTrial
    from gemel.loading import is_baseline, load_encoder

    texts = _texts(corpus, column, limit)
    if not texts:
        raise InvalidInput(f"{corpus} holds no text; expected at least one to encode")
    if model is not None and is_baseline(model):
        raise InvalidInput(
            f"{model} has no transformer, and so one way to compute: there is nothing to bench"
        )
    encoders = {}
    for precision in ("int8", "float32"):
        encoder = load_encoder(
            model, precision=precision, threads=threads, device="cpu", on_truncate="ignore"
        )
        if not isinstance(encoder, NativeEncoder):
            raise InvalidInput("the native engine does not know this architecture: there is nothing to bench")
        encoders[precision] = encoder
    exact = encoders["float32"]
    n_tokens = int(exact.count_tokens(texts).clip(max=exact.spec.max_tokens).sum())
    trial = SpeedTrial(dict(encoders), texts, n_tokens)
    ceilings = []
    with progress_bar(rounds, "bench", sys.stderr.isatty(), "rounds") as bar:
        for _ in range(rounds):
            ceilings.append(_ceiling(encoders["int8"]))
            trial.run_round()
            bar.update(1)
    _show(trial.results("float32"), max(ceilings), encoders["int8"], as_json or not sys.stdout.isatty())


def _texts(corpus: str | None, column: str, limit: int) -> list[str]:
    if corpus is None:
        from gemel.data.docstrings import read_docstring_corpus

        return read_docstring_corpus(limit).sentences
    from gemel.data.texts import TextSource

    source = TextSource(corpus, column=column, options=("--column",))
    return [record.text for record in islice(source.records(), limit)]


def _ceiling(encoder: NativeEncoder) -> float:
    """Tokens a second if nothing but the int8 matrix products took time."""
    from gemel import _native

    operations = _native.tile_ceiling(encoder.instruction_set, True, encoder.n_threads, CEILING_SECONDS)
    return operations / encoder.operations_per_token


def _show(results: list[Speed], ceiling: float, encoder: NativeEncoder, as_lines: bool) -> None:
    machine = f"{encoder.n_threads} threads, {encoder.instruction_set}"
    if as_lines:
        for result in results:
            share = result.tokens_per_second / ceiling if result.name == "int8" else None
            line = {"machine": machine, **result.to_dict(), "share_of_ceiling": share}
            click.echo(json.dumps(line))
        return
    rows = [
        [
            result.name,
            f"{result.texts_per_second:,.0f}",
            f"{result.tokens_per_second:,.0f}",
            f"{result.tokens_per_second / ceiling:.0%}" if result.name == "int8" else "",
            f"{result.p50_ms:.2f}",
            f"{result.p99_ms:.2f}",
            f"{result.mean_cosine:.5f}",
            f"{result.min_cosine:.5f}",
        ]
        for result in results
    ]
    names = ["texts/s", "tokens/s", "of the ceiling", "p50 ms", "p99 ms", "mean cosine", "min cosine"]
    click.echo(format_table([machine, *names], rows))
