"""Scores that are kept."""

from __future__ import annotations

from pathlib import Path

from gemel.evaluate.scores import Scores
from gemel.reproduce.notebook import Notebook

SCORES = Scores("STSb", {"spearman": 0.8}, "spearman", "in words", 4, "hash", "print", "numpy", (0.7, 0.9))


def test_what_was_kept_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "scores.jsonl"
    key = Notebook.key("sts", "print", "numpy", "hash")
    Notebook(path).put(key, [SCORES])
    assert Notebook(path).get(key) == [SCORES]
    assert Notebook(path).get(Notebook.key("sts", "print", "native int8", "hash")) is None


def test_half_a_line_of_a_killed_run_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    Notebook(path).put("first", [SCORES])
    with path.open("a", encoding="utf-8") as file:
        file.write('{"key": "second", "scores": [{"name": "x", "metrics": {"s": 1.0}')
    notebook = Notebook(path)
    assert notebook.get("second") is None
    notebook.put("third", [SCORES])
    assert Notebook(path).get("first") == Notebook(path).get("third") == [SCORES]


def test_without_a_file_it_remembers_all_the_same() -> None:
    notebook = Notebook()
    notebook.put("key", [SCORES])
    assert notebook.get("key") == [SCORES]
