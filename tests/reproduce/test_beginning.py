"""A run is continued by the recipe that it was begun with, and by no other."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from stand_ins import make_tiny_model, sentences

from gemel.checkpoint import read_encoder_folder
from gemel.errors import InvalidInput
from gemel.reproduce.recipe import Recipe, parse_recipe
from gemel.reproduce.runner import RecipeRunner
from gemel.reproduce.sources import parse_source
from gemel.reproduce.teaching import cut_student


def recipe_for(model: Path, folder: Path) -> Recipe:
    texts = sentences(24, seed=3, max_words=6)
    rows = "".join(f"{a}\t{b}\n" for a, b in zip(texts[::2], texts[1::2], strict=True))
    (folder / "pairs.tsv").write_text(f"anchor\tpositive\n{rows}", encoding="utf-8")
    stage = {
        "data": {"path": str(folder / "pairs.tsv")},
        "objective": {"name": "contrastive", "temperature": 0.1},
        "train": {"batch_size": 4, "max_steps": 2},
    }
    return parse_recipe({"model": str(model), "stage": [stage]}, "pairs")


def changed(recipe: Recipe, **task: object) -> Recipe:
    (stage,) = recipe.stages
    return replace(recipe, stages=(replace(stage, tasks=(replace(stage.tasks[0], **task),)),))


@pytest.mark.parametrize("is_finished", [True, False])
def test_another_recipe_does_not_continue_a_run(tiny_bert: Path, tmp_path: Path, is_finished: bool) -> None:
    recipe, place = recipe_for(tiny_bert, tmp_path), tmp_path / "out"
    RecipeRunner(recipe).run(place)
    if not is_finished:
        (place / "result.json").unlink()
    others = str(shutil.copy(tmp_path / "pairs.tsv", tmp_path / "others.tsv"))
    for other, said in (
        (changed(recipe, objective_settings={"temperature": 0.5}), "settings of the objective"),
        (changed(recipe, data=replace(recipe.stages[0].tasks[0].data, path=others)), "data"),
        (replace(recipe, model="another-model"), "model"),
        (replace(recipe, layers=2), "layers"),
    ):
        with pytest.raises(InvalidInput, match=f"was begun with {said} = .* and now it is"):
            RecipeRunner(other).run(place, resume=True)
    RecipeRunner(recipe).run(place, resume=True)


def test_what_files_hold_may_not_change_while_a_run_goes_on(tiny_bert: Path, tmp_path: Path) -> None:
    model, place = tmp_path / "model", tmp_path / "out"
    shutil.copytree(tiny_bert, model)
    recipe = recipe_for(model, tmp_path)
    RecipeRunner(recipe).run(place)
    pairs = tmp_path / "pairs.tsv"
    rows = pairs.read_text("utf-8")
    pairs.write_text(rows.replace("\n", "\nanother\tpair\n", 1), "utf-8")
    with pytest.raises(InvalidInput, match="the contents of the data have changed since"):
        RecipeRunner(recipe).run(place, resume=True)
    pairs.write_text(rows, "utf-8")
    make_tiny_model("bert", tmp_path / "other", 5)
    shutil.copyfile(tmp_path / "other" / "model.safetensors", model / "model.safetensors")
    with pytest.raises(InvalidInput, match="the contents of the model have changed since"):
        RecipeRunner(recipe).run(place, resume=True)


def test_nor_may_what_it_is_validated_on(tiny_bert: Path, tmp_path: Path) -> None:
    scored = tmp_path / "scored.tsv"
    rows = "sentence1\tsentence2\tscore\na man\ta woman\t0.5\na cat\ta dog\t0.1\n"
    scored.write_text(rows, "utf-8")
    recipe, place = recipe_for(tiny_bert, tmp_path), tmp_path / "out"
    (stage,) = recipe.stages
    recipe = replace(recipe, stages=(replace(stage, validate=parse_source({"path": str(scored)}, "x")),))
    RecipeRunner(recipe).run(place)
    RecipeRunner(recipe).run(place, resume=True)
    scored.write_text(f"{rows}a pig\ta pig\t1.0\n", "utf-8")
    with pytest.raises(InvalidInput, match="the contents of the validation data have changed since"):
        RecipeRunner(recipe).run(place, resume=True)


def test_a_run_that_ran_out_of_time_goes_on_where_it_now_stands(tiny_bert: Path, tmp_path: Path) -> None:
    recipe, place = recipe_for(tiny_bert, tmp_path), tmp_path / "out"
    (stage,) = recipe.stages
    short = replace(recipe, stages=(replace(stage, train=replace(stage.train, max_minutes=1e-9)),))
    (run,) = RecipeRunner(short).run(place)
    assert not run.result.is_complete
    shutil.move(place, tmp_path / "moved")
    (run,) = RecipeRunner(recipe).run(tmp_path / "moved", resume=True)
    assert (run.result.steps, run.result.is_complete) == (2, True)
    (again,) = RecipeRunner(recipe).run(tmp_path / "moved", resume=True)
    assert again.result.model == tmp_path / "moved" / "model"


def test_a_run_is_not_begun_over_another(tiny_bert: Path, tmp_path: Path) -> None:
    recipe, place = recipe_for(tiny_bert, tmp_path), tmp_path / "out"
    RecipeRunner(recipe).run(place)
    with pytest.raises(InvalidInput, match="holds a run already: continue it"):
        RecipeRunner(recipe).run(place)


def test_what_moves_no_weight_may_change_when_a_run_goes_on(tiny_bert: Path, tmp_path: Path) -> None:
    recipe, place = recipe_for(tiny_bert, tmp_path), tmp_path / "out"
    (stage,) = recipe.stages
    short = replace(recipe, stages=(replace(stage, train=replace(stage.train, max_minutes=1e-9)),))
    RecipeRunner(short).run(place)
    (place / "result.json").unlink()
    (run,) = RecipeRunner(recipe).run(place, resume=True)
    assert run.result.steps == 2


def test_layers_that_another_run_has_left_are_not_taken_for_those_asked_for(tmp_path: Path) -> None:
    for seed in (0, 1):
        make_tiny_model("bert", tmp_path / f"bert-{seed}", seed)
    left = cut_student(tmp_path / "bert-0", 1, tmp_path)
    assert cut_student(tmp_path / "bert-0", 1, tmp_path) == left
    both = cut_student(tmp_path / "bert-0", 2, tmp_path)
    assert json.loads((both / "config.json").read_text(encoding="utf-8"))["num_hidden_layers"] == 2
    other = cut_student(tmp_path / "bert-1", 1, tmp_path)
    assert read_encoder_folder(other).fingerprint != read_encoder_folder(left).fingerprint
