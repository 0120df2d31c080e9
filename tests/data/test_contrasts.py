"""Triplets out of NLI: every entailment once, beside a contradiction of the same premise."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemel.data.contrasts import contrasted
from gemel.data.example_files import read_examples
from gemel.errors import InvalidInput
from gemel.reproduce.sources import parse_source

ROWS = [
    ("a dog runs", "an animal runs", "entailment", "snli"),
    ("a dog runs", "a cat sleeps", "contradiction", "snli"),
    ("a dog runs", "a dog moves", "entailment", "snli"),
    ("a dog runs", "a brown dog runs", "neutral", "snli"),
    ("it rains", "it is wet", "entailment", "snli"),
    ("snow falls", "it is hot", "contradiction", "snli"),
    ("a man sings", "a man is silent", "contradiction", "sick"),
    ("a man sings", "a man hums", "contradiction", "sick"),
    ("a man sings", "a man hums", "entailment", "sick"),
    ("a man sings", "a person sings", "entailment", "sick"),
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A few pairs with labels and sources."""
    path = tmp_path / "nli.tsv"
    header = ("premise", "hypothesis", "label", "source")
    path.write_text("".join("\t".join(row) + "\n" for row in (header, *ROWS)))
    return path


def test_every_entailment_stands_beside_a_contradiction_of_its_premise(table: Path) -> None:
    made = contrasted(read_examples(table))
    assert made.kind == "triplets"
    assert list(zip(*made.columns.values(), strict=True)) == [
        ("a dog runs", "an animal runs", "a cat sleeps"),
        ("a dog runs", "a dog moves", "a cat sleeps"),
        ("a man sings", "a person sings", "a man is silent"),
    ]
    assert made.left_out == {"no part of a contrast": 5}


def test_a_recipe_asks_for_them_and_leaves_a_source_out(table: Path) -> None:
    values = {"path": table.name, "where": {"source": "!=sick"}, "contrasts": True}
    made = parse_source(values, "mine").read(table.parent)
    assert made.columns["anchor"] == ["a dog runs"] * 2
    assert made.left_out == {"excluded by where": 4, "no part of a contrast": 3}


def test_classes_that_are_numbers_are_given_their_names(table: Path) -> None:
    named = {"0": "entailment", "1": "neutral", "2": "contradiction"}
    text = table.read_text()
    for number, name in named.items():
        text = text.replace(f"\t{name}\t", f"\t{number}\t")
    (table.parent / "hub.tsv").write_text(text)
    values = {"path": "hub.tsv", "label_names": named, "contrasts": True}
    made = parse_source(values, "mine").read(table.parent)
    assert made.columns == contrasted(read_examples(table)).columns


def test_pairs_without_the_labels_of_nli_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "scores.tsv"
    path.write_text("sentence1\tsentence2\tscore\na\tb\t0.5\n")
    with pytest.raises(InvalidInput, match="contrasts are made of pairs with the labels contradiction, ent"):
        contrasted(read_examples(path))


def test_premises_that_never_come_with_both_are_told_so(tmp_path: Path) -> None:
    path = tmp_path / "nli.tsv"
    path.write_text("premise\thypothesis\tlabel\nit rains\tit is wet\tentailment\n")
    with pytest.raises(InvalidInput, match="has both an entailment and a contradiction"):
        contrasted(read_examples(path))
