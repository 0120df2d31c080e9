"""`gemel distil`: an encoder into a smaller one that imitates it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from gemel.cli import options
from gemel.cli.reports import one_truncation_report
from gemel.progress import progress_bar


@click.command("distil")
@click.argument("model", metavar="MODEL")
@click.option("-o", "--output", metavar="FOLDER", required=True, help="Where the new model goes.")
@click.option("--static", is_flag=True, help="Make a table of tokens, which encodes at memory speed.")
@click.option("--dim", type=int, default=256, show_default=True, help="The length of the new vectors.")
@click.option(
    "--corpus", metavar="FILE", help="Texts like those to be encoded: txt, jsonl, csv, tsv or parquet."
)
@click.option("--column", default="text", show_default=True, help="The column or field that holds the text.")
@click.option(
    "--tune/--no-tune",
    default=None,
    help="Fit the table to MODEL's vectors of the corpus.  [default: if there is a corpus]",
)
@click.option(
    "--sentences",
    type=click.IntRange(min=1),
    default=200_000,
    show_default=True,
    help="How many texts of the corpus to tune on at most.",
)
@click.option("--seed", type=int, default=42, show_default=True, help="Of the sample of the corpus.")
@options.on_truncate
@options.compute
@click.option("--overwrite", is_flag=True, help="Replace FOLDER if it is a model.")
def command(model: str, output: str, **choices: Any) -> None:
    """Distil the encoder MODEL into a smaller one in FOLDER.

    With --static that is a table with a row for every token of MODEL: no context, and hundreds of thousands
    of texts a second, for a first pass over very large corpora. Give a corpus of a hundred thousand sentences
    or more: without one, tokens are weighed by their rank in the vocabulary, and nothing is tuned.

    \b
    Examples:
      gemel distil all-MiniLM-L6-v2 --static --corpus sentences.txt -o minilm-static
      gemel distil my-model --static --dim 128 -o my-static
    """
    if not choices["static"]:
        raise click.UsageError("say what to distil to: --static is what there is")
    if choices["tune"] and choices["corpus"] is None:
        raise click.UsageError("--tune needs sentences to tune on: name a file with --corpus")
    from gemel.checkpoint import check_free
    from gemel.loading import load_encoder
    from gemel.train.static import StaticConfig, distil_static

    check_free(Path(output).expanduser(), choices["overwrite"])  # now, and not after the work
    began = time.perf_counter()
    tunes = choices["corpus"] is not None and choices["tune"] is not False
    config = StaticConfig(
        dim=choices["dim"], tunes=tunes, n_sentences=choices["sentences"], seed=choices["seed"]
    )
    teacher = load_encoder(
        model,
        device=choices["device"],
        precision=choices["precision"],
        threads=choices["threads"],
        on_truncate=choices["on_truncate"],
    )
    with one_truncation_report():
        made = distil_static(teacher, _texts(choices["corpus"], choices["column"]), config)
    made.save(output, base_model=_base_name(model), overwrite=choices["overwrite"])
    line = {
        "output": output,
        "dim": made.encoder.dim,
        "tokens": made.encoder.table.n_tokens,
        "texts": made.n_read,
        "tuned_on": made.n_tuned,
        "agreement": None if made.agreement is None else round(made.agreement[1], 4),
        "seconds": round(time.perf_counter() - began, 3),
        "fingerprint": made.encoder.fingerprint,
    }
    click.echo(json.dumps(line))


def _texts(corpus: str | None, column: str) -> Iterator[str] | None:
    """The texts of the corpus as a stream, with a bar while they are read."""
    if corpus is None:
        return None
    from gemel.data.texts import TextSource

    source = TextSource(corpus, column=column)

    def stream() -> Iterator[str]:
        with progress_bar(None, "read") as bar:
            for record in source.records():
                yield record.text
                bar.update(1)

    return stream()


def _base_name(model: str) -> str:
    """What the card calls the teacher: of a folder its name, which means something on other machines too."""
    return Path(model).expanduser().resolve().name if Path(model).expanduser().is_dir() else model
