"""Pushing to a hub of our own: what arrives there opens, and what is refused is told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
from encoders.made import write_infersent
from hub_stand_in import TOKEN, Hub, serving_hub
from terminals import GEMEL

from gemel import load_encoder, load_trainable, push
from gemel.errors import InvalidInput, InvalidModel, WriteFailed
from gemel.publishing import files_of


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    with serving_hub() as serving:
        yield serving


@pytest.fixture
def folder(tiny_bert: Path, tmp_path: Path) -> Path:
    """A saved encoder, with things beside it that are nobody else's business."""
    load_trainable(tiny_bert, device="cpu").save(tmp_path / "model")
    (tmp_path / "model" / "pytorch_model.bin").write_bytes(b"a pickle")
    (tmp_path / "model" / ".secret").write_text("mine", encoding="utf-8")
    (tmp_path / "model" / "config.json.draft").write_text("{}", encoding="utf-8")
    return tmp_path / "model"


def fetched(hub: Hub, name: str, target: Path, branch: str = "main") -> Path:
    for path, data in hub.files[name, branch].items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_bytes(data)
    return target


def test_what_arrives_is_the_same_model_and_private(hub: Hub, folder: Path, tmp_path: Path) -> None:
    published = push(folder, "ada/twin", token=TOKEN, endpoint=hub.url)
    assert published.url == f"{hub.url}/ada/twin"
    assert published.private
    assert hub.private == {"ada/twin": True}
    arrived = hub.files["ada/twin", "main"]
    assert {"modules.json", "1_Pooling/config.json", "model.safetensors", "README.md"} <= set(arrived)
    assert not {"pytorch_model.bin", ".secret", "config.json.draft"} & set(arrived)
    assert published.files == len(arrived)
    assert published.bytes == sum(map(len, arrived.values()))
    texts = ["the man plays guitar", "a dog"]
    there = load_encoder(fetched(hub, "ada/twin", tmp_path / "there"))
    np.testing.assert_array_equal(there.encode(texts), load_encoder(folder).encode(texts))


def test_names_are_names_and_no_patterns(hub: Hub, folder: Path) -> None:
    for name in ("notes [old].txt", "why*.txt", "what?.txt"):
        (folder / name).write_text("kept", encoding="utf-8")
    published = push(folder, "ada/twin", token=TOKEN, endpoint=hub.url)
    arrived = hub.files["ada/twin", "main"]
    assert {"notes [old].txt", "why*.txt", "what?.txt"} <= set(arrived)
    assert published.files == len(arrived)


def test_a_repository_that_is_there_stays_as_public_as_it_was(hub: Hub, folder: Path) -> None:
    assert not push(folder, "ada/twin", public=True, token=TOKEN, endpoint=hub.url).private
    again = push(folder, "ada/twin", token=TOKEN, endpoint=hub.url, message="Better", revision="next")
    assert not again.private
    assert hub.messages == ["Upload with gemel", "Better"]
    assert hub.files["ada/twin", "next"].keys() == hub.files["ada/twin", "main"].keys()


def test_an_infersent_encoder_arrives_with_its_words(hub: Hub, tmp_path: Path) -> None:
    folder = write_infersent(tmp_path / "infersent")
    push(folder, "ada/infersent", token=TOKEN, endpoint=hub.url)
    there = load_encoder(fetched(hub, "ada/infersent", tmp_path / "there"))
    assert there.fingerprint == load_encoder(folder).fingerprint


def test_what_the_hub_refuses_is_told_in_a_sentence(hub: Hub, folder: Path) -> None:
    with pytest.raises(InvalidInput, match=r"refused the token for ada/twin \(401\).*may write to ada"):
        push(folder, "ada/twin", token="hf_wrong", endpoint=hub.url)
    with pytest.raises(InvalidInput, match=r"refused the token for bob/twin \(403\)"):
        push(folder, "bob/twin", token=TOKEN, endpoint=hub.url)
    hub.card_errors = ['"base_model" is not valid']
    with pytest.raises(InvalidInput, match=r'Invalid metadata in README.md. - "base_model" is not valid'):
        push(folder, "ada/twin", token=TOKEN, endpoint=hub.url)
    hub.card_errors, hub.breaks_at = [], "/api/repos/create"
    with pytest.raises(WriteFailed, match=r"did not take ada/twin \(500: out of order\); push again"):
        push(folder, "ada/twin", token=TOKEN, endpoint=hub.url)
    assert all(not files for files in hub.files.values())


def test_a_hub_that_is_not_there_is_told(folder: Path, hub: Hub) -> None:
    with pytest.raises(WriteFailed, match="ada/twin was not pushed"):
        push(folder, "ada/twin", token=TOKEN, endpoint="http://127.0.0.1:9")


def test_what_is_no_model_is_never_sent(hub: Hub, folder: Path, tmp_path: Path) -> None:
    given = {"token": TOKEN, "endpoint": hub.url}
    for name in ("twin", "a/b/c", "ada/my model"):
        with pytest.raises(InvalidInput, match="expected OWNER/NAME"):
            push(folder, name, **given)
    (tmp_path / "run").mkdir()
    shutil.copytree(folder, tmp_path / "run" / "model")
    with pytest.raises(InvalidModel, match=r"is a run of gemel train; push its model: .*run/model"):
        push(tmp_path / "run", "ada/twin", **given)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(InvalidModel, match=r"is damaged.*nothing was pushed"):
        push(folder, "ada/twin", **given)
    assert hub.private == {}


def test_a_program_in_the_folder_is_refused(folder: Path) -> None:
    (folder / "modeling.py").write_text("print(1)", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"modeling.py is a program"):
        files_of(folder, "ada/twin")


def test_without_a_token_or_offline_nothing_is_asked(
    hub: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    with pytest.raises(InvalidInput, match=r"no token for the hub was found.*hf auth login"):
        push(folder, "ada/twin", endpoint=hub.url)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InvalidInput, match="switched off by HF_HUB_OFFLINE"):
        push(folder, "ada/twin", token=TOKEN, endpoint=hub.url)


def test_the_command_takes_token_and_place_from_the_environment(
    hub: Hub, folder: Path, tmp_path: Path
) -> None:
    environment = {
        **os.environ,
        "HF_ENDPOINT": hub.url,
        "HF_TOKEN": TOKEN,
        "HF_HOME": str(tmp_path / "home"),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_OFFLINE": "0",
    }

    def call(*arguments: str) -> list[dict[str, object]]:
        done = subprocess.run(
            [*GEMEL, "push", str(folder), "ada/twin", *arguments],
            env=environment, capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        return [json.loads(line) for line in done.stdout.splitlines()]

    listed = call("--dry-run")
    assert hub.private == {}
    (line,) = call("--public")
    assert line["files"] == len(listed) == len(hub.files["ada/twin", "main"])
    assert line["private"] is False
