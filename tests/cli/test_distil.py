"""`gemel distil` as a shell sees it."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result
from stand_ins import sentences

from gemel import load_encoder
from gemel.cli import gemel


def call(*arguments: object) -> Result:
    return CliRunner().invoke(gemel, list(map(str, arguments)))


def test_a_corpus_makes_a_tuned_table(tiny_bert: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(sentences(100, seed=1)) + "\n", encoding="utf-8")
    asked = ("--static", "--dim", 8, "--corpus", corpus, "--sentences", 60, "-o", tmp_path / "table")
    line = json.loads(call("distil", tiny_bert, *asked).stdout)
    assert (line["dim"], line["texts"], line["tuned_on"]) == (8, 100, 57)
    assert 0 < line["agreement"] <= 1
    assert load_encoder(tmp_path / "table").fingerprint == line["fingerprint"]
    card = (tmp_path / "table" / "README.md").read_text(encoding="utf-8")
    assert 'base_model: "bert"' in card  # the folder's name, not its place on this machine
    assert str(tmp_path) not in card
    again = call("distil", tmp_path / "no model", *asked)  # told before anything is opened, let alone done
    assert "exists already: choose another name, or replace it with --overwrite" in str(again.exception)
    assert json.loads(call("distil", tiny_bert, *asked, "--overwrite").stdout) | {"seconds": 0} == line | {
        "seconds": 0
    }


def test_without_a_corpus_nothing_is_tuned(tiny_bert: Path, tmp_path: Path) -> None:
    done = call("distil", tiny_bert, "--static", "--dim", 8, "-o", tmp_path / "table")
    line = json.loads(done.stdout)
    assert (line["texts"], line["tuned_on"], line["agreement"]) == (0, 0, None)


def test_a_kind_must_be_named_and_tuning_needs_sentences(tiny_bert: Path, tmp_path: Path) -> None:
    bare = call("distil", tiny_bert, "-o", tmp_path / "table")
    assert (bare.exit_code, "--static is what there is" in bare.stderr) == (2, True)
    untold = call("distil", tiny_bert, "--static", "--tune", "-o", tmp_path / "table")
    assert (untold.exit_code, "name a file with --corpus" in untold.stderr) == (2, True)
