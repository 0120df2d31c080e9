"""`gemel train`: a recipe, or a few flags, into a model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gemel.cli import options
from gemel.errors import InvalidInput

if TYPE_CHECKING:
    from gemel.reproduce.recipe import Recipe, Stage
    from gemel.reproduce.runner import Preview, RecipeRunner, StageRun

SETTINGS = (
    *("epochs", "batch_size", "accumulate", "cache_chunk", "learning_rate", "warmup", "weight_decay"),
    *("clip_norm", "max_steps", "max_minutes", "evaluate_every", "patience", "checkpoint_every"),
    *("dropout", "average_last", "freeze", "seed", "bf16"),
)
DATA_FLAGS = ("kind", "score_range", "skip_bad_rows", "limit", "max_characters")
PAIR_ROLES = ("first", "anchor", "second", "positive", "score")  # of what an encoder is validated on
# What a recipe says itself, and a flag beside it would contradict.
SAID_BY_RECIPES = (
    *DATA_FLAGS,
    *("examples", "validate", "column", "where", "label_names", "objective", "settings", "cross_encoder"),
    *("teacher", "prompt", "pooling", "max_tokens"),
)
# As the registry of objectives has them; it is not asked, for that takes seconds of importing torch.
OBJECTIVE_NAMES = (
    "softmax, cosine, contrastive, triplet, regression, cosent, online-contrastive, batch-hard, "
    "supervised-contrastive, text-softmax, denoising, cocondenser"
)


@click.command("train")
@click.argument("recipe", required=False, metavar="[RECIPE.toml]")
@click.option(
    "-m",
    "--model",
    metavar="NAME",
    help="The model to start from: a folder, a hub name, or infersent[:FILE] for a new LSTM on word vectors.",
)
@click.option(
    "--examples", metavar="FILE", help="What to train on: tsv, csv, jsonl or parquet, by column names."
)
@click.option("--validate", metavar="FILE", help="Scored pairs to validate on, such as STSb's dev set.")
@click.option(
    "--score-range", type=float, nargs=2, metavar="LOW HIGH", help="What the scores can be, such as 0 5."
)
@click.option(
    "--label-names",
    metavar="A,B,C",
    help="What the numbers in a column of labels mean, from 0 on, such as entailment,neutral,contradiction.",
)
@click.option("--kind", metavar="KIND", help="What the examples are, where their columns leave a choice.")
@click.option(
    "--column",
    metavar="ROLE=NAME",
    multiple=True,
    help="A column under another name, such as first=question; roles: first, second, negative_1, text, "
    "score, label.",
)
@click.option(
    "--where",
    metavar="COLUMN=VALUE",
    multiple=True,
    help="Take rows by the value of a column, such as lang=en, or source!=sick for all others.",
)
@click.option("--limit", type=int, metavar="ROWS", help="Take the first so many.")
@click.option("--max-characters", type=int, metavar="N", help="Leave rows with longer texts out.")
@click.option(
    "--prompt",
    metavar="ROLE=TEXT",
    multiple=True,
    help='What stands before the texts of a column, such as first="query: "; roles as in --column.',
)
@click.option(
    "--objective",
    metavar="NAME",
    help=f"One of {OBJECTIVE_NAMES}; of a cross-encoder pair-regression or pair-classification.",
)
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="A setting of the objective, such as temperature=0.1 or matryoshka.dimensions=[384,96].",
)
@click.option(
    "--teacher", metavar="NAME", help="Learn what this encoder or cross-encoder says of the examples."
)
@click.option("--cross-encoder", is_flag=True, help="Train a cross-encoder, which reads both texts at once.")
@click.option(
    "--pooling", metavar="MODE", multiple=True, help="mean, cls, max ... [default: as the model has it]"
)
@click.option("--max-tokens", type=int, help="Of a text.  [default: as the model has it]")
@click.option("--epochs", type=int, help="[default: 1]")
@click.option("--batch-size", type=int, help="[default: 16]")
@click.option("--accumulate", type=int, metavar="BATCHES", help="Batches in one step.  [default: 1]")
@click.option("--cache-chunk", type=int, metavar="TEXTS", help="Texts in memory at once, for large batches.")
@click.option("--learning-rate", type=float, help="[default: 2e-5]")
@click.option("--warmup", type=float, metavar="SHARE", help="Of the steps.  [default: 0.1]")
@click.option("--weight-decay", type=float, help="[default: 0.01]")
@click.option("--clip-norm", type=float, metavar="NORM", help="The most of a gradient.  [default: 1]")
@click.option(
    "--freeze", metavar="PART", multiple=True, help="What stays as it is, such as backbone.embeddings."
)
@click.option("--lora-rank", type=int, metavar="RANK", help="Train low-rank adapters alone.")
@click.option("--max-steps", type=int)
@click.option("--max-minutes", type=float)
@click.option("--evaluate-every", type=int, metavar="STEPS")
@click.option("--patience", type=int, metavar="TIMES", help="Evaluations without a better one, then end.")
@click.option(
    "--checkpoint-every",
    type=int,
    metavar="STEPS",
    help="[default: at each evaluation and every ten minutes]",
)
@click.option("--dropout", type=float, metavar="SHARE", help="[default: the model's own]")
@click.option(
    "--average-last",
    type=float,
    metavar="SHARE",
    help="The model is the mean of the weights of the last steps, such as 0.2 of all.",
)
@click.option("--seed", type=int, help="[default: 42]")
@click.option(
    "--bf16",
    type=click.Choice(["auto", "on", "off"]),
    help="Forward passes in bfloat16; auto where a trial finds it right and faster.  [default: off]",
)
@click.option("--skip-bad-rows", is_flag=True, help="Leave malformed rows out and count them.")
@click.option("-o", "--output", metavar="FOLDER", help="Where everything goes.  [default: out/RECIPE]")
@click.option(
    "--data",
    metavar="FOLDER",
    help="Where data paths begin that are not here.  [default: $GEMEL_DATA, else what gemel data got]",
)
@click.option("--tensorboard", metavar="FOLDER", help="Write TensorBoard's event files there.")
@click.option("--resume", is_flag=True, help="Continue an interrupted run, to the same bits.")
@click.option("--dry-run", is_flag=True, help="Show examples, objective, steps and estimated time, and stop.")
@options.device
def command(recipe: str | None, **choices: Any) -> None:
    """Train a sentence encoder (or a cross-encoder) by a recipe or by flags.

    The objective follows from the columns of the data unless it is named: two texts and a label give
    softmax, two texts and a score cosine, anchor and positive (and negative) contrastive, a text and a label
    batch-hard; texts alone, a sentence a line, are learnt from by SimCSE. Flags for the length of a run go
    before what a recipe says.

    \b
    Examples:
      gemel train recipes/nli_contrastive.toml --data data --model my-bert
      gemel train -m my-bert --examples pairs.tsv -o out/mine --epochs 4
      gemel train -m my-bert --examples sentences.txt --batch-size 64 --learning-rate 3e-5
      gemel train -m my-bert --examples pairs.tsv --set symmetric=true --set margin=0.3
      gemel train -m my-bert --examples pairs.tsv --teacher my-cross-encoder
      gemel train recipes/stsb_regression.toml --dry-run
      torchrun --nproc-per-node 2 -m gemel train recipes/nli_contrastive.toml
    """
    from gemel.reproduce.recipe import read_recipe
    from gemel.reproduce.runner import RecipeRunner

    if recipe:
        chosen = _overridden(read_recipe(recipe, choices["model"]), choices)
    else:
        chosen = _recipe_of_flags(choices)
    runner = RecipeRunner(
        chosen, data=choices["data"], device=choices["device"], tensorboard=choices["tensorboard"]
    )
    if choices["dry_run"]:
        _show_dry_run(chosen, runner)
        return
    output = Path(choices["output"] or Path("out") / chosen.name)
    runs = _train(runner, output, choices["resume"])
    if not runner.team.is_leader:
        return
    for run in runs:
        click.echo(json.dumps(_result_line(run)))
    _show_spread(runner, runs)


def _show_dry_run(recipe: Recipe, runner: RecipeRunner) -> None:
    seconds, leads = 0.0, runner.team.is_leader
    for number, preview in enumerate(runner.preview(), start=1):
        seconds += preview.n_seeds * preview.seconds
        if leads:
            _show_preview(recipe, number, preview)
    if leads and len(recipe.stages) > 1:
        click.echo(f"all stages: {_told_time(seconds)} here")


def _train(runner: RecipeRunner, output: Path, resume: bool) -> list[StageRun]:
    def tell(line: str) -> None:
        if runner.team.is_leader:
            click.echo(line, err=True)

    try:
        return runner.run(output, resume=resume, on_stage=tell)
    except KeyboardInterrupt:
        if any(output.rglob("last/state.json")):
            tell(f"what was learnt is in {output}: the same command with --resume goes on")
        raise


def _overridden(recipe: Recipe, choices: dict[str, Any]) -> Recipe:
    """The recipe with what the flags say of the length of a run."""
    idle = next((name for name in SAID_BY_RECIPES if _is_given(choices[name])), None)
    if idle is not None:
        flag = "set" if idle == "settings" else idle.replace("_", "-")
        raise InvalidInput(f"--{flag} was given beside a recipe, which says it itself: change the recipe")
    given = _settings(choices)
    if not given:
        return recipe
    validates = any(stage.validate for stage in recipe.stages)
    if not validates and ("evaluate_every" in given or "patience" in given):
        raise InvalidInput(
            f"--evaluate-every or --patience was given, and the recipe {recipe.name} validates on nothing: "
            "add validate to it"
        )
    stages = tuple(_changed(stage, given) for stage in recipe.stages)
    return replace(recipe, stages=stages, seeds=(given["seed"],) if "seed" in given else recipe.seeds)


def _is_given(choice: Any) -> bool:
    """Whether a flag was used: a 0 is as good as any number."""
    return choice is not None and choice is not False and choice != ()


def _changed(stage: Stage, given: dict[str, Any]) -> Stage:
    """The stage with what was given, as far as it has a meaning there."""
    fitting = {
        name: value
        for name, value in given.items()
        if stage.validate is not None or name not in ("evaluate_every", "patience")
    }
    before, lora = stage.train.lora, fitting.get("lora")
    if before is not None and lora is not None:  # as strong, and beside the same maps
        fitting["lora"] = replace(before, rank=lora.rank, alpha=before.alpha * lora.rank / before.rank)
    return replace(stage, train=replace(stage.train, **fitting))


def _settings(choices: dict[str, Any]) -> dict[str, Any]:
    """What the flags say of a run."""
    given = {name: choices[name] for name in SETTINGS if choices[name] not in (None, ())}
    if choices["lora_rank"] is None:
        return given
    from gemel.train.lora import Lora

    return {**given, "lora": Lora(rank=choices["lora_rank"], alpha=2.0 * choices["lora_rank"])}


def _recipe_of_flags(choices: dict[str, Any]) -> Recipe:
    from gemel.reproduce.recipe import parse_recipe, parse_settings

    if not choices["model"] or not choices["examples"]:
        raise click.UsageError("give a recipe, or at least --model and --examples")
    stage: dict[str, Any] = {"data": _data(choices), "train": _settings(choices)}
    if choices["objective"] or choices["settings"]:
        named = {"name": choices["objective"]} if choices["objective"] else {}
        stage["objective"] = {**named, **parse_settings(choices["settings"])}
    if choices["teacher"]:
        stage["teacher"] = choices["teacher"]
    if choices["prompt"]:
        stage["prompts"] = _by_role("prompt", choices["prompt"])
    if choices["validate"]:
        stage["validate"] = _validation(choices)
    kind = "cross-encoder" if choices["cross_encoder"] else "encoder"
    values: dict[str, Any] = {"model": choices["model"], "kind": kind, "stage": [stage]}
    if choices["pooling"]:
        values["pooling"] = list(choices["pooling"])
    if choices["max_tokens"] is not None:
        values["max_tokens"] = choices["max_tokens"]
    return parse_recipe(values, Path(choices["examples"]).name.split(".")[0])


def _data(choices: dict[str, Any]) -> dict[str, Any]:
    """What the flags say of the examples."""
    data = {name: choices[name] for name in DATA_FLAGS if choices[name] not in (None, ())}
    if choices["label_names"]:
        data["label_names"] = _by_number(choices["label_names"])
    if choices["column"]:
        data["columns"] = _by_role("column", choices["column"])
    if choices["where"]:
        data["where"] = _conditions(choices["where"])
    return {"path": choices["examples"], **data}


def _validation(choices: dict[str, Any]) -> dict[str, Any]:
    """What the flags say of the file to validate on, which may have the columns of the examples."""
    from gemel.data.example_rows import columns_of
    from gemel.data.places import data_folder
    from gemel.reproduce.sources import place

    values: dict[str, Any] = {"path": choices["validate"]}
    values |= {name: choices[name] for name in ("score_range", "skip_bad_rows") if choices[name]}
    if choices["label_names"] and choices["cross_encoder"]:
        values["label_names"] = _by_number(choices["label_names"])
    if choices["column"]:
        found = columns_of(place(choices["validate"], data_folder(choices["data"])))
        roles = (*PAIR_ROLES, "label") if choices["cross_encoder"] else PAIR_ROLES
        named = _by_role("column", choices["column"])
        columns = {role: named[role] for role in roles if named.get(role) in found}
        values |= {"columns": columns} if columns else {}
    return values


def _conditions(given: tuple[str, ...]) -> dict[str, list[str]]:
    """column -> what is asked of it."""
    conditions: dict[str, list[str]] = {}
    for each in given:
        column, equals, value = each.partition("=")
        if not equals or not column:
            raise InvalidInput(f"--where is {each!r}; expected COLUMN=VALUE, such as lang=en")
        conditions.setdefault(column.removesuffix("!"), []).append("!=" * column.endswith("!") + value)
    return conditions


def _by_number(names: str) -> dict[str, str]:
    """number -> the class that it stands for."""
    return {str(number): name.strip() for number, name in enumerate(names.split(","))}


def _by_role(flag: str, named: tuple[str, ...]) -> dict[str, str]:
    """role -> what was said of it."""
    said: dict[str, str] = {}
    for given in named:
        role, equals, value = given.partition("=")
        if not equals or not value or role in said:
            raise InvalidInput(
                f"--{flag} is {given!r}; expected ROLE=VALUE, such as first=question, each role once"
            )
        said[role] = value
    return said


def _show_preview(recipe: Recipe, number: int, preview: Preview) -> None:
    if len(recipe.stages) > 1:
        click.secho(f"stage {number}", bold=True)
    click.echo(preview.examples.describe())
    for shown in preview.first:
        for name, value in shown.items():
            click.echo(f"  {name:>10}  {value}")
        click.echo()
    click.echo(preview.overlap)
    for line in (preview.chosen_by_tests, preview.new_head, preview.cut, preview.short):
        if line is not None:
            click.echo(line)
    click.echo(f"objective: {preview.objective}")
    click.echo(f"training: {_told_training(preview)}")
    each, of_all = (" a seed", f" for all {preview.n_seeds} seeds") if preview.n_seeds > 1 else ("", "")
    time = _told_time(preview.n_seeds * preview.seconds)
    least = "at most " if preview.train.max_minutes is not None else ""
    teacher = "" if recipe.stages[number - 1].teacher is None else " and what the teacher says"
    click.echo(
        f"steps: {least}{preview.n_steps:,}{each}, {time} here{of_all}, validation{teacher} not counted"
    )


def _told_training(preview: Preview) -> str:
    train = preview.train
    batches = f"batches of {train.batch_size}"
    if train.accumulate > 1:
        batches += f" x {train.accumulate}"
    told = [batches, f"learning rate {train.learning_rate:g}"]
    if preview.validated_on is not None:
        when = "at the end" if train.evaluate_every is None else f"every {train.evaluate_every:,} steps"
        told.append(f"validated on {preview.validated_on} {when}")
    return ", ".join(told)


def _told_time(seconds: float) -> str:
    minutes = seconds / 60
    if minutes < 1:
        return "less than a minute"
    return f"about {minutes / 60:,.1f} hours" if minutes >= 120 else f"about {minutes:,.0f} minutes"


def _result_line(run: StageRun) -> dict[str, Any]:
    return {"stage": run.stage, "seed": run.seed, **vars(run.result), "model": str(run.result.model)}


def _show_spread(runner: RecipeRunner, runs: list[StageRun]) -> None:
    from gemel.reproduce.runner import spread

    last = len(runner.recipe.stages)
    scores = [
        run.result.best_score for run in runs if run.stage == last and run.result.best_score is not None
    ]
    if len(scores) > 1:
        mean, deviation = spread(scores)
        click.echo(f"validation over {len(scores)} seeds: {mean:.4f} ± {deviation:.4f}", err=True)
