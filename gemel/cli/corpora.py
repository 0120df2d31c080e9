"""What the verbs that work on a whole corpus share: its options, reading it, confirming, drawing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gemel.cli import options
from gemel.cli.reports import one_truncation_report
from gemel.errors import InvalidInput
from gemel.progress import progress_of

if TYPE_CHECKING:
    from gemel.contracts import Encoder, Reranker
    from gemel.data.texts import TextSource
    from gemel.scale import Runner
    from gemel.tasks.calibrate import Calibration
    from gemel.tasks.corpus import Corpus
    from gemel.tasks.prefilter import PrefilteredPairs

INPUT_FORMATS = ("txt", "jsonl", "csv", "tsv", "parquet")

_READING = (
    click.option("--column", default="text", show_default=True, help="The column that holds the text."),
    click.option("--id-column", help="The column that holds the id.  [default: the row number]"),
    click.option(
        "--input-format",
        type=click.Choice(INPUT_FORMATS),
        help="What the input is.  [default: by its name; txt for -]",
    ),
    click.option(
        "--vectors",
        metavar="FILE",
        help="The vectors of INPUT, as gemel encode made them: .npy, .npz or .parquet.",
    ),
    options.model,
    options.pooling,
    options.on_truncate,
    options.compute,
)
_CONFIRMING = (
    click.option(
        "--calibration",
        metavar="FILE",
        help="The threshold that gemel calibrate has found, and probabilities besides.",
    ),
    click.option("--rerank", metavar="NAME", help="A cross-encoder that has to confirm each pair."),
    click.option(
        "--rerank-at-least",
        type=float,
        default=0.5,
        show_default=True,
        help="The score of the cross-encoder that confirms a pair.",
    ),
)
_PREFILTERING = (
    click.option(
        "--prefilter",
        metavar="NAME",
        help="A quick encoder (gemel distil --static) that proposes pairs; the model reads only those texts.",
    ),
    click.option(
        "--prefilter-recall",
        type=click.FloatRange(0, 1, min_open=True),
        default=0.98,
        show_default=True,
        help="The share of the pairs that has to be kept, measured on a sample.",
    ),
    click.option(
        "--prefilter-at-least",
        type=float,
        metavar="T",
        help="The score by the quick encoder from which on pairs are looked at, instead of measuring it.",
    ),
)
plot = click.option(
    "--plot", metavar="FILE", help="Draw how similar the texts are, with the threshold: .png or .svg."
)
overwrite = click.option("--overwrite", is_flag=True, help="Replace files that exist.")


def reading(command: options.Command) -> options.Command:
    """How a corpus is read and encoded."""
    for option in reversed(_READING):
        command = option(command)
    return command


def confirming(command: options.Command) -> options.Command:
    """What counts as similar, besides a number."""
    for option in reversed(_CONFIRMING):
        command = option(command)
    return command


def prefiltering(command: options.Command) -> options.Command:
    """Who proposes pairs, and how many may be lost."""
    for option in reversed(_PREFILTERING):
        command = option(command)
    return command


def text_source(path: str, choices: Mapping[str, Any]) -> TextSource:
    """The texts of a file, or of standard input for `-`."""
    from gemel.data.texts import TextSource

    return TextSource(
        path, format=choices["input_format"], column=choices["column"], id_column=choices["id_column"]
    )


def load_model(choices: Mapping[str, Any]) -> Encoder:
    """The encoder that the options ask for."""
    from gemel.loading import load_encoder

    names = ("device", "precision", "threads", "pooling", "on_truncate")
    return load_encoder(choices["model"], **{name: choices[name] for name in names})


def load_confirmation(choices: Mapping[str, Any]) -> Reranker | None:
    """The cross-encoder that the options ask for."""
    from gemel.loading import load_reranker

    if choices["rerank"] is None:
        return None
    return load_reranker(
        choices["rerank"], **{name: choices[name] for name in ("device", "precision", "threads")}
    )


def load_checked_calibration(choices: Mapping[str, Any], encoder: Encoder | None) -> Calibration | None:
    """The calibration that the options name; one of another model or another precision is refused."""
    from gemel.tasks.calibrate import load_calibration

    if choices["calibration"] is None:
        return None
    calibration = load_calibration(choices["calibration"])
    assert encoder is not None
    calibration.check_model(encoder.fingerprint)
    calibration.check_precision(encoder)
    return calibration


def check_confirmation(choices: Mapping[str, Any]) -> None:
    """Refuse the score of a cross-encoder where there is none."""
    if choices["rerank"] is None and options.was_given("rerank_at_least"):
        raise click.UsageError("--rerank-at-least goes with --rerank, the cross-encoder that it is for")


def check_prefilter(choices: Mapping[str, Any], **unfit: bool) -> None:
    """Refuse what does not go with a prefilter: options by name, and whether they were given."""
    if choices["prefilter"] is None:
        for option in ("prefilter_at_least", "prefilter_recall"):
            if options.was_given(option):
                raise click.UsageError(f"--{option.replace('_', '-')} goes with --prefilter NAME")
        return
    if choices["prefilter_at_least"] is not None and options.was_given("prefilter_recall"):
        raise click.UsageError(
            "--prefilter-recall and --prefilter-at-least were given; expected one of them: the first is what "
            "to measure the second by"
        )
    for name, is_given in unfit.items():
        if is_given:
            raise click.UsageError(
                f"--prefilter finds all pairs above a threshold, and {name} does not go with it"
            )


def check_runner(choices: Mapping[str, Any], **unfit: bool) -> None:
    """Refuse what only this machine does: options by name, and whether they were given."""
    if choices["runner"] == "local":
        if choices["ray_address"] is not None:
            raise click.UsageError("--ray-address goes with --runner ray")
        return
    for name, is_given in unfit.items():
        if is_given:
            raise click.UsageError(
                f"--runner {choices['runner']} compares all pairs, and {name} does not go with it"
            )


def make_runner(choices: Mapping[str, Any]) -> Runner:
    """Who does the work that the options ask for."""
    from gemel.scale import make_runner as make

    return make(choices["runner"], address=choices["ray_address"], threads=choices["threads"])


def quick_model(choices: Mapping[str, Any]) -> Encoder:
    """The encoder that proposes pairs."""
    from gemel.loading import load_encoder

    return load_encoder(choices["prefilter"], threads=choices["threads"], on_truncate="ignore")


def proposed_pairs(
    corpora: Sequence[Corpus],
    quick: Encoder,
    slow: Encoder,
    threshold: float,
    choices: Mapping[str, Any],
    tell: Any,
) -> PrefilteredPairs:
    """The pairs of one corpus, or of two, that the quick encoder proposes and the slow one confirms."""
    from gemel.tasks.prefilter import Prefilter, PrefilteredPairs, measure_prefilter

    texts = [corpus.texts for corpus in corpora]
    loose = choices["prefilter_at_least"]
    others = texts[1] if len(texts) > 1 else None
    if loose is None:
        recall = choices["prefilter_recall"]
        prefilter = measure_prefilter(quick, slow, texts[0], threshold, others=others, recall=recall)
    else:
        prefilter = Prefilter(threshold, loose)
    click.echo(f"gemel: {prefilter.describe()}", err=True)
    return PrefilteredPairs(quick, slow, prefilter, texts[0], others=others, on_progress=tell)


def read(source: TextSource, encoder: Encoder | None, vectors: str | None) -> Corpus:
    """The corpus of a source, encoded here unless its vectors are named."""
    from gemel.tasks.corpus import read_corpus

    with one_truncation_report(), progress_of("encode") as tell:
        return read_corpus(source, encoder, vectors=vectors, on_progress=tell)


def needed_model(choices: Mapping[str, Any], *, has_vectors: bool) -> Encoder | None:
    """The encoder, if anything is left for it to do: vectors of a model that is named, and a calibration,
    have to be its own."""
    if not has_vectors or options.was_given("model") or choices.get("calibration") is not None:
        return load_model(choices)
    unfit = {name: options.was_given(name) for name in ("pooling", "on_truncate")}
    unfit["precision"] = options.was_given("precision") and choices.get("rerank") is None
    for name, is_given in unfit.items():
        if is_given:
            raise click.UsageError(
                f"--{name.replace('_', '-')} says how texts are encoded, and --vectors has them encoded "
                "already; leave it out, or name the model with -m to have the vectors checked"
            )
    return None


@contextmanager
def counting_rows(what: str, n_rows: int, show: bool | None = None) -> Iterator[Callable[[int, int], None]]:
    """A bar that counts rows, whatever the steps are that the work is told in."""
    with progress_of(what, show, unit="rows") as tell:
        yield lambda n_done, n_total: tell(round(n_rows * n_done / max(1, n_total)), n_rows)


@contextmanager
def partial_report(*outputs: str | None) -> Iterator[None]:
    """Say where an interrupt has left what was written."""
    try:
        yield
    except KeyboardInterrupt:
        for output in outputs:
            if output is not None and Path(f"{output}.partial").exists():
                click.echo(f"gemel: what was written is kept in {output}.partial", err=True)
        raise


def check_outputs(overwrite: bool, *outputs: str | None) -> None:
    """Refuse files that cannot be written, before anything is read."""
    from gemel.data.results import check_output

    files = [output for output in outputs if output is not None and output != "-"]
    if len({os.path.realpath(file) for file in files}) < len(files):
        raise InvalidInput(f"{files[0]} is named twice; expected a file for each output")
    for file in files:
        check_output(file, overwrite=overwrite)


def check_plot(path: str | None) -> None:
    """Refuse a picture that cannot be drawn, before the work and not after it."""
    from gemel.drawing import picture_format, quiet_style

    if path is not None:
        picture_format(path)
        with quiet_style():  # says what to install
            return


def draw(path: str, corpus: Corpus, others: Corpus | None, threshold: float | None, measure: str) -> None:
    """Write the picture of the similarities of a corpus."""
    from gemel.tasks.histogram import draw_similarities, sample_similarities

    right = None if others is None else others.vectors
    sample = sample_similarities(corpus.vectors, right, measure=measure)
    name = Path(corpus.name).name if others is None else f"{Path(corpus.name).name}, {Path(others.name).name}"
    draw_similarities(sample, threshold=threshold, name=name).save(path)
