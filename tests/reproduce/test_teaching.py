"""Recipes with a teacher, with fewer layers, and those that learn from texts alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from stand_ins import sentences

from gemel import load_encoder
from gemel.checkpoint import Dense, Normalise, read_encoder_folder
from gemel.data.plain_texts import TextFile
from gemel.errors import InvalidInput
from gemel.model import CrossEncoder, SentenceEncoder
from gemel.reproduce.distillation import DistilPlan
from gemel.reproduce.recipe import parse_recipe
from gemel.reproduce.runner import RecipeRunner

FAST = {"batch_size": 8, "learning_rate": 1e-3}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    torch.set_num_threads(1)
    first, second, third = (sentences(24, seed, 6) for seed in range(3))
    write(tmp_path / "texts.tsv", ["text"], [first])
    write(tmp_path / "pairs.tsv", ["query", "passage"], [first, second])
    write(tmp_path / "triplets.tsv", ["anchor", "positive", "negative"], [first, second, third])
    languages = ["en"] * 24 + ["de"] * 24
    write(tmp_path / "translated.tsv", ["sentence1", "lang"], [first + second, languages])
    return tmp_path


def write(file: Path, header: list[str], columns: list[list[str]]) -> None:
    rows = [header, *zip(*columns, strict=True)]
    file.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture(scope="module")
def scorer(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("scorer") / "cross"
    CrossEncoder.from_encoder(read_encoder_folder(tiny_bert), device="cpu").save(folder)
    return folder


def runner_of(data: Path, model: Path, stage: dict[str, object], **others: object) -> RecipeRunner:
    values = {"model": str(model), "stage": [{"train": FAST, **stage}], **others}
    return RecipeRunner(parse_recipe(values, "lesson"), data=data, device="cpu")


def loss_told(model: Path) -> str:
    card = (model / "README.md").read_text(encoding="utf-8")
    return next(line.partition("loss:")[2] for line in card.splitlines() if "loss:" in line)


def test_a_recipe_cuts_layers_and_learns_from_an_encoder(tiny_bert: Path, data: Path) -> None:
    stage = {
        "data": {"files": [{"path": "texts.tsv"}, {"path": "pairs.tsv", "columns": ["passage"]}]},
        "teacher": {"model": str(tiny_bert), "precision": "float32"},
    }
    runner = runner_of(data, tiny_bert, stage, layers=[0])
    (run,) = runner.run(data / "out")
    assert run.result.steps == 6
    student = load_encoder(run.result.model)
    assert student.folder.config["num_hidden_layers"] == 1
    assert loss_told(run.result.model) == "VectorImitation"
    told = json.loads((data / "out" / "teacher.json").read_text(encoding="utf-8"))
    n_different = len({*sentences(24, 0, 6), *sentences(24, 1, 6)})
    assert (told["texts"], told["fingerprint"]) == (n_different, load_encoder(tiny_bert).fingerprint)
    card = (run.result.model / "README.md").read_text(encoding="utf-8")
    assert "started from: `bert`" in card  # and not the folder of its layers, nor its place on this machine


def test_a_translation_comes_nearer_to_its_source(tiny_bert: Path, data: Path) -> None:
    stage = {
        "data": {"path": "translated.tsv", "translations": {"texts": ["sentence1"]}},
        "teacher": str(tiny_bert),
        "train": {**FAST, "epochs": 20},
    }
    (run,) = runner_of(data, tiny_bert, stage).run(data / "out")
    source, translation = (sentences(24, seed, 6) for seed in (0, 1))

    def cosines(folder: Path) -> float:
        vectors = [load_encoder(folder).encode(texts) for texts in (source, translation)]
        u, v = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in vectors)
        return float((u * v).sum(axis=1).mean())

    assert 1 - cosines(run.result.model) < (1 - cosines(tiny_bert)) / 3


def test_a_projection_is_added_where_vectors_are_of_another_length(tiny_bert: Path, data: Path) -> None:
    stage = {"data": {"path": "texts.tsv"}, "teacher": str(tiny_bert)}
    runner = runner_of(data, tiny_bert, stage, pooling=["mean", "max"])
    (run,) = runner.run(data / "out")
    assert run.result.steps == 3
    made = load_encoder(run.result.model)
    assert (made.dim, made.spec.tail) == (32, (Dense(64, 32, bias=False, activation="identity"),))


@pytest.mark.parametrize(
    ("file", "objective", "told"),
    [
        ("pairs.tsv", None, "CosineRegression"),
        ("pairs.tsv", "cosent", "CoSent"),
        ("triplets.tsv", None, "MarginImitation"),
    ],
)
def test_a_cross_encoder_teaches_pairs_and_triplets(
    file: str, objective: str | None, told: str, tiny_bert: Path, scorer: Path, data: Path
) -> None:
    named = {"objective": {"name": objective}} if objective else {}
    runner = runner_of(data, tiny_bert, {"data": {"path": file}, "teacher": str(scorer), **named})
    (run,) = runner.run(data / "out")
    assert loss_told(run.result.model).lower() == told.lower()
    assert np.load(data / "out" / "teacher.npy").shape == (24, 1 if file == "pairs.tsv" else 2)


@pytest.mark.parametrize(
    ("name", "told"), [("denoising", "Reconstruction"), ("cocondenser", "CondenserHead")]
)
def test_texts_alone_are_learnt_from(name: str, told: str, tiny_bert: Path, data: Path) -> None:
    stage = {"data": {"path": "texts.tsv", "kind": "texts"}, "objective": {"name": name}}
    (run,) = runner_of(data, tiny_bert, stage, pooling="cls").run(data / "out")
    assert (run.result.steps, loss_told(run.result.model)) == (3, told)
    assert load_encoder(run.result.model).spec.pooling.modes == ("cls",)


def test_a_preview_lets_the_teacher_speak_of_a_few_and_writes_nothing(tiny_bert: Path, data: Path) -> None:
    before = sorted(data.iterdir())
    stage = {"data": {"path": "texts.tsv"}, "teacher": str(tiny_bert), "train": {"batch_size": 2}}
    (preview,) = runner_of(data, tiny_bert, stage, layers=1).preview()
    assert (preview.n_steps, preview.objective) == (12, f"VectorImitation, taught by `{tiny_bert.name}`")
    assert sorted(data.iterdir()) == before


@pytest.mark.parametrize(
    ("stage", "said"),
    [
        (
            {"data": {"path": "triplets.tsv"}, "teacher": "ENCODER"},
            "is an encoder and the data holds triplets",
        ),
        ({"data": {"path": "pairs.tsv"}, "objective": {"name": "denoising"}}, "'denoising' eats texts"),
        (
            {"data": {"path": "texts.tsv"}, "objective": {"name": "denoising", "depth": 3}},
            "'denoising' does not take these settings: depth; it takes n_layers, deletion",
        ),
        (
            {"data": {"path": "texts.tsv"}, "teacher": "ENCODER", "objective": {"name": "softmax"}},
            "'softmax' does not learn from a teacher",
        ),
    ],
)
def test_what_cannot_be_taught_is_told(
    stage: dict[str, object], said: str, tiny_bert: Path, data: Path
) -> None:
    if stage.get("teacher"):
        stage = {**stage, "teacher": str(tiny_bert)}
    with pytest.raises(InvalidInput, match=said):
        runner_of(data, tiny_bert, stage).run(data / "out")


@pytest.mark.parametrize(
    ("stage", "said"),
    [
        ({"data": {"files": []}}, "has no files; expected at least one"),
        ({"data": {"files": [{"columns": ["a"]}]}}, "needs a path"),
        ({"data": {"files": [{"path": "a", "limit": 3}]}}, "unknown key 'limit'"),
        (
            {"data": {"path": "a"}, "teacher": {"precision": "int8"}},
            "the teacher of the recipe lesson needs a model",
        ),
        ({"data": {"path": "a"}, "teacher": {"name": "b"}}, "unknown key 'name'"),
    ],
)
def test_a_wrong_recipe_is_told_what_is_wrong(stage: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        parse_recipe({"model": "x", "stage": [stage]}, "lesson")


def test_a_plan_names_one_student() -> None:
    for choice in ({}, {"layers": 3, "student": "small"}):
        with pytest.raises(InvalidInput, match="say one of them"):
            DistilPlan("teacher", [], **choice)  # type: ignore[arg-type]


def test_a_student_has_the_length_of_its_teachers_vectors(tiny_bert: Path, data: Path) -> None:
    folder = read_encoder_folder(tiny_bert)
    unit = folder.with_spec(replace(folder.spec, tail=(Normalise(),)))
    SentenceEncoder(unit, device="cpu").save(data / "unit")
    stage: dict[str, object] = {"data": {"path": "texts.tsv"}, "teacher": str(data / "unit")}
    (run,) = runner_of(data, tiny_bert, stage).run(data / "out")
    lengths = np.linalg.norm(load_encoder(run.result.model).encode(["a man", "a dog"]), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-3)


def test_a_plan_that_validates_does_so_while_it_learns(tmp_path: Path) -> None:
    plan = DistilPlan("teacher", [TextFile("x.txt")], layers=3, validate={"path": "dev.tsv"})
    (stage,) = plan.recipe("small").stages
    assert stage.train.evaluate_every == 100
