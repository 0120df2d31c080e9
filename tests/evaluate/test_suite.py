"""Groups of sets by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from stand_ins import ToyEncoder

from gemel.errors import InvalidInput
from gemel.evaluate.suite import GROUPS, NAMES, evaluate_group


def test_an_unknown_group_is_told_which_there_are(toy_encoder: ToyEncoder, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"'glue' is unknown; choose from sts, sts-mteb, .* clustering"):
        evaluate_group(toy_encoder, "glue", tmp_path)


@pytest.mark.parametrize("group", NAMES)
def test_what_is_missing_is_named_before_anything_is_encoded(
    group: str, toy_encoder: ToyEncoder, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match=r"was looked for at .* and is not there; give the folder"):
        evaluate_group(toy_encoder, group, tmp_path)
    assert toy_encoder.n_encoded == 0


def test_a_set_of_another_size_is_refused(toy_encoder: ToyEncoder, tmp_path: Path) -> None:
    for task in GROUPS["clustering"]:
        (tmp_path / task.file).parent.mkdir()
        (tmp_path / task.file).write_text("text\tlabel\na\t0\nb\t1\n", "utf-8")
    with pytest.raises(
        InvalidInput, match=r"all\.tsv holds 2 examples; expected the 12,340 of SearchSnippets"
    ):
        list(evaluate_group(toy_encoder, "clustering", tmp_path))


def test_every_set_that_is_listed_is_in_the_data_folder(real_data: Path, toy_encoder: ToyEncoder) -> None:
    for group in GROUPS:
        evaluate_group(toy_encoder, group, real_data)
    mrpc = GROUPS["duplicates"][2]
    scores = mrpc.evaluate(toy_encoder, mrpc, real_data)
    assert (scores.name, scores.n_examples, len(scores.data_hash)) == ("MRPC", 1_725, 64)
    trec = GROUPS["clustering"][3]
    assert trec.evaluate(toy_encoder, trec, real_data).n_examples == 500
