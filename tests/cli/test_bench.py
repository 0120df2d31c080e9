"""`gemel bench`: figures of both precisions, and errors that help."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner
from stand_ins import sentences

from gemel.cli.bench import command


def test_both_precisions_are_measured(tiny_bert: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "texts.txt"
    corpus.write_text("\n".join(sentences(150, 1, 8)) + "\n", encoding="utf-8")
    options = ["-m", str(tiny_bert), "--corpus", str(corpus), "--rounds", "1", "--threads", "1"]
    done = CliRunner().invoke(command, options, catch_exceptions=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["name"] for line in lines] == ["int8", "float32"]
    for line in lines:
        assert line["texts_per_second"] > 0
        assert 0 < line["p50_ms"] <= line["p99_ms"]
    assert lines[0]["share_of_ceiling"] > 0
    assert 0.97 < lines[0]["min_cosine"] <= lines[0]["mean_cosine"] < 1
    assert lines[1]["min_cosine"] > 0.9999999


def test_the_default_corpus_is_this_pythons_documentation(tiny_bert: Path) -> None:
    options = ["-m", str(tiny_bert), "--limit", "50", "--rounds", "1", "--json"]
    done = CliRunner().invoke(command, options, catch_exceptions=False)
    assert len(done.stdout.splitlines()) == 2
