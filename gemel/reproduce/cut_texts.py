"""How many texts of a stage are longer than what its model reads, told before it begins."""

from __future__ import annotations

from itertools import cycle

import numpy as np

from gemel.data.examples import Examples
from gemel.model import CrossEncoder
from gemel.train import CondenserStep, MixedExamples
from gemel.train.steps import Step

MOST_ROWS = 1_000  # enough to see it; reading all of a million would keep everybody waiting


def tell_cut(examples: Examples | MixedExamples, step: Step) -> str | None:
    """One line of what is cut among some of the rows, or None where nothing is."""
    if isinstance(step, CondenserStep):  # which reads windows of whole documents
        return None
    parts = list(examples.parts.values()) if isinstance(examples, MixedExamples) else [examples]
    counts = [_count(part, step, MOST_ROWS // len(parts)) for part in parts]
    n_seen, n_cut = sum(n for n, _ in counts), sum(n for _, n in counts)
    if not n_cut:
        return None
    what = "pairs" if isinstance(step.model, CrossEncoder) else "texts"
    return (
        f"{n_cut:,} of {n_seen:,} {what} looked at ({n_cut / n_seen:.1%}) are longer than the "
        f"{step.model.tokenizer.max_tokens} tokens that the model reads, and are cut; --max-tokens, or "
        "max_tokens in a recipe, sets that"
    )


def _count(examples: Examples, step: Step, at_most: int) -> tuple[int, int]:
    """How many texts, or pairs for a cross-encoder, were looked at, and how many of them are cut."""
    rows = np.unique(np.linspace(0, len(examples) - 1, min(max(1, at_most), len(examples)), dtype=np.int64))
    columns = [[texts[row] for row in rows] for texts in examples.columns.values()]
    model = step.model
    if isinstance(model, CrossEncoder):
        return len(rows), model.tokenizer.pieces(list(zip(*columns, strict=True)))[2]
    before = cycle(getattr(step, "prompts", ()) or [model.prompt])
    texts = [prompt + text for prompt, column in zip(before, columns, strict=False) for text in column]
    return len(texts), len(model.tokenizer.pieces(texts, "", "ignore").cut)
