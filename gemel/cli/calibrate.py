"""`gemel calibrate`: a threshold and a probability from labelled pairs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from gemel.cli import corpora, options
from gemel.cli.reports import one_truncation_report
from gemel.progress import progress_of


@click.command("calibrate")
@click.argument("pairs", metavar="PAIRS")
@click.option("-o", "--output", metavar="FILE", help="Where the calibration goes, as JSON.")
@click.option(
    "--at-precision",
    "--precision",  # its older name, by which other verbs mean how vectors are computed
    "wanted",
    type=float,
    metavar="P",
    help="Find most pairs where this share of them is right, as 0.95.  [default: best F1]",
)
@click.option(
    "--positive", default="1", show_default=True, metavar="LABEL", help="The label of the duplicates."
)
@options.model
@options.pooling
@options.on_truncate
@options.device
@click.option(
    "--compute-precision",
    "precision",
    type=click.Choice(["int8", "float32"]),
    default=None,
    help="How exactly to compute; mine and dedupe then have to say the same.  [default: int8 on a CPU]",
)
@click.option("--threads", type=click.IntRange(1, 4096), default=None, help="How many threads compute.")
@corpora.overwrite
def command(
    pairs: str, output: str | None, wanted: float | None, positive: str, overwrite: bool, **compute: Any
) -> None:
    """Learn from labelled PAIRS which similarity makes a duplicate, with one model.

    PAIRS is a .tsv, .csv, .jsonl or .parquet file with two texts and a label, as question1, question2 and
    is_duplicate. The threshold has the best F1, or finds the most duplicates at the precision that is
    wanted; held_out figures are those on pairs that it was not chosen on. gemel mine and gemel dedupe take
    the file with --calibration, in place of a number, and tell probabilities: they hold for pairs that come
    about as the labelled ones did.

    \b
    Examples:
      gemel calibrate pairs.tsv -o calibration.json
      gemel calibrate pairs.tsv -m my-model --at-precision 0.95 -o calibration.json
    """
    from gemel.data.example_files import read_examples
    from gemel.loading import load_encoder
    from gemel.tasks.calibrate import calibrate

    corpora.check_outputs(overwrite, output)
    examples = read_examples(pairs, kind="classified pairs")
    encoder = load_encoder(compute.pop("model"), **compute)
    with one_truncation_report(), progress_of("encode") as tell:
        found = calibrate(encoder, examples, positive=positive, precision=wanted, on_progress=tell)
    if output is not None:
        found.save(output, overwrite=overwrite)
    click.echo(json.dumps(asdict(found)))
