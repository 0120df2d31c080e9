"""mine, dedupe and calibrate as a shell sees them."""

from __future__ import annotations

import csv
import gzip
import json
import os
import resource
import signal
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result
from stand_ins import make_tiny_model, sentences
from terminals import GEMEL

from gemel import load_encoder, top_pairs
from gemel.cli import gemel
from gemel.errors import GemelError

TEXTS = [
    *("the man plays guitar", "the man plays guitar", "a dog sleeps in the garden", "the cat is happy"),
    *("The  man plays guitar", "a big dog sleeps in the garden", "two old horses", "one green house"),
]


def invoke(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(gemel, [str(argument) for argument in arguments], input=stdin)


def run(*arguments: object, stdin: str | None = None) -> Result:
    done = invoke(*arguments, stdin=stdin)
    assert done.exit_code == 0, (done.output, done.exception)
    return done


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A table whose rows have more columns than the text."""
    path = tmp_path / "texts.tsv"
    rows = [f"k{row}\t{text}\t{len(text)}\n" for row, text in enumerate(TEXTS)]
    path.write_text("key\ttext\tlength\n" + "".join(rows))
    return path


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Pairs of the same text with another end, which are duplicates, and of different texts."""
    path, made = tmp_path / "pairs.tsv", sentences(40, seed=1, max_words=8)
    rows = [f"{text}\t{text} .\t1\n" for text in made[:20]]
    rows += [f"{a}\t{b}\t0\n" for a, b in zip(made[:20], made[20:], strict=True)]
    path.write_text("question1\tquestion2\tis_duplicate\n" + "".join(rows))
    return path


@pytest.fixture
def calibration(pairs: Path, tiny_bert: Path, tmp_path: Path) -> Path:
    run("calibrate", pairs, "-m", tiny_bert, "-o", tmp_path / "calibration.json")
    return tmp_path / "calibration.json"


# mine ------------------------------------------------------------------------------------------------


def test_the_most_similar_pairs_come_as_json_lines(texts: Path, tiny_bert: Path) -> None:
    found = lines_of(run("mine", texts, "-n", 3, "--id-column", "key", "-m", tiny_bert).stdout)
    expected = top_pairs(load_encoder(tiny_bert).encode(TEXTS), 3)
    assert [(row["id_a"], row["id_b"]) for row in found] == [
        (f"k{i}", f"k{j}") for i, j in zip(expected.first, expected.second, strict=True)
    ]
    assert list(found[0]) == ["id_a", "id_b", "score", "text_a", "text_b"]
    assert (found[0]["score"], found[0]["text_a"], found[0]["text_b"]) == (1.0, TEXTS[0], TEXTS[1])


def test_all_pairs_above_a_threshold_go_to_a_file(texts: Path, tiny_bert: Path, tmp_path: Path) -> None:
    arguments = ("mine", texts, "--at-least", 0.2, "-m", tiny_bert, "-o")
    report = json.loads(run(*arguments, tmp_path / "out.parquet").stdout)
    table = pyarrow.parquet.read_table(tmp_path / "out.parquet")
    assert table.num_rows == report["pairs"] > 0
    assert min(table["score"].to_pylist()) >= 0.2
    run(*arguments, tmp_path / "out.csv")
    with (tmp_path / "out.csv").open() as file:
        assert [row["text_a"] for row in csv.DictReader(file)] == table["text_a"].to_pylist()


def test_two_files_are_compared_with_each_other(texts: Path, tiny_bert: Path, tmp_path: Path) -> None:
    (tmp_path / "other.tsv").write_text("key\ttext\nz\ttwo old horses\n")
    arguments = ("-k", 1, "--id-column", "key", "-m", tiny_bert)
    found = lines_of(run("mine", texts, tmp_path / "other.tsv", *arguments).stdout)
    assert [row["id_a"] for row in found] == [f"k{row}" for row in range(8)]
    assert {row["id_b"] for row in found} == {"z"}
    assert found[6]["score"] == 1


def test_vectors_made_before_need_no_model(texts: Path, tiny_bert: Path, tmp_path: Path) -> None:
    expected = run("mine", texts, "-n", 5, "-m", tiny_bert).stdout
    run("encode", texts, "-m", tiny_bert, "-o", tmp_path / "v.npy")
    for named in ((), ("-m", tiny_bert)):
        found = run("mine", texts, "-n", 5, "--vectors", tmp_path / "v.npy", *named).stdout
        assert [row["id_b"] for row in lines_of(found)] == [row["id_b"] for row in lines_of(expected)]


@pytest.mark.parametrize("verb", ["mine", "dedupe", "cluster"])
def test_options_of_encoding_are_not_dropped_beside_vectors(
    verb: str, texts: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    run("encode", texts, "-m", tiny_bert, "-o", tmp_path / "v.npy")
    vectors = ("--vectors", tmp_path / "v.npy")
    for option in (("--pooling", "cls"), ("--on-truncate", "chunk"), ("--precision", "float32")):
        done = invoke(verb, texts, *vectors, *option)
        assert done.exit_code == 2
        assert f"{option[0]} says how texts are encoded, and --vectors has them encoded" in done.output
    assert "no model folder" in refused(verb, texts, *vectors, "-m", "/no/such/model")
    make_tiny_model("bert", tmp_path / "other", seed=3)
    message = refused(verb, texts, *vectors, "-m", tmp_path / "other")
    assert "holds other vectors than this model makes" in message


def test_identical_texts_are_skipped_if_asked(texts: Path, tiny_bert: Path) -> None:
    found = lines_of(run("mine", texts, "-n", 99, "--skip-identical", "-m", tiny_bert).stdout)
    assert len(found) == 7 * 6 / 2
    assert all(1 not in (row["id_a"], row["id_b"]) for row in found)


def test_a_quick_encoder_proposes_and_the_model_confirms(
    texts: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    run("distil", tiny_bert, "--static", "-o", tmp_path / "table", "--dim", 8, "--no-tune")
    quick = ("--prefilter", tmp_path / "table", "--prefilter-at-least", -1, "-m", tiny_bert)
    proposed = run("mine", texts, "--at-least", 0.2, *quick)
    assert proposed.stdout == run("mine", texts, "--at-least", 0.2, "-m", tiny_bert).stdout
    assert "-1.000 or more by the quick encoder are looked at" in proposed.stderr
    whole, part = tmp_path / "whole.tsv", tmp_path / "part.tsv"
    for output, more in ((whole, ()), (part, quick)):
        run(
            "dedupe",
            texts,
            "--threshold",
            0.6,
            "-m",
            tiny_bert,
            "-o",
            output,
            "--dropped",
            f"{output}.csv",
            *more,
        )
    assert part.read_text() == whole.read_text()
    assert Path(f"{part}.csv").read_text() == Path(f"{whole}.csv").read_text()
    assert len(whole.read_text().splitlines()) < 1 + len(TEXTS)


@pytest.mark.filterwarnings("ignore::gemel.errors.UnknownWordsWarning")
def test_repeats_are_duplicates_whatever_a_quick_encoder_makes_of_them(
    tiny_bert: Path, tmp_path: Path
) -> None:
    run("distil", tiny_bert, "--static", "-o", tmp_path / "table", "--dim", 8, "--no-tune")
    source, kept = tmp_path / "texts.txt", tmp_path / "kept.txt"
    source.write_text("the dog runs\nA Cat\nthe dog runs\na  cat\n한국어\n한국어\n", encoding="utf-8")
    quick = ("--prefilter", tmp_path / "table", "--prefilter-at-least", 1)
    run("dedupe", source, "-m", tiny_bert, "--threshold", 1, "--normalise", *quick, "-o", kept)
    assert kept.read_text(encoding="utf-8").splitlines() == ["the dog runs", "A Cat", "한국어"]


@pytest.mark.parametrize(
    "more", [(), ("-n", 3), ("--at-least", 0.5, "-k", 2), ("--at-least", 0.5, "--skip-identical")]
)
def test_a_prefilter_needs_a_threshold_and_nothing_else(
    texts: Path, tiny_bert: Path, more: tuple[Any, ...]
) -> None:
    done = invoke("mine", texts, "--prefilter", "table", "-m", tiny_bert, *more)
    assert done.exit_code == 2
    assert "--prefilter" in done.output


def test_too_few_pairs_to_measure_a_prefilter_on_are_told(
    texts: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    run("distil", tiny_bert, "--static", "-o", tmp_path / "table", "--dim", 8, "--no-tune")
    done = invoke("mine", texts, "--at-least", 0.2, "--prefilter", tmp_path / "table", "-m", tiny_bert)
    assert isinstance(done.exception, GemelError)
    assert "--prefilter-at-least" in str(done.exception)


def test_a_prefilter_of_two_corpora_is_measured_on_different_texts_across_them(
    texts: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    run("distil", tiny_bert, "--static", "-o", tmp_path / "table", "--dim", 8, "--no-tune")
    others = tmp_path / "others.txt"
    words = ("man", "dog", "cat", "old", "big", "one", "two")
    others.write_text("\n".join([TEXTS[0], *(f"the {word}" for word in words)]))
    quick = ("--prefilter", tmp_path / "table", "--prefilter-recall", 1, "-m", tiny_bert)
    found = run("mine", texts, others, "--at-least", -1, *quick)
    assert (
        "100.0% of the 55 pairs of different texts" in found.stderr
    )  # 7 texts by 8, of which one is in both
    assert len(lines_of(found.stdout)) == len(TEXTS) * 8


def test_a_calibration_gives_threshold_and_probability(
    texts: Path, tiny_bert: Path, calibration: Path
) -> None:
    found = lines_of(run("mine", texts, "--calibration", calibration, "-m", tiny_bert).stdout)
    saved = json.loads(calibration.read_text())
    assert found
    for row in found:
        assert row["score"] >= saved["threshold"] - 1e-6
        logit = saved["slope"] * row["score"] + saved["intercept"]
        assert row["probability"] == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-4)


@pytest.fixture(scope="session")
def tiny_reranker(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path) -> Path:
    from gemel.checkpoint import read_encoder_folder
    from gemel.model import CrossEncoder

    folder = tmp_path_factory.mktemp("reranker") / "model"
    CrossEncoder.from_encoder(read_encoder_folder(tiny_bert), ("score",), device="cpu").save(folder)
    return folder


def test_a_cross_encoder_adds_its_score(texts: Path, tiny_bert: Path, tiny_reranker: Path) -> None:
    arguments = ("mine", texts, "-n", 9, "-m", tiny_bert, "--rerank", tiny_reranker)
    found = lines_of(run(*arguments, "--rerank-at-least", 0).stdout)
    assert len(found) == 9
    middle = sorted(row["rerank_score"] for row in found)[4] - 1e-6  # printed scores are rounded
    fewer = lines_of(run(*arguments, "--rerank-at-least", middle).stdout)
    assert [row["id_b"] for row in fewer] == [row["id_b"] for row in found if row["rerank_score"] >= middle]


def test_the_picture_is_drawn(texts: Path, tiny_bert: Path, tmp_path: Path) -> None:
    run("mine", texts, "--at-least", 0.9, "-m", tiny_bert, "--plot", tmp_path / "h.svg")
    assert "threshold 0.9" in (tmp_path / "h.svg").read_text()
    run("dedupe", texts, "-m", tiny_bert, "--plot", tmp_path / "h.png")
    assert (tmp_path / "h.png").read_bytes().startswith(b"\x89PNG")


# dedupe ----------------------------------------------------------------------------------------------


def test_kept_and_dropped_rows_are_the_input(texts: Path, tiny_bert: Path, tmp_path: Path) -> None:
    arguments = ("-m", tiny_bert, "--id-column", "key", "--threshold", 0.99, "--keep", "first")
    kept, dropped = tmp_path / "kept.tsv", tmp_path / "dropped.jsonl"
    report = json.loads(run("dedupe", texts, "-o", kept, "--dropped", dropped, *arguments).stdout)
    rows = texts.read_text().splitlines()
    kept_rows, dropped_rows = kept.read_text().splitlines(), lines_of(dropped.read_text())
    assert kept_rows[0] == rows[0]
    assert [row for row in rows if row in kept_rows] == kept_rows
    ids = [row.split("\t")[0] for row in kept_rows[1:]]
    assert sorted([*ids, *(row["id"] for row in dropped_rows)]) == sorted(f"k{row}" for row in range(8))
    assert all(row["kept_id"] in ids for row in dropped_rows)
    assert (report["rows"], report["kept"]) == (8, len(ids))
    exact = next(row for row in dropped_rows if row["id"] == "k1")
    assert (exact["reason"], exact["score"]) == ("exact", None)


def test_standard_input_gives_standard_output(tiny_bert: Path) -> None:
    arguments = ("-m", tiny_bert, "--threshold", 1, "--normalise")
    done = run("dedupe", "-", *arguments, stdin="\n".join(TEXTS[:5]) + "\n")
    assert done.stdout.splitlines() == [TEXTS[0], *TEXTS[2:4]]
    assert json.loads(done.stderr)["exact"] == 2


def test_one_text_is_its_own_keeper(tiny_bert: Path, tmp_path: Path) -> None:
    done = run("dedupe", "-", "-m", tiny_bert, "--plot", tmp_path / "h.png", stdin="alone\n")
    assert done.stdout == "alone\n"
    assert "stdin has one text, which is similar to no other; nothing is drawn" in done.stderr


def test_dropped_rows_tell_the_probability(texts: Path, tiny_bert: Path, calibration: Path) -> None:
    dropped = calibration.parent / "dropped.csv"
    run("dedupe", texts, "-m", tiny_bert, "--calibration", calibration, "--dropped", dropped)
    with dropped.open() as file:
        rows = [row for row in csv.DictReader(file) if row["reason"] == "similar"]
    assert rows
    assert all(0 < float(row["probability"]) <= 1 for row in rows)


# calibrate -------------------------------------------------------------------------------------------


def test_a_calibration_is_printed_and_saved(pairs: Path, tiny_bert: Path, tmp_path: Path) -> None:
    arguments = ("-m", tiny_bert, "--precision", 0.9, "-o", tmp_path / "c.json")
    report = json.loads(run("calibrate", pairs, *arguments).stdout)
    assert json.loads((tmp_path / "c.json").read_text()) == report
    assert report["precision"] >= 0.9
    assert report["fingerprint"] == load_encoder(tiny_bert).fingerprint


# What is refused -------------------------------------------------------------------------------------


def refused(*arguments: object, stdin: str | None = None) -> str:
    done = invoke(*arguments, stdin=stdin)
    assert done.exit_code
    if isinstance(done.exception, GemelError):
        assert "\n" not in str(done.exception)
        return str(done.exception)
    return done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mine", "TEXTS", "--at-least", "1.5"], "the threshold is 1.5; expected a cosine"),
        (["mine", "TEXTS", "--at-least", "0.5", "--measure", "euclidean"], "0 or less"),
        (["mine", "TEXTS", "-k", "8"], "k is 8, and each row can be compared with 7 others"),
        (["mine", "TEXTS", "-n", "0"], "n_pairs is 0"),
        (["mine", "TEXTS", "-n", "3", "-k", "3"], "-n and -k were given; expected one of them"),
        (["mine", "TEXTS", "-o", "out.txt"], "cannot tell a format from out.txt"),
        (["mine", "TEXTS", "-o", "no/out.csv"], "a file name in a folder that exists"),
        (["mine", "TEXTS", "-o", "TEXTS"], "exists already"),
        (["mine", "TEXTS", "--plot", "out.gif"], "ends in .png or .svg"),
        (["mine", "TEXTS", "--other-vectors", "v.npy"], "--other-vectors goes with OTHER"),
        (["mine", "TEXTS", "--rerank-at-least", "0.5"], "--rerank-at-least goes with --rerank"),
        (["mine", "TEXTS", "--prefilter-recall", "0.98"], "--prefilter-recall goes with --prefilter"),
        (["mine", "TEXTS", "--prefilter-at-least", "0.5"], "--prefilter-at-least goes with --prefilter"),
        (
            ["mine", "TEXTS", "TEXTS", "--at-least", "0.5", "--prefilter", "q", "--other-vectors", "v.npy"],
            "--other-vectors does not go with it",
        ),
        (
            ["mine", "TEXTS", "--prefilter", "q", "--prefilter-recall", "0.9", "--prefilter-at-least", "0.5"],
            "--prefilter-recall and --prefilter-at-least were given; expected one of them",
        ),
        (["mine", "TEXTS", "--calibration", "absent.json"], "cannot read absent.json"),
        (["mine", "-", "-"], "standard input can be read only once"),
        (["mine", "-"], "stdin holds no texts"),
        (["mine", "absent.txt"], "cannot read absent.txt"),
        (["dedupe", "-"], "stdin holds no texts"),
        (["dedupe", "TEXTS", "--threshold", "-2"], "the threshold is -2.0; expected a cosine"),
        (["dedupe", "TEXTS", "-o", "kept.csv"], "expected .tsv (also with .gz) or .jsonl"),
        (["dedupe", "TEXTS", "-o", "same.tsv", "--dropped", "./same.tsv"], "same.tsv is named twice"),
        (["dedupe", "TEXTS", "--id-column", "text"], "rows 0 and 1 of"),
        (["dedupe", "TEXTS", "--threshold", "0.9", "--calibration", "c.json"], "expected one of them"),
        (["dedupe", "TEXTS", "--rerank-at-least", "0.7"], "--rerank-at-least goes with --rerank"),
        (["dedupe", "TEXTS", "--prefilter-recall", "0.9"], "--prefilter-recall goes with --prefilter"),
        (["calibrate", "TEXTS"], "has no column for first"),
    ],
)
def test_what_cannot_be_is_told_in_one_sentence(
    arguments: list[str], message: str, texts: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(texts.parent)
    given = [str(texts) if argument == "TEXTS" else argument for argument in arguments]
    assert message in refused(*given, "-m", tiny_bert, stdin="")
    assert [path.name for path in texts.parent.iterdir()] == ["texts.tsv"]


def test_a_single_text_has_no_pairs(tiny_bert: Path) -> None:
    assert "has only one text" in refused("mine", "-", "-m", tiny_bert, stdin="alone\n")


def test_vectors_of_another_file_are_refused(texts: Path, tiny_bert: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.ones((3, 32), np.float32))
    for verb in ("mine", "dedupe"):
        message = refused(verb, texts, "-m", tiny_bert, "--vectors", tmp_path / "v.npy")
        assert "holds 3 vectors and" in message


def test_a_calibration_of_another_model_is_refused(texts: Path, tiny_bert: Path, calibration: Path) -> None:
    saved = json.loads(calibration.read_text()) | {"fingerprint": "0123456789abcdef"}
    calibration.write_text(json.dumps(saved))
    for verb in ("mine", "dedupe"):
        message = refused(verb, texts, "-m", tiny_bert, "--calibration", calibration)
        assert "the calibration was made for the model 0123456789ab, and this one is" in message


@pytest.mark.parametrize(
    "verb", [("mine", "--at-least", 0.9), ("mine", "-k", 1), ("dedupe",), ("cluster",), ("cluster", "--plot")]
)
def test_as_many_threads_compare_as_were_asked_for(
    tmp_path: Path, threads_of_comparing: list[int], verb: tuple[object, ...]
) -> None:
    vectors = np.random.default_rng(0).standard_normal((1_000, 256)).astype(np.float32)
    np.save(tmp_path / "v.npy", vectors)
    (tmp_path / "t.txt").write_text("".join(f"text {row}\n" for row in range(1_000)))
    name, *options = verb
    if "--plot" in options:
        options.append(tmp_path / "map.png")
    run(name, tmp_path / "t.txt", "--vectors", tmp_path / "v.npy", "--threads", 3, *options)
    assert max(threads_of_comparing) == 3
    assert set(threads_of_comparing) <= {1, 3}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_takes_no_files_is_told_before_the_work(texts: Path, tiny_bert: Path) -> None:
    folder = texts.parent / "closed"
    folder.mkdir(mode=0o500)
    assert "takes no new files" in refused("mine", texts, "-m", tiny_bert, "-o", folder / "out.csv")


@pytest.mark.parametrize(
    ("number", "code", "ending"),
    [(signal.SIGINT, 130, ""), (signal.SIGTERM, 143, ""), (signal.SIGTERM, 143, ".gz")],
)
def test_an_interrupt_leaves_what_was_written(
    tiny_bert: Path, tmp_path: Path, number: signal.Signals, code: int, ending: str
) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(sentences(6_000, seed=3, max_words=8)) + "\n")
    output = f"out.csv{ending}"
    command = ["mine", "texts.txt", "--at-least", "-1", "-m", str(tiny_bert), "-o", output]
    # Jobs that a shell starts in the background ignore interrupts, and so do their children.
    heeds = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    partial_file = tmp_path / f"{output}.partial"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*GEMEL, *command], cwd=tmp_path, **pipes, preexec_fn=heeds) as process:
        while process.poll() is None and not (partial_file.exists() and partial_file.stat().st_size > 1e5):
            time.sleep(0.01)
        process.send_signal(number)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == code
    told = [line for line in errors.decode().splitlines() if line]
    assert told == [f"gemel: what was written is kept in {output}.partial", "gemel: stopped"]
    with gzip.open(partial_file, "rt") if ending else partial_file.open() as file:
        n_rows = sum(bool(row["text_b"]) for row in csv.DictReader(file))
    with gzip.open(partial_file, "rt") if ending else partial_file.open() as file:
        assert n_rows == sum(1 for _ in file) - 1 > 1_000
    assert not (tmp_path / output).exists()


def test_a_full_disk_is_told_in_one_line_and_leaves_whole_rows(tiny_bert: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(sentences(300, seed=2, max_words=8)) + "\n")
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    done = subprocess.run(
        [*GEMEL, "mine", "texts.txt", "--at-least", "-1", "-m", str(tiny_bert), "-o", "out.jsonl"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=limit,
    )
    kept = (tmp_path / "out.jsonl.partial").read_text()
    assert done.returncode == 1
    assert done.stderr == (
        f"gemel: cannot write out.jsonl: File too large; the {kept.count(chr(10)):,} rows before are kept in "
        "out.jsonl.partial: make room, or name another file\n"
    )
    assert all(row["score"] >= -1 for row in lines_of(kept))
    assert not (tmp_path / "out.jsonl").exists()
