"""Workers fill a collection on a server: every document once, also with a node killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scale.test_ray import TESTS, on_a_cluster
from stand_ins import sentences
from store_places import Place

from gemel.cli import gemel
from gemel.errors import InvalidInput
from gemel.index import KnownModel, Record
from gemel.index.opening import create_collection, open_collection
from gemel.loading import load_encoder
from gemel.scale import fill
from gemel.scale.parts import EncoderChoice
from gemel.tasks.passages import Chunking


@pytest.mark.parametrize("address", ["notes", "milvus:notes.db/notes"])
def test_what_one_process_writes_is_not_filled_by_workers(address: str) -> None:
    with pytest.raises(InvalidInput, match=f"{address} is written by one process at a time"):
        fill(address, [Record(1, "a dog")], Chunking(32), EncoderChoice())
    done = CliRunner().invoke(gemel, ["index", "add", address, "no-such.txt", "--runner", "ray"])
    assert isinstance(done.exception, InvalidInput)
    assert "leave the runner out" in str(done.exception)


def test_an_address_of_a_cluster_goes_with_a_cluster() -> None:
    done = CliRunner().invoke(gemel, ["index", "add", "notes", "no-such.txt", "--ray-address", "host:1"])
    assert done.exit_code == 2
    assert "--ray-address goes with --runner ray" in done.output


def test_a_folder_is_watched_by_one_machine() -> None:
    done = CliRunner().invoke(gemel, ["index", "add", "notes", "--watch", ".", "--runner", "ray"])
    assert done.exit_code == 2
    assert "leave --runner out" in done.output


@pytest.mark.extras
def test_a_node_killed_in_the_middle_costs_no_document(tiny_bert: Path, tmp_path: Path) -> None:
    place = Place("postgresql", tmp_path)
    encoder = load_encoder(tiny_bert)
    texts = sentences(20_000, seed=2, max_words=12)
    (tmp_path / "texts.txt").write_text("".join(f"{line}\n" for line in texts), encoding="utf-8")
    create_collection(place.address(), KnownModel(encoder.fingerprint, encoder.dim)).close()
    told = on_a_cluster("fill", tiny_bert, tmp_path / "texts.txt", place.address())
    assert told["workers_left"] == 1
    assert 0 < told["killed_at"] < 20_000
    assert (told["again"], told["unchanged"], told["encoded_again"]) == (20_000, 20_000, 0)
    with open_collection(place.address(), encoder) as filled:
        assert len(filled) == 20_000
        assert {record.id: record.text for record in filled} == dict(enumerate(texts))
        ids, vectors = filled.vectors(range(0, 20_000, 1_000))
        assert np.allclose(vectors, encoder.encode([texts[int(id_)] for id_ in ids]), atol=1e-6)
        (found,) = filled.search([texts[77]], k=1)[0]
        assert found.record.text == texts[77]


@pytest.mark.extras
def test_the_command_makes_fills_and_indexes(tiny_bert: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    place = Place("postgresql", tmp_path)
    (tmp_path / "texts.jsonl").write_text(
        "".join(
            json.dumps({"text": text, "n": n}) + "\n" for n, text in enumerate(sentences(10_500, max_words=6))
        )
    )
    command = ["index", "add", place.name(), str(tmp_path / "texts.jsonl"), "--store", place.store]
    model = tiny_bert.relative_to(tiny_bert.parent)  # for workers stand elsewhere
    chosen = ["-m", str(model), "--id-column", "n", "--runner", "ray", "--threads", "1"]
    done = subprocess.run(  # for Ray leaves threads behind
        [sys.executable, "-m", "gemel", *command, *chosen],
        cwd=tiny_bert.parent,
        env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["new"], told["records"]) == (10_500, 10_500)
    with open_collection(place.address(), load_encoder(tiny_bert)) as filled:
        assert filled.plan().method == "approximate"
