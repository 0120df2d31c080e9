"""What stands in training data and in evaluation data alike."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gemel.data.example_files import read_examples
from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.evaluate.contamination import canonical, describe_overlaps, find_overlap, leave_out_overlap
from gemel.evaluate.held_out import HELD_OUT, read_held_out
from gemel.evaluate.sts_sets import STS_YEARS, read_sts


def pairs_of(*rows: tuple[str, str]) -> Examples:
    return Examples("pairs", {"first": [a for a, _ in rows], "second": [b for _, b in rows]})


TRAINING = pairs_of(("A dog runs.", "A cat sleeps!"), ("One", "Two"), ("Three", "Four"))


def test_copies_are_found_whatever_their_order_case_and_punctuation() -> None:
    evaluation = pairs_of(
        ("a  cat, sleeps", "a dog runs"), ("two", "ONE?"), ("one", "three"), ("new", "text")
    )
    (found,) = find_overlap({"test": evaluation}, [TRAINING])
    assert (found.n_shared_pairs, found.n_pairs) == (2, 4)
    assert found.share_of_pairs == 0.5
    # a cat sleeps, a dog runs, one, two, three of seven
    assert (found.n_shared_texts, found.n_texts) == (5, 7)
    assert found.shown == (("a  cat, sleeps", "a dog runs"), ("two", "ONE?"))
    assert found.describe() == (
        "test: 2 of 4 pairs (50.0%) and 5 of 7 texts (71.4%) stand in the training data"
    )
    assert found.to_dict()["share_of_texts"] == pytest.approx(5 / 7)


def test_repeated_rows_count_each_time() -> None:
    (found,) = find_overlap({"test": pairs_of(("one", "two"), ("two", "one"))}, [TRAINING])
    assert (found.n_shared_pairs, found.n_pairs, found.n_texts) == (2, 2, 2)


def test_a_pair_is_found_across_several_training_files_but_never_put_together_from_two() -> None:
    first, second = pairs_of(("a", "x")), pairs_of(("b", "y"))
    sets = {"together": pairs_of(("y", "b")), "apart": pairs_of(("a", "b"))}
    together, apart = find_overlap(sets, iter([first, second]))
    assert (together.n_shared_pairs, apart.n_shared_pairs) == (1, 0)
    assert apart.n_shared_texts == 2


def test_every_two_texts_of_a_triplet_are_a_pair() -> None:
    columns = {"anchor": ["a"], "positive": ["b"], "negative_1": ["c"]}
    (found,) = find_overlap({"test": pairs_of(("c", "b"))}, [Examples("triplets", columns)])
    assert found.n_shared_pairs == 1


def test_texts_of_any_script_keep_their_letters() -> None:
    assert canonical("Ｆｕｌｌ　width, ﬁne!") == "full width fine"
    assert canonical("ＳＴＲＡẞＥ") == "strasse"
    assert canonical("हिन्दी में।") == "हिन्दी में"  # vowel signs are marks, not punctuation
    assert canonical("안녕, 세상!") == canonical("안녕 세상")


def test_plain_english_takes_the_same_way_as_all_other_text() -> None:
    ascii_text = "".join(map(chr, range(128)))
    assert canonical(ascii_text + " é") == canonical(ascii_text) + " é"


def test_texts_of_signs_alone_are_not_all_the_same() -> None:
    assert canonical(":-)") != canonical("???")
    assert canonical(" :-)  ") == canonical(":-)")


def test_an_empty_evaluation_set_is_refused() -> None:
    with pytest.raises(InvalidInput, match="the evaluation set test has no examples"):
        find_overlap({"test": Examples("pairs", {"first": [], "second": []})}, [TRAINING])


def test_a_set_is_wholly_contained_in_itself() -> None:
    scored = Examples("scored pairs", {"first": ["a"], "second": ["b"]}, np.array([0.5], np.float32))
    (found,) = find_overlap({"test": scored}, [scored])
    assert (found.share_of_pairs, found.share_of_texts) == (1, 1)


def test_stsb_was_drawn_from_the_years_before_it(real_data: Path) -> None:
    sets = {each.name: each.pairs for each in read_sts(real_data, STS_YEARS)}
    found = find_overlap(sets, [read_examples(real_data / "stsb" / "train.tsv")])
    assert {each.name: each.n_shared_pairs for each in found} == {
        "STS12": 1_003,
        "STS13": 597,
        "STS14": 1_861,
        "STS15": 1_102,
        "STS16": 197,
    }


def test_rows_with_a_held_out_pair_are_left_out_and_counted() -> None:
    columns = {"anchor": ["a", "d", "g"], "positive": ["b", "e", "h"], "negative_1": ["c", "f", "i"]}
    sets = {"one": pairs_of(("C!", "a")), "other": pairs_of(("h", "nothing else"))}
    kept = leave_out_overlap(Examples("triplets", columns, left_out={"no text": 2}), sets)
    assert kept.columns["anchor"] == ["d", "g"]  # g shares a text with a set, but no pair
    assert kept.left_out == {"no text": 2, "pairs of test sets": 1}


def test_of_texts_alone_those_of_held_out_pairs_are_left_out() -> None:
    texts = Examples("texts", {"text": ["C!", "d", "a", "nothing else"]})
    kept = leave_out_overlap(texts, {"one": pairs_of(("c", "A"))})
    assert kept.columns["text"] == ["d", "nothing else"]
    assert kept.left_out == {"texts of test sets": 2}


def test_the_line_names_what_is_shared_and_what_is_not() -> None:
    found = find_overlap(
        {"seen": pairs_of(("one", "two"), ("a", "b")), "new": pairs_of(("c", "d"))}, [TRAINING]
    )
    assert describe_overlaps(found) == (
        "pairs of test sets in the training data: 1 of 2 of seen; none of new"
    )
    assert describe_overlaps(found, "texts") == (
        "texts of test sets in the training data: 2 of 4 of seen; none of new"
    )
    assert describe_overlaps(found[1:]) == "pairs of test sets in the training data: none of new"


def test_of_the_held_out_sets_those_are_read_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "stsb").mkdir()
    (tmp_path / "stsb/test.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t5\n", encoding="utf-8")
    (tmp_path / "sick").mkdir()
    (tmp_path / "sick/train.tsv").write_text("sentence1\tsentence2\tscore\nc\td\t5\n", encoding="utf-8")
    (found,) = read_held_out(tmp_path).items()  # all of SICK needs three files
    assert found[0] == "STSb"
    assert dict(found[1].columns) == {"first": ["a"], "second": ["b"]}


def test_every_held_out_set_of_the_data_folder_can_be_read(real_data: Path) -> None:
    sets = read_held_out(real_data)
    assert set(HELD_OUT) - set(sets) <= {"KLUE-STS"}
    assert {name: len(sets[name]) for name in ("STS12", "SICK-R (all)", "STSb in other languages")} == {
        "STS12": 3_108,
        "SICK-R (all)": 9_927,
        "STSb in other languages": 15_169,
    }
