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

STATIC_DIM = 256
TRAINING = ("epochs", "batch_size", "learning_rate", "max_minutes", "seed")


@click.command("distil")
@click.argument("model", metavar="MODEL")
@click.option("-o", "--output", metavar="FOLDER", required=True, help="Where the new model goes.")
@click.option("--static", is_flag=True, help="Make a table of tokens, which encodes at memory speed.")
@click.option("--layers", metavar="N", help="Keep so many layers of MODEL, or those named, as in 0,2,5.")
@click.option("--student", metavar="NAME", help="Train this model to imitate MODEL.")
@click.option(
    "--corpus",
    metavar="FILE",
    multiple=True,
    help="Texts like those to be encoded: txt, jsonl, csv, tsv or parquet; FILE:COLUMN,COLUMN names columns. "
    "May be given several times.",
)
@click.option("--column", default="text", show_default=True, help="The column or field that holds the text.")
@click.option(
    "--sentences",
    type=click.IntRange(min=1),
    default=200_000,
    show_default=True,
    help="How many texts of the corpus to learn from at most.",
)
@click.option("--seed", type=int, default=42, show_default=True, help="Of the sample, and of the training.")
@click.option("--dim", type=int, help=f"--static: the length of the new vectors.  [default: {STATIC_DIM}]")
@click.option(
    "--tune/--no-tune",
    default=None,
    help="--static: fit the table to MODEL's vectors of the corpus.  [default: if there is a corpus]",
)
@click.option("--epochs", type=click.IntRange(min=1), help="Through the corpus.  [default: 1]")
@click.option("--batch-size", type=click.IntRange(min=1), help="[default: 128]")
@click.option("--learning-rate", type=float, help="[default: 1e-3 with --layers, 1e-4 with --student]")
@click.option("--max-minutes", type=float, help="End the training after so long.")
@click.option("--validate", metavar="FILE", help="Scored pairs, each 100 steps: the best student is kept.")
@click.option("--resume", is_flag=True, help="Continue an interrupted training, to the same bits.")
@options.on_truncate
@options.compute
@click.option("--overwrite", is_flag=True, help="Replace FOLDER if it is a model.")
def command(model: str, output: str, **choices: Any) -> None:
    """Distil the encoder MODEL into a smaller one in FOLDER, which imitates its vectors.

    With --layers that is a transformer with fewer layers: it starts from layers of MODEL and learns MODEL's
    vectors of the corpus. Half the layers are twice as fast. With --student it starts from another model.

    With --static it is a table with a row for every token of MODEL: no context, and tens of thousands
    of texts a second, for a first pass over very large corpora. Give a corpus of a hundred thousand sentences
    or more: without one, tokens are weighed by their rank in the vocabulary, and nothing is tuned.

    \b
    Examples:
      gemel distil all-MiniLM-L6-v2 --layers 3 --corpus sentences.txt -o minilm-l3
      gemel distil my-model --student small-bert --corpus nli.tsv:premise,hypothesis -o my-small
      gemel distil all-MiniLM-L6-v2 --static --corpus sentences.txt -o minilm-static
      gemel distil my-model --static --dim 128 -o my-static
    """
    kinds = [name for name in ("static", "layers", "student") if choices[name]]
    if len(kinds) != 1:
        raise click.UsageError("say what to distil to: --layers N, --student NAME or --static, one of them")
    _refuse_others(kinds[0], choices)
    from gemel.checkpoint import check_free

    check_free(Path(output).expanduser(), choices["overwrite"])  # now, and not after the work
    began = time.perf_counter()
    line = (_distil_static if choices["static"] else _distil_layers)(model, output, choices)
    seconds = round(time.perf_counter() - began, 3)
    click.echo(json.dumps({"output": output, **line, "seconds": seconds}))


def _refuse_others(kind: str, choices: dict[str, Any]) -> None:
    """Tell of an option that has no meaning for what is made, and of a corpus that is missing."""
    of_tables, of_training = (
        ("dim", "tune"),
        ("epochs", "batch_size", "learning_rate", "max_minutes", "validate"),
    )
    if kind == "static" and choices["resume"]:
        raise click.UsageError("--resume has no meaning with --static, which is made in one go; leave it out")
    for name in of_training if kind == "static" else of_tables:
        if choices[name] is not None:
            raise click.UsageError(f"--{name.replace('_', '-')} has no meaning with --{kind}; leave it out")
    if kind != "static" and choices["on_truncate"] in ("error", "chunk"):
        raise click.UsageError(
            f"--on-truncate {choices['on_truncate']} goes with --static; with --{kind} both models cut long "
            "texts, as the student will: leave it out"
        )
    if not choices["corpus"] and (choices["tune"] or kind != "static"):
        what = "--tune" if kind == "static" else f"--{kind}"
        raise click.UsageError(f"{what} needs sentences to learn from: name a file with --corpus")


def _distil_layers(model: str, output: str, choices: dict[str, Any]) -> dict[str, Any]:
    from gemel.data.plain_texts import TextFile
    from gemel.loading import load_encoder
    from gemel.reproduce.distillation import DistilPlan, distil

    plan = DistilPlan(
        teacher=model,
        corpus=[TextFile.named(name, choices["column"]) for name in choices["corpus"]],
        layers=_layers(choices["layers"]),
        student=choices["student"],
        n_sentences=choices["sentences"],
        validate=None if choices["validate"] is None else {"path": choices["validate"]},
        compute={name: choices[name] for name in ("precision", "threads") if choices[name] is not None},
        training={name: choices[name] for name in TRAINING if choices[name] is not None},
    )
    result = distil(
        plan,
        output,
        device=choices["device"],
        overwrite=choices["overwrite"],
        resume=choices["resume"],
        tell=lambda line: click.echo(line, err=True),
    )
    made = load_encoder(output)
    return {
        "dim": made.dim,
        "steps": result.steps,
        "best_step": result.best_step,
        "validation": result.best_score,
        "fingerprint": made.fingerprint,
    }


def _layers(said: str | None) -> int | tuple[int, ...] | None:
    """A number of layers, or those that are named."""
    if said is None:
        return None
    try:
        numbers = tuple(int(part) for part in said.split(","))
    except ValueError:
        raise click.UsageError(f"--layers is {said!r}; expected a number, or several as in 0,2,5") from None
    return numbers if "," in said else numbers[0]


def _distil_static(model: str, output: str, choices: dict[str, Any]) -> dict[str, Any]:
    from gemel.loading import load_encoder
    from gemel.train.card import base_name
    from gemel.train.static import StaticConfig, distil_static

    corpus = choices["corpus"]
    config = StaticConfig(
        dim=STATIC_DIM if choices["dim"] is None else choices["dim"],
        tunes=bool(corpus) and choices["tune"] is not False,
        n_sentences=choices["sentences"],
        seed=choices["seed"],
    )
    teacher = load_encoder(
        model,
        device=choices["device"],
        precision=choices["precision"],
        threads=choices["threads"],
        on_truncate=choices["on_truncate"],
    )
    with one_truncation_report():
        made = distil_static(teacher, _texts(corpus, choices["column"]), config)
    made.save(output, base_model=base_name(model), overwrite=choices["overwrite"])
    return {
        "dim": made.encoder.dim,
        "tokens": made.encoder.table.n_tokens,
        "texts": made.n_read,
        "tuned_on": made.n_tuned,
        "agreement": None if made.agreement is None else round(made.agreement[1], 4),
        "fingerprint": made.encoder.fingerprint,
    }


def _texts(corpus: tuple[str, ...], column: str) -> Iterator[str] | None:
    """The texts of the corpus as a stream, with a bar while they are read."""
    if not corpus:
        return None
    from gemel.data.plain_texts import TextFile

    files = [TextFile.named(name, column) for name in corpus]

    def stream() -> Iterator[str]:
        with progress_bar(None, "read") as bar:
            for file in files:
                for text in file.texts():
                    yield text
                    bar.update(1)

    return stream()
