"""A folder is written whole or not at all, and nothing else is lost on the way."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import SafetensorError
from stand_ins import read_json, write_json

from gemel.checkpoint import ModelFolder, read_encoder_folder, read_weights, save_encoder_folder, whole_folder
from gemel.errors import InvalidInput, WriteFailed
from gemel.tokens import TextTokenizer


def save(model: ModelFolder, target: Path, overwrite: bool = False) -> None:
    dense = [read_weights((file,)) for file in model.dense_files]
    save_encoder_folder(target, model, read_weights(model.weight_files), dense, overwrite=overwrite)


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_folder_of_other_things_is_never_replaced(folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(InvalidInput, match="home is not a model folder and holds other things; name another"):
        save(read_encoder_folder(folder), home, overwrite=True)
    with pytest.raises(InvalidInput, match="holds other things"):
        save(read_encoder_folder(folder), home / "thesis.txt", overwrite=True)
    assert content(home) == {"thesis.txt": b"years of work"}


def test_a_project_or_a_repository_is_never_taken_for_a_model(tmp_path: Path) -> None:
    write_json(tmp_path / "project" / "config.json", {})
    with (
        pytest.raises(InvalidInput, match="project is not a model folder and holds other things"),
        whole_folder(tmp_path / "project", overwrite=True),
    ):
        pass
    write_json(tmp_path / "clone" / "modules.json", [])
    (tmp_path / "clone" / ".git").mkdir()
    with (
        pytest.raises(InvalidInput, match="clone is a git repository, whose history would be lost"),
        whole_folder(tmp_path / "clone", overwrite=True),
    ):
        pass
    assert (tmp_path / "project" / "config.json").is_file()
    assert (tmp_path / "clone" / ".git").is_dir()


@pytest.mark.parametrize("mark", ["modules.json", "config.json", "state.json"])
def test_a_model_or_a_checkpoint_is_replaced_when_asked(tmp_path: Path, mark: str) -> None:
    write_json(tmp_path / "old" / mark, {})
    (tmp_path / "old" / "weights.safetensors").touch()
    with whole_folder(tmp_path / "old", overwrite=True) as draft:
        (draft / "new").touch()
    assert [path.name for path in (tmp_path / "old").iterdir()] == ["new"]


def test_an_empty_folder_is_filled_without_being_asked_twice(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    with whole_folder(tmp_path / "new", overwrite=False) as draft:
        (draft / "file").touch()
    assert (tmp_path / "new" / "file").exists()


def test_float32_weights_are_never_called_half_precision(folder: Path, tmp_path: Path) -> None:
    write_json(folder / "config.json", {**read_json(folder / "config.json"), "torch_dtype": "float16"})
    save(read_encoder_folder(folder), tmp_path / "new")
    config = read_json(tmp_path / "new" / "config.json")
    assert config["dtype"] == "float32"
    assert "torch_dtype" not in config


def test_a_folder_that_the_base_came_from_is_not_told(folder: Path, tmp_path: Path) -> None:
    write_json(folder / "config.json", {**read_json(folder / "config.json"), "_name_or_path": "/home/ada"})
    save(read_encoder_folder(folder), tmp_path / "new")
    assert "_name_or_path" not in read_json(tmp_path / "new" / "config.json")
    assert read_encoder_folder(tmp_path / "new").fingerprint == read_encoder_folder(folder).fingerprint


def test_weights_of_another_type_keep_the_type_that_the_config_names(folder: Path, tmp_path: Path) -> None:
    write_json(folder / "config.json", {**read_json(folder / "config.json"), "dtype": "float16"})
    model = read_encoder_folder(folder)
    halves = {name: array.astype(np.float16) for name, array in read_weights(model.weight_files).items()}
    save_encoder_folder(tmp_path / "new", model, halves, [read_weights(model.dense_files)])
    assert read_json(tmp_path / "new" / "config.json")["dtype"] == "float16"


def test_a_tokenizer_that_has_vanished_is_not_left_out_silently(folder: Path, tmp_path: Path) -> None:
    model = read_encoder_folder(folder)
    weights, dense = read_weights(model.weight_files), [read_weights(model.dense_files)]
    shutil.rmtree(folder)
    with pytest.raises(WriteFailed, match="holds no tokenizer any more: put it back"):
        save_encoder_folder(tmp_path / "new", model, weights, dense)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_made_is_a_failed_write(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WriteFailed, match=r"could not be written .*; nothing was changed"):
        save(read_encoder_folder(folder), tmp_path / "file" / "new")


def test_a_draft_that_cannot_be_made_is_a_failed_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: Any) -> str:
        raise PermissionError("read-only")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with (
        pytest.raises(WriteFailed, match=r"\(read-only\); nothing was changed"),
        whole_folder(tmp_path / "new", overwrite=False),
    ):
        raise AssertionError("never reached")


def test_a_full_disk_under_safetensors_is_a_failed_write(tmp_path: Path) -> None:
    with (
        pytest.raises(WriteFailed, match=r"No space left on device.*nothing was changed"),
        whole_folder(tmp_path / "new", overwrite=False),
    ):
        raise SafetensorError("No space left on device")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failing", [1, 2])
def test_a_failed_replacement_brings_the_old_folder_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    before, rename, calls = content(folder), Path.rename, []

    def fail_once(self: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) == failing:
            raise OSError("disk gone")
        return rename(self, target)

    model = read_encoder_folder(folder)
    monkeypatch.setattr(Path, "rename", fail_once)
    with pytest.raises(WriteFailed, match=r"\(disk gone\); nothing was changed"):
        save(model, folder, overwrite=True)
    assert content(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_an_old_folder_that_cannot_be_brought_back_is_kept_and_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, rename = content(folder), Path.rename

    def fail_to_come_back(self: Path, target: Path) -> Path:
        if target == folder:
            raise OSError("disk gone")
        return rename(self, target)

    model = read_encoder_folder(folder)
    monkeypatch.setattr(Path, "rename", fail_to_come_back)
    with pytest.raises(WriteFailed, match="the old folder is kept as") as caught:
        save(model, folder, overwrite=True)
    assert content(Path(str(caught.value).rpartition(" kept as ")[2])) == before


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_the_rights_of_a_saved_folder_follow_the_umask(folder: Path, tmp_path: Path, umask: int) -> None:
    previous = os.umask(umask)
    try:
        save(read_encoder_folder(folder), tmp_path / "new")
    finally:
        os.umask(previous)
    for path in [tmp_path / "new", *(tmp_path / "new").rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o777 if path.is_dir() else 0o666) & ~umask


def test_what_the_tokenizer_file_says_is_said_to_programs_that_would_assume_otherwise(
    tiny_bert: Path, tmp_path: Path
) -> None:
    from transformers import AutoTokenizer

    cased = tmp_path / "cased"
    shutil.copytree(tiny_bert, cased, ignore=shutil.ignore_patterns("tokenizer_config.json"))
    tokenizer = read_json(cased / "tokenizer.json")
    tokenizer["normalizer"] |= {"lowercase": False, "strip_accents": False}
    write_json(cased / "tokenizer.json", tokenizer)
    save(read_encoder_folder(cased), tmp_path / "saved")
    saved = read_encoder_folder(tmp_path / "saved")
    assert saved.fingerprint == read_encoder_folder(cased).fingerprint
    text = "The Man is éating the dog"
    ours = TextTokenizer(cased, saved.config, lowercase=False, max_tokens=40).pieces([text]).flat
    assert AutoTokenizer.from_pretrained(tmp_path / "saved")(text)["input_ids"] == ours.tolist()
