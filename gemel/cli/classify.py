"""`gemel classify`: the classes of text pairs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice

import click

from gemel.cli import options
from gemel.errors import InvalidInput

PAIRS_AT_ONCE = 2_048


@click.command("classify")
@click.argument("texts", nargs=-1, metavar="[A B]")
@click.option(
    "--nli", is_flag=True, help="Entailment, neutral or contradiction, with the model's own classifier."
)
@click.option(
    "--examples", metavar="FILE", help="Pairs to classify: tsv, csv, jsonl or parquet, by column names."
)
@click.option(
    "-m", "--model", metavar="NAME", required=True, help="A model trained with the softmax objective."
)
@options.device
def command(texts: tuple[str, ...], nli: bool, examples: str | None, model: str, device: str | None) -> None:
    """Tell which class the pair A, B belongs to, or each pair of a file.

    A model trained with the softmax objective on NLI data keeps its classifier: whether B follows from A
    (entailment), contradicts it, or neither.

    \b
    Examples:
      gemel classify --nli -m out/nli_softmax/model "A man eats." "Nobody is eating."
      gemel classify --nli -m out/nli_softmax/model --examples pairs.tsv > classes.jsonl
    """
    if not nli:
        raise click.UsageError("say --nli: classifying pairs is the only way yet")
    if (len(texts) == 2) == bool(examples):
        raise InvalidInput("give two texts, or --examples FILE")
    from gemel.loading import load_pair_classifier

    classifier = load_pair_classifier(model, device=device)
    pairs = _pairs_of(examples) if examples else iter([(texts[0], texts[1])])
    while batch := list(islice(pairs, PAIRS_AT_ONCE)):
        for (first, second), shares in zip(batch, classifier.probabilities(batch), strict=True):
            scores = {
                name: round(float(share), 4) for name, share in zip(classifier.labels, shares, strict=True)
            }
            line = {"a": first, "b": second, "label": max(scores, key=scores.__getitem__), "scores": scores}
            sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")


def _pairs_of(path: str) -> Iterator[tuple[str, str]]:
    from gemel.data.examples import read_examples

    return zip(*read_examples(path, kind="pairs").columns.values(), strict=True)
