"""The command as a shell sees it: output, messages, exit codes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stand_ins import sentences
from terminals import GEMEL, run

from gemel import load_encoder, load_trainable
from gemel.cli import VERBS, main


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_has_help_with_examples(verb: str) -> None:
    help_text = run(verb, "--help").stdout
    assert "Examples:" in help_text
    assert f"gemel {verb}" in help_text


def test_texts_become_rows_of_an_array(tiny_bert: Path, tmp_path: Path) -> None:
    texts = sentences(50, seed=4, max_words=7)
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    done = run("encode", tmp_path / "texts.txt", "-o", tmp_path / "v.npy", "-m", tiny_bert)
    report = json.loads(done.stdout)
    assert (report["rows"], report["dim"], report["resumed_rows"]) == (50, 32, 0)
    expected = load_encoder(tiny_bert).encode(texts)
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), expected, rtol=1e-4, atol=1e-5)


def test_standard_input_becomes_json_lines(tiny_bert: Path) -> None:
    done = run("encode", "-", "-m", tiny_bert, stdin="the man\na dog\n")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["id"] for line in lines] == [0, 1]
    assert all(len(line["embedding"]) == 32 for line in lines)


def test_a_warning_is_one_sentence_and_names_no_line_of_code(tiny_bert: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "models--someone--tiny" / "snapshots" / ("0" * 40)
    shutil.copytree(tiny_bert, snapshot)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("0" * 40, encoding="utf-8")
    known = {**os.environ, "HF_HUB_CACHE": str(tmp_path)}
    command = [*GEMEL, "encode", "-", "-m", "someone/tiny"]
    done = subprocess.run(command, env=known, input="the man", capture_output=True, text=True, check=True)
    told = [line for line in done.stderr.splitlines() if "someone/tiny" in line]
    assert [line[:50] for line in told] == ["gemel: someone/tiny has no modules.json in the hub"]


def test_the_warnings_of_a_program_that_calls_the_command_stay_its_own() -> None:
    before = warnings.formatwarning
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert warnings.formatwarning is before


def test_an_interrupted_run_is_continued_by_the_same_command(tiny_bert: Path, tmp_path: Path) -> None:
    texts = sentences(30_000, seed=6, max_words=6) * 6  # seconds of work, so that the signal comes in time
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    command = ["encode", str(tmp_path / "texts.txt"), "-o", str(tmp_path / "v.npy"), "-m", str(tiny_bert)]
    state = tmp_path / "v.npy.partial" / "state.json"
    # Jobs that a shell starts in the background ignore interrupts, and so do their children.
    heeds = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*GEMEL, *command], **pipes, preexec_fn=heeds) as process:
        while process.poll() is None and not state.exists():
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "what is done is kept in" in errors.decode()
    assert "stopped" in errors.decode()
    assert not (tmp_path / "v.npy").exists()
    report = json.loads(run(*command).stdout)
    assert report["rows"] == 180_000
    assert report["resumed_rows"] >= 2_048
    vectors = np.load(tmp_path / "v.npy")
    rows = [0, 2_047, 2_048, 179_999]
    expected = load_encoder(tiny_bert).encode([texts[row] for row in rows])
    np.testing.assert_allclose(vectors[rows], expected, rtol=1e-4, atol=1e-5)


def test_a_full_disk_is_told_in_one_line(tiny_bert: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*GEMEL, "encode", "-", "-m", str(tiny_bert)],
            input=b"the man\n",
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert done.returncode == 1
    message = done.stderr.decode().splitlines()
    assert len(message) == 1
    assert "No space left on device" in message[0]


@pytest.mark.parametrize("verb", ["data", "evaluate --list", "similarity a b -m {model}"])
def test_a_closed_output_is_told_in_one_line(tiny_bert: Path, verb: str) -> None:
    arguments = verb.format(model=tiny_bert)
    command = f"{sys.executable} -c 'from gemel.cli import main; main()' {arguments} >&-"
    done = subprocess.run(["bash", "-c", command], stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.startswith("gemel: standard output is closed, and results go there; ")
    assert done.stderr.count("\n") == 1


def test_cut_texts_are_counted_in_one_line(tiny_bert: Path, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("the " * 90 + "\nshort\n", encoding="utf-8")
    done = run("encode", tmp_path / "t.txt", "-o", tmp_path / "v.npy", "-m", tiny_bert)
    assert done.stderr == (
        "gemel: 1 text was longer than 40 tokens and cut; --on-truncate chunk reads long texts whole\n"
    )
    arguments = ("-m", tiny_bert, "--on-truncate", "error", "-o", tmp_path / "w.npy")
    done = run("encode", tmp_path / "t.txt", *arguments, check=1)
    assert "text 0 is longer than the 40 tokens" in done.stderr
    assert "text 0 is row 0 here" in done.stderr


def test_similarity_of_two_texts(tiny_bert: Path) -> None:
    long = "the man " * 1000  # longer than the name of any file
    assert json.loads(run("similarity", long, long, "-m", tiny_bert).stdout)["cosine"] == 1.0
    line = json.loads(run("similarity", "the man", "the man", "-m", tiny_bert).stdout)
    assert line["cosine"] == pytest.approx(1.0, abs=1e-5)
    line = json.loads(run("similarity", "the", "a dog", "-m", tiny_bert, "--measure", "euclidean").stdout)
    assert line["euclidean"] < 0


def test_similarity_of_two_files_line_by_line(tiny_bert: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the man\na dog\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("the man\na cat\n", encoding="utf-8")
    done = run("similarity", "--files", tmp_path / "a.txt", tmp_path / "b.txt", "-m", tiny_bert)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["b"] for line in lines] == ["the man", "a cat"]
    (tmp_path / "b.txt").write_text("the man\n", encoding="utf-8")
    done = run("similarity", "--files", tmp_path / "a.txt", tmp_path / "b.txt", "-m", tiny_bert, check=1)
    assert "b.txt ends after 1 rows and the other file does not" in done.stderr


@pytest.mark.parametrize(
    "call",
    [("similarity", "--files", "FILE", "FILE"), ("bench", "--corpus", "FILE"), ("demo", "--corpus", "FILE")],
)
def test_no_option_is_advised_that_the_verb_has_not(
    tiny_bert: Path, tmp_path: Path, call: tuple[str, ...]
) -> None:
    (tmp_path / "a.pdf").touch()
    arguments = [str(tmp_path / "a.pdf") if each == "FILE" else each for each in call]
    assert run(*arguments, "-m", tiny_bert, check=1).stderr.endswith("; rename the file\n")


def test_models_describes_a_folder(tiny_bert: Path) -> None:
    card = json.loads(run("models", tiny_bert).stdout)
    assert (card["dim"], card["max_tokens"], card["kind"]) == (32, 40, "encoder")
    assert card["fingerprint"] == load_encoder(tiny_bert).fingerprint


def test_convert_makes_a_safe_copy_of_a_pickle(tiny_bert: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    encoder = load_trainable(tiny_bert)
    encoder.save(old)
    (old / "model.safetensors").unlink()
    torch.save(encoder.backbone.state_dict(), old / "pytorch_model.bin")
    assert "gemel convert" in run("models", old, check=1).stderr
    report = json.loads(run("convert", old, tmp_path / "new").stdout)
    assert report["converted"] == ["pytorch_model.bin"]
    again = load_trainable(tmp_path / "new")
    np.testing.assert_array_equal(again.encode(["the man"]), encoder.encode(["the man"]))


def test_convert_never_runs_the_code_in_a_pickle(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "sprung"),)

    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "old" / "tokenizer.json").write_text("{}", encoding="utf-8")
    torch.save({"x": Trap()}, tmp_path / "old" / "pytorch_model.bin")
    done = run("convert", tmp_path / "old", tmp_path / "new", check=1)
    assert "holds more than weights" in done.stderr
    assert not (tmp_path / "sprung").exists()
    assert not (tmp_path / "new").exists()


def test_an_error_is_one_line_and_debug_shows_where(tmp_path: Path) -> None:
    done = run("models", tmp_path / "nowhere", check=1)
    assert done.stderr.startswith("gemel: there is no model folder")
    assert done.stderr.count("\n") == 1
    assert "Traceback" in run("--debug", "models", tmp_path / "nowhere", check=1).stderr


def test_a_wrong_call_leaves_with_2() -> None:
    assert "No such command 'fly'" in run("fly", check=2).stderr
    assert "Missing argument" in run("encode", check=2).stderr


def test_a_reader_that_goes_away_is_no_error_message(tiny_bert: Path) -> None:
    command = (
        f"yes 'the man' | head -5000 | {sys.executable} -c 'from gemel.cli import main; main()' encode - "
    )
    done = subprocess.run(
        ["bash", "-c", f"{command} -m {tiny_bert} | head -1"], capture_output=True, text=True, timeout=120
    )
    assert json.loads(done.stdout)["id"] == 0
    assert done.stderr == ""


def test_the_demo_runs_on_a_corpus_of_ones_own(tiny_bert: Path, tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("\n".join(sentences(300, max_words=6)) + "\n", encoding="utf-8")
    done = run("demo", "--corpus", tmp_path / "corpus.txt", "-m", tiny_bert, "--query", "the big dog")
    for part in ("The most similar pairs", "the big dog", "Clusters", "cross-encoder, here", "all of it"):
        assert part in done.stdout
    (tmp_path / "one.txt").write_text("alone\nalone\n", encoding="utf-8")
    done = run("demo", "--corpus", tmp_path / "one.txt", "-m", tiny_bert, check=1)
    assert "holds 1 different texts; the demo needs at least 2" in done.stderr
