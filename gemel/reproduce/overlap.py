"""What a stage is about to learn of the sets that models are measured on, told before it begins."""

from __future__ import annotations

from pathlib import Path

from gemel.data.examples import Examples
from gemel.evaluate.contamination import describe_overlaps, find_overlap
from gemel.evaluate.held_out import find_held_out
from gemel.train import MixedExamples

NOT_LOOKED_FOR = "no test set is at hand, so that none was looked for in the training data; see `gemel data`"


def tell_overlap(examples: Examples | MixedExamples, data: Path) -> str:
    """One line: how much of each test set at hand stands in the examples."""
    held_out = find_held_out(data)
    if not held_out:
        return NOT_LOOKED_FOR
    parts = list(examples.parts.values()) if isinstance(examples, MixedExamples) else [examples]
    pairs = [part for part in parts if len(part.columns) > 1]
    texts = [part for part in parts if len(part.columns) == 1]
    told = [
        describe_overlaps(find_overlap(held_out, pairs), "pairs") if pairs else "",
        describe_overlaps(find_overlap(held_out, texts), "texts") if texts else "",
    ]
    return "; ".join(filter(None, told))
