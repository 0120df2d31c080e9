"""`gemel rerank`: texts in the order in which a cross-encoder puts them."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from gemel.cli import options
from gemel.cli.documents import lone_file
from gemel.cli.reports import one_truncation_report
from gemel.errors import InvalidInput


@click.command("rerank")
@click.argument("query")
@click.argument("texts", nargs=-1, required=True, metavar="FILE|TEXT...")
@click.option("-m", "--model", metavar="NAME", required=True, help="A cross-encoder: a folder or a hub name.")
@click.option("-k", type=click.IntRange(min=1), default=None, help="Only the best so many.  [default: all]")
@click.option("--column", help="The column of FILE that holds the text.  [default: text]")
@click.option(
    "--id-column", metavar="NAME", help="The column of FILE that holds the id.  [default: the row number]"
)
@options.compute
def command(query: str, texts: tuple[str, ...], model: str, k: int | None, **choices: Any) -> None:
    """Put texts in the order in which they fit QUERY, the best first.

    A cross-encoder reads the query and a text together: slower than comparing vectors, and more exact. The
    texts are those of a FILE (.txt, .jsonl, .csv, .tsv, .parquet, or - for standard input), or are given.

    \b
    Examples:
      gemel rerank "who eats?" "A man is eating." "It rains." -m cross-encoder/ms-marco-MiniLM-L6-v2
      gemel rerank "who eats?" sentences.txt -k 5 -m cross-encoder/ms-marco-MiniLM-L6-v2
    """
    from gemel.loading import load_reranker
    from gemel.tasks.rerank import rerank

    ids, read = _texts(texts, choices.pop("column"), choices.pop("id_column"))
    if not query.strip():
        raise InvalidInput("the query is empty; expected some words")
    with one_truncation_report():
        for ranked in rerank(load_reranker(model, **choices), query, read, k):
            line = {"id": ids[ranked.row], "score": ranked.score, "text": ranked.text}
            sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")


def _texts(
    given: tuple[str, ...], column: str | None, id_column: str | None
) -> tuple[list[int | str], list[str]]:
    """The texts of the one file that was named, or those that were given."""
    file = lone_file(given)
    if file is None:
        if column or id_column:
            raise click.UsageError("--column and --id-column go with a file")
        return list(range(len(given))), list(given)
    from gemel.data.texts import TextSource

    taken = ("--column", "--id-column")
    source = TextSource(file, column=column or "text", id_column=id_column, options=taken)
    records = list(source.records())
    return [record.id for record in records], [record.text for record in records]
