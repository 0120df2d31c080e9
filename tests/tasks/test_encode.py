"""A file of texts becomes a file of vectors, whatever happens on the way."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import encoding_process
import numpy as np
import pytest
from encoding_process import HashEncoder

from gemel.contracts import Encoder
from gemel.data.texts import TextSource
from gemel.errors import InvalidInput, ModelMismatch, WriteFailed
from gemel.tasks.encode import EncodeOptions, EncodeSummary, encode_file, stream_jsonl

SMALL = EncodeOptions(window_texts=10)


def save_texts(path: Path, n_texts: int) -> Path:
    """Texts one a line, or with string ids in .jsonl."""
    texts = [f"text number {n}" for n in range(n_texts)]
    lines = (
        texts
        if path.suffix == ".txt"
        else [json.dumps({"id": f"#{n}", "text": t}) for n, t in enumerate(texts)]
    )
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def vectors_of(n_texts: int) -> np.ndarray:
    return HashEncoder().encode([f"text number {n}" for n in range(n_texts)])


def start(**settings: Any) -> subprocess.Popen[str]:
    command = [sys.executable, encoding_process.__file__, json.dumps(settings, default=str)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def outcome_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    output, errors = process.communicate(timeout=300)
    assert errors == ""
    outcome: dict[str, Any] = json.loads(output)
    return outcome


class BreaksOff(HashEncoder):
    """Encodes some texts and then fails, as a machine may."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after

    def encode(self, texts: Any) -> np.ndarray:
        if self.n_encoded >= self.after:
            raise RuntimeError("broke off")
        return super().encode(texts)


def break_off(source: TextSource, output: Path, after: int) -> None:
    with pytest.raises(RuntimeError, match="broke off"):
        encode_file(BreaksOff(after), source, output, options=SMALL)


def test_row_i_is_the_vector_of_line_i(tmp_path: Path) -> None:
    source, output = TextSource(save_texts(tmp_path / "in.txt", 95)), tmp_path / "out.npy"
    seen: list[int] = []
    encoder = HashEncoder()
    assert isinstance(encoder, Encoder)
    summary = encode_file(encoder, source, str(output), options=SMALL, on_progress=seen.append)
    assert summary == EncodeSummary(rows=95, resumed_rows=0, dim=16, output=output)
    assert seen == [*range(0, 100, 10), 95]
    np.testing.assert_array_equal(np.load(output), vectors_of(95), strict=True)


def test_ids_come_along(tmp_path: Path) -> None:
    source = TextSource(save_texts(tmp_path / "in.jsonl", 25), id_column="id")
    encode_file(HashEncoder(), source, tmp_path / "out.npz", options=SMALL)
    with np.load(tmp_path / "out.npz") as arrays:
        assert arrays["ids"].tolist() == [f"#{n}" for n in range(25)]
        np.testing.assert_array_equal(arrays["embeddings"], vectors_of(25))


def test_float16_is_the_nearest_to_float32(tmp_path: Path) -> None:
    source = TextSource(save_texts(tmp_path / "in.txt", 25))
    encode_file(HashEncoder(), source, tmp_path / "out.npy", options=EncodeOptions(dtype="float16"))
    np.testing.assert_array_equal(
        np.load(tmp_path / "out.npy"), vectors_of(25).astype(np.float16), strict=True
    )


def test_no_texts_give_a_valid_file_of_no_rows(tmp_path: Path) -> None:
    summary = encode_file(HashEncoder(), TextSource(save_texts(tmp_path / "in.txt", 0)), tmp_path / "out.npy")
    assert summary.rows == 0
    assert np.load(tmp_path / "out.npy").shape == (0, 16)


def test_windows_are_bounded_by_texts_and_by_characters(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("\n".join(["a" * 9, "b" * 50, "c", "d", "e", "f", "g" * 5]))
    sizes: list[list[int]] = []

    class Watched(HashEncoder):
        def encode(self, texts: Any) -> np.ndarray:
            sizes.append([len(text) for text in texts])
            return super().encode(texts)

    options = EncodeOptions(window_texts=3, window_chars=20)
    encode_file(Watched(), TextSource(tmp_path / "in.txt"), tmp_path / "out.npy", options=options)
    assert sizes == [[9, 50], [1, 1, 1], [1, 5]]


@pytest.mark.parametrize(
    ("flaw", "dtype"), [(np.nan, "float32"), (-np.inf, "float32"), (70_000.0, "float16")]
)
def test_a_vector_that_is_not_finite_is_named_by_its_row(tmp_path: Path, flaw: float, dtype: Any) -> None:
    class Flawed(HashEncoder):
        def encode(self, texts: Any) -> np.ndarray:
            vectors = super().encode(texts)
            vectors[[text == "text number 23" for text in texts], 3] = flaw
            return vectors

    source = TextSource(save_texts(tmp_path / "in.jsonl", 30), id_column="id")
    options = EncodeOptions(window_texts=10, dtype=dtype)
    with pytest.raises(
        InvalidInput, match=rf"row 23 \(id '#23'\) got a vector with NaN or infinity as {dtype}"
    ):
        encode_file(Flawed(), source, tmp_path / "out.npz", options=options)
    assert encode_file(HashEncoder(), source, tmp_path / "out.npz", options=options).resumed_rows == 20


def test_an_encoder_that_breaks_its_contract_writes_nothing(tmp_path: Path) -> None:
    class Short(HashEncoder):
        def encode(self, texts: Any) -> np.ndarray:
            return super().encode(texts)[1:]

    source = TextSource(save_texts(tmp_path / "in.txt", 5))
    with pytest.raises(InvalidInput, match=r"the encoder gave \(4, 16\); expected \(5, 16\)"):
        encode_file(Short(), source, tmp_path / "out.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_what_cannot_work_is_refused_before_anything_is_encoded(tmp_path: Path) -> None:
    texts, encoder = save_texts(tmp_path / "in.jsonl", 5), HashEncoder()
    with pytest.raises(InvalidInput, match=r"out\.npy would lose the ids of .*in\.jsonl"):
        encode_file(encoder, TextSource(texts, id_column="id"), tmp_path / "out.npy")
    with pytest.raises(InvalidInput, match="is both the input and the output"):
        encode_file(encoder, TextSource(texts), texts, options=EncodeOptions(overwrite=True))
    with pytest.raises(InvalidInput, match="No such file"):
        encode_file(encoder, TextSource(tmp_path / "none.txt"), tmp_path / "out.npy")
    with pytest.raises(InvalidInput, match="no column 'body'"):
        encode_file(encoder, TextSource(texts, column="body"), tmp_path / "out.npy")
    with pytest.raises(InvalidInput, match="expected one of float32, float16"):
        EncodeOptions(dtype="int8")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="a window of no texts"):
        EncodeOptions(window_texts=0)
    assert encoder.n_encoded == 0
    assert list(tmp_path.iterdir()) == [texts]


def test_a_run_that_broke_off_is_continued_and_nothing_is_encoded_twice(tmp_path: Path) -> None:
    source, output = TextSource(save_texts(tmp_path / "in.txt", 95)), tmp_path / "out.npy"
    break_off(source, output, after=40)
    encoder, seen = HashEncoder(), list[int]()
    summary = encode_file(encoder, source, output, options=SMALL, on_progress=seen.append)
    assert (summary.rows, summary.resumed_rows, encoder.n_encoded) == (95, 40, 55)
    assert seen == [*range(40, 100, 10), 95]
    np.testing.assert_array_equal(np.load(output), vectors_of(95))


def test_a_changed_input_is_refused_and_a_longer_one_continues(tmp_path: Path) -> None:
    path, output = save_texts(tmp_path / "in.txt", 95), tmp_path / "out.npy"
    break_off(TextSource(path), output, after=40)
    original = path.read_text()
    for changed in (original.replace("number 7\n", "number 7 \n"), original[:100]):
        path.write_text(changed)
        with pytest.raises(InvalidInput, match=r"the input has changed since row 40 was written"):
            encode_file(HashEncoder(), TextSource(path), output)
    save_texts(path, 120)
    assert encode_file(HashEncoder(), TextSource(path), output).resumed_rows == 40
    np.testing.assert_array_equal(np.load(output), vectors_of(120))


def test_another_model_is_refused_until_told_to_restart(tmp_path: Path) -> None:
    source, output = TextSource(save_texts(tmp_path / "in.txt", 95)), tmp_path / "out.npy"
    break_off(source, output, after=40)
    with pytest.raises(ModelMismatch, match=r"'hash-16', and this run has 'other'.*--restart"):
        encode_file(HashEncoder("other"), source, output)
    summary = encode_file(HashEncoder("other"), source, output, options=EncodeOptions(restart=True))
    assert (summary.rows, summary.resumed_rows) == (95, 0)


@pytest.mark.parametrize(("texts", "output"), [("in.txt", "out.npy"), ("in.jsonl", "out.parquet")])
def test_a_killed_run_continues_where_it_stopped(tmp_path: Path, texts: str, output: str) -> None:
    n_texts, window_texts, chance = 3_000, 50, random.Random(texts)
    source = save_texts(tmp_path / texts, n_texts)
    whole, broken = tmp_path / f"whole-{output}", tmp_path / f"broken-{output}"
    assert encoding_process.run(str(source), str(whole), window_texts=window_texts)["encoded"] == n_texts
    state_path, rows = Path(f"{broken}.partial", "state.json"), 0
    for _ in range(4):
        process = start(source=source, output=broken, window_texts=window_texts, delay_seconds=0.2)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if state_path.exists() and json.loads(state_path.read_text())["rows"] > rows:
                break
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.3))
        process.kill()
        process.communicate()
        rows = json.loads(state_path.read_text())["rows"]
        assert 0 < rows < n_texts
    outcome = outcome_of(start(source=source, output=broken, window_texts=window_texts))
    assert outcome == {"rows": n_texts, "resumed": rows, "encoded": n_texts - rows}
    assert broken.read_bytes() == whole.read_bytes()
    assert not state_path.parent.exists()


@pytest.mark.parametrize(("texts", "output"), [("in.txt", "out.npy"), ("in.jsonl", "out.npz")])
def test_a_run_killed_at_any_step_towards_the_disk_is_made_good(
    tmp_path: Path, texts: str, output: str
) -> None:
    source, expected = save_texts(tmp_path / texts, 25), tmp_path / f"expected-{output}"
    encoding_process.run(str(source), str(expected), window_texts=10)
    outcome = outcome_of(start(source=source, output=tmp_path / output, expected=expected, window_texts=10))
    assert outcome["wrong"] == []
    assert outcome["steps"] > 20


def test_a_full_disk_keeps_the_rows_that_are_safe(tmp_path: Path) -> None:
    source, output = save_texts(tmp_path / "in.txt", 1_000), tmp_path / "out.npy"
    limit = 128 + 64 * 250  # bytes: two windows of 100 rows and a half
    outcome = outcome_of(start(source=source, output=output, window_texts=100, max_file_bytes=limit))
    assert outcome["error"] == WriteFailed.__name__
    assert outcome["message"] == (
        f"cannot write {output}: File too large; 200 rows are safe in {output}.partial, "
        "and the same command continues from there"
    )
    assert not output.exists()
    outcome = outcome_of(start(source=source, output=output, window_texts=100))
    assert outcome == {"rows": 1_000, "resumed": 200, "encoded": 800}
    np.testing.assert_array_equal(np.load(output), vectors_of(1_000))


@pytest.mark.parametrize("kind", ["npz", "parquet", "jsonl", "jsonl.gz"])
def test_a_disk_that_fills_up_at_the_very_end_costs_nothing(tmp_path: Path, kind: str) -> None:
    source, output = save_texts(tmp_path / "in.jsonl", 300), tmp_path / f"out.{kind}"
    output.write_text("precious")
    limit = 128 + 64 * 300  # bytes: the rows fit, and the file made of them does not
    command = {"source": source, "output": output, "window_texts": 100, "overwrite": True}
    outcome = outcome_of(start(**command, max_file_bytes=limit))
    assert "File too large; 300 rows are safe" in outcome["message"]
    assert output.read_text() == "precious"
    assert not Path(f"{output}.partial", "draft").exists()
    assert outcome_of(start(**command)) == {"rows": 300, "resumed": 300, "encoded": 0}
    encoding_process.run(str(source), str(tmp_path / f"whole.{kind}"))
    assert output.read_bytes() == (tmp_path / f"whole.{kind}").read_bytes()


def test_a_disk_that_is_full_from_the_start_leaves_nothing_behind(tmp_path: Path) -> None:
    source, output = save_texts(tmp_path / "in.txt", 300), tmp_path / "out.npy"
    outcome = outcome_of(start(source=source, output=output, max_file_bytes=1_000))
    assert outcome["message"] == f"cannot write {output}: File too large; nothing was written"
    assert list(tmp_path.iterdir()) == [source]


def test_two_processes_do_not_write_one_file(tmp_path: Path) -> None:
    source, output = save_texts(tmp_path / "in.txt", 300), tmp_path / "out.npy"
    first = start(source=source, output=output, window_texts=30, delay_seconds=0.5)
    while not Path(f"{output}.partial", "state.json").exists():
        assert first.poll() is None
        time.sleep(0.005)
    with pytest.raises(InvalidInput, match="another process is writing"):
        encode_file(HashEncoder(), TextSource(source), output)
    assert outcome_of(first) == {"rows": 300, "resumed": 0, "encoded": 300}


@pytest.mark.parametrize("kind", ["npy", "npz", "jsonl"])
def test_memory_stays_bounded_however_long_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("gemel.data.spool.BLOCK_BYTES", 1 << 14)
    monkeypatch.setattr("gemel.data.vectors.BLOCK_BYTES", 1 << 14)
    peaks = []
    for n_texts in (6_000, 24_000):
        source = TextSource(save_texts(tmp_path / "in.txt", n_texts))
        options = EncodeOptions(window_texts=1_000, overwrite=True)
        tracemalloc.start()
        try:
            encode_file(HashEncoder(), source, tmp_path / f"out.{kind}", options=options)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < peaks[0] + 100_000
    assert peaks[1] < 2_000_000


def test_stdin_streams_to_json_lines_window_by_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(b"text number 0\ntext number 1\ntext number 2"))
    )
    written: list[str] = []
    assert stream_jsonl(HashEncoder(), TextSource("-"), written.append, window_texts=2) == 3
    assert [chunk.count("\n") for chunk in written] == [2, 1]
    objects = [json.loads(line) for line in "".join(written).splitlines()]
    assert [o["id"] for o in objects] == [0, 1, 2]
    np.testing.assert_array_equal(np.array([o["embedding"] for o in objects], np.float32), vectors_of(3))


def test_another_prompt_cannot_continue_a_run(tmp_path: Path) -> None:
    source, output = TextSource(save_texts(tmp_path / "in.txt", 60)), tmp_path / "out.npy"
    break_off(source, output, after=30)
    prompted = HashEncoder()
    prompted.settings = "prompt 'query: ', long texts cut"  # type: ignore[attr-defined]
    with pytest.raises(InvalidInput, match=r"with settings '', and this run has \"prompt 'query: '"):
        encode_file(prompted, source, output, options=SMALL)
