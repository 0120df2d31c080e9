"""`gemel reproduce` as a shell sees it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from terminals import GEMEL


def run(*arguments: object, check: int = 0) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [*GEMEL, "reproduce", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )
    assert done.returncode == check, done.stderr
    return done


def test_lines_beside_the_paper_and_a_page(real_data: Path, tiny_bert: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    named = [f"--row=BERT average={tiny_bert}", "-m", tiny_bert, "--data", real_data, "--report", out]
    named += ["--row=GloVe average=./nowhere", "--row=Universal Sentence Encoder=./nowhere"]
    done = run("table1", "table2", *named)
    tables = [json.loads(line) for line in done.stdout.splitlines()]
    assert [table["table"] for table in tables] == [1, 2]
    by_name = {line["name"]: line for line in tables[0]["lines"]}
    assert by_name["BERT average"]["figures"]["average"] == by_name[tiny_bert.name]["figures"]["average"]
    assert by_name["SBERT-NLI-base"]["figures"] == {}
    assert by_name["SBERT-NLI-base"]["paper"]["figures"]["average"] == 74.89
    page = (out / "report.html").read_text("utf-8")
    assert page.count("<svg") == 3  # ours against the paper's, histograms, reliability
    assert "neither installed nor in the hub cache" in page
    again = run("table1", "table2", *named)
    assert again.stdout == done.stdout
    assert "sts: " in done.stderr
    assert "sts: " not in again.stderr  # nothing was measured again


def test_a_wrong_call_is_told(tmp_path: Path) -> None:
    assert "'table8' is not one of" in run("table8", check=2).stderr
    for option, value in (("--budget", 1600), ("--seeds", 2), ("--learning-rate", 1e-4)):
        assert "--seeds and --learning-rate go with --train" in run("table6", option, value, check=2).stderr
    assert "the learning rate is 2" in run("table6", "--train", "x", "--learning-rate", 2, check=1).stderr
    assert "--train goes with table6" in run("table1", "--train", "x", check=2).stderr
    twice = ("--row", "BERT average=a", "--row", "BERT average=b")
    assert "was given more than once" in run("table1", *twice, check=2).stderr
    assert "nowhere is not there" in run("table1", "--data", tmp_path / "nowhere", check=1).stderr
    assert "has no '='" in run("table1", "--row", "BERT average", check=2).stderr
    assert "have no line 'BERT'" in run("table1", "--row", "BERT=x", check=1).stderr
    assert "there is no model folder" in run("table1", "-m", "./nowhere", check=1).stderr
