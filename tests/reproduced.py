"""Reproductions made by hand, for tests of what shows them."""

from __future__ import annotations

from gemel.evaluate.scores import Scores
from gemel.reproduce.lines import Line, Reproduction
from gemel.reproduce.orderings import orderings
from gemel.reproduce.paper import TABLE_1, TABLE_2, TABLE_6, TABLE_7

_OURS = {
    "STS12": 71.97, "STS13": 76.53, "STS14": 72.19, "STS15": 77.00, "STS16": 74.31, "STSb": 76.99,
    "SICK-R": 72.91, "average": 74.56,
}  # fmt: skip
REASON = "the weights of the large model are not here"


def of_table_1() -> Reproduction:
    """A line beside the paper's, one that is not at hand, and one that the paper does not have."""
    scores = (
        Scores(
            name="STSb",
            metrics={"spearman": 0.7699, "pearson": 0.7412},
            primary="spearman",
            protocol="cosine; the test split",
            n_examples=1379,
            data_hash="d1" * 32,
            fingerprint="f1" * 16,
            engine="native int8",
            interval=(0.74, 0.79),
        ),
    )
    return Reproduction(
        TABLE_1,
        (
            Line("SBERT-NLI-base", TABLE_1.row("SBERT-NLI-base"), "runs/nli", figures=_OURS, scores=scores),
            Line("SBERT-NLI-large", TABLE_1.row("SBERT-NLI-large"), missing=REASON),
            Line("newer", None, "all-MiniLM-L6-v2", "not in the paper", {"STSb": 82.03}),
        ),
    )


def of_table_2() -> Reproduction:
    """Means with a spread, beside the paper's; and one without."""
    base, nli = TABLE_2.row("SBERT-STSb-base"), TABLE_2.row("SBERT-NLI-base")
    return Reproduction(
        TABLE_2,
        (
            Line(nli.name, nli, "runs/nli", figures={"STSb": 76.99}),
            Line(base.name, base, "runs/stsb", "5 seeds", {"STSb": 84.17}, {"STSb": 0.25}),
            Line("SBERT-STSb-large", TABLE_2.row("SBERT-STSb-large"), missing=REASON),
        ),
    )


def of_table_7() -> Reproduction:
    """Speeds: a ratio, and a column that was not measured here."""
    row = TABLE_7.row("SBERT-base, smart batching")
    return Reproduction(TABLE_7, (Line(row.name, row, "runs/nli", figures={"CPU": 415.0}),))


def of_table_6() -> Reproduction:
    """Three lines of the ablation: two that seeds cannot tell apart, and what is said of their order."""
    figures = {"MEAN": (70.0, 80.0), "MAX": (60.0, 65.0), "CLS": (70.5, 78.0)}
    lines = tuple(
        Line(
            f"pooling {name}",
            TABLE_6.row(f"pooling {name}"),
            "raw",
            "6,400 pairs a training, 3 seeds",
            {"NLI": nli, "STSb": stsb},
            {"NLI": 0.5, "STSb": 0.3},
        )
        for name, (nli, stsb) in figures.items()
    )
    return Reproduction(TABLE_6, lines, orderings(TABLE_6, lines))
