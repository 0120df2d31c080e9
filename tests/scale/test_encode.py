"""A folder of parts holds every row once, in order, with the bits that a plain local run gives."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from stand_ins import sentences

from gemel import load_encoder
from gemel.data.stored_vectors import open_vectors
from gemel.errors import InvalidInput, MissingExtra, ModelMismatch, TruncationWarning, WriteFailed
from gemel.scale import EncodedFiles, EncodingSettings, LocalRunner, encode_files, parts
from gemel.scale.inputs import Part
from gemel.scale.manifest import NAME, part_name
from gemel.scale.parts import EncoderChoice, PartWriter, open_parts
from gemel.scale.places import matching, without_secrets
from gemel.scale.runners import make_runner

SETTINGS = EncodingSettings(part_rows=7)


class Interrupted(Exception):
    pass


class BrokenRunner(LocalRunner):
    """A runner whose machine is lost after some parts."""

    def run(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        for number, item in enumerate(items):
            if number == 2:
                raise Interrupted
            yield work(item)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """20, 0, 1 and 9 rows, in four formats: 3 + 0 + 1 + 2 parts of at most 7."""
    texts = sentences(30, seed=5, max_words=9)
    (tmp_path / "a.txt").write_text("".join(f"{text}\n" for text in texts[:20]), encoding="utf-8")
    (tmp_path / "b.csv").write_text("text\n", encoding="utf-8")
    (tmp_path / "c.jsonl").write_text(json.dumps({"text": texts[20]}) + "\n", encoding="utf-8")
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"text": texts[21:]}), tmp_path / "d.parquet")
    return [str(tmp_path / name) for name in ("a.txt", "b.csv", "c.jsonl", "d.parquet")]


def test_parts_hold_every_row_once_with_the_bits_of_a_plain_run(
    tiny_bert: Path, tmp_path: Path, files: list[str]
) -> None:
    told: list[tuple[int, int]] = []
    output = tmp_path / "out"
    done = encode_files(
        tiny_bert, files, output, settings=SETTINGS, on_progress=lambda n, total: told.append((n, total))
    )
    assert (done.rows, done.resumed_rows, done.parts) == (30, 0, 6)
    assert sorted(path.name for path in output.iterdir()) == [NAME, *map(part_name, range(6))]
    stored = open_parts(output)
    assert stored.ids == list(range(30))
    expected = load_encoder(tiny_bert).encode(sentences(30, seed=5, max_words=9))
    assert np.array_equal(stored.vectors, expected)
    assert told == [(0, 30), (7, 30), (14, 30), (20, 30), (21, 30), (28, 30), (30, 30)]
    assert json.loads((output / NAME).read_text())["is_complete"] is True


def test_a_part_is_a_file_of_vectors_like_any_other(
    tiny_bert: Path, tmp_path: Path, files: list[str]
) -> None:
    encode_files(tiny_bert, files, tmp_path / "out", settings=SETTINGS)
    part = open_vectors(tmp_path / "out" / part_name(1))
    assert part.ids == list(range(7, 14))
    assert np.array_equal(part.vectors, open_parts(tmp_path / "out").vectors[7:14])


def test_a_vector_that_is_not_finite_is_refused_by_its_id(tiny_bert: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    model = tmp_path / "model"
    shutil.copytree(tiny_bert, model)
    weights = load_file(model / "model.safetensors")
    word = json.loads((model / "tokenizer.json").read_text())["model"]["vocab"]["dog"]
    table = next(name for name in weights if name.endswith("word_embeddings.weight"))
    weights[table] = weights[table].copy()
    weights[table][word] = np.nan
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    (tmp_path / "a.csv").write_text("key,text\nx,a cat\ny,a dog\n", encoding="utf-8")
    source, output = str(tmp_path / "a.csv"), tmp_path / "out"
    with pytest.raises(InvalidInput, match="the text with the id 'y' got a vector with NaN or infinity"):
        encode_files(model, source, output, id_column="key")
    assert not list(output.glob("part-*"))


def test_a_file_whose_name_holds_a_mark_is_that_file(tmp_path: Path) -> None:
    for name in ("a[1].txt", "a1.txt"):
        (tmp_path / name).write_text("a dog\n", encoding="utf-8")
    assert matching(str(tmp_path / "a[1].txt")) == [str(tmp_path / "a[1].txt")]
    (tmp_path / "a[1].txt").unlink()
    assert matching(str(tmp_path / "a[1].txt")) == [str(tmp_path / "a1.txt")]


def test_a_run_that_was_killed_at_its_manifest_begins_again(tiny_bert: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a dog\n", encoding="utf-8")
    source, output = str(tmp_path / "a.txt"), tmp_path / "out"
    output.mkdir()
    (output / f".{NAME}.{'0f' * 16}.draft").write_text("{", encoding="utf-8")
    assert encode_files(tiny_bert, source, output).rows == 1
    assert sorted(path.name for path in output.iterdir()) == [NAME, part_name(0)]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.draft").write_text("Dear", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"holds other files, such as letter\.draft"):
        encode_files(tiny_bert, source, tmp_path / "mine")


def test_a_run_that_broke_off_goes_on_and_does_nothing_twice(
    tiny_bert: Path, tmp_path: Path, files: list[str]
) -> None:
    output = tmp_path / "out"
    with pytest.raises(Interrupted):
        encode_files(tiny_bert, files, output, settings=SETTINGS, runner=BrokenRunner())
    written = {path.name: path.stat().st_mtime_ns for path in output.glob("part-*")}
    assert sorted(written) == [part_name(0), part_name(1)]
    assert json.loads((output / NAME).read_text())["is_complete"] is False
    done = encode_files(tiny_bert, files, output, settings=SETTINGS)
    assert (done.rows, done.resumed_rows) == (30, 14)
    assert all((output / name).stat().st_mtime_ns == time for name, time in written.items())
    whole = encode_files(tiny_bert, files, tmp_path / "whole", settings=SETTINGS)
    assert whole.resumed_rows == 0
    for path in output.iterdir():
        assert path.read_bytes() == (tmp_path / "whole" / path.name).read_bytes()
    (output / part_name(3)).unlink()
    assert encode_files(tiny_bert, files, output, settings=SETTINGS).resumed_rows == 29
    assert open_parts(output).ids == list(range(30))


def test_a_changed_input_model_or_setting_is_refused(
    tiny_bert: Path, tiny_model: Callable[..., Path], tmp_path: Path, files: list[str]
) -> None:
    output = tmp_path / "out"
    encode_files(tiny_bert, files, output, settings=SETTINGS)
    with pytest.raises(ModelMismatch, match="was begun by another model"):
        encode_files(tiny_model("roberta"), files, output, settings=SETTINGS)
    with pytest.raises(InvalidInput, match="was begun with part_rows = 7 and now it is 8"):
        encode_files(tiny_bert, files, output, settings=EncodingSettings(part_rows=8))
    with pytest.raises(InvalidInput, match="was begun with 4 inputs and now there are 3"):
        encode_files(tiny_bert, files[1:], output, settings=SETTINGS)
    content = Path(files[0]).read_text(encoding="utf-8")
    Path(files[0]).write_text(content.replace(content[0], "x", 1), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"a\.txt has changed since .* \(20 rows then, 20 now\)"):
        encode_files(tiny_bert, files, output, settings=SETTINGS)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.doc").write_text("mine")
    with pytest.raises(InvalidInput, match=r"holds other files, such as mine\.doc"):
        encode_files(tiny_bert, files, tmp_path / "other", settings=SETTINGS)


def test_a_worker_that_would_make_other_vectors_is_refused(tiny_bert: Path, tmp_path: Path) -> None:
    here = load_encoder(tiny_bert, precision="int8")
    there = EncoderChoice(
        str(tiny_bert), precision="float32"
    )  # as a machine may choose that has a graphics card
    writer = PartWriter(there, here.fingerprint, here.settings, str(tmp_path))
    with pytest.raises(ModelMismatch, match=r"a worker encodes by native float32.*, expected native int8"):
        writer(Part(0, [1], ["a dog"]))
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_was_trained_anew_is_opened_anew(
    tiny_bert: Path, tmp_path: Path, files: list[str]
) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny_bert, model)
    before = encode_files(model, files, tmp_path / "before", settings=SETTINGS)
    weights = load_file(model / "model.safetensors")
    weights["embeddings.word_embeddings.weight"] *= np.float32(2)
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    after = encode_files(model, files, tmp_path / "after", settings=SETTINGS)
    fresh = load_encoder(model)
    assert after.fingerprint == fresh.fingerprint != before.fingerprint
    texts = sentences(30, seed=5, max_words=9)
    np.testing.assert_array_equal(open_parts(tmp_path / "after").vectors, fresh.encode(texts))


def test_a_worker_opens_a_model_once(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    choice, n_opened = EncoderChoice(str(tiny_bert)), []
    monkeypatch.setattr(parts, "load_encoder", lambda *a, **k: n_opened.append(1) or load_encoder(*a, **k))
    encoder = choice.open()
    assert choice.opened(encoder.fingerprint) is choice.opened(encoder.fingerprint) is encoder
    assert len(n_opened) == 1
    assert choice.opened("another") is not encoder


def test_object_storage_is_read_and_written(tiny_bert: Path) -> None:
    texts = sentences(12, seed=3, max_words=6)
    memory = fsspec.filesystem("memory")
    for name, part in (("one", texts[:5]), ("two", texts[5:])):
        lines = [json.dumps({"key": f"{name}-{row}", "line": text}) for row, text in enumerate(part)]
        memory.pipe_file(f"/lake/{name}.jsonl", "\n".join(lines).encode())

    def encode() -> EncodedFiles:
        columns = {"column": "line", "id_column": "key"}
        place = "memory://lake"
        return encode_files(tiny_bert, f"{place}/*.jsonl", f"{place}/vectors", **columns, settings=SETTINGS)

    done = encode()
    assert (done.rows, done.parts) == (12, 2)
    stored = open_parts("memory://lake/vectors")
    assert stored.ids == [f"one-{row}" for row in range(5)] + [f"two-{row}" for row in range(7)]
    assert np.array_equal(stored.vectors, load_encoder(tiny_bert).encode(texts))
    assert not [name for name in memory.ls("/lake/vectors", detail=False) if name.endswith(".draft")]
    assert encode().resumed_rows == 12


def test_what_is_cut_is_counted_over_all_parts(tiny_bert: Path, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("the man\n" * 9 + ("the man " * 90 + "\n") * 12, encoding="utf-8")
    with pytest.warns(TruncationWarning, match="12 of 21 texts were longer than 40 tokens"):
        encode_files(tiny_bert, str(tmp_path / "long.txt"), tmp_path / "out", settings=SETTINGS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quiet = EncodingSettings(part_rows=7, on_truncate="ignore")
        encode_files(tiny_bert, str(tmp_path / "long.txt"), tmp_path / "quiet", settings=quiet)


def test_bad_inputs_and_outputs_are_told_before_a_part_is_made(tiny_bert: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"cannot read .*missing\.txt"):
        encode_files(tiny_bert, str(tmp_path / "missing.txt"), tmp_path / "out")
    with pytest.raises(InvalidInput, match=r"no file is named .*\*\.txt"):
        encode_files(tiny_bert, str(tmp_path / "*.txt"), tmp_path / "out")
    (tmp_path / "ids.jsonl").write_text('{"text": "a", "id": 1}\n{"text": "b", "id": "two"}\n')
    with pytest.raises(InvalidInput, match="has the id 'two', and the first id is of type int"):
        encode_files(tiny_bert, str(tmp_path / "ids.jsonl"), tmp_path / "out", id_column="id")
    (tmp_path / "good.txt").write_text("the man\n")
    with pytest.raises(WriteFailed, match="cannot write nowhere://user-data/out") as told:
        encode_files(tiny_bert, str(tmp_path / "good.txt"), "nowhere://me:secret@user-data/out")
    assert "secret" not in str(told.value)
    assert not (tmp_path / "out").exists()
    with pytest.raises(InvalidInput, match="the runner 'spark' is unknown"):
        make_runner("spark")


def test_a_password_in_an_address_is_not_repeated() -> None:
    assert without_secrets("s3://key:secret@bucket/a/b@c.txt") == "s3://bucket/a/b@c.txt"
    assert without_secrets("/data/a@b.txt") == "/data/a@b.txt"


def test_ray_says_what_to_install_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"gemel\[ray\]"):
        make_runner("ray")
