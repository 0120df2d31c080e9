"""`gemel classify`: the classes of texts, by names or by examples, and of text pairs."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gemel.cli import corpora, options
from gemel.cli.documents import lone_file, names_file
from gemel.cli.reports import one_truncation_report
from gemel.progress import progress_bar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from gemel.data.texts import TextRecord, TextSource
    from gemel.tasks.few_shot import Tune
    from gemel.text_encoder import TextEncoder

AT_ONCE = 2_048
INPUT_FORMATS = ("txt", "jsonl", "csv", "tsv", "parquet")
# way to classify -> the options that only it takes, with their values where they are not given
OWN_OPTIONS: dict[str, dict[str, Any]] = {
    "labels": {"template": (), "temperature": None},
    "fit": {"label_column": None, "cost": None, "tune": False, "tune_pairs": None},
    "nli": {"examples": None, "task": None},
}
# way to classify -> what it does not take, and why
NOT_TAKEN: dict[str, tuple[tuple[str, ...], str]] = {
    "fit": (("scores", "id_column", "input_format"), "which learns from EXAMPLES and classifies nothing"),
    "nli": (
        ("scores", "column", "id_column", "input_format"),
        "which finds the columns of pairs by their usual names and writes all scores",
    ),
}


@click.command("classify")
@click.argument("inputs", nargs=-1, metavar="[INPUT]...")
@click.option("--labels", metavar="A,B,...|FILE", help="Classify by these names of classes alone.")
@click.option(
    "--template",
    multiple=True,
    metavar="TEXT",
    help='What to put each name into, such as "This text is about {}."; may be given several times.',
)
@click.option("--temperature", type=float, help="Lower is surer; the labels stay.  [default: 0.05]")
@click.option("--fit", metavar="EXAMPLES", help="Learn from a file of texts with labels, and save to -o.")
@click.option("--label-column", metavar="NAME", help="The column of EXAMPLES that holds the class.")
@click.option("--cost", type=float, help="How much an example counts against plainness.  [default: 16]")
@click.option("--tune", is_flag=True, help="Tune the encoder on the examples first: minutes, with torch.")
@click.option("--tune-pairs", type=int, metavar="N", help="The most pairs to tune on.  [default: 4096]")
@click.option("--nli", is_flag=True, help="Whether B follows from A, by the model's own classifier.")
@click.option("--examples", metavar="FILE", help="Pairs for --nli: tsv, csv, jsonl or parquet.")
@click.option("--task", metavar="NAME", help="Whose classifier --nli takes, of a model of several tasks.")
@click.option(
    "-o", "--output", metavar="PLACE", help="A .jsonl, .csv, .tsv or .parquet file; with --fit, a folder."
)
@click.option("--scores", is_flag=True, help="Write the score of every class, not only that of the best.")
@click.option("--column", "--text-column", metavar="NAME", help="The column that holds the text.")
@click.option("--id-column", metavar="NAME", help="The column that holds the id.  [default: the row number]")
@click.option(
    "--input-format", type=click.Choice(INPUT_FORMATS), help="What INPUT is.  [default: by its name]"
)
@click.option("--overwrite", is_flag=True, help="Replace PLACE if it exists.")
@click.option(
    "-m",
    "--model",
    metavar="NAME",
    help="What --fit has saved; with --labels or --fit, an encoder; with --nli, a model of softmax, or a "
    "cross-encoder with classes.",
)
@options.on_truncate
@options.compute
def command(inputs: tuple[str, ...], **choices: Any) -> None:
    """Tell the class of each INPUT: of texts, of a file of texts, or of - for standard input.

    With --labels, a text gets the label that it is most like, and no examples are needed. With --fit, a
    classifier learns from examples and is saved to a folder, which -m then names. A lone INPUT that is the
    name of a file is that file.

    \b
    Examples:
      gemel classify --labels sports,politics,science "The match ended in a draw."
      gemel classify --labels sports,politics news.csv --column title -o classes.csv
      gemel classify --fit examples.csv -o intents
      gemel classify -m intents "Where is my card?"
      gemel classify --nli -m out/nli_softmax/model "A man eats." "Nobody is eating."
    """
    way = _way(choices)
    with one_truncation_report():
        {"labels": _by_names, "fit": _fit, "nli": _pairs, "model": _by_examples}[way](inputs, choices)


def _way(choices: Mapping[str, Any]) -> str:
    """Which of the ways to classify is asked for, and nothing besides that it does not take."""
    given = [way for way in OWN_OPTIONS if choices[way]]
    if len(given) > 1:
        raise click.UsageError(f"--{given[0]} and --{given[1]} are two ways to classify; say one")
    if not given and not choices["model"]:
        raise click.UsageError(
            "say --labels A,B,... to classify by names, --fit EXAMPLES to learn from examples, -m FOLDER for "
            "what was learnt, or --nli for pairs"
        )
    way = given[0] if given else "model"
    for other, own in OWN_OPTIONS.items():
        for name, absent in own.items():
            if other != way and choices[name] != absent:
                raise click.UsageError(f"{_spelt(name)} goes with --{other}")
    _check_fits(way, choices)
    return way


def _spelt(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _check_fits(way: str, choices: Mapping[str, Any]) -> None:
    """Refuse what the way to classify would not heed, and a call that lacks what it needs."""
    names, reason = NOT_TAKEN.get(way, ((), ""))
    for name in names:
        if choices[name]:
            raise click.UsageError(f"{_spelt(name)} does not go with --{way}, {reason}; leave it out")
    if choices["tune_pairs"] is not None and not choices["tune"]:
        raise click.UsageError("--tune-pairs goes with --tune")
    if way in ("model", "nli") and choices["on_truncate"] != "warn":
        raise click.UsageError("--on-truncate goes with --labels or --fit, which keeps it with the classes")
    if way == "nli" and not choices["model"]:
        raise click.UsageError(
            "--nli needs -m MODEL: one trained with the softmax objective, or a cross-encoder with classes"
        )
    if way == "fit" and not choices["output"]:
        raise click.UsageError("--fit needs -o FOLDER, where the classifier goes")


def _by_names(inputs: Sequence[str], choices: Mapping[str, Any]) -> None:
    from gemel.tasks.zero_shot import PLACE, TEMPERATURE, ZeroShotClassifier

    labels = _read_labels(choices["labels"])
    texts = _read_inputs(inputs, choices)
    classifier = ZeroShotClassifier(
        _encoder(choices),
        labels,
        template=choices["template"] or PLACE,
        temperature=TEMPERATURE if choices["temperature"] is None else choices["temperature"],
    )
    _write(texts, classifier.labels, classifier.probabilities, choices)


def _by_examples(inputs: Sequence[str], choices: Mapping[str, Any]) -> None:
    from gemel.loading import load_classifier

    texts = _read_inputs(inputs, choices)
    classifier = load_classifier(choices["model"], **_compute(choices))
    _write(texts, classifier.classes_.tolist(), classifier.predict_proba, choices)


def _fit(inputs: Sequence[str], choices: Mapping[str, Any]) -> None:
    from gemel.checkpoint import check_free
    from gemel.checkpoint.resolving import DEFAULT_MODEL
    from gemel.data.labelled import read_labelled
    from gemel.tasks.few_shot import COST, FewShotClassifier

    if inputs:
        raise click.UsageError("--fit only learns; classify with -m FOLDER afterwards")
    name, output = choices["model"], Path(choices["output"]).expanduser()
    check_free(output, choices["overwrite"])  # now, and not after minutes of tuning
    began = time.perf_counter()
    examples = read_labelled(
        choices["fit"],
        text=choices["column"],
        label=choices["label_column"],
        named_by={"text": "--column", "label": "--label-column"},
    )
    labels = [examples.label_names[number] for number in examples.labels]
    is_copied = choices["tune"] or (name is not None and Path(name).expanduser().is_dir())
    with tempfile.TemporaryDirectory(prefix="gemel-tuned-") as folder:
        classifier = FewShotClassifier(
            _encoder(choices),
            cost=COST if choices["cost"] is None else choices["cost"],
            tune=_tuner(choices, Path(folder) / "run") if choices["tune"] else None,
        ).fit(examples.texts, labels)
        encoder_name = None if is_copied else name or DEFAULT_MODEL
        classifier.save(output, encoder_name=encoder_name, overwrite=choices["overwrite"])
        accuracy = classifier.score(examples.texts, labels)
    line = {
        "output": choices["output"],
        "examples": len(examples),
        "classes": len(classifier.classes_),
        "training_accuracy": round(accuracy, 4),
        "fingerprint": classifier.encoder_.fingerprint,
        "seconds": round(time.perf_counter() - began, 3),
    }
    click.echo(json.dumps(line, ensure_ascii=False))


def _tuner(choices: Mapping[str, Any], output: Path) -> Tune:
    """What tunes on the examples, and opens the result as it will be opened later."""
    from gemel.loading import load_encoder
    from gemel.train.few_shot import ContrastiveTuner

    most = ContrastiveTuner.max_pairs if choices["tune_pairs"] is None else choices["tune_pairs"]
    return ContrastiveTuner(most, output=output, open_folder=partial(load_encoder, **_compute(choices)))


def _pairs(inputs: Sequence[str], choices: Mapping[str, Any]) -> None:
    if len(inputs) != (0 if choices["examples"] else 2):
        given = f"{len(inputs)} text(s){' and --examples' if choices['examples'] else ''}"
        raise click.UsageError(f"--nli was given {given}; expected two texts, or --examples FILE alone")
    from gemel.data.results import ResultWriter
    from gemel.loading import load_cross_classifier, load_pair_classifier

    model, compute = choices["model"], _compute(choices)
    crossed = load_cross_classifier(model, **compute) if choices["task"] is None else None
    classifier = crossed or load_pair_classifier(model, task=choices["task"], **compute)
    pairs = _pairs_of(choices["examples"]) if choices["examples"] else iter([(inputs[0], inputs[1])])
    scores = _ScoreColumns(classifier.labels, choices["output"], digits=4)
    columns = {"a": str, "b": str, "label": str, **scores.columns}
    with ResultWriter(choices["output"], columns, overwrite=choices["overwrite"]) as writer:
        while batch := list(islice(pairs, AT_ONCE)):
            shares = classifier.probabilities(batch)
            writer.write(
                (*pair, classifier.labels[row.argmax()], *scores.of(row))
                for pair, row in zip(batch, shares, strict=True)
            )


def _pairs_of(path: str) -> Iterator[tuple[str, str]]:
    from gemel.data.example_files import read_examples

    return zip(*read_examples(path, kind="pairs").columns.values(), strict=True)


# What is read ----------------------------------------------------------------------------------------


def _read_labels(given: str) -> dict[str, list[str]] | list[str]:
    """The classes of a list with commas, of a file with one a line, or of a table of labels and texts."""
    if not names_file(given):
        return [name.strip() for name in given.split(",")]
    from gemel.data.labelled import read_labelled
    from gemel.data.tables import split_suffixes
    from gemel.data.texts import TextSource

    if split_suffixes(given)[0] == "txt":
        return [record.text.strip() for record in TextSource(given).records() if record.text.strip()]
    described = read_labelled(given, named_by={})  # --column is that of INPUT
    texts: dict[str, list[str]] = {name: [] for name in described.label_names}
    for text, number in zip(described.texts, described.labels, strict=True):
        texts[described.label_names[number]].append(text)
    return texts


class _Inputs(NamedTuple):
    """The texts to classify, how many there are where that can be known, and the type of their ids."""

    records: Iterable[TextRecord]
    n_rows: int | None
    id_type: type


def _read_inputs(inputs: Sequence[str], choices: Mapping[str, Any]) -> _Inputs:
    from gemel.data.texts import TextRecord, TextSource

    if not inputs:
        raise click.UsageError("give a text, several, a file of texts, or - for standard input")
    is_file = len(inputs) == 1 and choices["input_format"]
    file = inputs[0] if is_file else lone_file(inputs)
    if file is not None:
        source = TextSource(
            file,
            format=choices["input_format"],
            column=choices["column"] or "text",
            id_column=choices["id_column"],
        )
        is_parquet = str(choices["output"]).lower().endswith(".parquet")
        return _looked_through(source, has_typed_columns=is_parquet)
    if choices["column"] or choices["id_column"] or choices["input_format"]:
        raise click.UsageError("--column, --id-column and --input-format go with a file")
    return _Inputs([TextRecord(row, text) for row, text in enumerate(inputs)], len(inputs), int)


def _looked_through(source: TextSource, *, has_typed_columns: bool) -> _Inputs:
    """What a file holds; a flaw is told before a model is loaded."""
    from gemel.data.results import id_type
    from gemel.data.selection import rereadable

    if has_typed_columns and source.id_column is not None:
        source = click.get_current_context().with_resource(rereadable(source))
    if source.is_stdin or not Path(source.path).is_file():
        return _Inputs(source.records(), None, int if source.id_column is None else str)
    kinds = Counter(id_type([record.id]) for record in source.records())
    return _Inputs(source.records(), kinds.total(), str if kinds[str] else int)


def _compute(choices: Mapping[str, Any]) -> dict[str, Any]:
    return {name: choices[name] for name in ("device", "precision", "threads")}


def _encoder(choices: Mapping[str, Any]) -> TextEncoder:
    from gemel.loading import load_encoder

    return load_encoder(choices["model"], on_truncate=choices["on_truncate"], **_compute(choices))


# What is written -------------------------------------------------------------------------------------


def _write(
    texts: _Inputs,
    labels: Sequence[str] | Sequence[int],
    probabilities: Callable[[list[str]], npt.NDArray[np.floating[Any]]],
    choices: Mapping[str, Any],
) -> None:
    from gemel.data.results import ResultWriter

    output, remaining = choices["output"], iter(texts.records)
    every = _ScoreColumns(labels if choices["scores"] else (), output)
    columns = {"id": texts.id_type, "text": str, "label": str, "score": float}
    shows = sys.stderr.isatty() and (output is not None or not sys.stdout.isatty())
    with (
        corpora.partial_report(output),
        ResultWriter(output, {**columns, **every.columns}, overwrite=choices["overwrite"]) as writer,
        progress_bar(texts.n_rows, "classify", None if shows else False) as bar,
    ):
        while window := list(islice(remaining, AT_ONCE)):
            shares = probabilities([record.text for record in window])
            best = shares.argmax(axis=1).tolist()
            writer.write(
                (*record, labels[place], round(float(row[place]), 6), *every.of(row))
                for record, place, row in zip(window, best, shares, strict=True)
            )
            bar.update(len(window))


class _ScoreColumns:
    """The scores of all classes: an object in JSON lines, a column a class elsewhere; none without labels."""

    def __init__(self, labels: Sequence[str] | Sequence[int], output: str | None, *, digits: int = 6) -> None:
        from gemel.data.results import format_of_results

        self._labels, self._digits = [str(label) for label in labels], digits
        self._is_object = output in (None, "-") or format_of_results(str(output))[0] == "jsonl"
        self.columns: dict[str, type] = {f"score_{label}": float for label in self._labels}
        if labels and self._is_object:
            self.columns = {"scores": dict}

    def of(self, shares: npt.NDArray[np.floating[Any]]) -> list[Any]:
        """What stands in these columns for a row of probabilities."""
        scores = {
            label: round(float(share), self._digits)
            for label, share in zip(self._labels, shares, strict=False)
        }
        return [scores] if self._is_object and scores else list(scores.values())
