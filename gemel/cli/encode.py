"""`gemel encode`: a file of texts into a file of vectors."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from gemel.cli import options
from gemel.errors import TruncationWarning
from gemel.progress import progress_bar

if TYPE_CHECKING:
    from gemel.data.texts import TextSource
    from gemel.model import SentenceEncoder

INPUT_FORMATS = ("txt", "jsonl", "csv", "tsv", "parquet")


@click.command("encode")
@click.argument("source", metavar="INPUT")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="A .npy, .npz, .parquet, .jsonl or .jsonl.gz file.  [default: JSON lines to standard output]",
)
@options.model
@click.option("--column", default="text", show_default=True, help="The column or field that holds the text.")
@click.option("--id-column", help="The column or field that holds the id.  [default: the row number]")
@click.option(
    "--input-format",
    type=click.Choice(INPUT_FORMATS),
    help="What INPUT is.  [default: by its name; txt for -]",
)
@click.option("--dtype", type=click.Choice(["float32", "float16"]), default="float32", show_default=True)
@click.option("--prompt", metavar="NAME", help="One of the model's prompts, such as query.")
@options.on_truncate
@options.device
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
@click.option("--restart", is_flag=True, help="Discard what an interrupted run has left, and begin anew.")
def command(source: str, output: str | None, **choices: Any) -> None:
    """Encode every text of INPUT: one vector a text, in the same order.

    INPUT is a .txt (a text a line), .jsonl, .csv, .tsv or .parquet file, also .gz or .zst, or - for
    standard input. Texts are streamed, so the corpus may be larger than memory. A run that was
    interrupted continues when the same command is given again.

    \b
    Examples:
      gemel encode sentences.txt -o vectors.npy
      gemel encode reviews.csv --column review --id-column id -o vectors.parquet
      zcat log.gz | gemel encode - > vectors.jsonl
    """
    from gemel.data.texts import TextSource
    from gemel.loading import load_encoder

    texts = TextSource(
        source, format=choices["input_format"], column=choices["column"], id_column=choices["id_column"]
    )
    encoder = load_encoder(choices["model"], device=choices["device"], on_truncate=choices["on_truncate"])
    if choices["prompt"]:
        encoder = encoder.with_prompt(choices["prompt"])
    with _one_truncation_report():
        if output in (None, "-"):
            _stream(encoder, texts)
        else:
            _write(encoder, texts, str(output), choices)


def _stream(encoder: SentenceEncoder, texts: TextSource) -> None:
    from gemel.tasks.encode import stream_jsonl

    def write(lines: str) -> None:
        sys.stdout.write(lines)
        sys.stdout.flush()

    stream_jsonl(encoder, texts, write)


def _write(encoder: SentenceEncoder, texts: TextSource, output: str, choices: dict[str, Any]) -> None:
    from gemel.tasks.encode import EncodeOptions, encode_file

    settings = EncodeOptions(
        dtype=choices["dtype"], overwrite=choices["overwrite"], restart=choices["restart"]
    )
    began = time.perf_counter()
    with progress_bar(texts.count_rows(), "encode") as bar:

        def show(rows: int) -> None:
            bar.update(rows - bar.n)

        summary = encode_file(encoder, texts, output, options=settings, on_progress=show)
    line = {
        "output": str(summary.output),
        "rows": summary.rows,
        "dim": summary.dim,
        "resumed_rows": summary.resumed_rows,
        "seconds": round(time.perf_counter() - began, 3),
        "fingerprint": encoder.fingerprint,
    }
    click.echo(json.dumps(line))


@contextmanager
def _one_truncation_report() -> Iterator[None]:
    """Gather the warnings of all windows into one line at the end."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TruncationWarning)
        try:
            yield
        finally:
            cut = [w.message for w in caught if isinstance(w.message, TruncationWarning)]
            if cut:
                click.echo(
                    f"gemel: {sum(warning.n_truncated for warning in cut):,} texts were longer than "
                    f"{cut[0].max_tokens} tokens and were cut; --on-truncate chunk reads them whole",
                    err=True,
                )
