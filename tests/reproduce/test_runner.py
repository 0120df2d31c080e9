"""Recipes as they are run: stages after each other, seeds beside each other, and what is told of both."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stand_ins import read_json, sentences, write_json

from gemel import load_encoder
from gemel.checkpoint import read_encoder_folder, read_head, read_reranker_folder
from gemel.errors import InvalidInput
from gemel.model import CrossEncoder, SentenceEncoder
from gemel.reproduce.recipe import Recipe, parse_recipe
from gemel.reproduce.runner import RecipeRunner
from gemel.reproduce.validation import build_validator

FIRST, SECOND, THIRD = (sentences(24, seed, 6) for seed in range(3))
SCORES = [str(number % 6) for number in range(24)]
LABELS = ["entailment", "neutral", "contradiction"] * 8
SHORT = {"batch_size": 8, "max_steps": 2}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write(tmp_path / "nli.tsv", "premise hypothesis label", FIRST, SECOND, LABELS)
    write(tmp_path / "sts.tsv", "sentence1 sentence2 score", FIRST, SECOND, SCORES)
    write(tmp_path / "triplets.tsv", "anchor positive negative", FIRST, SECOND, THIRD)
    write(tmp_path / "texts.tsv", "text label", FIRST, LABELS)
    return tmp_path


def write(file: Path, header: str, *columns: list[str]) -> None:
    rows = [header.split(), *zip(*columns, strict=True)]
    file.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")


def stage(path: str, train: dict[str, Any] | None = None, **others: Any) -> dict[str, Any]:
    ranges = {"score_range": [0, 5]} if path.endswith(("sts.tsv", "test.tsv")) else {}
    return {"data": {"path": path, **ranges}, "train": {**SHORT, **(train or {})}, **others}


def recipe_of(model: Path, *stages: dict[str, Any], **others: Any) -> Recipe:
    return parse_recipe({"model": str(model), "stage": list(stages), **others}, "mine")


VALIDATED = {"path": "sts.tsv", "score_range": [0, 5]}


# What a run goes on from ---------------------------------------------------------------------------------


def test_a_stage_does_not_go_on_from_another_model_than_it_began_with(tiny_bert: Path, data: Path) -> None:
    def recipe(max_minutes: float) -> Recipe:
        first = stage("triplets.tsv", {"learning_rate": 1e-3, "max_minutes": max_minutes})
        return recipe_of(tiny_bert, first, stage("sts.tsv"))

    runs = RecipeRunner(recipe(1e-9), data=data).run(data / "out")
    assert [run.result.is_complete for run in runs] == [False, True]
    told: list[str] = []
    runs = RecipeRunner(recipe(60), data=data).run(data / "out", resume=True, on_stage=told.append)
    assert [run.result.is_complete for run in runs] == [False, True]  # what has been begun from stays
    assert any("stage-1 stays as it is, at step 0" in line for line in told)
    shutil.copytree(data / "out" / "stage-2", data / "kept")
    shutil.rmtree(data / "out" / "stage-2")
    runs = RecipeRunner(recipe(60), data=data).run(data / "out", resume=True)
    assert [run.result.is_complete for run in runs] == [True, True]
    shutil.rmtree(data / "out" / "stage-2")
    shutil.copytree(data / "kept", data / "out" / "stage-2")
    with pytest.raises(InvalidInput, match=r"contents of the stage before have changed since .*stage-2"):
        RecipeRunner(recipe(60), data=data).run(data / "out", resume=True)


def test_a_stage_that_was_killed_while_it_replaced_its_checkpoint_counts_as_begun(
    tiny_bert: Path, data: Path
) -> None:
    def recipe(max_minutes: float) -> Recipe:
        return recipe_of(tiny_bert, stage("triplets.tsv", {"max_minutes": max_minutes}), stage("sts.tsv"))

    out = data / "out"
    RecipeRunner(recipe(1e-9), data=data).run(out)
    shutil.rmtree(out / "stage-2" / "model")
    (out / "stage-2" / ".last.x1.old").mkdir()
    (out / "stage-2" / "last").rename(out / "stage-2" / ".last.x1.old" / "model")
    runs = RecipeRunner(recipe(60), data=data).run(out, resume=True)
    assert [run.result.is_complete for run in runs] == [False, True]


def test_a_best_model_that_was_removed_is_told_before_anything_is_trained(
    tiny_bert: Path, data: Path
) -> None:
    recipe, out = recipe_of(tiny_bert, stage("triplets.tsv", validate=VALIDATED)), data / "out"
    RecipeRunner(recipe, data=data).run(out)
    shutil.rmtree(out / "model")
    with pytest.raises(InvalidInput, match=r"has no model: its best one, of step \d+, was removed"):
        RecipeRunner(recipe, data=data).run(out, resume=True)


def test_scores_with_a_prompt_are_not_compared_with_those_before(tiny_bert: Path, data: Path) -> None:
    prompted = stage("triplets.tsv", validate=VALIDATED, prompts={"anchor": "query: "})
    RecipeRunner(recipe_of(tiny_bert, prompted), data=data).run(data / "out")
    begun = read_json(data / "out" / "begun-with.json")
    assert begun.pop("prompt of the validation") == "query: "
    write_json(data / "out" / "begun-with.json", begun)  # as an older program wrote it
    with pytest.raises(InvalidInput, match="was begun with prompt of the validation = None and now"):
        RecipeRunner(recipe_of(tiny_bert, prompted), data=data).run(data / "out", resume=True)


def test_the_result_of_a_run_that_was_removed_is_not_another_s(tiny_bert: Path, data: Path) -> None:
    recipe, out = recipe_of(tiny_bert, stage("triplets.tsv")), data / "out"
    RecipeRunner(recipe, data=data).run(out)
    shutil.rmtree(out / "model")
    (run,) = RecipeRunner(recipe, data=data).run(out, resume=True)  # made again of the checkpoint
    assert load_encoder(run.result.model).dim == 32
    for name in ("model", "last"):
        shutil.rmtree(out / name)
    longer = recipe_of(tiny_bert, stage("triplets.tsv", {"max_steps": 3}))

    def broken_off(message: str) -> None:
        if "24 triplets" in message:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RecipeRunner(longer, data=data).run(out, on_stage=broken_off)
    (run,) = RecipeRunner(longer, data=data).run(out, resume=True)
    assert run.result.steps == 3


def test_one_seed_and_several_have_folders_of_their_own(tiny_bert: Path, data: Path) -> None:
    several = recipe_of(tiny_bert, stage("triplets.tsv"), seeds=[1, 2])
    one = recipe_of(tiny_bert, stage("triplets.tsv"), seeds=[3])
    RecipeRunner(several, data=data).run(data / "several")
    for resume in (True, False):
        with pytest.raises(InvalidInput, match=r"the runs of several seeds \(seed-1, seed-2\)"):
            RecipeRunner(one, data=data).run(data / "several", resume=resume)
    assert read_json(data / "several" / "result.json")["scores"] == {"1": None, "2": None}
    (data / "one" / "seed-corpus").mkdir(parents=True)  # somebody's
    RecipeRunner(one, data=data).run(data / "one")
    with pytest.raises(InvalidInput, match="holds a run of one seed, and the recipe has 2"):
        RecipeRunner(several, data=data).run(data / "one")


def test_a_teacher_speaks_once_for_all_seeds(
    tiny_bert: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoken: list[int] = []
    original = CrossEncoder.score
    CrossEncoder.from_encoder(read_encoder_folder(tiny_bert), device="cpu").save(data / "teacher")

    def counted(self: CrossEncoder, pairs: list[tuple[str, str]], **others: Any) -> Any:
        spoken.append(len(pairs))
        return original(self, pairs, **others)

    monkeypatch.setattr(
        "gemel.reproduce.teaching.load_reranker",
        lambda model, **others: CrossEncoder(read_reranker_folder(model), device="cpu"),
    )
    monkeypatch.setattr(CrossEncoder, "score", counted)
    taught = stage("triplets.tsv", teacher=str(data / "teacher"))
    RecipeRunner(recipe_of(tiny_bert, taught, seeds=[1, 2]), data=data).run(data / "out")
    assert spoken == [24, 24]  # with the positives, and with the negatives
    assert (data / "out" / "teacher.npy").is_file()


# Stages that differ --------------------------------------------------------------------------------------


def test_a_cross_encoder_gets_a_new_head_for_other_labels(tiny_bert: Path, data: Path) -> None:
    still = {"learning_rate": 1e-12, "weight_decay": 0.0}
    recipe = recipe_of(tiny_bert, stage("nli.tsv"), stage("sts.tsv", still), kind="cross-encoder")
    told: list[str] = []
    line = "a new head begins, for score instead of contradiction, entailment, neutral"
    assert [preview.new_head for preview in RecipeRunner(recipe, data=data).preview()] == [None, line]
    first, second = RecipeRunner(recipe, data=data).run(data / "out", on_stage=told.append)
    assert told.count(line) == 1
    assert read_reranker_folder(first.result.model).labels == ("contradiction", "entailment", "neutral")
    trained = CrossEncoder(read_reranker_folder(first.result.model), device="cpu")
    again = CrossEncoder(read_reranker_folder(second.result.model), device="cpu")
    assert again.labels == ("score",)
    assert again.score([("a man", "a woman")]).shape == (1,)
    for name, value in trained.transformer.base_model.state_dict().items():
        torch.testing.assert_close(again.transformer.base_model.state_dict()[name], value)


@pytest.mark.parametrize("labels", [["0", "1", "2"] * 8, ["entailment", "neutral"] * 12])
def test_a_head_is_not_lost_over_how_its_classes_are_written(
    tiny_bert: Path, data: Path, labels: list[str]
) -> None:
    write(data / "hub.tsv", "premise hypothesis label", FIRST, SECOND, labels)
    recipe = recipe_of(tiny_bert, stage("nli.tsv"), stage("hub.tsv"), kind="cross-encoder")
    if labels[0] == "0":
        with pytest.raises(
            InvalidInput, match=r"learnt the classes contradiction.*have 0, 1, 2; .*label_names"
        ):
            list(RecipeRunner(recipe, data=data).preview())
    else:  # NLI's classes are always three
        assert [preview.new_head for preview in RecipeRunner(recipe, data=data).preview()] == [None, None]


def test_somebody_s_cross_encoder_keeps_its_head(tiny_bert: Path, data: Path) -> None:
    CrossEncoder.from_encoder(read_encoder_folder(tiny_bert), ("no", "yes"), device="cpu").save(data / "ce")
    recipe = recipe_of(data / "ce", stage("sts.tsv"), kind="cross-encoder")
    with pytest.raises(InvalidInput, match=r"gives the classes no, yes, and the examples have score"):
        list(RecipeRunner(recipe, data=data).preview())


def test_a_preview_opens_what_the_stage_before_would_leave(tiny_bert: Path, data: Path) -> None:
    wide = {"name": "contrastive", "matryoshka": {"dimensions": [64, 16]}}
    adapted = stage("triplets.tsv", {"lora": {"rank": 2}}, prompts={"first": "the "})
    recipe = recipe_of(tiny_bert, adapted, stage("triplets.tsv", objective=wide))
    with pytest.raises(InvalidInput, match="64"):  # the vectors have 32 numbers
        list(RecipeRunner(recipe, data=data).preview())
    narrow = {**wide, "matryoshka": {"dimensions": [32, 16]}}
    recipe = recipe_of(tiny_bert, adapted, stage("triplets.tsv", objective=narrow))
    assert [each.n_steps for each in RecipeRunner(recipe, data=data).preview()] == [2, 2]


def test_a_preview_takes_no_longer_than_the_run_may(tiny_bert: Path, data: Path) -> None:
    endless = {"max_steps": 10**9, "epochs": 10**9, "max_minutes": 0.5}
    (preview,) = RecipeRunner(recipe_of(tiny_bert, stage("triplets.tsv", endless)), data=data).preview()
    assert preview.seconds == 30


def test_pooling_by_a_recipe_changes_the_modes_alone(tiny_bert: Path, data: Path) -> None:
    model = SentenceEncoder(read_encoder_folder(tiny_bert), device="cpu").with_prompts({"q": "the "}, "q")
    model.save(data / "prompted")
    pooling = read_json(data / "prompted" / "1_Pooling" / "config.json")
    write_json(data / "prompted" / "1_Pooling" / "config.json", {**pooling, "include_prompt": False})
    recipe = recipe_of(data / "prompted", stage("sts.tsv"), pooling="max")
    (run,) = RecipeRunner(recipe, data=data).run(data / "out")
    spec = read_encoder_folder(run.result.model).spec
    assert (spec.pooling.modes, spec.pooling.include_prompt) == (("max",), False)


# Validation and test sets --------------------------------------------------------------------------------


def test_prompts_stand_before_what_is_validated_on(tiny_bert: Path, data: Path) -> None:
    prompts = {"first": "the old ", "second": "a man and "}
    recipe = recipe_of(tiny_bert, stage("triplets.tsv", prompts=prompts, validate=VALIDATED))
    (run,) = RecipeRunner(recipe, data=data).run(data / "out")
    model = SentenceEncoder(read_encoder_folder(run.result.model), device="cpu")
    plain, prompted = (
        build_validator(each, each.stages[0], None, data)  # type: ignore[arg-type]
        for each in (recipe_of(tiny_bert, stage("triplets.tsv", validate=VALIDATED)), recipe)
    )
    assert plain is not None
    assert prompted is not None
    assert run.result.best_score == prompted(model) == plain(model.with_prompt("query"))
    assert run.result.best_score != plain(model)
    card = (run.result.model / "README.md").read_text(encoding="utf-8")
    assert "sts.tsv (scores from 0 to 5), each text after 'the old ' |" in card
    assert "- prompts: query = 'the old ', document = 'a man and '\n" in card
    assert "# With a prompt before each text (query, document):\nprompted = " in card


def test_the_prompt_of_texts_alone_is_saved_for_all_texts(tiny_bert: Path, data: Path) -> None:
    recipe = recipe_of(tiny_bert, stage("texts.tsv", {"batch_size": 12}, prompts={"text": "the old "}))
    (run,) = RecipeRunner(recipe, data=data).run(data / "out")
    assert load_encoder(run.result.model).prompt == "the old "


def test_validation_scores_that_are_all_the_same_are_told_before_the_training(
    tiny_bert: Path, data: Path
) -> None:
    write(data / "same.tsv", "sentence1 sentence2 score", FIRST, SECOND, ["1"] * 24)
    for kind in ("encoder", "cross-encoder"):
        recipe = recipe_of(tiny_bert, stage("sts.tsv", validate={"path": "same.tsv"}), kind=kind)
        with pytest.raises(InvalidInput, match="expected pairs that people judged"):
            list(RecipeRunner(recipe, data=data).preview())


def test_who_validates_on_a_test_set_is_told(tiny_bert: Path, data: Path) -> None:
    (data / "stsb").mkdir()
    shutil.copyfile(data / "sts.tsv", data / "stsb" / "test.tsv")
    validated = {**VALIDATED, "path": "stsb/test.tsv"}
    recipe = recipe_of(tiny_bert, stage("triplets.tsv", validate=validated))
    (preview,) = RecipeRunner(recipe, data=data).preview()
    assert preview.chosen_by_tests is not None
    assert "validated on most pairs of STSb" in preview.chosen_by_tests
    told: list[str] = []
    RecipeRunner(recipe, data=data).run(data / "out", on_stage=told.append)
    assert preview.chosen_by_tests in told
    shutil.copyfile(data / "nli.tsv", data / "stsb" / "train.tsv")
    write(data / "dev.tsv", "sentence1 sentence2 score", FIRST, THIRD, SCORES)
    other = stage("triplets.tsv", validate={**VALIDATED, "path": "dev.tsv"})
    (preview,) = RecipeRunner(recipe_of(tiny_bert, other), data=data).preview()
    assert preview.chosen_by_tests is None


def test_texts_of_test_sets_are_left_out_of_texts(tiny_bert: Path, data: Path) -> None:
    (data / "stsb").mkdir()
    write(data / "stsb" / "test.tsv", "sentence1 sentence2 score", FIRST[:4], SECOND[:4], SCORES[:4])
    left = {"path": "texts.tsv", "leave_out_tests": True}
    recipe = recipe_of(tiny_bert, {"data": left, "train": SHORT})
    (preview,) = RecipeRunner(recipe, data=data).preview()
    assert "left out: 4 texts of test sets" in preview.examples.describe()
    assert preview.overlap == "texts of test sets in the training data: none of STSb"
    tasks = [
        {"name": "texts", "data": {"path": "texts.tsv"}},
        {"name": "pairs", "data": {"path": "triplets.tsv", "limit": 2}},
    ]
    (preview,) = RecipeRunner(recipe_of(tiny_bert, {"task": tasks, "train": SHORT}), data=data).preview()
    assert preview.overlap == (
        "pairs of test sets in the training data: 2 of 4 of STSb; "
        "texts of test sets in the training data: 4 of 8 of STSb"
    )
    everything = {"path": "stsb/test.tsv", "score_range": [0, 5], "leave_out_tests": True}
    recipe = recipe_of(tiny_bert, {"data": everything, "train": SHORT})
    with pytest.raises(InvalidInput, match=r"all 4 scored pairs of stsb/test\.tsv stand in test sets"):
        list(RecipeRunner(recipe, data=data).preview())


# What means nothing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dim", "n_labels", "label_names", "kind", "cross_encoder"])
def test_settings_that_follow_from_the_data_are_refused(tiny_bert: Path, data: Path, name: str) -> None:
    recipe = recipe_of(tiny_bert, stage("triplets.tsv", objective={name: 5}))
    with pytest.raises(InvalidInput, match=f"setting '{name}', which follows from the model and the data"):
        list(RecipeRunner(recipe, data=data).preview())


def test_the_size_of_an_lstm_is_not_that_of_a_transformer(tiny_bert: Path, data: Path) -> None:
    for kind in ("encoder", "cross-encoder"):
        recipe = recipe_of(tiny_bert, stage("sts.tsv"), kind=kind, infersent={"hidden_size": 8})
        with pytest.raises(InvalidInput, match="sizes an InferSent encoder and starts from"):
            list(RecipeRunner(recipe, data=data).preview())


def test_windows_of_documents_are_not_told_as_cut(tiny_bert: Path, data: Path) -> None:
    (data / "documents.txt").write_text("".join(" ".join(FIRST) + f" {n}\n" for n in range(8)), "utf-8")
    recipe = recipe_of(tiny_bert, stage("documents.txt", objective={"name": "cocondenser"}))
    (preview,) = RecipeRunner(recipe, data=data).preview()
    assert preview.cut is None
    recipe = recipe_of(tiny_bert, stage("documents.txt", objective={"name": "denoising"}))
    (preview,) = RecipeRunner(recipe, data=data).preview()
    assert preview.cut is not None
    assert np.isfinite(preview.seconds)


def test_a_classifier_goes_on_with_the_same_classes_and_is_told_of_others(
    tiny_bert: Path, data: Path
) -> None:
    still = {"learning_rate": 1e-12, "weight_decay": 0.0}
    write(data / "yes.tsv", "sentence1 sentence2 label", FIRST, SECOND, ["no", "yes"] * 12)
    recipe = recipe_of(tiny_bert, stage("nli.tsv"), stage("nli.tsv", still), stage("yes.tsv"))
    told: list[str] = []
    first, second, _ = RecipeRunner(recipe, data=data).run(data / "out", on_stage=told.append)
    heads = [read_head(run.result.model) for run in (first, second)]
    np.testing.assert_allclose(*(head.weights["classifier.weight"] for head in heads if head), rtol=1e-6)
    line = "a new softmax head begins, for no, yes instead of contradiction, entailment, neutral"
    assert [each for each in told if "head" in each] == [line]


def test_other_classes_of_a_later_stage_get_a_new_head_and_respelt_ones_are_refused_at_once(
    tiny_bert: Path, data: Path
) -> None:
    write(data / "facts.tsv", "premise hypothesis label", FIRST, SECOND, ["supports", "refutes", "open"] * 8)
    write(data / "hub.tsv", "premise hypothesis label", FIRST, SECOND, ["0", "1", "2"] * 8)
    facts = recipe_of(tiny_bert, stage("nli.tsv"), stage("facts.tsv"), kind="cross-encoder")
    assert [run.result.is_complete for run in RecipeRunner(facts, data=data).run(data / "a")] == [True, True]
    hub = recipe_of(tiny_bert, stage("nli.tsv"), stage("hub.tsv"), kind="cross-encoder")
    with pytest.raises(InvalidInput, match=r"has learnt the classes contradiction.* have 0, 1, 2"):
        RecipeRunner(hub, data=data).run(data / "b")
    assert not (data / "b" / "stage-1" / "model").exists()


def test_a_run_that_ends_before_the_steps_asked_for_says_so(tiny_bert: Path, data: Path) -> None:
    recipe, told = recipe_of(tiny_bert, stage("triplets.tsv", {"max_steps": 500})), []
    (preview,) = RecipeRunner(recipe, data=data).preview()
    RecipeRunner(recipe, data=data).run(data / "out", on_stage=told.append)
    assert preview.short is not None
    assert re.fullmatch(
        rf"max_steps is 500, and 1 epoch of these examples end after {preview.n_steps}: more .*",
        preview.short,
    )
    assert preview.short in told


def test_a_head_is_not_taken_up_for_other_vectors(tiny_bert: Path, data: Path) -> None:
    RecipeRunner(recipe_of(tiny_bert, stage("nli.tsv")), data=data).run(data / "out")
    told: list[str] = []
    recipe = recipe_of(data / "out" / "model", stage("nli.tsv"), pooling="cls")
    RecipeRunner(recipe, data=data).run(data / "cls", on_stage=told.append)
    assert "a new softmax head begins: the one of out was for other vectors" in told
    objective = {"name": "softmax", "concatenation": ["u", "v"]}
    (preview,) = RecipeRunner(
        recipe_of(data / "out" / "model", stage("nli.tsv", objective=objective)), data=data
    ).preview()
    assert preview.new_head == "a new softmax head begins: the one of out was for other vectors"


def test_a_stage_that_a_cross_encoder_teaches_can_be_looked_at(tiny_bert: Path, data: Path) -> None:
    CrossEncoder.from_encoder(read_encoder_folder(tiny_bert), device="cpu").save(data / "teacher")
    write(data / "pairs.tsv", "anchor positive", FIRST, SECOND)
    recipe = recipe_of(tiny_bert, stage("pairs.tsv", teacher=str(data / "teacher")))
    (preview,) = RecipeRunner(recipe, data=data).preview()
    assert preview.n_steps == 2


def test_what_later_stages_would_be_refused_for_is_told_on_a_new_run_with_resume_too(
    tiny_bert: Path, data: Path
) -> None:
    recipe = recipe_of(tiny_bert, stage("triplets.tsv"), stage("absent.tsv"))
    with pytest.raises(InvalidInput, match="stage 2 of the recipe mine names absent"):
        RecipeRunner(recipe, data=data).run(data / "out", resume=True)
    assert not (data / "out").exists()
