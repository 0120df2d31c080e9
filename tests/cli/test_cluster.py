"""`gemel cluster` as a shell sees it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result

from gemel import cluster
from gemel.cli import cluster as verb
from gemel.cli import gemel
from gemel.errors import GemelError
from gemel.tasks.cluster import METHODS

TOPICS = {
    "cat": "my cat sleeps on mat",
    "bank": "the bank lost money from loan",
    "rain": "heavy rain fell in may",
}


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(gemel, [str(argument) for argument in arguments])


def run(*arguments: object) -> Result:
    done = invoke(*arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    return done


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def corpus(tmp_path: Path) -> tuple[Path, Path]:
    """18 texts of three topics and one of none, and their vectors."""
    random = np.random.default_rng(0)
    texts = [f"{words} number{row}" for words in TOPICS.values() for row in range(6)] + ["alone"]
    of = np.append(np.repeat(np.arange(3), 6), 3)
    rows = np.eye(4, 8)[of] + 0.05 * random.standard_normal((19, 8))
    (tmp_path / "texts.tsv").write_text("key\ttext\n" + "".join(f"k{i}\t{t}\n" for i, t in enumerate(texts)))
    np.save(tmp_path / "vectors.npy", rows.astype(np.float32))
    return tmp_path / "texts.tsv", tmp_path / "vectors.npy"


def test_a_line_a_cluster_tells_what_it_is_about(corpus: tuple[Path, Path]) -> None:
    texts, vectors = corpus
    found = lines_of(run("cluster", texts, "--vectors", vectors, "--id-column", "key").stdout)
    assert [(line["cluster"], line["size"]) for line in found] == [(0, 6), (1, 6), (2, 6)]
    for line, topic in zip(found, TOPICS, strict=True):
        assert topic in line["key_words"]
        assert len(line["typical"]) == 3
        assert all(topic in text["text"] for text in line["typical"])
    assert found[0]["typical"][0]["id"] in {f"k{row}" for row in range(6)}


def test_a_row_a_text_and_a_row_a_cluster_go_to_files(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    texts, vectors = corpus
    options = ("--vectors", vectors, "-o", tmp_path / "rows.csv", "--clusters", tmp_path / "clusters.parquet")
    summary = json.loads(run("cluster", texts, *options).stdout)
    with (tmp_path / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    expected = cluster(np.load(vectors))
    assert [int(row["cluster"]) for row in rows] == expected.labels.tolist()
    assert float(rows[0]["similarity"]) == pytest.approx(expected.similarities[0], abs=1e-5)
    assert rows[-1] == {"id": "18", "text": "alone", "cluster": "-1", "similarity": ""}
    table = pyarrow.parquet.read_table(tmp_path / "clusters.parquet").to_pylist()
    assert [line["size"] for line in table] == [6, 6, 6]
    assert "cat" in table[0]["key_words"]
    assert (summary["rows"], summary["clusters"], summary["unclustered"]) == (19, 3, 1)
    assert summary["threshold"] == expected.threshold


def test_rows_of_texts_go_to_standard_output(corpus: tuple[Path, Path]) -> None:
    texts, vectors = corpus
    found = lines_of(run("cluster", texts, "--vectors", vectors, "-o", "-", "--threshold", 0.8).stdout)
    assert [line["cluster"] for line in found] == [*[0] * 6, *[1] * 6, *[2] * 6, -1]
    assert found[-1]["similarity"] is None


def test_rows_of_clusters_go_to_standard_output_once(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    texts, vectors = corpus
    for more in ((), ("-o", tmp_path / "rows.csv")):
        found = lines_of(run("cluster", texts, "--vectors", vectors, "--clusters", "-", *more).stdout)
        assert [(line["cluster"], line["size"]) for line in found] == [(0, 6), (1, 6), (2, 6)]
        assert {"typical_id"} < set(found[0])


def test_a_terminal_shows_a_table(corpus: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: True, raising=False)
    texts, vectors = corpus
    lines = run("cluster", texts, "--vectors", vectors, "--threshold", 0.5, "--top", 2).stdout.splitlines()
    assert lines[0] == "3 clusters of 19 texts by star at the cosine 0.5; 1 in none."
    assert lines[2].split() == ["cluster", "texts", "key", "words", "typical"]
    assert lines[4].split()[:2] == ["0", "6"]
    assert "cat" in lines[4]
    assert lines[-1] == "… and 1 more: --clusters FILE has them all"
    assert max(map(len, lines)) <= 160


def test_texts_are_encoded_where_no_vectors_are_named(
    corpus: tuple[Path, Path], tiny_bert: Path, tmp_path: Path
) -> None:
    texts, _ = corpus
    options = ("-m", tiny_bert, "--method", "kmeans", "-k", 4, "--plot", tmp_path / "map.svg", "-o", "-")
    found = lines_of(run("cluster", texts, *options).stdout)
    assert {line["cluster"] for line in found} == {0, 1, 2, 3}
    assert "4 clusters of 19 texts in texts.tsv" in (tmp_path / "map.svg").read_text()


def test_the_command_knows_every_method() -> None:
    assert tuple(METHODS) == verb.METHODS


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--threshold", 2), "the threshold is 2.0; expected a cosine"),
        (("--method", "kmeans"), "n_clusters was not given"),
        (("--method", "kmeans", "-k", 20), "n_clusters is 20, of 19 rows"),
        (("-k", 3), "n_clusters was given with the method star"),
        (("--plot", "map.gif"), "cannot draw map.gif"),
        (("-o", "rows.docx"), "cannot tell a format from rows.docx"),
        (("-o", "nowhere/rows.csv"), "expected a file name in a folder that exists"),
    ],
)
def test_what_cannot_be_is_one_clear_sentence(
    corpus: tuple[Path, Path], options: tuple[object, ...], message: str
) -> None:
    texts, vectors = corpus
    done = invoke("cluster", texts, "--vectors", vectors, *options)
    assert isinstance(done.exception, GemelError)
    assert message in str(done.exception)


@pytest.mark.parametrize(
    "options",
    [("--threshold", "high"), ("--min-size", 0), ("--method", "dbscan"), ("-o", "-", "--clusters", "-")],
)
def test_a_wrong_call_is_a_usage_error(corpus: tuple[Path, Path], options: tuple[object, ...]) -> None:
    assert invoke("cluster", corpus[0], *options).exit_code == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--linkage", "average"), "--linkage goes with --method agglomerative, and the method is star"),
        (("--method", "kmeans", "-k", 3, "--linkage", "single"), "the method is kmeans"),
        (("--projection", "umap"), "--projection goes with --plot FILE"),
    ],
)
def test_an_option_that_would_change_nothing_is_refused(
    corpus: tuple[Path, Path], options: tuple[object, ...], message: str
) -> None:
    texts, vectors = corpus
    done = invoke("cluster", texts, "--vectors", vectors, *options)
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_linkage_is_taken_by_the_method_that_has_one(corpus: tuple[Path, Path]) -> None:
    texts, vectors = corpus
    options = ("--method", "agglomerative", "--linkage", "complete", "--threshold", 0.8)
    assert len(lines_of(run("cluster", texts, "--vectors", vectors, *options).stdout)) == 3


def test_no_texts_and_one_text_are_told(tmp_path: Path, tiny_bert: Path) -> None:
    (tmp_path / "none.txt").write_text("")
    (tmp_path / "one.txt").write_text("alone\n")
    assert "holds no texts" in str(invoke("cluster", tmp_path / "none.txt", "-m", tiny_bert).exception)
    assert "give a threshold" in str(invoke("cluster", tmp_path / "one.txt", "-m", tiny_bert).exception)
    alone = run("cluster", tmp_path / "one.txt", "-m", tiny_bert, "--threshold", 0.5, "--min-size", 1)
    assert lines_of(alone.stdout)[0]["size"] == 1
