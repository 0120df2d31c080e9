"""`gemel similarity`: how alike two texts are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any

import click

from gemel.cli import options
from gemel.cli.documents import names_file
from gemel.cli.reports import one_truncation_report
from gemel.contracts import OnTruncate
from gemel.errors import InvalidInput

if TYPE_CHECKING:
    from gemel.contracts import Encoder
    from gemel.data.texts import TextSource

PAIRS_AT_ONCE = 4_096


@click.command("similarity")
@click.argument("a")
@click.argument("b")
@click.option("--files", is_flag=True, help="A and B are files: compare row 1 with row 1, and so on.")
@click.option(
    "--column", default="text", show_default=True, help="The column of the files that holds the text."
)
@options.measure
@options.model
@options.pooling
@options.on_truncate
@options.compute
def command(
    a: str,
    b: str,
    files: bool,
    column: str,
    measure: str,
    model: str | None,
    on_truncate: OnTruncate,
    **compute: Any,
) -> None:
    """Print how similar the texts A and B are.

    \b
    Examples:
      gemel similarity "A man is eating." "Someone has lunch."
      gemel similarity --files questions.txt answers.txt > scores.jsonl
    """
    from gemel.loading import load_encoder

    if not files and names_file(a) and names_file(b):
        click.echo("gemel: both are names of files; to compare what is in them, add --files", err=True)
    encoder = load_encoder(model, on_truncate=on_truncate, **compute)
    pairs = _pairs_of_rows(a, b, column) if files else iter([(a, b)])
    with one_truncation_report():
        while batch := list(islice(pairs, PAIRS_AT_ONCE)):
            for (first, second), score in zip(batch, _scores(encoder, batch, measure), strict=True):
                line = {"a": first, "b": second, measure: round(score, 6)}
                click.echo(json.dumps(line, ensure_ascii=False))


def _scores(encoder: Encoder, pairs: list[tuple[str, str]], measure: str) -> list[float]:
    from gemel.similarity import pairwise

    vectors = encoder.encode([text for pair in pairs for text in pair])
    scores: list[float] = pairwise(vectors[::2], vectors[1::2], measure).tolist()
    return scores


def _pairs_of_rows(a: str, b: str, column: str) -> Iterator[tuple[str, str]]:
    if a == b == "-":
        raise InvalidInput("standard input can be read only once; give a file for A or for B")
    left, right = (_source(file, column).records() for file in (a, b))
    for row, (first, second) in enumerate(zip_longest(left, right)):
        if first is None or second is None:
            ended = a if first is None else b
            raise InvalidInput(f"{ended} ends after {row:,} rows and the other file does not")
        yield first.text, second.text


def _source(file: str, column: str) -> TextSource:
    from gemel.data.texts import TextSource

    is_plain = file.removesuffix(".gz").removesuffix(".zst").endswith(".txt")
    return TextSource(file, column="text" if is_plain else column, options=("--column",))
