"""`gemel classify` as a shell sees it: by names, by examples, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import click
import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result
from stand_ins import sentences

from gemel import ZeroShotClassifier, load_classifier, load_encoder
from gemel.cli import gemel
from gemel.data.labelled import read_labelled
from gemel.errors import InvalidInput, InvalidModel, ModelNotFound

LABELS = "dog,piano,garden"
TEXTS = ["the dog sleeps", "a piano plays", "the garden is green"]


def call(*arguments: object, **settings: Any) -> Result:
    """Run the command in this process; an error of ours is raised, and a wrong call is exit code 2."""
    return CliRunner().invoke(
        gemel, [*map(str, arguments)], catch_exceptions=False, standalone_mode=False, **settings
    )


def lines_of(result: Result) -> list[dict[str, Any]]:
    assert result.exception is None, result.exception
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    file = tmp_path / "examples.csv"
    rows = [
        (f"{word} {text}", label)
        for text in sentences(12, seed=1, max_words=4)
        for label, word in (("animals", "dog"), ("music", "piano"))
    ]
    with file.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened).writerows([("text", "intent"), *rows])
    return file


def test_texts_get_the_name_they_are_most_like(tiny_bert: Path) -> None:
    found = lines_of(call("classify", "--labels", LABELS, "-m", tiny_bert, *TEXTS))
    classifier = ZeroShotClassifier(load_encoder(tiny_bert), LABELS.split(","))
    shares = classifier.probabilities(TEXTS)
    assert [line["label"] for line in found] == classifier.predict(TEXTS)
    assert [line["score"] for line in found] == pytest.approx(shares.max(axis=1).tolist(), abs=1e-5)
    assert [(line["id"], line["text"]) for line in found] == list(enumerate(TEXTS))
    assert set(found[0]) == {"id", "text", "label", "score"}


def test_all_scores_are_written_on_demand(tiny_bert: Path) -> None:
    (line,) = lines_of(call("classify", "--labels", LABELS, "-m", tiny_bert, "--scores", "a dog"))
    assert list(line["scores"]) == LABELS.split(",")
    assert sum(line["scores"].values()) == pytest.approx(1, abs=1e-5)
    assert line["scores"][line["label"]] == line["score"]


def test_names_with_templates_and_descriptions_come_from_files(tiny_bert: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("dog\npiano\n\ngarden\n", encoding="utf-8")
    ways = [
        call("classify", "--labels", names, "-m", tiny_bert, "--template", "a {} .", *TEXTS)
        for names in (LABELS, tmp_path / "labels.txt")
    ]
    assert lines_of(ways[0]) == lines_of(ways[1])
    (tmp_path / "labels.tsv").write_text(
        "label\ttext\npets\tdog\npets\tcat\nmusic\tpiano\n", encoding="utf-8"
    )
    found = lines_of(call("classify", "--labels", tmp_path / "labels.tsv", "-m", tiny_bert, *TEXTS))
    expected = ZeroShotClassifier(load_encoder(tiny_bert), {"music": "piano", "pets": ["dog", "cat"]})
    assert [line["label"] for line in found] == expected.predict(TEXTS)


def test_a_file_becomes_a_table(tiny_bert: Path, tmp_path: Path) -> None:
    rows = "".join(f"n{row},{text}\n" for row, text in enumerate(TEXTS))
    (tmp_path / "texts.csv").write_text("key,title\n" + rows, encoding="utf-8")
    arguments = ["classify", "--labels", LABELS, "-m", tiny_bert, "--scores", tmp_path / "texts.csv"]
    arguments += ["--column", "title", "--id-column", "key"]
    printed = lines_of(call(*arguments))
    assert [line["id"] for line in printed] == ["n0", "n1", "n2"]
    for suffix in ("csv", "parquet"):
        result = call(*arguments, "-o", tmp_path / f"out.{suffix}")
        assert (result.stdout, result.exception) == ("", None)
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as opened:
        written = list(csv.DictReader(opened))
    assert list(written[0]) == ["id", "text", "label", "score", "score_dog", "score_piano", "score_garden"]
    assert [(row["id"], row["label"]) for row in written] == [(row["id"], row["label"]) for row in printed]
    table = pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [row["score_piano"] for row in table] == [row["scores"]["piano"] for row in printed]


@pytest.mark.parametrize("ids", [[7, 2**40, 9], [7, "n8", 9]], ids=["numbers", "mixed"])
@pytest.mark.parametrize("is_stdin", [False, True], ids=["file", "standard input"])
def test_ids_keep_their_type_in_parquet(
    tiny_bert: Path, tmp_path: Path, ids: list[int | str], is_stdin: bool
) -> None:
    rows = [json.dumps({"key": id_, "text": text}) for id_, text in zip(ids, TEXTS, strict=True)]
    (tmp_path / "in.jsonl").write_text("\n".join(rows), encoding="utf-8")
    source = ("-", "--input-format", "jsonl") if is_stdin else (tmp_path / "in.jsonl",)
    arguments = ["classify", "--labels", LABELS, "-m", tiny_bert, *source, "--id-column", "key"]
    call(*arguments, "-o", tmp_path / "out.parquet", input="\n".join(rows))
    written = pyarrow.parquet.read_table(tmp_path / "out.parquet").column("id").to_pylist()
    assert written == (ids if ids[1] == 2**40 else list(map(str, ids)))


def test_a_file_among_texts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("the dog sleeps\n", encoding="utf-8")
    for inputs in (["a.txt", "b.txt"], ["the dog sleeps", str(tmp_path / "here")], ["-", "a dog"]):
        with pytest.raises(click.UsageError, match="give one file, or texts alone"):
            call("classify", "--labels", LABELS, *inputs)


def test_standard_input_is_classified(tiny_bert: Path) -> None:
    result = call("classify", "--labels", LABELS, "-m", tiny_bert, "-", input="a dog\na piano\n")
    assert [line["id"] for line in lines_of(result)] == [0, 1]


def test_a_text_is_a_text_however_long_it_is(tiny_bert: Path) -> None:
    text = "the dog sleeps " * 1_000
    (line,) = lines_of(call("classify", "--labels", LABELS, "-m", tiny_bert, "--on-truncate", "chunk", text))
    assert line["text"] == text


def test_an_interrupt_keeps_the_rows_before_it(
    tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gemel.cli.classify.AT_ONCE", 2)
    encode = ZeroShotClassifier.probabilities

    def interrupted(classifier: ZeroShotClassifier, texts: list[str]) -> Any:
        if texts == TEXTS[2:]:
            raise KeyboardInterrupt
        return encode(classifier, texts)

    monkeypatch.setattr(ZeroShotClassifier, "probabilities", interrupted)
    arguments = ["classify", "--labels", LABELS, "-m", tiny_bert, *TEXTS, "-o", tmp_path / "out.jsonl"]
    with pytest.raises(click.exceptions.Abort):
        call(*arguments)
    assert not (tmp_path / "out.jsonl").exists()
    assert len((tmp_path / "out.jsonl.partial").read_text().splitlines()) == 2


def test_what_was_learnt_is_saved_and_used(tiny_bert: Path, examples: Path, tmp_path: Path) -> None:
    (report,) = lines_of(call("classify", "--fit", examples, "-m", tiny_bert, "-o", tmp_path / "c"))
    assert (report["examples"], report["classes"]) == (24, 2)
    found = lines_of(call("classify", "-m", tmp_path / "c", *TEXTS))
    classifier = load_classifier(tmp_path / "c")
    known = read_labelled(examples)
    names = [known.label_names[number] for number in known.labels]
    assert report["training_accuracy"] == pytest.approx(classifier.score(known.texts, names), abs=1e-4)
    assert [line["label"] for line in found] == classifier.predict(TEXTS).tolist()
    assert [line["score"] for line in found] == pytest.approx(
        classifier.predict_proba(TEXTS).max(axis=1).tolist(), abs=1e-6
    )
    assert (tmp_path / "c" / "encoder").is_dir()  # a path would mean nothing elsewhere
    with pytest.raises(InvalidModel, match="is a text classifier, not an encoder"):
        call("classify", "--labels", "dog,cat", "-m", tmp_path / "c", "a dog")
    with pytest.raises(InvalidInput, match="exists already"):
        call("classify", "--fit", examples, "-m", tiny_bert, "-o", tmp_path / "c")
    call("classify", "--fit", examples, "-m", tiny_bert, "-o", tmp_path / "c", "--overwrite", "--cost", "2")
    assert load_classifier(tmp_path / "c").cost == 2


@pytest.mark.usefixtures("default_weights")
def test_the_default_model_is_kept_by_its_name(examples: Path, tmp_path: Path) -> None:
    examples.write_text(examples.read_text().replace("text,intent", "question,purpose"))
    columns = ["--text-column", "question", "--label-column", "purpose"]
    call("classify", "--fit", examples, "-o", tmp_path / "c", *columns)
    assert not (tmp_path / "c" / "encoder").exists()
    description = json.loads((tmp_path / "c" / "classifier.json").read_text())
    assert description["encoder"]["name"] == "sentence-transformers/all-MiniLM-L6-v2"
    (line,) = lines_of(call("classify", "-m", tmp_path / "c", "a puppy"))
    assert line["label"] == "animals"


def test_a_tuned_encoder_is_saved_with_the_classes(tiny_bert: Path, examples: Path, tmp_path: Path) -> None:
    arguments = ["--fit", examples, "-m", tiny_bert, "--tune", "--tune-pairs", "64", "-o", tmp_path / "c"]
    (report,) = lines_of(call("classify", *arguments))
    encoder = load_encoder(tmp_path / "c" / "encoder")
    assert report["fingerprint"] == encoder.fingerprint != load_encoder(tiny_bert).fingerprint
    assert lines_of(call("classify", "-m", tmp_path / "c", *TEXTS))[0]["label"] in ("animals", "music")


def test_a_class_of_one_example_cannot_be_tuned_on(tiny_bert: Path, examples: Path, tmp_path: Path) -> None:
    with examples.open("a", encoding="utf-8") as opened:
        opened.write("the old street,places\n")
    arguments = ["--fit", examples, "-m", tiny_bert, "-o", tmp_path / "c"]
    with pytest.raises(InvalidInput, match="1 of 3 classes have a single example, such as 'the old street'"):
        call("classify", *arguments, "--tune")
    assert not (tmp_path / "c").exists()
    assert lines_of(call("classify", *arguments))[0]["classes"] == 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["a dog"], "say --labels A,B,... to classify by names, --fit EXAMPLES"),
        (["--labels", "a,b", "--nli", "a dog"], "--labels and --nli are two ways to classify; say one"),
        (["--labels", "a,b"], "give a text, several, a file of texts, or - for standard input"),
        (["--labels", "a,b", "--tune", "a dog"], "--tune goes with --fit"),
        (["-m", "c", "--template", "{}", "a dog"], "--template goes with --labels"),
        (["--labels", "a,b", "--column", "x", "a dog"], "--column, --id-column and --input-format go with"),
        (["--fit", "examples.csv"], "--fit needs -o FOLDER"),
        (["--fit", "examples.csv", "-o", "c", "a dog"], "--fit only learns; classify with -m FOLDER"),
        (["--nli", "a", "b"], "--nli needs -m MODEL"),
        (["-m", "c", "--on-truncate", "chunk", "a"], "--on-truncate goes with --labels or --fit"),
        (["--fit", "examples.csv", "-o", "c", "--tune-pairs", "9"], "--tune-pairs goes with --tune"),
        (["--fit", "examples.csv", "-o", "c", "--scores"], "--scores does not go with --fit, which learns"),
        (["--fit", "e.csv", "-o", "c", "--id-column", "key"], "--id-column does not go with --fit"),
        (["--fit", "e.csv", "-o", "c", "--input-format", "csv"], "--input-format does not go with --fit"),
        (["--nli", "-m", "c", "--scores", "a", "b"], "--scores does not go with --nli"),
        (["--nli", "-m", "c", "--examples", "e.tsv", "--column", "x"], "--column does not go with --nli"),
        (
            ["--nli", "-m", "c", "--examples", "e.tsv", "--id-column", "x"],
            "--id-column does not go with --nli",
        ),
        (["--nli", "-m", "c", "--input-format", "tsv", "a", "b"], "--input-format does not go with --nli"),
        (
            ["--nli", "-m", "c", "--examples", "e.tsv", "a"],
            "given 1 text(s) and --examples; expected two texts,",
        ),
        (["--nli", "-m", "c", "--examples", "e.tsv", "a", "b"], "given 2 text(s) and --examples"),
        (
            ["--nli", "-m", "c", "a"],
            "--nli was given 1 text(s); expected two texts, or --examples FILE alone",
        ),
    ],
)
def test_a_wrong_call_is_told_how_to_be_right(arguments: list[str], sentence: str) -> None:
    with pytest.raises(click.UsageError) as raised:
        call("classify", *arguments)
    assert sentence in raised.value.message


def test_bad_labels_and_folders_are_named(tiny_bert: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="one label, 'dog', was given"):
        call("classify", "--labels", "dog", "-m", tiny_bert, "a dog")
    with pytest.raises(InvalidInput, match="the label 'dog' is given twice"):
        call("classify", "--labels", "dog, cat, dog", "-m", tiny_bert, "a dog")
    with pytest.raises(InvalidInput, match=r"cannot read labels\.txt"):
        call("classify", "--labels", "labels.txt", "-m", tiny_bert, "a dog")
    with pytest.raises(InvalidInput, match=r"cannot read missing\.csv"):
        call("classify", "--labels", "dog,cat", "-m", tiny_bert, "missing.csv")
    (tmp_path / "labels.csv").write_text("text,name\na dog,dog\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"expected one of label, .*: rename the column of the label$"):
        call("classify", "--labels", tmp_path / "labels.csv", "-m", tiny_bert, "a dog")
    with pytest.raises(InvalidInput, match=r"name the column of the label with --label-column$"):
        call("classify", "--fit", tmp_path / "labels.csv", "-o", tmp_path / "c", "-m", tiny_bert)
    with pytest.raises(ModelNotFound, match="there is no classifier folder"):
        call("classify", "-m", tmp_path / "nowhere", "a dog")
    with pytest.raises(InvalidModel, match="so it is no text classifier"):
        call("classify", "-m", tiny_bert, "a dog")
