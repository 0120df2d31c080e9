"""`gemel calibrate`, and what takes its file, as a shell sees them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from stand_ins import sentences
from terminals import lines_of, run


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path, made = tmp_path / "pairs.tsv", sentences(40, seed=1, max_words=8)
    rows = [f"{text}\t{text} .\t1\n" for text in made[:20]]
    rows += [f"{a}\t{b}\t0\n" for a, b in zip(made[:20], made[20:], strict=True)]
    path.write_text("question1\tquestion2\tis_duplicate\n" + "".join(rows), encoding="utf-8")
    return path


def test_the_precision_of_pairs_and_that_of_vectors_have_names_of_their_own(
    pairs: Path, tiny_bert: Path
) -> None:
    (found,) = lines_of("calibrate", pairs, "-m", tiny_bert, "--at-precision", 0.9)
    assert (found["aim"], found["computed_in"]) == ("precision of at least 0.9", "int8")
    assert lines_of("calibrate", pairs, "-m", tiny_bert, "--precision", 0.9) == [found]
    (exact,) = lines_of("calibrate", pairs, "-m", tiny_bert, "--compute-precision", "float32")
    assert (exact["aim"], exact["computed_in"]) == ("best F1", "float32")


@pytest.mark.parametrize("verb", ["mine", "dedupe"])
def test_a_threshold_is_for_vectors_of_the_precision_it_was_found_in(
    pairs: Path, tiny_bert: Path, tmp_path: Path, verb: str
) -> None:
    (tmp_path / "t.txt").write_text("\n".join(sentences(10, max_words=6)), encoding="utf-8")
    run("calibrate", pairs, "-m", tiny_bert, "-o", tmp_path / "c.json")
    taking = (verb, tmp_path / "t.txt", "-m", tiny_bert, "--calibration", tmp_path / "c.json")
    run(*taking)
    told = run(*taking, "--precision", "float32", check=1).stderr
    assert told == (
        "gemel: the calibration was made in int8, and this encoder computes in float32; compute in int8 "
        "(--precision), or calibrate in float32 (--compute-precision)\n"
    )
    older = json.loads((tmp_path / "c.json").read_text("utf-8"))
    del older["computed_in"]
    (tmp_path / "c.json").write_text(json.dumps(older), encoding="utf-8")
    run(*taking, "--precision", "float32")
