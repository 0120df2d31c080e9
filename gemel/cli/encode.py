"""`gemel encode`: a file of texts into a file of vectors."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gemel.cli import options
from gemel.cli.reports import one_truncation_report
from gemel.progress import progress_bar, progress_of

if TYPE_CHECKING:
    from gemel.data.texts import TextSource
    from gemel.text_encoder import TextEncoder

INPUT_FORMATS = ("txt", "jsonl", "csv", "tsv", "parquet")


@click.command("encode")
@click.argument("sources", metavar="INPUT...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    metavar="FILE|FOLDER/",
    help="A .npy, .npz, .parquet, .jsonl or .jsonl.gz file, or a folder for parts.  "
    "[default: JSON lines to standard output]",
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
@options.pooling
@options.on_truncate
@options.compute
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
@click.option("--restart", is_flag=True, help="Discard what an interrupted run has left, and begin anew.")
@click.option("--part-rows", type=click.IntRange(1), help="How many rows a part has.  [default: 16384]")
@options.runner
def command(sources: tuple[str, ...], output: str | None, **choices: Any) -> None:
    """Encode every text of INPUT: one vector a text, in the same order.

    INPUT is a .txt (a text a line), .jsonl, .csv, .tsv or .parquet file, also .gz or .zst, or - for
    standard input. Texts are streamed, so the corpus may be larger than memory. With -o, a run that was
    interrupted continues when the same command is given again.

    An output that ends in / is a folder of parquet parts, here or in an object storage, of one INPUT or many
    (s3://bucket/*.parquet is quoted). Parts may be made by a Ray cluster: --runner ray.

    \b
    Examples:
      gemel encode sentences.txt -o vectors.npy
      gemel encode reviews.csv --column review --id-column id -o vectors.parquet
      zcat log.gz | gemel encode - > vectors.jsonl
      gemel encode 'texts/*.parquet' --runner ray -o vectors/
    """
    from gemel.data.texts import TextSource
    from gemel.data.vectors import format_of
    from gemel.loading import load_encoder

    if _makes_parts(sources, output, choices):
        _write_parts(sources, str(output), choices)
        return
    texts = TextSource(
        sources[0], format=choices["input_format"], column=choices["column"], id_column=choices["id_column"]
    )
    to_file = output not in (None, "-")
    if to_file:
        format_of(Path(str(output)))
    elif choices["overwrite"] or choices["restart"] or choices["dtype"] != "float32":
        raise click.UsageError("--overwrite, --restart and --dtype go with -o FILE")
    n_rows = texts.count_rows()  # a flaw in the input is told before a model is loaded
    encoder = load_encoder(
        choices["model"],
        device=choices["device"],
        precision=choices["precision"],
        threads=choices["threads"],
        pooling=choices["pooling"],
        on_truncate=choices["on_truncate"],
    )
    if choices["prompt"]:
        encoder = encoder.with_prompt(choices["prompt"])
    with one_truncation_report():
        if to_file:
            _write(encoder, texts, str(output), n_rows, choices)
        else:
            _stream(encoder, texts, n_rows)


def _makes_parts(sources: tuple[str, ...], output: str | None, choices: dict[str, Any]) -> bool:
    """Whether a folder of parts is asked for; what goes only with one kind of output is refused."""
    is_folder = output is not None and (output.endswith("/") or "://" in output or Path(output).is_dir())
    if not is_folder:
        if choices["runner"] != "local" or len(sources) > 1:
            raise click.UsageError(
                "several inputs, and --runner ray, make parts: give a folder as -o FOLDER/"
            )
        if choices["part_rows"] or choices["ray_address"]:
            raise click.UsageError("--part-rows and --ray-address go with -o FOLDER/")
        return False
    if "-" in sources:
        raise click.UsageError("standard input can be read only once, and parts are read twice; give files")
    if choices["overwrite"] or choices["restart"] or choices["dtype"] != "float32":
        raise click.UsageError("--overwrite, --restart and --dtype go with -o FILE; parts take a new folder")
    return True


def _write_parts(sources: tuple[str, ...], output: str, choices: dict[str, Any]) -> None:
    from gemel.scale import EncodingSettings, encode_files, make_runner

    names = ("input_format", "prompt", "precision", "device", "pooling", "on_truncate", "part_rows")
    settings = EncodingSettings(**{name: choices[name] for name in names if choices[name] is not None})
    runner = make_runner(choices["runner"], address=choices["ray_address"], threads=choices["threads"])
    began = time.perf_counter()
    n_resumed: int | None = None
    with one_truncation_report(), progress_of("encode") as tell:

        def show(n_done: int, n_total: int) -> None:
            nonlocal n_resumed
            if n_resumed is None and n_done:
                click.echo(f"gemel: continuing after the {n_done:,} rows of an earlier run", err=True)
            n_resumed = n_done if n_resumed is None else n_resumed
            tell(n_done - n_resumed, n_total - n_resumed)  # so that the pace is that of this run

        done = encode_files(
            choices["model"],
            sources,
            output,
            column=choices["column"],
            id_column=choices["id_column"],
            settings=settings,
            runner=runner,
            on_progress=show,
        )
    click.echo(json.dumps({**vars(done), "seconds": round(time.perf_counter() - began, 3)}))


def _stream(encoder: TextEncoder, texts: TextSource, n_rows: int | None) -> None:
    from gemel.tasks.encode import stream_jsonl

    shows = sys.stderr.isatty() and not sys.stdout.isatty()
    with progress_bar(n_rows, "encode", shows) as bar:

        def write(lines: str) -> None:
            sys.stdout.write(lines)
            sys.stdout.flush()
            bar.update(lines.count("\n"))

        stream_jsonl(encoder, texts, write)


def _write(
    encoder: TextEncoder, texts: TextSource, output: str, n_rows: int | None, choices: dict[str, Any]
) -> None:
    from gemel.tasks.encode import EncodeOptions, encode_file

    settings = EncodeOptions(
        dtype=choices["dtype"], overwrite=choices["overwrite"], restart=choices["restart"]
    )
    began = time.perf_counter()
    is_first = True
    with progress_bar(n_rows, "encode") as bar:

        def show(rows: int) -> None:
            nonlocal is_first
            if is_first and rows:
                bar.initial = rows  # so that the pace is that of this run
                click.echo(f"gemel: continuing after the {rows:,} rows of an earlier run", err=True)
            is_first = False
            bar.update(rows - bar.n)

        try:
            summary = encode_file(encoder, texts, output, options=settings, on_progress=show)
        except KeyboardInterrupt:
            if Path(f"{output}.partial").exists():
                click.echo(
                    f"gemel: what is done is kept in {output}.partial; the same command continues", err=True
                )
            raise
    line = {
        "output": str(summary.output),
        "rows": summary.rows,
        "dim": summary.dim,
        "resumed_rows": summary.resumed_rows,
        "seconds": round(time.perf_counter() - began, 3),
        "fingerprint": encoder.fingerprint,
    }
    click.echo(json.dumps(line))
