"""`gemel index`: collections made, fed, looked after."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gemel.cli import options
from gemel.cli.adding import add_files, added_by, added_here, chunking_of, echo_added, watch
from gemel.cli.documents import Documents, count_rows, number_columns, source_of
from gemel.cli.reports import one_truncation_report
from gemel.errors import GemelError
from gemel.progress import progress_bar

if TYPE_CHECKING:
    from gemel.index import Collection, Diagnosis, Store
    from gemel.scale import Runner

INPUT_FORMATS = ("txt", "jsonl", "csv", "tsv", "parquet")

filtered = click.option(
    "--filter",
    "filter_",
    metavar="FILTER",
    help="Only those that pass, as in 'year >= 2019 and lang = \"en\"'.",
)


@click.group("index")
def command() -> None:
    """Keep sentences in a collection, to be searched with `gemel search`.

    A COLLECTION is a folder that survives a power cut, or on a server: postgresql://USER@HOST/DATABASE/NAME
    (with pgvector), milvus://HOST:PORT/NAME, milvus:FILE.db/NAME. With --store, it is its NAME there.

    \b
    Examples:
      gemel index add notes sentences.txt
      gemel index add notes sentences.txt --store postgresql://me@localhost/texts
      gemel index copy notes postgresql://me@localhost/texts/notes
      gemel index add reviews reviews.csv --column review --id-column id --metadata year:number,lang
      gemel index add papers --watch ~/papers
      gemel index info reviews
      gemel index export reviews reviews.parquet --vectors
    """


# In and out ------------------------------------------------------------------------------------------------


@command.command("add")
@options.collection
@click.argument("sources", nargs=-1, metavar="[INPUT]...")
@options.model
@click.option("--column", default="text", show_default=True, help="The column or field that holds the text.")
@click.option("--id-column", help="The column or field that holds the id.  [default: known by their content]")
@click.option(
    "--metadata",
    metavar="COLUMNS",
    default="",
    help="Columns to keep beside each text, as in year:number,lang; * keeps all.",
)
@click.option(
    "--input-format",
    type=click.Choice(INPUT_FORMATS),
    help="What INPUT is.  [default: by its name; txt for -]",
)
@click.option(
    "--chunk-tokens",
    type=click.IntRange(min=0),
    help="Cut longer texts into passages of so many tokens; 0 never cuts.  [default: what the model reads]",
)
@click.option(
    "--overlap-tokens",
    type=click.IntRange(min=0),
    help="What neighbouring passages share.  [default: an eighth]",
)
@click.option(
    "--dtype", type=click.Choice(["float32", "float16"]), help="How a new collection keeps vectors."
)
@click.option("--watch", metavar="FOLDER", help="Keep the collection in step with the text files in FOLDER.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.05),
    default=2.0,
    show_default=True,
    help="Seconds between two looks at FOLDER.",
)
@click.option("--once", is_flag=True, help="Look at FOLDER once, and leave.")
@options.runner
@options.compute
def add(path: str, sources: tuple[str, ...], **choices: Any) -> None:
    """Add texts to COLLECTION, which is made if it is not there.

    INPUT is a .txt (a text a line), .jsonl, .csv, .tsv or .parquet file, also .gz or .zst, or - for standard
    input. A text whose id is there already replaces it; what has not changed is not encoded again. Without
    --id-column, a text is taken once; a row that repeats it with other metadata is left out and counted. Each
    text longer than the model reads is cut into passages. With --watch, .txt, .text, .md and .rst files in
    FOLDER are documents under their paths, until the command is stopped. With --runner ray, the workers of a
    cluster encode and store, if COLLECTION is on a server; a run that broke off is given again.

    \b
    Examples:
      gemel index add notes sentences.txt
      gemel index add reviews reviews.csv --column review --id-column id --metadata year:number
      gemel index add papers --watch ~/papers
      gemel index add pages pages.parquet --runner ray --store postgresql://me@db/texts
    """
    if bool(sources) == bool(choices["watch"]):
        raise click.UsageError("give INPUT files, or --watch FOLDER")
    runner = _runner(path, choices)
    texts = [source_of(each, choices) for each in sources]
    n_rows = count_rows(texts)  # a flaw in the input is told before a model is loaded
    from gemel.cli.opening import open_or_make

    compute = {name: choices[name] for name in ("device", "precision", "threads")}
    with closing(open_or_make(path, choices["model"], compute, dtype=choices["dtype"])) as opened:
        chunking = chunking_of(opened, choices["chunk_tokens"], choices["overlap_tokens"])
        with one_truncation_report():
            if choices["watch"]:
                watch(opened, chunking, choices)
                return
            documents = Documents(texts, number_columns(choices["metadata"]))
            adding = (
                added_here(opened, chunking)
                if runner is None
                else added_by(runner, path, opened, chunking, choices)
            )
            add_files(opened, documents, n_rows, adding)


@command.command("remove")
@options.collection
@click.argument("ids", nargs=-1, metavar="[ID]...")
@filtered
def remove(path: str, ids: tuple[str, ...], filter_: str | None) -> None:
    """Remove documents by their ids, or all that pass a filter; passages go with their document.

    \b
    Examples:
      gemel index remove reviews 17 18
      gemel index remove reviews --filter 'year < 2000'
    """
    if bool(ids) == bool(filter_):
        raise click.UsageError("give IDs, or --filter FILTER")
    from gemel.cli.opening import open_plain
    from gemel.tasks.passages import passage_of, remove_documents

    with closing(open_plain(path)) as opened:
        if filter_:
            found = [(passage_of(record), record) for record in opened.records(filter_)]
            wanted = [record.id if passage is None else passage.document for passage, record in found]
        else:
            wanted = [id_ for text in ids for id_ in _both_kinds(text)]
        n_removed = remove_documents(opened, wanted)
        click.echo(json.dumps({"collection": opened.name, "removed": n_removed, "records": len(opened)}))


@command.command("export")
@options.collection
@click.argument("file", metavar="FILE")
@filtered
@click.option("--vectors", is_flag=True, help="The vectors, too.")
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
def export(path: str, file: str, filter_: str | None, vectors: bool, overwrite: bool) -> None:
    """Write the records of COLLECTION to FILE: .jsonl, .jsonl.gz or .parquet.

    \b
    Examples:
      gemel index export reviews reviews.jsonl.gz
      gemel index export reviews old.parquet --vectors --filter 'year < 2000'
    """
    from gemel.cli.opening import open_plain

    with closing(open_plain(path, read_only=True)) as opened:
        n_records = opened.export(file, filter=filter_, with_vectors=vectors, overwrite=overwrite)
        click.echo(json.dumps({"collection": opened.name, "output": file, "records": n_records}))


@command.command("import")
@options.collection
@click.argument("file", metavar="FILE")
@options.model
@options.compute
def import_(path: str, file: str, model: str | None, **compute: Any) -> None:
    """Add the records of a FILE that `gemel index export` has written; vectors in it are not made again.

    \b
    Examples:
      gemel index import reviews reviews.jsonl.gz
    """
    from gemel.cli.opening import keep_index, open_or_make
    from gemel.index.transfer import read_entries

    n_rows = sum(1 for _ in read_entries(Path(file)))  # a flaw in it is told before a model is loaded
    with closing(open_or_make(path, model, compute)) as opened, one_truncation_report():
        began = time.perf_counter()
        with progress_bar(n_rows, "import", unit="records") as bar:
            added = opened.import_file(file, on_progress=lambda n: bar.update(n - bar.n))
        keep_index(opened)
        echo_added(opened, asdict(added), began)


@command.command("copy")
@click.argument("source", metavar="SOURCE")
@click.argument("target", metavar="TARGET")
def copy(source: str, target: str) -> None:
    """Copy the collection SOURCE, with its vectors, to TARGET, which is made if it is not there.

    Each is a folder or an address. Nothing is encoded again; a copy that was broken off goes on where it
    ended when it is called again, and what only TARGET has is left alone.

    \b
    Examples:
      gemel index copy reviews postgresql://me@localhost/texts/reviews
      gemel index copy postgresql://me@localhost/texts/reviews milvus:reviews.db/reviews
    """
    from gemel.cli.opening import keep_index, open_plain
    from gemel.index.copying import copy_collection
    from gemel.index.opening import has_collection, is_remote, make_alike, open_collection

    with closing(open_plain(source, read_only=True)) as opened:
        if not has_collection(target):
            make_alike(target, opened.settings).close()
        began = time.perf_counter()
        with closing(open_collection(target, keeps_index=not is_remote(target))) as made:
            with progress_bar(len(opened), "copy", unit="records") as bar:
                copied = copy_collection(opened, made, on_progress=lambda n: bar.update(n - bar.n))
            keep_index(made)
            line = {"source": opened.name, "target": made.name, "copied": copied.n_copied}
            line |= {"unchanged": copied.n_unchanged, "records": len(made)}
    click.echo(json.dumps({**line, "seconds": round(time.perf_counter() - began, 3)}))


# Upkeep ----------------------------------------------------------------------------------------------------


@command.command("info")
@options.collection
@click.option("--json", "as_json", is_flag=True, help="JSON, also on a terminal.")
def info(path: str, as_json: bool) -> None:
    """Tell what COLLECTION is and holds, and how it is searched.

    \b
    Examples:
      gemel index info reviews
    """
    from gemel.cli.opening import open_plain

    with closing(open_plain(path, read_only=True)) as opened:
        found = opened.info()
    line = {
        "collection": found.name,
        "records": found.n_records,
        "removed": found.n_removed,
        "bytes": found.n_bytes,
        **asdict(found.settings),
        "search": found.plan.method,
        "reason": found.plan.reason,
    }
    if as_json or not sys.stdout.isatty():
        click.echo(json.dumps(line, ensure_ascii=False))
        return
    width = max(map(len, line))
    for name, value in line.items():
        shown = ", ".join(value) if isinstance(value, tuple | list) else value
        click.echo(f"{name:<{width}}  {shown:,}" if isinstance(shown, int) else f"{name:<{width}}  {shown}")


@command.command("doctor")
@options.collection
@click.option("--check", is_flag=True, help="Only look; mend nothing.")
@click.option("--drop", is_flag=True, help="Remove records that nothing can mend.")
@options.model
@options.compute
def doctor(path: str, check: bool, drop: bool, model: str | None, **compute: Any) -> None:
    """Examine COLLECTION to the last byte, mend what can be, and name what is lost (exit code 1).

    \b
    Examples:
      gemel index doctor reviews
      gemel index doctor reviews --check
    """
    from gemel.cli.opening import open_folder

    if check and drop:
        raise click.UsageError("--check looks only, and --drop changes: give one of them")
    with closing(open_folder(path)) as plain:
        found = plain.doctor(repair=False)
    if not found.is_sound and not check:
        with closing(_open_to_mend(path, found, model, compute)) as opened:
            found = opened.doctor(drop=drop)
    for finding in found.findings:
        click.echo(json.dumps(asdict(finding), ensure_ascii=False))
    line = {"collection": path, "records": found.n_records, "sound": found.is_sound}
    click.echo(json.dumps({**line, "findings": len(found.findings), "lost": len(found.lost)}))
    if found.lost or (check and not found.is_sound):
        raise click.exceptions.Exit(1)


@command.command("compact")
@options.collection
def compact(path: str) -> None:
    """Give back the room of what was removed, and bring the index up to date.

    \b
    Examples:
      gemel index compact reviews
    """
    from gemel.cli.opening import open_plain

    with closing(open_plain(path)) as opened:
        before = opened.info().n_bytes
        with progress_bar(None, "index", unit="vectors") as bar:
            opened.compact(on_progress=lambda n, _: bar.update(n - bar.n))
        line = {"collection": opened.name, "bytes_before": before, "bytes": opened.info().n_bytes}
    click.echo(json.dumps(line))


# Steps -----------------------------------------------------------------------------------------------------


def _open_to_mend(path: str, found: Diagnosis, model: str | None, compute: Mapping[str, Any]) -> Collection:
    """With the model, if vectors have to be made again and it is at hand: all else is mended without."""
    from gemel.cli.opening import open_plain, open_with_model
    from gemel.index import Collection

    opened: Store | None = None
    if found.lost or model is not None:
        try:
            opened = open_with_model(path, model, compute)
        except GemelError as error:
            if model is not None:
                raise
            click.echo(f"gemel: {error}; what needs no model is mended", err=True)
    opened = opened or open_plain(path)
    assert isinstance(opened, Collection)
    return opened


def _runner(path: str, choices: Mapping[str, Any]) -> Runner | None:
    """The cluster, which must be there before anything is read or made; None for this machine."""
    if choices["runner"] == "local":
        if choices["ray_address"] is not None:
            raise click.UsageError("--ray-address goes with --runner ray")
        return None
    if choices["watch"]:
        raise click.UsageError("a folder is watched by this machine: leave --runner out")
    from gemel.cli.corpora import make_runner
    from gemel.scale.fill import check_shared

    check_shared(path)
    return make_runner(choices)


def _both_kinds(text: str) -> list[int | str]:
    """An id as it was typed: a str and, where it reads as one, an integer."""
    if not re.fullmatch(r"-?[0-9]{1,19}", text) or not -(1 << 63) <= int(text) < 1 << 63:
        return [text]
    return [text, int(text)]
