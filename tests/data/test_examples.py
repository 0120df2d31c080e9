"""Examples are found by the names of their columns; what is wrong is told by file and line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from gemel.data.class_names import NLI_LABELS
from gemel.data.contrasts import contrasted
from gemel.data.example_files import read_examples
from gemel.data.examples import Examples, yes_as_score
from gemel.data.plain_texts import TextFile, read_plain_texts
from gemel.errors import InvalidInput


@pytest.fixture
def save(tmp_path: Path) -> Any:
    def write(name: str, content: str) -> Path:
        path = tmp_path / name
        path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
        return path

    return write


def labels_of(examples: Examples) -> list[float]:
    assert examples.labels is not None
    values: list[float] = examples.labels.tolist()
    return values


def names_of(examples: Examples) -> list[str]:
    return [examples.label_names[int(label)] for label in labels_of(examples)]


# Columns by name -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "first", "second"),
    [
        ("sentence1\tsentence2", "a", "b"),
        ("sentence2\tsentence1", "b", "a"),
        ("hypothesis\tpremise", "b", "a"),
        ("Sentence_A\tSentence_B", "a", "b"),
        ("positive\tanchor", "b", "a"),
        ("question1\tquestion2", "a", "b"),
        ("answer\tquery", "b", "a"),
        ("text-1\ttext 2", "a", "b"),
    ],
)
def test_columns_are_found_by_name_and_never_by_order(
    save: Any, header: str, first: str, second: str
) -> None:
    examples = read_examples(save("x.tsv", f"{header}\na\tb\n"))
    assert (examples.kind, examples.labels) == ("pairs", None)
    assert dict(examples.columns) == {"first": [first], "second": [second]}


def test_the_kind_is_inferred_from_the_columns(save: Any) -> None:
    kinds = {
        "sentence1\tsentence2\tn\na\tb\t1\n": "pairs",
        "sentence1\tsentence2\tscore\na\tb\t1\n": "scored pairs",
        "premise\thypothesis\tlabel\na\tb\t1\n": "classified pairs",
        "anchor\tpositive\tnegative\na\tb\tc\n": "triplets",
    }
    for content, kind in kinds.items():
        assert read_examples(save("x.tsv", content)).kind == kind


def test_a_named_kind_takes_only_the_columns_it_needs(save: Any) -> None:
    path = save("x.tsv", "anchor\tpositive\tnegative\tscore\na\tb\tc\t0.5\n")
    assert list(read_examples(path, kind="pairs").columns) == ["first", "second"]
    assert labels_of(read_examples(path, kind="scored pairs")) == [0.5]
    assert list(read_examples(path, kind="triplets").columns) == ["anchor", "positive", "negative_1"]


def test_the_caller_can_name_the_columns(save: Any) -> None:
    path = save("x.csv", "s,a,q\n0.25,answer,question\n")
    examples = read_examples(path, columns={"first": "q", "second": "a", "score": "s"})
    assert examples.kind == "scored pairs"
    assert dict(examples.columns) == {"first": ["question"], "second": ["answer"]}
    assert labels_of(examples) == [0.25]
    triplets = read_examples(path, columns={"anchor": "q", "positive": "a", "negative": "s"})
    assert dict(triplets.columns) == {"anchor": ["question"], "positive": ["answer"], "negative_1": ["0.25"]}


def test_a_role_that_the_caller_names_decides_the_kind(save: Any) -> None:
    path = save("x.tsv", "sentence1\tsentence2\tscore\tentailment\na\tb\t1\tNEUTRAL\n")
    examples = read_examples(path, columns={"label": "entailment"})
    assert examples.kind == "classified pairs"
    assert names_of(examples) == ["neutral"]


def test_a_column_that_has_a_role_by_command_has_none_by_name(save: Any) -> None:
    path = save("x.tsv", "sentence1\tsentence2\tlabel\na\tb\t0.5\n")
    assert read_examples(path, columns={"score": "label"}).kind == "scored pairs"


def test_several_negatives_stand_in_the_order_of_their_numbers(save: Any) -> None:
    header = "negative_10\tnegative_2\tquery\tpositive\tnegative_1"
    examples = read_examples(save("x.tsv", f"{header}\nn10\tn2\tq\tp\tn1\n"))
    assert list(examples.columns) == ["anchor", "positive", "negative_1", "negative_2", "negative_10"]
    assert [texts[0] for texts in examples.columns.values()] == ["q", "p", "n1", "n2", "n10"]


WRONG_COLUMNS = {
    "nothing fits": (
        "body\tlabel",
        {},
        r"Columns found: body, label\. Triplets need first, second, negative",
    ),
    "two kinds": ("sentence1\tsentence2\tscore\tlabel", {}, "could be scored pairs or classified pairs; say"),
    "two firsts": (
        "sentence1\tquery\tsentence2",
        {},
        r"first could be 'sentence1' or 'query'; say which with",
    ),
    "one name twice": ("sentence1\tsentence1\tsentence2", {}, "either column 'sentence1'"),
    "two negatives": ("anchor\tpositive\tnegative\thard_negative", {}, "negative_1 could be 'negative' or"),
    "a text beside half a pair": ("query\ttext", {}, "no columns that make examples"),
    "no negative": ("anchor\tpositive", {"kind": "triplets"}, "no column for negative, as triplets need"),
    "no score": ("sentence1\tsentence2", {"kind": "scored pairs"}, "no column for score"),
    "unknown kind": ("sentence1\tsentence2", {"kind": "quads"}, "kind is 'quads'; expected one of: pairs"),
    "unknown role": ("sentence1\tsentence2", {"columns": {"left": "sentence1"}}, "'left', which is no role"),
    "unknown column": (
        "sentence1\tsentence2",
        {"columns": {"score": "s"}},
        "no column 's' to be score; it has",
    ),
    "idle role": (
        "sentence1\tsentence2\ts",
        {"columns": {"score": "s"}, "kind": "pairs"},
        "columns names a score, and pairs have none",
    ),
    "unknown where": ("sentence1\tsentence2", {"where": {"lang": "en"}}, "where asks for the column 'lang'"),
}


@pytest.mark.parametrize("flaw", WRONG_COLUMNS)
def test_columns_that_do_not_tell_are_refused_with_what_was_found(save: Any, flaw: str) -> None:
    header, options, message = WRONG_COLUMNS[flaw]
    with pytest.raises(InvalidInput, match=message) as caught:
        read_examples(save("x.tsv", f"{header}\n" + "a\t" * header.count("\t") + "a\n"), **options)
    assert "\n" not in str(caught.value)


# Texts alone -----------------------------------------------------------------------------------------


def test_a_plain_file_holds_a_text_a_line(save: Any) -> None:
    examples = read_examples(save("x.txt", "One sentence.\n\nAnother, with \ta tab.\r\nlast"))
    assert examples.kind == "texts"
    assert examples.columns == {"text": ["One sentence.", "Another, with \ta tab.", "last"]}
    assert read_examples(save("y.txt", "a\nb\nc\n"), limit=2).columns["text"] == ["a", "b"]


def test_texts_are_read_from_tables_with_or_without_classes(save: Any) -> None:
    path = save("x.tsv", "id\ttext\tlabel\n1\tmy card?\tcard\n2\thello\tgreeting\n")
    examples = read_examples(path)
    assert (examples.kind, examples.columns) == ("classified texts", {"text": ["my card?", "hello"]})
    assert (labels_of(examples), examples.label_names) == ([0, 1], ("card", "greeting"))
    assert read_examples(path, kind="texts").labels is None
    assert read_examples(save("y.tsv", "sentence\tyear\na\t1\n")).kind == "texts"
    named = read_examples(save("z.tsv", "query\tbody\na\tb\n"), columns={"text": "body"})
    assert (named.kind, named.columns) == ("texts", {"text": ["b"]})


def test_columns_of_pairs_go_before_a_column_of_texts(save: Any) -> None:
    assert read_examples(save("x.tsv", "text\tpremise\thypothesis\na\tb\tc\n")).kind == "pairs"


def test_many_classes_are_told_in_few_words(save: Any) -> None:
    rows = "".join(f"a\tclass {number:02}\n" for number in range(20))
    told = read_examples(save("x.tsv", f"text\tlabel\n{rows}")).describe()
    assert told.endswith("class 08 5%, class 09 5%, 10 more classes")


# Labels and scores -----------------------------------------------------------------------------------


def test_nli_labels_have_the_order_of_sentence_bert(save: Any) -> None:
    path = save("x.tsv", "premise\thypothesis\tlabel\na\tb\tneutral\nc\td\tentailment\ne\tf\tcontradiction\n")
    examples = read_examples(path)
    assert examples.label_names == ("contradiction", "entailment", "neutral")
    assert labels_of(examples) == [2, 1, 0]
    assert examples.labels is not None
    assert examples.labels.dtype == np.int64


def test_a_part_of_an_nli_file_has_the_same_classes_as_the_whole(save: Any) -> None:
    path = save("x.tsv", "premise\thypothesis\tlabel\na\tb\tneutral\nc\td\tentailment\n")
    assert read_examples(path, limit=1).label_names == NLI_LABELS
    assert labels_of(read_examples(path)) == [2, 1]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["yes", "no", "yes"], ("no", "yes")),
        (["10", "2", "0"], ("0", "2", "10")),
        (["not_entailment", "entailment"], ("entailment", "not_entailment")),
        (["ENTAILMENT", "Neutral", "contradiction"], NLI_LABELS),
    ],
)
def test_other_labels_are_sorted(save: Any, labels: list[str], names: tuple[str, ...]) -> None:
    rows = "".join(f"a\tb\t{label}\n" for label in labels)
    examples = read_examples(save("x.tsv", f"sentence1\tsentence2\tlabel\n{rows}"))
    assert examples.label_names == names
    assert names_of(examples) == [label.lower() for label in labels]


def test_labels_of_json_may_be_numbers(save: Any) -> None:
    rows = [{"sentence1": "a", "sentence2": "b", "label": label} for label in (1, 0, True, 2.0)]
    examples = read_examples(save("x.jsonl", "\n".join(map(json.dumps, rows))))
    assert names_of(examples) == ["1", "0", "1", "2"]


def test_classes_of_another_file_can_be_given(save: Any) -> None:
    path = save("x.tsv", "sentence1\tsentence2\tlabel\na\tb\tcat\n")
    examples = read_examples(path, label_names=["dog", "cat"])
    assert (examples.label_names, labels_of(examples)) == (("dog", "cat"), [1])
    with pytest.raises(InvalidInput, match=r"line 2: the label 'cat' is unknown; expected one of dog, or"):
        read_examples(path, label_names=["dog"])


def test_what_labels_stand_for_can_be_given(save: Any) -> None:
    path = save("x.tsv", "premise\thypothesis\tlabel\na\tb\t2\nc\td\t0\ne\tf\t-1\n")
    names = {"0": "entailment", "1": "neutral", "2": "contradiction"}
    examples = read_examples(path, label_names=names)
    assert (examples.label_names, labels_of(examples)) == (NLI_LABELS, [0, 1])
    assert examples.left_out == {"no gold label": 1}
    words = save("y.tsv", "premise\thypothesis\tlabel\na\tb\tneutral\nc\td\t0\n")
    assert names_of(read_examples(words, label_names=names)) == ["neutral", "entailment"]
    with pytest.raises(InvalidInput, match=r"line 2: the label '2' is unknown; expected one of 0, 1, or say"):
        read_examples(path, label_names={"0": "no", "1": "yes"})


def test_classes_are_put_into_another_order(save: Any) -> None:
    examples = read_examples(save("x.tsv", "sentence1\tsentence2\tlabel\na\tb\tcat\nc\td\tdog\n"))
    other = examples.with_label_names(["emu", "dog", "cat"])
    assert (names_of(other), labels_of(other)) == (names_of(examples), [2, 1])
    with pytest.raises(InvalidInput, match="the label 'cat' is unknown; expected one of dog"):
        examples.with_label_names(["dog"])


def test_scores_within_0_and_1_are_taken_as_they_are(save: Any) -> None:
    examples = read_examples(save("x.tsv", "sentence1\tsentence2\tscore\na\tb\t0\nc\td\t0.75\n"))
    assert labels_of(examples) == [0, 0.75]
    assert examples.labels is not None
    assert examples.labels.dtype == np.float32


def test_scores_of_a_named_range_are_brought_to_0_and_1(save: Any) -> None:
    path = save("x.tsv", "sentence1\tsentence2\tscore\na\tb\t1\nc\td\t4\ne\tf\t5\n")
    assert labels_of(read_examples(path, score_range=(1, 5))) == [0, 0.75, 1]
    assert labels_of(read_examples(path, score_range=(0, 5))) == pytest.approx([0.2, 0.8, 1])


def test_scores_of_an_unknown_range_are_refused(save: Any) -> None:
    path = save("x.tsv", "sentence1\tsentence2\tscore\na\tb\t1\nc\td\t4\ne\tf\t-2\n")
    with pytest.raises(InvalidInput, match=r"line 3: the score is 4, .* run from -2 to 4.*score_range"):
        read_examples(path, skip_bad_rows=True)
    for flaw in ((5, 0), (0, float("nan"))):
        with pytest.raises(InvalidInput, match=r"score_range is .*expected \(lowest, highest\)"):
            read_examples(path, score_range=flaw)


def test_scores_of_the_sts_benchmark_are_0_to_5_even_where_all_are_low(save: Any) -> None:
    header = "genre\tyear\tsentence1\tsentence2\tscore\n"
    path = save("x.tsv", f"{header}g\t2012\ta\tb\t1.0\n")
    assert labels_of(read_examples(path)) == pytest.approx([0.2])
    again = save("y.tsv", header + "g\t2012\ta\tb\t0.9\n" * 100)
    with pytest.raises(InvalidInput, match=r"none above 1; say which it is with score_range"):
        read_examples(again)
    assert labels_of(read_examples(again, score_range=(0, 1)))[0] == pytest.approx(0.9)


def test_a_score_under_the_name_of_a_label_is_pointed_out(save: Any) -> None:
    path = save("x.tsv", "sentence1\tsentence2\tlabel\na\tb\t3.8\n")
    with pytest.raises(
        InvalidInput,
        match=r"line 2: the label 3\.8 looks like a score; say so with --column score=label,",
    ):
        read_examples(path)


# Rows ------------------------------------------------------------------------------------------------


def test_where_keeps_or_leaves_out_the_rows_of_a_value(save: Any) -> None:
    path = save("x.tsv", "premise\thypothesis\tsource\na\tb\tsick\nc\td\tsnli\n\te\tsick\n")
    without = read_examples(path, where={"source": "!=sick"})
    assert without.columns["first"] == ["c"]
    assert without.left_out == {"excluded by where": 2}
    assert read_examples(path, where={"source": "snli"}).columns["first"] == ["c"]
    numbers = save("x.jsonl", '{"premise": "a", "hypothesis": "b", "n": 1}\n')
    assert len(read_examples(numbers, where={"n": "1"})) == 1
    with pytest.raises(InvalidInput, match=r"holds no pairs \(left out: 1 excluded by where\)"):
        read_examples(numbers, where={"n": "!=1"})


@pytest.mark.parametrize("form", ["JSON booleans", "JSON floats", "parquet", "CSV floats", "CSV words"])
def test_where_knows_a_truth_or_a_whole_number_however_a_file_spells_it(
    save: Any, tmp_path: Path, form: str
) -> None:
    is_number = form in ("JSON floats", "parquet", "CSV floats")
    cells: list[Any] = [1.0, 0.0, 1.0] if is_number else [True, False, True]
    columns: dict[str, list[Any]] = {
        "sentence1": ["a", "b", "c"],
        "sentence2": ["d", "e", "f"],
        "same": cells,
    }
    rows = list(zip(*columns.values(), strict=True))
    if form == "parquet":
        path = tmp_path / "x.parquet"
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
    elif form.startswith("JSON"):
        objects = [dict(zip(columns, row, strict=True)) for row in rows]
        path = save("x.jsonl", "".join(json.dumps(each) + "\n" for each in objects))
    else:
        path = save("x.csv", "\n".join(",".join(map(str, row)) for row in [tuple(columns), *rows]) + "\n")
    for yes, no in (("1", "0"), ("1.0", "0.0"), ("true", "false"), ("True", "FALSE")):
        for condition in (yes, f"!={no}"):
            found = read_examples(path, kind="pairs", where={"same": condition})
            assert found.columns["first"] == ["a", "c"], condition
        for condition in (no, f"!={yes}"):
            found = read_examples(path, kind="pairs", where={"same": condition})
            assert found.columns["first"] == ["b"], condition


def test_where_tells_other_numbers_apart(save: Any) -> None:
    values = {"c": 10, "d": 1.5, "e": None, "f": "x0"}
    rows = [{"premise": text, "hypothesis": "b", "n": value} for text, value in values.items()]
    path = save("x.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    for wanted, first in (("10", "c"), ("10.0", "c"), ("1.5", "d"), ("", "e"), ("x0", "f")):
        assert read_examples(path, where={"n": wanted}).columns["first"] == [first]
    for absent in ("1", "0", "true", "false"):
        assert len(read_examples(path, where={"n": f"!={absent}"})) == 4


def test_several_conditions_on_a_column_all_count(save: Any) -> None:
    path = save("x.tsv", "premise\thypothesis\tsource\na\tb\tsick\nc\td\tsnli\ne\tf\tmnli\n")
    assert read_examples(path, where={"source": ["!=sick", "!=snli"]}).columns["first"] == ["e"]
    assert read_examples(path, where={"source": ["snli", "!=sick"]}).columns["first"] == ["c"]
    with pytest.raises(InvalidInput, match=r"holds no pairs \(left out: 3 excluded by where\)"):
        read_examples(path, where={"source": ["sick", "snli"]})


def test_limit_takes_the_first_good_rows_and_reads_no_further(save: Any) -> None:
    path = save("x.tsv", "sentence1\tsentence2\na\tb\nc\td\n\tbad\n")
    assert read_examples(path, limit=2).columns["first"] == ["a", "c"]
    with pytest.raises(InvalidInput, match="limit is 0; expected at least 1"):
        read_examples(path, limit=0)


HEADER = "sentence1\tsentence2\tscore"
BAD_ROWS = {
    "empty text": (HEADER, "a\t \t1", "line 3: sentence2 is empty; expected a text"),
    "no score": (HEADER, "a\tb\tnan", "line 3: the score is 'nan'; expected a finite number"),
    "score out of range": (HEADER, "a\tb\t6", "line 3: the score is 6; expected 0 to 5"),
    "wrong number of columns": (HEADER, "a\tb", r"line 3: the row has 2 column\(s\); expected 3"),
    "no label": ("premise\thypothesis\tlabel", "a\tb\t", "line 3: the label is ''; expected the name"),
}


@pytest.mark.parametrize("reason", BAD_ROWS)
def test_a_bad_row_is_named_by_line_or_counted(save: Any, reason: str) -> None:
    header, row, message = BAD_ROWS[reason]
    path = save("x.tsv", f"{header}\na\tb\t1\n{row}\nc\td\t2\n")
    options: dict[str, Any] = {"score_range": (0, 5)}
    with pytest.raises(InvalidInput, match=message) as caught:
        read_examples(path, **options)
    assert str(path) in str(caught.value)
    examples = read_examples(path, **options, skip_bad_rows=True)
    assert examples.columns["first"] == ["a", "c"]
    assert examples.left_out == {reason: 1}
    assert f"left out: 1 {reason}" in examples.describe()


JSON_FLAWS = {
    "no text": ({"sentence1": 3, "sentence2": "b", "score": 1}, "sentence1 is of type int; expected a text"),
    "missing column": ({"sentence1": "a", "score": 1}, r"has no 'sentence2' \(found: sentence1, score\)"),
    "no score": ({"sentence1": "a", "sentence2": "b", "score": None}, "the score is None; expected a finite"),
}


@pytest.mark.parametrize("reason", JSON_FLAWS)
def test_a_bad_object_is_named_by_line_or_counted(save: Any, reason: str) -> None:
    flawed, message = JSON_FLAWS[reason]
    good = {"sentence1": "a", "sentence2": "b", "score": 1}
    path = save("x.jsonl", "".join(json.dumps(row) + "\n" for row in (good, flawed, good)))
    with pytest.raises(InvalidInput, match=f"line 2: .*{message}"):
        read_examples(path)
    examples = read_examples(path, skip_bad_rows=True)
    assert (len(examples), examples.left_out) == (2, {reason: 1})


def test_a_label_beside_the_three_of_nli_is_unknown(save: Any) -> None:
    rows = "".join(f"a\tb\t{label}\n" for label in (*NLI_LABELS, "entailmnet"))
    path = save("x.tsv", f"premise\thypothesis\tlabel\n{rows}")
    with pytest.raises(
        InvalidInput, match=r"line 5: the label 'entailmnet' is unknown; expected one of contra"
    ):
        read_examples(path)
    examples = read_examples(path, skip_bad_rows=True)
    assert (labels_of(examples), examples.left_out) == ([0, 1, 2], {"unknown label": 1})
    assert all(len(texts) == 3 for texts in examples.columns.values())


def test_a_limit_counts_rows_whose_label_is_known(save: Any) -> None:
    labels = ["entailment", "other", "neutral", "contradiction", "neutral", "neutral"]
    path = save("x.tsv", "premise\thypothesis\tlabel\n" + "".join(f"a\tb\t{each}\n" for each in labels))
    examples = read_examples(path, limit=4, skip_bad_rows=True)
    assert (len(examples), examples.left_out) == (4, {"unknown label": 1})


@pytest.mark.parametrize("limit", [None, 4])
def test_a_class_beside_the_three_of_nli_can_be_named(save: Any, limit: int | None) -> None:
    path = save("x.tsv", "premise\thypothesis\tlabel\n" + "".join(f"a\tb\t{each}\n" for each in "0123"))
    names = {"0": "entailment", "1": "neutral", "2": "contradiction", "3": "other"}
    examples = read_examples(path, label_names=names, limit=limit)
    assert names_of(examples) == list(names.values())


def test_texts_have_the_classes_that_they_have(save: Any) -> None:
    rows = "".join(f"a\t{label}\n" for label in (*NLI_LABELS, "irony"))
    assert names_of(read_examples(save("x.tsv", f"text\tlabel\n{rows}"))) == [*NLI_LABELS, "irony"]
    with pytest.raises(InvalidInput, match=r"1\.5 looks like a score; a text alone has a class: name the"):
        read_examples(save("y.tsv", "text\tlabel\na\t1.5\nb\t2\n"))


def test_a_file_without_examples_is_refused(save: Any) -> None:
    for empty in ("x.tsv", "x.csv", "x.jsonl"):
        with pytest.raises(InvalidInput, match=rf"{empty} is empty; expected rows, and names for"):
            read_examples(save(empty, ""))
    with pytest.raises(InvalidInput, match=r"holds no pairs \(left out: none\); expected at least one row"):
        read_examples(save("x.tsv", "sentence1\tsentence2\n"))
    with pytest.raises(InvalidInput, match=r"holds no pairs \(left out: 1 empty text\)"):
        read_examples(save("x.tsv", "sentence1\tsentence2\na\t\n"), skip_bad_rows=True)
    with pytest.raises(InvalidInput, match=r"cannot read .*nowhere\.tsv: No such file"):
        read_examples("nowhere.tsv")
    with pytest.raises(InvalidInput, match=r"has an unknown suffix; expected \.tsv, \.csv"):
        read_examples(save("x.xlsx", ""))


def test_a_folder_and_other_separators_are_told_as_such(save: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is a folder; expected a file of examples"):
        read_examples(tmp_path)
    with pytest.raises(InvalidInput, match=r"one column, 'anchor;positive'; it seems to be separated by ';'"):
        read_examples(save("x.csv", "anchor;positive\na;b\n"))
    with pytest.raises(InvalidInput, match=r"seems to be separated by a tab, and \.csv is read by commas"):
        read_examples(save("y.csv", "anchor\tpositive\na\tb\n"))


def test_every_format_holds_the_same_examples(save: Any, tmp_path: Path) -> None:
    rows = [("a, b", 'say "hi"', 0.5), ("naïve", "日本", 1.0)]
    columns = {name: [row[at] for row in rows] for at, name in enumerate(("sentence1", "sentence2", "score"))}
    objects = [dict(zip(columns, row, strict=True)) for row in rows]
    lines = "".join("\t".join(map(str, row)) + "\n" for row in rows)
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "x.parquet")
    paths = [
        save("x.tsv", f"{HEADER}\n{lines}"),
        save("x.tsv.gz", f"{HEADER}\n{lines}"),
        save("x.csv", 'score,sentence2,sentence1\n0.5,"say ""hi""","a, b"\n1.0,日本,naïve\n'),
        save("x.jsonl", "".join(json.dumps(each) + "\n" for each in objects)),
        tmp_path / "x.parquet",
    ]
    for path in paths:
        examples = read_examples(path)
        assert dict(examples.columns) == {"first": columns["sentence1"], "second": columns["sentence2"]}
        assert labels_of(examples) == [0.5, 1.0]


# Official layouts ------------------------------------------------------------------------------------

SNLI = [
    {
        "annotator_labels": ["neutral"],
        "captionID": "1#4",
        "gold_label": label,
        "pairID": "1#4r1n",
        "sentence1": f"A person {number}.",
        "sentence1_parse": "(ROOT ...)",
        "sentence2": f"Someone {number}.",
    }
    for number, label in enumerate(["neutral", "-", "entailment", "contradiction"])
]


def test_official_snli_json_is_read_without_the_rows_that_have_no_consensus(save: Any) -> None:
    path = save("snli_1.0_dev.jsonl", "".join(json.dumps(row) + "\n" for row in SNLI))
    examples = read_examples(path)
    assert names_of(examples) == ["neutral", "entailment", "contradiction"]
    assert examples.columns["second"] == ["Someone 0.", "Someone 2.", "Someone 3."]
    assert examples.left_out == {"no gold label": 1}


@pytest.mark.parametrize("tail", ["\t\t\t\t", ""])
def test_official_nli_txt_is_split_at_tabs_alone(save: Any, tail: str) -> None:
    header = (
        "gold_label\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse\t"
        "sentence1\tsentence2\tpromptID\tpairID\tgenre\tlabel1\tlabel2\tlabel3\tlabel4\tlabel5\n"
    )
    row = f'neutral\t( a )\t( b )\t(ROOT a)\t(ROOT b)\tSay "a\tb\t1\t1n\tfiction\tneutral{tail}\n'
    examples = read_examples(save("multinli_1.0_train.txt", header + row + "-" + row[7:]))
    assert dict(examples.columns) == {"first": ['Say "a'], "second": ["b"]}
    assert (names_of(examples), examples.left_out) == (["neutral"], {"no gold label": 1})


def test_the_official_sts_benchmark_has_tabs_and_no_header_and_at_times_licences(save: Any) -> None:
    lines = [
        'main-captions\tMSRvid\t2012test\t0001\t5.000\tA "plane, taking off.\tAn air plane.',
        "main-news\theadlines\t2013\t0002\t2.5\tOne.\tTwo.\thttp://licence\thttp://other",
    ]
    path = save("sts-train.csv", "".join(f"{line}\n" for line in lines))
    examples = read_examples(path)
    assert examples.kind == "scored pairs"
    assert examples.columns["first"] == ['A "plane, taking off.', "One."]
    assert labels_of(examples) == [1, 0.5]
    assert len(read_examples(path, where={"genre": "main-news"})) == 1
    short = save("sts-dev.csv", f"{lines[0]}\nmain-news\theadlines\t2013\t0002\t2.5\tOne.\n")
    with pytest.raises(InvalidInput, match=r"sts-dev\.csv, line 2: the row has no 'sentence2'"):
        read_examples(short)


# In memory -------------------------------------------------------------------------------------------


def test_taking_rows_takes_texts_and_labels_together() -> None:
    first, second = [f"a{n}" for n in range(5)], [f"b{n}" for n in range(5)]
    examples = Examples("scored pairs", {"first": first, "second": second}, np.arange(5, dtype=np.float32))
    for taken in (examples.take([3, 1]), examples.take(np.array([3, 1])), examples[3::-2]):
        assert dict(taken.columns) == {"first": ["a3", "a1"], "second": ["b3", "b1"]}
        assert labels_of(taken) == [3, 1]
    assert len(examples[:0]) == 0
    assert examples[:0].describe() == "0 scored pairs from memory"


def test_a_description_is_one_line_that_tells_what_was_understood(save: Any) -> None:
    path = save("x.tsv", "premise\thypothesis\tlabel\na\tb\tneutral\nc\td\tneutral\n")
    assert read_examples(path).describe() == (
        f"2 classified pairs from {path} (first = premise, second = hypothesis, label = label); "
        "contradiction 0%, entailment 0%, neutral 100%"
    )
    path = save("x.tsv", "sentence1\tsentence2\tverdict\na\tb\t1\n")
    assert read_examples(path).describe().endswith("second = sentence2; not used: verdict)")


TWO: dict[str, list[str]] = {"first": ["a"], "second": ["b"]}
FLAWED: dict[str, tuple[tuple[Any, ...], str]] = {
    "uneven": (("pairs", {"first": ["a"], "second": []}), "expected 2 columns of one length"),
    "no columns": (("pairs", {}), "expected 2 columns of one length"),
    "two of three": (("triplets", TWO), "expected 3 or more columns"),
    "three of two": (("pairs", {**TWO, "third": ["c"]}), "expected 2 columns"),
    "unasked labels": (
        ("pairs", TWO, np.zeros(1, np.float32)),
        "given 1 labels, float32; expected no labels",
    ),
    "no labels": (("scored pairs", TWO), "given no labels; expected 1 labels, float32"),
    "doubles": (("scored pairs", TWO, np.zeros(1)), "given 1 labels, float64; expected 1 labels, float32"),
    "too many": (
        ("classified pairs", TWO, np.zeros(2, np.int64), ("x",)),
        "given 2 labels, int64; expected 1",
    ),
    "nan": (("scored pairs", TWO, np.full(1, np.nan, np.float32)), "NaN or infinite"),
    "no such class": (("classified pairs", TWO, np.array([1]), ("x",)), "classes run from 1 to 1; expected"),
    "kind": (("quads", TWO), "kind is 'quads'"),
}


@pytest.mark.parametrize("flaw", FLAWED)
def test_examples_that_do_not_fit_their_kind_are_refused(flaw: str) -> None:
    arguments, message = FLAWED[flaw]
    with pytest.raises(InvalidInput, match=message):
        Examples(*arguments)


# Real files ------------------------------------------------------------------------------------------


def test_the_real_nli_mix_is_read_without_sick(real_data: Path) -> None:
    examples = read_examples(real_data / "nli_mix" / "train.tsv.gz", where={"source": "!=sick"})
    assert (examples.kind, examples.label_names) == ("classified pairs", NLI_LABELS)
    assert len(examples) + examples.left_out["excluded by where"] == 234_427
    triplets = read_examples(real_data / "nli_mix" / "triplets.tsv.gz")
    assert list(triplets.columns) == ["anchor", "positive", "negative_1"]
    assert len(triplets) == 45_659


@pytest.mark.parametrize(("part", "n_pairs"), [("train", 5_749), ("dev", 1_500), ("test", 1_379)])
def test_the_real_sts_benchmark_has_scores_from_0_to_1(real_data: Path, part: str, n_pairs: int) -> None:
    examples = read_examples(real_data / "stsb" / f"{part}.tsv")
    assert (examples.kind, len(examples), examples.left_out) == ("scored pairs", n_pairs, {})
    assert (min(labels_of(examples)), max(labels_of(examples))) == (0, 1)


def test_real_duplicates_and_real_labels_are_told_apart(real_data: Path) -> None:
    assert read_examples(real_data / "quora_duplicates_positive" / "all.tsv.gz").kind == "pairs"
    sample = read_examples(real_data / "quora_pairs_sample" / "sample.tsv")
    assert (sample.kind, sample.label_names, len(sample)) == ("classified pairs", ("0", "1"), 6_493)
    assert len(read_examples(real_data / "snli" / "dev.tsv")) == 9_842


# Names and labels that others use -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ("sentence1\tsentence2\tscores", "scored pairs"),
        ("sentence1\tsentence2\tlabels", "classified pairs"),
        ("text\tcategory\tid", "classified texts"),
        ("text\tid\tintent", "classified texts"),
        ("query\tpassage\tcategory", "pairs"),  # a topic of both
    ],
)
def test_labels_under_other_names(save: Any, header: str, kind: str) -> None:
    assert read_examples(save("x.tsv", f"{header}\na\t1\t0\nb\t0\t1\n")).kind == kind


def test_a_label_of_yes_and_no_can_be_a_score(save: Any) -> None:
    file = save("x.tsv", "query\tpassage\tlabel\na\tb\t1\nc\td\t0\n")
    assert labels_of(read_examples(file, kind="scored pairs")) == [1.0, 0.0]


def test_what_has_no_gold_label_on_the_hub_is_left_out(save: Any) -> None:
    rows = "a\tb\t-1\nc\td\t0\ne\tf\t1\ng\th\t2\n"
    examples = read_examples(save("x.tsv", f"premise\thypothesis\tlabel\n{rows}"))
    assert examples.label_names == ("0", "1", "2")
    assert examples.columns["first"] == ["c", "e", "g"]
    assert examples.left_out == {"no gold label": 1}
    moods = "a\tb\t-1\nc\td\t0\ne\tf\t1\n"  # where -1 is a class like others
    examples = read_examples(save("x.tsv", f"premise\thypothesis\tlabel\n{moods}"))
    assert examples.label_names == ("-1", "0", "1")


HUB_ROWS = "a\tb\t-1\nc\td\t0\ne\tf\t-1\ng\th\t1\ni\tj\t0\nk\tl\t2\nm\tn\t1\n"


@pytest.mark.parametrize(
    ("limit", "firsts", "n_left_out"), [(1, "c", 1), (2, "cg", 2), (4, "cgik", 2), (9, "cgikm", 2)]
)
def test_a_limit_counts_rows_with_gold_labels(save: Any, limit: int, firsts: str, n_left_out: int) -> None:
    examples = read_examples(save("x.tsv", f"premise\thypothesis\tlabel\n{HUB_ROWS}"), limit=limit)
    assert examples.columns["first"] == list(firsts)
    assert "-1" not in examples.label_names
    assert examples.left_out == {"no gold label": n_left_out}


def test_a_limit_takes_minus_one_for_a_class_where_it_is_one(save: Any) -> None:
    moods = save("x.tsv", "premise\thypothesis\tlabel\na\tb\t-1\nc\td\t0\ne\tf\t1\n")
    assert names_of(read_examples(moods, limit=2)) == ["-1", "0"]
    long = "a\tb\t-1\nc\td\t0\n\tbad\t1\n" + "e\tf\t1\n" * 1_000 + "g\th\t2\n"  # nobody asked for the bad row
    assert names_of(read_examples(save("x.tsv", f"premise\thypothesis\tlabel\n{long}"), limit=1)) == ["-1"]


def test_a_limit_holds_where_minus_one_turns_out_to_be_a_class(save: Any) -> None:
    labels = ["0", "1", "2", *["-1"] * 5, "3", "0"]
    rows = "".join(f"{place}\tb\t{label}\n" for place, label in enumerate(labels))
    examples = read_examples(save("x.tsv", f"premise\thypothesis\tlabel\n{rows}"), limit=6)
    assert names_of(examples) == labels[:6]


def test_rows_without_gold_are_left_out_where_another_file_has_set_the_classes(save: Any) -> None:
    path = save("x.tsv", "premise\thypothesis\tlabel\na\tb\t-1\nc\td\t1\n")
    examples = read_examples(path, label_names=("0", "1", "2"))
    assert (labels_of(examples), examples.left_out) == ([1], {"no gold label": 1})
    with pytest.raises(InvalidInput, match="the label '-1' is unknown"):
        read_examples(path, label_names=("0", "1"))


def test_a_number_is_never_taken_for_the_name_of_another(save: Any) -> None:
    path = save("x.tsv", "premise\thypothesis\tlabel\na\tb\t0\nc\td\t1\ne\tf\t2\n")
    with pytest.raises(InvalidInput, match="the label '0' is unknown"):
        read_examples(path, label_names={"1": "0", "2": "1"})


def test_what_labels_stand_for_is_looked_up_as_they_are_written(save: Any) -> None:
    path = save("x.tsv", "premise\thypothesis\tlabel\na\tb\tENTAILMENT\nc\td\tNEUTRAL\n")
    assert names_of(read_examples(path, label_names={"ENTAILMENT": "yes", "NEUTRAL": "no"})) == ["yes", "no"]
    assert names_of(read_examples(path)) == ["entailment", "neutral"]


@pytest.mark.parametrize("spelt", [("1", "0"), ("1.0", "0.0"), ("true", "false"), ("True", "False")])
def test_yes_and_no_become_scores_however_a_file_spells_them(save: Any, spelt: tuple[str, str]) -> None:
    yes, no = spelt
    path = save("x.csv", f"query,passage,label\na,b,{yes}\nc,d,{no}\ne,f,{yes}\n")
    examples = read_examples(path)
    assert set(examples.label_names) == set(spelt)  # as they are written
    assert (yes_as_score(examples).kind, labels_of(yes_as_score(examples))) == ("scored pairs", [1, 0, 1])
    assert labels_of(read_examples(path, kind="scored pairs")) == [1, 0, 1]


def test_other_classes_become_no_scores(save: Any) -> None:
    for labels in (("1", "2"), ("1", "1.0"), ("0", "1", "2"), ("0", "0.0", "1")):
        rows = "".join(f"a,b,{label}\n" for label in labels)
        examples = read_examples(save("x.csv", f"query,passage,label\n{rows}"))
        assert yes_as_score(examples) is examples


def test_truths_of_json_can_be_scores(save: Any) -> None:
    rows = [{"query": "a", "passage": "b", "label": label} for label in (True, False)]
    path = save("x.jsonl", "\n".join(map(json.dumps, rows)))
    assert labels_of(read_examples(path, kind="scored pairs")) == [1, 0]


def test_what_was_left_out_is_told_only_where_something_was() -> None:
    examples = Examples("texts", {"text": ["a"]}, left_out={"no gold label": 0})
    assert examples.describe() == "1 texts from memory"


def test_columns_that_the_first_of_json_lines_lacks(save: Any) -> None:
    rows = [{"anchor": "a", "positive": "b"}, {"anchor": "c", "positive": "d", "negative": "e"}]
    file = save("x.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InvalidInput, match=r"line 1: the row has no 'negative'"):
        read_examples(file)
    examples = read_examples(file, skip_bad_rows=True)
    assert (examples.kind, len(examples)) == ("triplets", 1)


def test_a_column_that_comes_late_in_json_lines_is_not_passed_over(save: Any) -> None:
    rows = [{"sentence1": "a", "sentence2": "b"}] * 100
    rows += [
        {"sentence1": "c", "sentence2": "d", "id": "7"},
        {"sentence1": "e", "sentence2": "f", "score": "1"},
    ]
    file = save("x.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InvalidInput, match=r"line 102 has 'score', which none of the first 100 rows has"):
        read_examples(file)
    assert len(read_examples(file, limit=101)) == 101
    assert len(read_examples(file, kind="pairs")) == 102


@pytest.mark.parametrize(
    ("first", "late"),
    [
        ({"query": "a", "pos": ["b"]}, {"neg": ["c"]}),
        ({"query": "a", "positive": "b"}, {"hard_negatives": ["c"]}),
        ({"text": "a"}, {"intent": "greeting"}),
    ],
)
def test_nor_are_lists_and_classes_that_come_late(
    save: Any, first: dict[str, Any], late: dict[str, Any]
) -> None:
    (column,) = late
    rows = [first] * 100 + [{**first, **late}]
    file = save("x.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InvalidInput, match=rf"line 101 has '{column}', which none of the first 100 rows has"):
        read_examples(file)


def test_a_late_column_that_changes_nothing_is_left_alone(save: Any) -> None:
    rows = [{"query": "a", "positive": "b", "lang": "en"}] * 100
    rows += [{"query": "c", "positive": "d", "lang": "en", "text": "e"}, {"lang": "de", "score": "1"}]
    file = save("x.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert len(read_examples(file, where={"lang": "en"})) == 101


def test_an_origin_that_the_caller_wrote_names_no_folder_to_others_either() -> None:
    examples = Examples("texts", {"text": ["a"]}, origin="/home/me/texts.txt (text = text)")
    assert examples.public_origin == "texts.txt (text = text)"


@pytest.mark.parametrize("folder", ["my data", "data (1)", "plain"])
def test_the_origin_for_others_names_no_folder(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    file = tmp_path / folder / "some pairs.tsv"
    rows = [f"p\th{n}\t{label}\n" for n, label in enumerate(NLI_LABELS)]
    file.write_text("premise\thypothesis\tlabel\n" + "".join(rows), encoding="utf-8")
    examples = read_examples(file)
    told = "some pairs.tsv (first = premise, second = hypothesis, label = label)"
    assert examples.public_origin == examples.take([1]).public_origin == told
    assert contrasted(examples).public_origin == f"contrasts in {told}"
    texts = read_plain_texts([TextFile(file, ("premise",)), TextFile(file, ("hypothesis",))])
    assert texts.public_origin == "some pairs.tsv + some pairs.tsv"


def test_labels_in_a_list_become_an_array() -> None:
    pairs = {"first": ["a", "b"], "second": ["c", "d"]}
    scored = Examples("scored pairs", pairs, [1, 0.5])  # type: ignore[arg-type]
    assert (scored.labels.dtype, scored.labels.tolist()) == (np.float32, [1.0, 0.5])  # type: ignore[union-attr]
    classified = Examples("classified pairs", pairs, [1, 0], ("no", "yes"))  # type: ignore[arg-type]
    assert (classified.labels.dtype, names_of(classified)) == (np.int64, ["yes", "no"])  # type: ignore[union-attr]
    with pytest.raises(InvalidInput, match="classified pairs were given labels such as 'yes'; expected"):
        Examples("classified pairs", pairs, ["yes", "no"], ("no", "yes"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ([["a"], ["b"]], "columns are a list; expected texts by the names of their columns"),
        (
            {"first": "abc", "second": "abd"},
            "the column 'first' is one text, 'abc'; expected a list",
        ),
        ({"first": ["a"], "second": [None]}, "row 0 of the column 'second' is None; expected a text"),
    ],
)
def test_columns_that_are_no_lists_of_texts_are_told(columns: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        Examples("pairs", columns)


@pytest.mark.parametrize(
    ("name", "column", "text"),
    [("x.csv", "text, raw", '"text, raw"\na\n'), ("x.tsv", "title; body", "title; body\na\n"),
     ("x.jsonl", "text|de", '{"text|de": "a"}\n')],
)  # fmt: skip
def test_a_lone_column_that_is_named_may_be_called_anything(
    save: Any, name: str, column: str, text: str
) -> None:
    assert read_examples(save(name, text), columns={"text": column}).columns == {"text": ["a"]}
