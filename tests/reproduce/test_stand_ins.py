"""Who stands in a line of the paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemel.errors import InvalidInput, ModelNotFound
from gemel.reproduce.paper import TABLES
from gemel.reproduce.stand_ins import PUBLISHED, Cast, short_name, trained_models


def test_every_published_model_is_for_a_line_of_the_paper() -> None:
    lines = {row.name for table in TABLES.values() for row in table.rows}
    assert set(PUBLISHED) - lines == {"SBERT-base"}  # which has two lines in table 7


def test_a_line_that_the_paper_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"have no line 'SBERT-huge'; expected one of .*BERT average"):
        Cast({"SBERT-huge": "folder"})


def test_a_published_model_is_not_downloaded_unasked() -> None:
    with pytest.raises(ModelNotFound, match="bert-large-nli-mean-tokens is neither installed nor in the hub"):
        Cast().models_for("SBERT-NLI-large")


@pytest.mark.parametrize(
    ("row", "reason"), [("InferSent (GloVe)", "a pickle"), ("SBERT-STSb-base", "train one, then --row")]
)
def test_a_line_without_a_model_says_what_to_do(row: str, reason: str) -> None:
    with pytest.raises(ModelNotFound, match=reason):
        Cast().models_for(row)


def test_a_named_model_keeps_the_pooling_of_its_line(tiny_bert: Path) -> None:
    (model,) = Cast({"BERT [CLS]": str(tiny_bert)}).models_for("BERT [CLS]")
    assert (model.model, model.pooling, model.note) == (str(tiny_bert), "cls", "in its place")


def test_a_training_gives_the_last_stage_of_each_seed(tmp_path: Path) -> None:
    for seed in (1, 2):
        for stage in (1, 2):
            (tmp_path / f"seed-{seed}" / f"stage-{stage}" / "model").mkdir(parents=True)
    (tmp_path / "seed-1" / "stage-2" / "last").mkdir()
    assert [str(path.relative_to(tmp_path)) for path in trained_models(tmp_path)] == [
        "seed-1/stage-2/model",
        "seed-2/stage-2/model",
    ]
    assert trained_models(tmp_path / "seed-1")[0].parts[-2:] == ("stage-2", "model")


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ModelNotFound, match="model is not there; expected a model folder or what gemel train"
    ):
        trained_models(tmp_path)


def test_seeds_that_stand_at_different_stages_are_refused(tmp_path: Path) -> None:
    for place in ("seed-1/stage-1", "seed-1/stage-10", "seed-1/stage-2", "seed-2/stage-1"):
        (tmp_path / place / "model").mkdir(parents=True)
    assert trained_models(tmp_path / "seed-1") == [tmp_path / "seed-1" / "stage-10" / "model"]
    with pytest.raises(ModelNotFound, match="have not come to the same stage"):
        trained_models(tmp_path)


@pytest.mark.parametrize(
    "row", ["pooling MEAN", "10-fold: SVR (Misra et al., 2016)", "SBERT-base, smart batching"]
)
def test_a_model_is_only_named_for_a_line_that_takes_one(row: str) -> None:
    with pytest.raises(InvalidInput, match="have no line"):
        Cast({row: "folder"})


def test_short_names_tell_models_apart(tmp_path: Path) -> None:
    (tmp_path / "run" / "model").mkdir(parents=True)
    (tmp_path / "run" / "seed-1" / "stage-2" / "model").mkdir(parents=True)
    assert short_name(str(tmp_path / "run" / "model")) == "run"
    assert short_name(str(tmp_path / "run" / "seed-1" / "stage-2" / "model")) == "run/seed-1"
    assert short_name("org/name") == "org/name"


@pytest.mark.parametrize("name", ["model", ".", "stage-1"])
def test_every_folder_has_a_short_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / name).mkdir(exist_ok=True)
    monkeypatch.chdir(tmp_path)
    assert short_name(name) == tmp_path.name


def test_a_stand_in_that_is_named_keeps_its_remark() -> None:
    glove = PUBLISHED["GloVe average"]
    assert Cast({"GloVe average": glove.model})._named["GloVe average"] == glove
    assert Cast({"GloVe average": "glove"})._named["GloVe average"].note == "in its place"
