"""Triplets out of NLI: what a premise entails, and beside it what contradicts it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import cycle, repeat
from typing import NamedTuple

from gemel.data.class_names import NLI_LABELS
from gemel.data.examples import Examples
from gemel.errors import InvalidInput


class _Hypotheses(NamedTuple):
    entailed: dict[str, None]  # each once, in their order
    contradicted: dict[str, None]


def contrasted(examples: Examples) -> Examples:
    """A triplet for each entailment whose premise has contradictions, too; these take turns."""
    if examples.kind != "classified pairs" or examples.label_names != NLI_LABELS or examples.labels is None:
        raise InvalidInput(
            f"contrasts are made of pairs with the labels {', '.join(NLI_LABELS)}; "
            f"{examples.origin} holds {examples.kind}: name a file of NLI"
        )
    by_premise: dict[str, _Hypotheses] = defaultdict(lambda: _Hypotheses({}, {}))
    premises, hypotheses = examples.columns.values()
    for premise, hypothesis, label in zip(premises, hypotheses, examples.labels.tolist(), strict=True):
        if NLI_LABELS[label] == "entailment":
            by_premise[premise].entailed[hypothesis] = None
        elif NLI_LABELS[label] == "contradiction":
            by_premise[premise].contradicted[hypothesis] = None
    triplets = [each for premise, own in by_premise.items() for each in _triplets(premise, own)]
    if not triplets:
        raise InvalidInput(
            f"no premise in {examples.origin} has both an entailment and a contradiction; "
            "contrasts need premises that come with both"
        )
    columns = dict(
        zip(("anchor", "positive", "negative_1"), map(list, zip(*triplets, strict=True)), strict=True)
    )
    n_used = len(triplets) + len({(premise, negative) for premise, _, negative in triplets})
    left_out = {**examples.left_out, "no part of a contrast": len(examples) - n_used}
    origin = f"contrasts in {examples.origin}"
    return Examples("triplets", columns, origin=origin, left_out=left_out, files=examples.files)


def _triplets(premise: str, own: _Hypotheses) -> Iterator[tuple[str, str, str]]:
    # Who is said to follow and to contradict, as annotators do not always agree, is neither.
    entailed = [each for each in own.entailed if each not in own.contradicted]
    contradicted = [each for each in own.contradicted if each not in own.entailed]
    return zip(repeat(premise), entailed, cycle(contradicted), strict=False)
