"""`gemel data` as a shell sees it."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from terminals import GEMEL, shown_on
from web_stand_in import Site, serving

from gemel.data.catalogue import CATALOGUE


def run(*arguments: object, check: int = 0, **settings: Any) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "GEMEL_DATA"}
    done = subprocess.run(
        [*GEMEL, "data", *map(str, arguments)],
        **{"capture_output": True, "text": True, "timeout": 300, "env": environment, **settings},
    )
    assert done.returncode == check, done.stderr
    return done


def on_a_terminal(*arguments: object) -> str:
    ours, theirs = pty.openpty()
    run(*arguments, capture_output=False, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    return shown_on(ours)


@pytest.fixture
def afs(tmp_path: Path) -> Path:
    """The three official files of AFS, one pair each, as an archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for code in ("DP", "GC", "GM"):
            packed.writestr(f"AFS/ArgPairs_{code}.csv", "h,,,,,,,,,,\n3,,,,,,,,,A thing,A being\n")
    (tmp_path / "afs.zip").write_bytes(buffer.getvalue())
    return tmp_path / "afs.zip"


def test_json_lines_have_every_set(tmp_path: Path) -> None:
    done = run("--data", tmp_path)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["name"] for line in lines] == list(CATALOGUE)
    assert {line["here"] for line in lines} == {"no"}
    assert done.stderr == f"gemel: looking in {tmp_path}\n"


def test_a_terminal_gets_a_table_that_fits(tmp_path: Path) -> None:
    (tmp_path / "sts12").mkdir()
    (tmp_path / "sts12" / "test.tsv").write_text("not what it should be")
    shown = on_a_terminal("--data", tmp_path, "--verify").strip("\n").split("\n")
    assert shown[0].split() == ["name", "task", "here", "how", "to", "get", "rows", "licence"]
    assert len(shown) == len(CATALOGUE) + 2
    assert shown[2].split()[:6] == ["sts12", "sts", "yes,", "differs", "get", "3,108"]
    assert max(map(len, shown)) <= 110


def test_a_set_in_hand_is_brought_shown_and_then_left_alone(afs: Path, tmp_path: Path) -> None:
    done = run("get", "afs", "--from", afs, "--data", tmp_path / "data")
    receipt = json.loads(done.stdout)
    assert (receipt["name"], receipt["is_new"], receipt["files"][0]["rows"]) == ("afs", True, 3)
    assert "the catalogue knows no hash of its content" in done.stderr
    shown = on_a_terminal("afs", "--data", tmp_path / "data")
    assert shown.startswith("afs: Argument Facet Similarity")
    assert "all.tsv: rows not known; not known" in shown
    assert "it cannot be fetched" in shown
    line = json.loads(run("show", "AFS", "--json", "--data", tmp_path / "data").stdout)
    assert line["source"]["sources"][0]["place"] == str(afs)
    assert "afs is here already" in run("get", "afs", "--from", afs, "--data", tmp_path / "data").stderr


def test_a_set_is_fetched_from_another_place_and_held_to_a_hash(afs: Path, tmp_path: Path) -> None:
    with serving(Site({"/afs.zip": afs.read_bytes()})) as site:
        url = f"{site.url}/afs.zip"
        done = run("--data", tmp_path, "get", "afs", "--url", url, "--sha256", "0" * 64, check=1)
        assert done.stderr.startswith(f"gemel: {url} gave ")
        assert done.stderr.count("\n") == 1
        assert "Traceback" not in done.stderr
        run("--data", tmp_path, "get", "afs", "--url", url)
    assert (tmp_path / "afs" / "all.tsv").read_text("utf-8").count("\n") == 4


def test_wrong_calls_are_told_in_one_line(tmp_path: Path) -> None:
    assert "did you mean stsb" in run("stbs", check=1, env={**os.environ, "GEMEL_DATA": str(tmp_path)}).stderr
    assert "no set 'nothere'" in run("get", "stsb", "nothere", "--data", tmp_path, check=1).stderr
    assert "are for one set" in run("get", "a", "b", "--url", "http://x", check=2).stderr
    assert "is not there; expected a folder" in run("--data", tmp_path / "no", check=1).stderr
