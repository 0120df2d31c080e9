"""`gemel train` and `gemel classify` as a shell sees them."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from encoders.made import write_glove
from safetensors.numpy import load_file
from stand_ins import sentences
from terminals import GEMEL, run, shown_on

from gemel import load_encoder, load_reranker
from gemel.checkpoint import read_reranker_folder
from gemel.cli import gemel
from gemel.cli.train import OBJECTIVE_NAMES, SAID_BY_RECIPES, SETTINGS, _overridden
from gemel.errors import InvalidInput, InvalidModel
from gemel.reproduce.recipe import parse_settings, read_recipe
from gemel.train import OBJECTIVES, TrainConfig
from gemel.train.lora import Lora
from gemel.train.pretraining import PRETRAINING

RECIPES = sorted((Path(__file__).parent.parent.parent / "recipes").glob("*.toml"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    first, second, third = (sentences(24, seed, 6) for seed in range(3))
    labels = ["entailment", "neutral", "contradiction"] * 8
    rows = zip(first, second, labels, ["a", "b", "sick"] * 8, strict=True)
    write_table(tmp_path / "nli.tsv", ["premise", "hypothesis", "label", "source"], rows)
    scores = [str(i % 6) for i in range(24)]
    write_table(
        tmp_path / "sts.tsv", ["sentence1", "sentence2", "score"], zip(first, second, scores, strict=True)
    )
    write_table(
        tmp_path / "triplets.tsv", ["anchor", "positive", "negative"], zip(first, second, third, strict=True)
    )
    return tmp_path


def write_table(file: Path, header: list[str], rows: object) -> None:
    lines = ["\t".join(row) for row in [header, *rows]]  # type: ignore[misc]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def call(*arguments: object) -> Result:
    return CliRunner().invoke(gemel, list(map(str, arguments)), catch_exceptions=False)


def write_recipe(folder: Path, text: str) -> Path:
    file = folder / "recipe.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_flags_are_enough(tiny_bert: Path, data: Path) -> None:
    done = call(
        "train", "-m", tiny_bert, "--examples", data / "triplets.tsv", "-o", data / "out", "--batch-size", 8
    )
    (line,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert line["steps"] == 3
    assert load_encoder(line["model"]).dim == 32
    assert "loss:InBatchContrastive" in (Path(line["model"]) / "README.md").read_text(encoding="utf-8")
    assert (data / "out" / "curves.png").is_file()
    assert (data / "out" / "curves.svg").is_file()


def test_a_recipe_may_leave_its_model_to_the_command(tiny_bert: Path, data: Path) -> None:
    recipe = write_recipe(data, f'[[stage]]\ndata = {{ path = "{data / "triplets.tsv"}" }}\n')
    done = call("train", recipe, "-m", tiny_bert, "-o", data / "out", "--batch-size", 12)
    assert json.loads(done.stdout)["steps"] == 2


VALIDATED = (
    "--validate",
    "sts.tsv",
    "--score-range",
    0,
    5,
    "--evaluate-every",
    1,
    "--batch-size",
    8,
    "--max-steps",
    3,
    "-o",
    "out",
)


def test_a_terminal_has_a_bar_however_few_the_steps(tiny_bert: Path, data: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))  # without a width, no bar
    command = ["train", "-m", tiny_bert, "--examples", "triplets.tsv", *VALIDATED]
    subprocess.run(
        [*GEMEL, *map(str, command)],
        cwd=data,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        check=True,
        timeout=300,
    )
    os.close(theirs)
    shown = shown_on(ours)
    assert re.search(
        r"train [123]/3 \|.*\| \d\d:\d\d left, loss .* pairs/s, .* tokens/s, dev -?0\.\d{4}", shown
    ), shown
    assert not re.search("^step ", shown, re.MULTILINE)  # the bar says it


def test_where_no_bar_is_seen_every_evaluation_has_a_line(tiny_bert: Path, data: Path) -> None:
    done = run("train", "-m", tiny_bert, "--examples", "triplets.tsv", *VALIDATED, cwd=data)
    lines = [line for line in done.stderr.splitlines() if line.startswith("step ")]
    assert [line.split(":")[0] for line in lines] == [f"step {step} of 3" for step in (1, 2, 3)]
    told = r": loss \d\.\d+, \d+ pairs/s, [\d,]+ tokens/s, dev -?\d\.\d{4}.*, about \d+ minutes left"
    assert all(re.search(told, line) for line in lines), lines


def test_a_recipe_with_stages_and_seeds(tiny_bert: Path, data: Path) -> None:
    recipe = write_recipe(
        data,
        f"""
        model = "{tiny_bert}"
        pooling = "max"
        max_tokens = 20
        seeds = [1, 2]
        [[stage]]
        data = {{ path = "nli.tsv", where = {{ source = "!=sick" }} }}
        train = {{ batch_size = 4, learning_rate = 1e-3 }}
        [[stage]]
        data = {{ path = "sts.tsv", score_range = [0, 5] }}
        train = {{ batch_size = 8, evaluate_every = 2 }}
        validate = {{ path = "sts.tsv", score_range = [0, 5] }}
        """,
    )
    done = call("train", recipe, "--data", data, "-o", data / "out")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["seed"], line["stage"]) for line in lines] == [(1, 1), (1, 2), (2, 2)]
    assert [line["steps"] for line in lines] == [4, 3, 3]
    assert "validation over 2 seeds" in done.stderr
    model = load_encoder(data / "out" / "seed-2" / "stage-2" / "model")
    assert model.spec.pooling.modes == ("max",)
    assert model.spec.max_tokens == 20
    card = (model.folder.path / "README.md").read_text("utf-8")
    assert f"started from: `{tiny_bert.name}`" in card
    assert "- stage 1: nli.tsv" in card
    summary = json.loads((data / "out" / "result.json").read_text("utf-8"))
    assert summary["mean"] == pytest.approx(np.mean([line["best_score"] for line in lines[1:]]))
    assert set(summary["scores"]) == {"1", "2"}
    again = call("train", recipe, "--data", data, "-o", data / "out", "--resume")
    assert again.stdout == done.stdout
    with pytest.raises(InvalidInput, match="holds a run already"):
        call("train", recipe, "--data", data, "-o", data / "out")


def test_without_seeds_each_stage_has_its_own(tiny_bert: Path, data: Path) -> None:
    stage = '[[stage]]\ndata = {{ path = "nli.tsv" }}\ntrain = {{ max_steps = 1, seed = {} }}\n'
    recipe = write_recipe(data, f'model = "{tiny_bert}"\n' + stage.format(9) + stage.format(7))
    done = call("train", recipe, "--data", data, "-o", data / "out")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["stage"], line["seed"]) for line in lines] == [(1, 9), (2, 7)]


def test_a_later_stage_goes_on_without_the_data_of_an_earlier_one(tiny_bert: Path, data: Path) -> None:
    stages = [f'[[stage]]\ndata = {{ path = "{name}.tsv" }}\n' for name in ("nli", "triplets")]
    recipe = write_recipe(data, "\n".join([f'model = "{tiny_bert}"', *stages]))
    call("train", recipe, "--data", data, "-o", data / "out")
    card = (data / "out" / "stage-2" / "model" / "README.md").read_text("utf-8")
    shutil.rmtree(data / "out" / "stage-2")
    (data / "nli.tsv").unlink()
    call("train", recipe, "--data", data, "-o", data / "out", "--resume")
    assert (data / "out" / "stage-2" / "model" / "README.md").read_text("utf-8") == card
    assert "- stage 1: nli.tsv" in card


def test_what_a_later_stage_lacks_is_told_before_the_first(tiny_bert: Path, data: Path) -> None:
    recipe = write_recipe(
        data,
        f"""
        model = "{tiny_bert}"
        [[stage]]
        data = {{ path = "nli.tsv" }}
        [[stage]]
        data = {{ path = "sts.tsv", score_range = [0, 5] }}
        validate = {{ path = "absent.tsv" }}
        """,
    )
    with pytest.raises(InvalidInput, match=r"stage 2 of the recipe recipe names absent.tsv, which is nei"):
        call("train", recipe, "--data", data, "-o", data / "out")
    assert not (data / "out" / "stage-1" / "model").exists()


TASKS = """
    model = "{model}"
    [[stage]]
    mixing = "round-robin"
    train = {{ batch_size = 8, max_steps = 5, learning_rate = 1e-3 }}
    validate = {{ path = "sts.tsv", score_range = [0, 5] }}
    [[stage.task]]
    name = "nli"
    data = {{ path = "nli.tsv" }}
    [[stage.task]]
    name = "sts"
    data = {{ path = "sts.tsv", score_range = [0, 5] }}
    objective = {{ name = "cosent", temperature = 0.1 }}
    weight = 0.5
    [[stage.task]]
    name = "plain"
    data = {{ path = "plain.txt" }}
"""


def test_a_stage_mixes_tasks_on_one_encoder(tiny_bert: Path, data: Path) -> None:
    (data / "plain.txt").write_text("\n".join(sentences(20, 9, 6)) + "\n", encoding="utf-8")
    recipe = write_recipe(data, TASKS.format(model=tiny_bert))
    shown = call("train", recipe, "--data", data, "--dry-run").stdout
    for part in ("nli: 24 classified pairs", "plain: 20 texts", "steps: 5,"):
        assert part in shown
    assert "objective: nli: softmax; sts: cosent; plain: contrastive" in shown
    line = json.loads(call("train", recipe, "--data", data, "-o", data / "out").stdout)
    assert line["steps"] == 5
    card = (Path(line["model"]) / "README.md").read_text(encoding="utf-8")
    for part in (
        "loss:Softmax",
        "loss:CoSent",
        "nli.tsv, sts.tsv (scores from 0 to 5), plain.txt, 68 examples",
        "sts temperature",
    ):
        assert part in card
    classified = json.loads(call("classify", "--nli", "-m", line["model"], "the man", "a dog").stdout)
    assert set(classified["scores"]) == {"contradiction", "entailment", "neutral"}
    named = call("classify", "--nli", "--task", "nli", "-m", line["model"], "the man", "a dog")
    assert json.loads(named.stdout) == classified
    with pytest.raises(InvalidModel, match="no head for the task 'sts'; it has nli"):
        call("classify", "--nli", "--task", "sts", "-m", line["model"], "the man", "a dog")


def test_matryoshka_is_on_the_card_and_the_short_vectors_can_be_had(tiny_bert: Path, data: Path) -> None:
    arguments = ("-m", tiny_bert, "--examples", data / "triplets.tsv", "-o", data / "out")
    settings = ("--set", "matryoshka.dimensions=[32, 8]", "--set", "matryoshka.weights=[1, 0.5]")
    line = json.loads(call("train", *arguments, *settings, "--set", "temperature=0.1").stdout)
    card = (Path(line["model"]) / "README.md").read_text(encoding="utf-8")
    for part in (
        "loss:Matryoshka",
        "loss:InBatchContrastive",
        "objective: contrastive at 32, 8 dimensions (temperature = 0.1)",
        "dimensions that stand alone: 32, 8",
        ".with_dim(8)",
    ):
        assert part in card
    assert load_encoder(line["model"]).with_dim(8).encode(["the man"]).shape == (1, 8)


def test_plain_sentences_are_enough(tiny_bert: Path, data: Path) -> None:
    (data / "plain.txt").write_text("\n".join(sentences(20, 9, 6)) + "\n", encoding="utf-8")
    arguments = ("-m", tiny_bert, "--examples", data / "plain.txt", "-o", data / "out", "--batch-size", 10)
    line = json.loads(call("train", *arguments, "--cache-chunk", 4).stdout)
    assert line["steps"] == 2


def test_translations_are_a_source_of_pairs(tiny_bert: Path, data: Path) -> None:
    rows = [(text, lang) for lang in ("en", "de") for text in sentences(12, 1 if lang == "en" else 2, 6)]
    write_table(data / "many.tsv", ["text", "lang"], rows)
    source = '{ path = "many.tsv", translations = { texts = ["text"] } }'
    recipe = write_recipe(
        data,
        f"""
        model = "{tiny_bert}"
        [[stage]]
        data = {source}
        objective = {{ name = "contrastive", symmetric = true, margin = 0.3 }}
        """,
    )
    assert "12 pairs" in call("train", recipe, "--data", data, "--dry-run").stdout


def test_flags_for_the_length_of_a_run_go_before_the_recipe(tiny_bert: Path, data: Path) -> None:
    recipe = write_recipe(
        data, f'model = "{tiny_bert}"\nseeds = [1, 2]\n[[stage]]\ndata = {{ path = "triplets.tsv" }}'
    )
    arguments = ("train", recipe, "--data", data, "-o", data / "out")
    line = json.loads(call(*arguments, "--max-steps", 1, "--seed", 7).stdout)
    assert (line["steps"], line["seed"]) == (1, 7)
    with pytest.raises(InvalidInput, match="--examples was given beside a recipe, which says it itself"):
        call(*arguments, "--examples", data / "nli.tsv")
    with pytest.raises(InvalidInput, match="--set was given beside a recipe"):
        call(*arguments, "--set", "temperature=1")


def test_settings_on_the_command_line_are_values_or_words() -> None:
    assert parse_settings(["temperature=0.1", "distance=cosine", "m.d=[2, 1]", "m.w=[1, 1]"]) == {
        "temperature": 0.1,
        "distance": "cosine",
        "m": {"d": [2, 1], "w": [1, 1]},
    }
    assert parse_settings(["symmetric=False", "a=True", "b=true"]) == {
        "symmetric": False,
        "a": True,
        "b": True,
    }
    for given, message in ((["x"], "has no value; expected NAME=VALUE"), (["a=1", "a=2"], "cannot be read")):
        with pytest.raises(InvalidInput, match=message):
            parse_settings(given)


def test_the_help_names_every_objective() -> None:
    assert OBJECTIVE_NAMES.split(", ") == [*OBJECTIVES, *PRETRAINING]


def test_a_dry_run_shows_what_would_happen_and_writes_nothing(tiny_bert: Path, data: Path) -> None:
    arguments = (
        "-m",
        tiny_bert,
        "--examples",
        data / "nli.tsv",
        "-o",
        data / "out",
        "--epochs",
        2,
        "--dry-run",
    )
    done = call("train", *arguments)
    for part in ("24 classified pairs", "entailment 33%", "objective: softmax", "steps: 4,", "a minute here"):
        assert part in done.stdout
    assert not (data / "out").exists()


@pytest.mark.parametrize(
    ("kind", "n_seen", "what"), [("encoder", 48, "texts"), ("cross-encoder", 24, "pairs")]
)
def test_texts_that_the_model_cuts_are_told(
    tiny_bert: Path, data: Path, kind: str, n_seen: int, what: str
) -> None:
    recipe = write_recipe(
        data,
        f"""
        model = "{tiny_bert}"
        kind = "{kind}"
        max_tokens = 5
        [[stage]]
        data = {{ path = "sts.tsv", score_range = [0, 5] }}
        """,
    )
    shown = call("train", recipe, "--data", data, "--dry-run").stdout
    told = rf"\d+ of {n_seen} {what} looked at \(\d+\.\d%\) are longer than the 5 tokens that the model reads"
    assert re.search(told, shown)
    assert re.search(told, call("train", recipe, "--data", data, "-o", data / "out").stderr)
    recipe.write_text(recipe.read_text().replace("max_tokens = 5", "max_tokens = 40"))
    assert "tokens that the model reads" not in call("train", recipe, "--data", data, "--dry-run").stdout


def test_a_prompt_counts_among_the_tokens_that_are_cut(tiny_bert: Path, data: Path) -> None:
    common = ("train", "-m", tiny_bert, "--examples", data / "triplets.tsv", "-o", data / "out", "--dry-run")
    assert "tokens that the model reads" not in call(*common).stdout
    told = call(*common, "--prompt", f"first={'the man and ' * 20}").stdout
    assert "24 of 72 texts looked at (33.3%) are longer than" in told


def test_what_flags_say_of_the_data_holds_for_what_is_validated_on(tiny_bert: Path, data: Path) -> None:
    rows = list(zip(*(sentences(9, seed, 6) for seed in range(2)), ["0", "1", "2"] * 3, strict=True))
    write_table(data / "train.tsv", ["left", "right", "kind"], rows)
    write_table(data / "dev.tsv", ["left", "right", "kind"], [*rows, ("", "bad", "1")])
    said = ["--column", "first=left", "--column", "second=right", "--column", "label=kind"]
    said += ["--label-names", "entailment,neutral,contradiction", "--cross-encoder", "--skip-bad-rows"]
    common = ["train", "-m", tiny_bert, "--examples", data / "train.tsv", "-o", data / "out", *said]
    done = call(*common, "--validate", data / "dev.tsv", "--batch-size", 3)
    assert 0 <= json.loads(done.stdout)["best_score"] <= 1
    # A file in the usual layout does without.
    scored = [(first, second, str(n % 6)) for n, (first, second, _) in enumerate(rows)]
    write_table(data / "scored.tsv", ["left", "right", "degree"], scored)
    said = ["--column", "first=left", "--column", "second=right", "--column", "score=degree"]
    common = ["train", "-m", tiny_bert, "--examples", data / "scored.tsv", "-o", data / "other", *said]
    done = call(*common, "--score-range", 0, 5, "--validate", data / "sts.tsv", "--batch-size", 3)
    assert json.loads(done.stdout)["best_score"] is not None


def test_names_of_labels_are_for_labels(tiny_bert: Path, data: Path) -> None:
    with pytest.raises(InvalidInput, match=r"label_names say what labels stand for, and .* holds triplets"):
        call("train", "-m", tiny_bert, "--examples", data / "triplets.tsv", "--label-names", "a,b")


@pytest.mark.parametrize("flag", ["--limit", "--max-tokens", "--max-characters"])
def test_a_flag_of_0_beside_a_recipe_is_a_flag(tiny_bert: Path, data: Path, flag: str) -> None:
    recipe = write_recipe(data, f'model = "{tiny_bert}"\n[[stage]]\ndata = {{ path = "triplets.tsv" }}\n')
    with pytest.raises(InvalidInput, match=f"{flag} was given beside a recipe"):
        call("train", recipe, "--data", data, flag, 0)


def test_a_dry_run_tells_the_most_that_a_run_may_take(tiny_bert: Path, data: Path) -> None:
    common = ("train", "-m", tiny_bert, "--examples", data / "triplets.tsv", "--dry-run", "--epochs", 10**6)
    shown = call(*common, "--max-minutes", 3).stdout
    assert "steps: at most 2,000,000, about 3 minutes here, validation not counted" in shown


def test_what_test_sets_share_with_the_examples_is_told_kept_on_the_card_and_can_be_left_out(
    tiny_bert: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data / "stsb").mkdir()
    rows = [line.split("\t") for line in (data / "sts.tsv").read_text(encoding="utf-8").splitlines()[1:5]]
    write_table(data / "stsb/test.tsv", ["sentence1", "sentence2", "score"], rows)
    told = "pairs of test sets in the training data: 4 of 4 of STSb"
    common = (
        "train",
        "-m",
        tiny_bert,
        "--examples",
        data / "triplets.tsv",
        "--data",
        data,
        "--batch-size",
        8,
    )
    assert told in call(*common, "--dry-run").stdout
    done = call(*common, "-o", data / "out")
    assert told in done.stderr
    assert f"- {told}" in (data / "out/model/README.md").read_text(encoding="utf-8")

    recipe = write_recipe(
        data,
        f"""
        model = "{tiny_bert}"
        [[stage]]
        data = {{ path = "triplets.tsv", leave_out_tests = true }}
        train = {{ batch_size = 8 }}
        """,
    )
    shown = call("train", recipe, "--data", data, "--dry-run").stdout
    assert "20 triplets" in shown
    assert "left out: 4 pairs of test sets" in shown
    assert "pairs of test sets in the training data: none of STSb" in shown

    (data / "stsb/test.tsv").unlink()
    monkeypatch.setenv("GEMEL_CACHE", str(data / "cache"))
    with pytest.raises(InvalidInput, match="no test set is in"):
        call("train", recipe, "--data", data, "--dry-run")


def test_a_cross_encoder_is_trained_by_the_same_loop(tiny_bert: Path, data: Path) -> None:
    arguments = ("--examples", data / "sts.tsv", "--validate", data / "sts.tsv", "-o", data / "out")
    done = call("train", "-m", tiny_bert, "--cross-encoder", "--score-range", 0, 5, *arguments)
    line = json.loads(done.stdout)
    assert load_reranker(line["model"]).score([("the man", "a dog")]).shape == (1,)
    assert -1 <= line["best_score"] <= 1


def test_a_cross_encoder_with_classes_tells_what_follows_from_what(tiny_bert: Path, data: Path) -> None:
    recipe = write_recipe(data, cross_encoder_recipe(tiny_bert, '{ path = "nli.tsv" }'))
    call("train", recipe, "--data", data, "-o", data / "out")
    model = data / "out" / "model"
    line = json.loads(call("classify", "--nli", "-m", model, "the man", "a dog").stdout)
    scores = load_reranker(model, activation="identity").score([("the man", "a dog")])[0]
    shares = np.exp(scores) / np.exp(scores).sum()
    assert list(line["scores"]) == ["contradiction", "entailment", "neutral"]
    assert list(line["scores"].values()) == pytest.approx(shares.tolist(), abs=1e-4)
    assert line["label"] == list(line["scores"])[scores.argmax()]
    with pytest.raises(InvalidModel, match="has no classifier of pairs"):
        call("classify", "--nli", "-m", tiny_bert, "the man", "a dog")
    (model / "model.safetensors").unlink()
    with pytest.raises(InvalidModel, match=r"model\.safetensors"):  # not that there is no classifier
        call("classify", "--nli", "-m", model, "the man", "a dog")


def cross_encoder_recipe(model: Path, data: str, validate: str = "", more: str = "") -> str:
    lines = [f'model = "{model}"', 'kind = "cross-encoder"', more, "[[stage]]", f"data = {data}"]
    lines += ["train = { batch_size = 4, max_steps = 2 }", f"validate = {validate}" if validate else ""]
    return "\n".join(lines)


def test_a_cross_encoder_goes_on_with_the_head_that_it_has(tiny_bert: Path, data: Path) -> None:
    nli, sts = '{ path = "nli.tsv" }', '{ path = "sts.tsv", score_range = [0, 5] }'
    recipe = write_recipe(data, cross_encoder_recipe(tiny_bert, nli))
    call("train", recipe, "--data", data, "-o", data / "first")
    first = data / "first" / "model"
    recipe = write_recipe(data, cross_encoder_recipe(first, nli, more="max_tokens = 16"))
    call("train", recipe, "--data", data, "-o", data / "second")
    assert load_reranker(data / "second" / "model").folder.max_tokens == 16
    rows = [("a man", "the dog", label) for label in "pqr" * 4]
    write_table(data / "other.tsv", ["premise", "hypothesis", "label"], rows)
    for examples, told in (('{ path = "other.tsv" }', "p, q, r"), (sts, "score")):
        recipe = write_recipe(data, cross_encoder_recipe(first, examples))
        with pytest.raises(InvalidInput, match=f"contradiction, entailment, neutral, and .* have {told};"):
            call("train", recipe, "--data", data, "-o", data / "third")


def test_a_cross_encoder_is_validated_by_the_classes_that_it_learns(tiny_bert: Path, data: Path) -> None:
    entailed = [("a man", "the dog", "entailment"), ("the dog", "a man", "entailment")]
    write_table(data / "dev.tsv", ["premise", "hypothesis", "label"], entailed)
    rows = [("a man", "the dog", label) for label in ("contradiction", *["entailment"] * 11)]
    write_table(data / "train.tsv", ["premise", "hypothesis", "label"], rows)
    text = cross_encoder_recipe(tiny_bert, '{ path = "train.tsv" }', '{ path = "dev.tsv" }')
    recipe = write_recipe(data, text.replace("max_steps = 2", "epochs = 20, learning_rate = 1e-3"))
    done = call("train", recipe, "--data", data, "-o", data / "out")
    assert json.loads(done.stdout)["best_score"] == 1.0  # as class 0 of its own file it would be 0
    unlike = '{ path = "sts.tsv", score_range = [0, 5] }'
    recipe = write_recipe(data, cross_encoder_recipe(tiny_bert, '{ path = "train.tsv" }', unlike))
    with pytest.raises(InvalidInput, match=r"holds scored pairs to validate on, and .* classified pairs"):
        call("train", recipe, "--data", data, "-o", data / "unlike")


def test_an_objective_that_does_not_fit_is_refused(tiny_bert: Path, data: Path) -> None:
    with pytest.raises(InvalidInput, match="'softmax' eats classified pairs and the data holds triplets"):
        call(
            "train",
            "-m",
            tiny_bert,
            "--examples",
            data / "triplets.tsv",
            "--objective",
            "softmax",
            "-o",
            data / "o",
        )


def test_adapters_alone_are_trained_on_request(tiny_bert: Path, data: Path) -> None:
    asked = (
        "--examples",
        data / "triplets.tsv",
        "-o",
        data / "out",
        "--lora-rank",
        4,
        "--learning-rate",
        1e-2,
    )
    line = json.loads(call("train", "-m", tiny_bert, *asked).stdout)
    weights = load_file(data / "out" / "last" / "weights.safetensors")
    assert len(weights) == 24
    assert all(".lora_" in name for name in weights)
    before, after = (load_file(folder / "model.safetensors") for folder in (tiny_bert, Path(line["model"])))
    changed = {name for name in before if not np.array_equal(before[name], after[name])}
    assert len(changed) == 12  # the linear maps of two layers
    assert all(name.endswith(".weight") for name in changed)


def test_a_teacher_is_named_by_a_flag(tiny_bert: Path, data: Path) -> None:
    asked = ("--examples", data / "sts.tsv", "--kind", "pairs", "--teacher", tiny_bert, "-o", data / "out")
    line = json.loads(call("train", "-m", tiny_bert, *asked).stdout)
    assert "loss:VectorImitation" in (Path(line["model"]) / "README.md").read_text(encoding="utf-8")
    assert (data / "out" / "teacher.npy").is_file()


def test_nothing_to_train_on_is_told() -> None:
    done = call("train")
    assert done.exit_code == 2
    assert "give a recipe, or at least --model and --examples" in done.stderr


def test_bad_rows_are_refused_or_counted(tiny_bert: Path, data: Path) -> None:
    with (data / "nli.tsv").open("a", encoding="utf-8") as file:
        file.write("\tno premise\tneutral\ta\n")
    arguments = ("-m", tiny_bert, "--examples", data / "nli.tsv", "--dry-run")
    with pytest.raises(InvalidInput, match=r"nli\.tsv.*26"):
        call("train", *arguments)
    assert "left out: 1" in call("train", *arguments, "--skip-bad-rows").stdout


def test_softmax_training_leaves_a_classifier(tiny_bert: Path, data: Path) -> None:
    call("train", "-m", tiny_bert, "--examples", data / "nli.tsv", "-o", data / "out")
    model = data / "out" / "model"
    line = json.loads(call("classify", "--nli", "-m", model, "the man", "a dog").stdout)
    assert set(line["scores"]) == {"contradiction", "entailment", "neutral"}
    assert line["label"] in line["scores"]
    lines = call("classify", "--nli", "-m", model, "--examples", data / "nli.tsv").stdout.splitlines()
    assert len(lines) == 24


def test_numbers_of_classes_are_given_their_names(tiny_bert: Path, data: Path) -> None:
    rows = [("a man", "the dog", label) for label in ("0", "1", "2", "-1") * 4]
    write_table(data / "hub.tsv", ["premise", "hypothesis", "label"], rows)
    names = "entailment,neutral,contradiction"
    done = call(
        "train", "-m", tiny_bert, "--examples", data / "hub.tsv", "--label-names", names, "-o", data / "o"
    )
    assert "left out: 4 no gold label" in done.stderr
    line = json.loads(call("classify", "--nli", "-m", data / "o" / "model", "a man", "the dog").stdout)
    assert set(line["scores"]) == set(names.split(","))


def test_a_dry_run_counts_stages_and_seeds(tiny_bert: Path, data: Path) -> None:
    text = f"""
        model = "{tiny_bert}"
        seeds = [1, 2, 3]
        [[stage]]
        data = {{ path = "nli.tsv", where = {{ source = "!=sick" }} }}
        objective = {{ name = "softmax", concatenation = ["u", "v"] }}
        [[stage]]
        data = {{ path = "sts.tsv", score_range = [0, 5] }}
        train = {{ batch_size = 8, learning_rate = 1e-4, evaluate_every = 2 }}
        validate = {{ path = "sts.tsv", score_range = [0, 5] }}
        """
    shown = call("train", write_recipe(data, text), "--data", data, "--dry-run").stdout
    for part in (
        "objective: softmax (concatenation = ['u', 'v'])\ntraining: batches of 16, learning rate 2e-05\n",
        "steps: 1, less than a minute here, validation not counted\n",
        "     score  0.2\n",
        "batches of 8, learning rate 0.0001, validated on sts.tsv (scores from 0 to 5) every 2 steps\n",
        "steps: 3 a seed, less than a minute here for all 3 seeds, validation not counted\n",
        "all stages: less than a minute here\n",
    ):
        assert part in shown


def test_the_card_tells_the_licence_what_was_taken_of_the_data_and_what_was_measured(
    tiny_bert: Path, data: Path
) -> None:
    base = shutil.copytree(tiny_bert, data / "base")
    (base / "README.md").write_text("---\nlicense: mit\n---\n", encoding="utf-8")
    text = f"""
        model = "{base}"
        pooling = "max"
        max_tokens = 20
        [[stage]]
        data = {{ path = "nli.tsv", where = {{ source = "!=sick" }}, max_characters = 90, limit = 20 }}
        validate = {{ path = "sts.tsv", score_range = [0, 5] }}
        """
    call("train", write_recipe(data, text), "--data", data, "-o", data / "out")
    card = (data / "out" / "model" / "README.md").read_text(encoding="utf-8")
    for part in (
        "license: mit\n",
        "- data: nli.tsv (source != sick, texts of at most 90 characters, the first 20), 16 examples\n",
        "- pooling: max\n- max_tokens: 20\n",
        "| Spearman correlation of cosines, sts.tsv (scores from 0 to 5) |",
    ):
        assert part in card
    assert "gemel data" not in card  # what a person at this machine could do is nothing for a card


@pytest.mark.parametrize(
    ("name", "column", "told"),
    [("nli", "label", "the label 'neutral'"), ("sts", "score", "the score 0.5")],
)
def test_labels_that_are_all_the_same_are_refused(
    tiny_bert: Path, data: Path, name: str, column: str, told: str
) -> None:
    first, second = {"nli": ("premise", "hypothesis"), "sts": ("sentence1", "sentence2")}[name]
    rows = [("a man", "the dog", told.split()[-1].strip("'"))] * 6
    write_table(data / "same.tsv", [first, second, column], rows)
    with pytest.raises(InvalidInput, match=f"all 6 .* have {told}, from which nothing can be learnt"):
        call("train", "-m", tiny_bert, "--examples", data / "same.tsv", "--dry-run")


def test_an_objective_of_the_other_kind_of_model_is_told_as_such(tiny_bert: Path, data: Path) -> None:
    asked = ("-m", tiny_bert, "--examples", data / "nli.tsv", "-o", data / "out")
    with pytest.raises(InvalidInput, match="'softmax' is an encoder's; choose from pair-regression"):
        call("train", *asked, "--cross-encoder", "--objective", "softmax")
    with pytest.raises(InvalidInput, match="'pair-classification' is a cross-encoder's; choose from softmax"):
        call("train", *asked, "--objective", "pair-classification")


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.stem)
def test_every_recipe_of_the_project_is_read(recipe: Path) -> None:
    assert read_recipe(recipe).stages


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model = 3 =", "is not TOML"),
        ("[[stage]]", r"names no model to start from; add model = .*, or give --model"),
        ('model = "x"', r"has no \[\[stage\]\]; expected at least one"),
        (
            'model = "x"\n[[stage]]\ndata = { path = "a" }\nlr = 3',
            "unknown key 'lr'; the known keys are data",
        ),
        (
            'model = "x"\n[[stage]]\ndata = { path = "a" }\ntrain = { lr = 3 }',
            "train has the unknown key 'lr'",
        ),
        (
            'model = "x"\nkind = "magic"\n[[stage]]\ndata = { path = "a" }',
            "expected encoder or cross-encoder",
        ),
        ('model = "x"\n[[stage]]\ndata = { file = "a" }', "unknown key 'file'"),
        (
            'model = "x"\n[[stage]]' + 2 * '\n[[stage.task]]\ndata = { path = "a" }',
            "are named '', ''; expected a name for each",
        ),
        ('model = "x"\n[[stage]]\n[[stage.task]]\nname = "a"', "a task of the recipe recipe needs data"),
        (
            'model = "x"\n[[stage]]\ndata = { path = "a" }\n[[stage.task]]\nname = "a"',
            "unknown key 'data'; the known keys are task",
        ),
        ('model = "x"\n[[stage]]\ndata = "a.tsv"', r"data in a stage .* is 'a.tsv'; expected a table"),
        ('model = "x"\n[stage]\ndata = { path = "a" }', r"expected one or several \[\[...\]\] tables"),
        ('model = "x"\nseeds = 3\n[[stage]]\ndata = { path = "a" }', "seeds in .* expected a list of whole"),
        ('model = "x"\nseeds = [1, -2]\n[[stage]]\ndata = { path = "a" }', "seed is -2; expected a whole"),
        ('model = "x"\nseeds = [1, 1]\n[[stage]]\ndata = { path = "a" }', "expected no number twice"),
        ('model = "x"\npooling = 3\n[[stage]]\ndata = { path = "a" }', "pooling in .* expected a word"),
        ('model = "x"\nmax_tokens = "75"\n[[stage]]\ndata = { path = "a" }', "expected a whole number"),
        ('model = "x"\n[[stage]]\ndata = { path = "a" }\nobjective = "cosine"', "expected a table"),
        ('model = "x"\n[[stage]]\ndata = { path = "a" }\ntrain = 5', "train in .* expected a table"),
        (
            'model = "x"\n[[stage]]\ndata = { path = "a" }\ntrain = { freeze = 3 }',
            "freeze in .* a word",
        ),
        (
            'model = "x"\n[[stage]]\ndata = { path = "a" }\ntrain = { freeze = [1] }',
            "freeze in .* list",
        ),
        (
            'model = "x"\n[[stage]]\ndata = { path = "a" }\ntrain = { tensorboard = 5 }',
            "tensorboard in",
        ),
        (
            'model = "x"\n[[stage]]\ndata = { path = "a" }\ntrain = { lora = { targets = [1] } }',
            "targets in lora .* list of words",
        ),
        (
            'model = "x"\n[[stage]]\ndata = { path = "a" }\nobjective = { name = ["b"] }',
            "name in the obj",
        ),
        (
            'model = "x"\n[[stage]]\ndata = { path = "a", label_names = { no = 0 } }',
            "a table of words",
        ),
        (
            'model = "x"\n[[stage]]\ndata = { path = "a", columns = { first = 0 } }',
            "a table of words",
        ),
        (
            'model = "x"\n[[stage]]\n[[stage.task]]\nname = "a"\ndata = { path = "a" }\nweight = -3',
            "has one task, with which nothing is mixed",
        ),
        (
            'model = "x"\nkind = "cross-encoder"\n[[stage]]'
            + "".join(f'\n[[stage.task]]\nname = "{name}"\ndata = {{ path = "a" }}' for name in "ab"),
            "mixes tasks for a cross-encoder",
        ),
        ('model = "x"\nexpected = 3\n[[stage]]\ndata = { path = "a" }', "unknown key 'expected'"),
        ('model = "x"\n[[stage]]\ndata = { path = "a", score_range = 5 }', "expected two numbers"),
        ('model = "x"\n[[stage]]\ndata = { path = "a", limit = "5" }', "limit in .* expected a whole number"),
        (
            'model = "x"\n[[stage]]\ndata = { path = "a", max_characters = true }',
            "max_characters in .* expected a whole number",
        ),
        ('model = "x"\n[[stage]]\ndata = { path = "a", where = "b=c" }', "where in .* expected a table"),
        ('model = "x"\n[[stage]]\ndata = { path = "a", contrasts = "no" }', "expected true or false"),
        (
            'model = "x"\n[[stage]]\ndata = { path = "a" }\ntrain = { evaluate_every = 5 }',
            "has evaluate_every and nothing to validate on",
        ),
        (
            'model = "x"\n[[stage]]\ndata = { path = "a", translations = { language = "lang" } }',
            "need texts, the columns",
        ),
    ],
)
def test_a_wrong_recipe_is_told_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_recipe(write_recipe(tmp_path, text))


def test_an_infersent_encoder_is_trained_by_the_same_objective(data: Path) -> None:
    write_glove(data / "glove.txt")
    recipe = write_recipe(
        data,
        f"""
        model = "infersent:{data / "glove.txt"}"
        infersent = {{ hidden_size = 6 }}
        [[stage]]
        data = {{ path = "nli.tsv" }}
        objective = {{ name = "softmax", concatenation = ["u", "v", "|u-v|", "u*v"] }}
        train = {{ batch_size = 4, learning_rate = 1e-2, evaluate_every = 3 }}
        validate = {{ path = "sts.tsv", score_range = [0, 5] }}
        [[stage]]
        data = {{ path = "triplets.tsv" }}
        train = {{ batch_size = 8 }}
        """,
    )
    done = call("train", recipe, "--data", data, "-o", data / "out")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["steps"] for line in lines] == [6, 3]
    assert -1 <= lines[0]["best_score"] <= 1
    assert load_encoder(lines[1]["model"]).dim == 12
    card = (Path(lines[0]["model"]) / "README.md").read_text(encoding="utf-8")
    assert "library_name: gemel" in card
    assert "sentence-transformers" not in card


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('pooling = "mean"', "leave them out"),
        ("infersent = { depth = 2 }", "unexpected keyword argument 'depth'"),
    ],
)
def test_what_an_infersent_encoder_has_not_is_refused(data: Path, change: str, message: str) -> None:
    write_glove(data / "glove.txt")
    text = f'model = "infersent:{data / "glove.txt"}"\n{change}\n[[stage]]\ndata = {{ path = "nli.tsv" }}'
    with pytest.raises(InvalidInput, match=message):
        call("train", write_recipe(data, text), "--data", data, "-o", data / "out")


def test_the_size_of_an_infersent_encoder_goes_with_one(tiny_bert: Path, data: Path) -> None:
    text = (
        f'model = "{tiny_bert}"\ninfersent = {{ hidden_size = 6 }}\n[[stage]]\ndata = {{ path = "nli.tsv" }}'
    )
    with pytest.raises(InvalidInput, match="sizes an InferSent encoder and starts from"):
        call("train", write_recipe(data, text), "--data", data, "-o", data / "out")


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")  # of tensorboard's own making
def test_each_stage_has_its_own_event_files(tiny_bert: Path, data: Path) -> None:
    pytest.importorskip("tensorboard")
    stage = '[[stage]]\ndata = { path = "triplets.tsv" }\ntrain = { batch_size = 8 }\n'
    recipe = write_recipe(data, f'model = "{tiny_bert}"\n{stage}{stage}')
    done = call("train", recipe, "--data", data, "-o", data / "out", "--tensorboard", data / "events")
    for number in (1, 2):
        assert len(list((data / "events" / "recipe" / f"stage-{number}").glob("events.out.tfevents.*"))) == 1
    card = Path(json.loads(done.stdout.splitlines()[-1])["model"]) / "README.md"
    assert str(data / "events") not in card.read_text(encoding="utf-8")


def test_what_is_read_is_told_before_it_is_learnt(tiny_bert: Path, data: Path) -> None:
    table = data / "labelled.tsv"
    write_table(table, ["text", "mood"], [("a man is eating", "glad")] * 8)
    done = call("train", "-m", tiny_bert, "--examples", table, "-o", data / "out", "--max-steps", 1)
    assert f"8 texts from {table} (text = text; not used: mood)" in done.stderr


def test_columns_pooling_and_length_are_named_by_flags(tiny_bert: Path, data: Path) -> None:
    rows = zip(sentences(12, 0, 6), sentences(12, 1, 6), strict=True)
    write_table(data / "odd.tsv", ["left", "right"], rows)
    asked = ("-m", tiny_bert, "--examples", data / "odd.tsv", "-o", data / "out", "--max-steps", 1)
    columns = ("--column", "first=left", "--column", "second=right")
    line = json.loads(
        call("train", *asked, *columns, "--pooling", "max", "--max-tokens", 20, "--dropout", 0).stdout
    )
    model = load_encoder(line["model"])
    assert (model.spec.pooling.modes, model.spec.max_tokens) == (("max",), 20)
    with pytest.raises(InvalidInput, match="expected ROLE=VALUE"):
        call("train", *asked, "--column", "left")
    with pytest.raises(InvalidInput, match="--column was given beside a recipe"):
        call("train", RECIPES[0], *columns)


def test_every_setting_of_a_run_has_a_flag(tiny_bert: Path, data: Path) -> None:
    own_flags = {"lora": "--lora-rank", "tensorboard": "--tensorboard"}
    assert {field.name for field in fields(TrainConfig)} == {*SETTINGS, *own_flags}
    asked = ("train", "-m", tiny_bert, "--examples", data / "nli.tsv", "-o", data / "out", "--max-steps", 1)
    rows = ("--where", "source!=sick", "--where", "source!=c", "--limit", 6, "--max-characters", 500)
    pace = ("--accumulate", 2, "--warmup", 0.5, "--weight-decay", 0, "--clip-norm", 2)
    what = ("--average-last", 1, "--freeze", "backbone.embeddings", "--checkpoint-every", 1)
    call(*asked, *rows, *pace, *what)
    begun = json.loads((data / "out" / "begun-with.json").read_text(encoding="utf-8"))
    taken = {"where": {"source": ["!=sick", "!=c"]}, "limit": 6, "max_characters": 500}
    assert begun["data"]["options"] == {**taken, "skip_bad_rows": False}
    expected = {"accumulate": 2, "warmup": 0.5, "weight_decay": 0.0, "clip_norm": 2.0, "average_last": 1.0}
    assert {name: begun[name] for name in expected} == expected
    assert begun["freeze"] == ["backbone.embeddings"]
    with pytest.raises(InvalidInput, match="--where is 'source'; expected COLUMN=VALUE"):
        call(*asked, "--where", "source")
    with pytest.raises(InvalidInput, match="--max-characters was given beside a recipe"):
        call("train", RECIPES[0], "--max-characters", 90)


def test_yes_and_no_make_a_cross_encoder_that_ranks(tiny_bert: Path, data: Path) -> None:
    labels = ["0", "1"] * 6
    rows = list(zip(sentences(12, 0, 6), sentences(12, 1, 6), labels, strict=True))
    write_table(data / "yes.tsv", ["query", "passage", "label"], rows)
    asked = ("-m", tiny_bert, "--examples", data / "yes.tsv", "--cross-encoder", "--max-steps", 1)
    validate = ("--validate", data / "yes.tsv")
    line = json.loads(call("train", *asked, *validate, "-o", data / "one").stdout)
    assert load_reranker(line["model"]).score([("a", "b")]).shape == (1,)
    line = json.loads(call("train", *asked, "--objective", "pair-classification", "-o", data / "two").stdout)
    assert read_reranker_folder(line["model"]).labels == ("0", "1")


def test_flags_that_a_recipe_has_no_use_for(tiny_bert: Path, data: Path) -> None:
    plain = f'model = "{tiny_bert}"\n[[stage]]\ndata = {{ path = "nli.tsv" }}\n'
    recipe = write_recipe(data, plain)
    with pytest.raises(InvalidInput, match="validates on nothing"):
        call("train", recipe, "--data", data, "--evaluate-every", 2)
    recipe = write_recipe(data, f'kind = "cross-encoder"\npooling = "max"\n{plain}')
    with pytest.raises(InvalidInput, match="a cross-encoder has its own head instead"):
        call("train", recipe, "--data", data)


def test_a_rank_given_beside_a_recipe_keeps_what_the_recipe_says_of_adapters(data: Path) -> None:
    stage = (
        '[[stage]]\ndata = { path = "x.tsv" }\ntrain = { lora = { rank = 8, alpha = 4, targets = ["key"] } }'
    )
    recipe = read_recipe(write_recipe(data, f'model = "m"\n{stage}'))
    choices = dict.fromkeys([*SETTINGS, *SAID_BY_RECIPES])
    (changed,) = _overridden(recipe, {**choices, "lora_rank": 2}).stages
    assert changed.train.lora == Lora(rank=2, alpha=1.0, targets=("key",))


def test_a_recipe_with_a_byte_order_mark(data: Path) -> None:
    file = data / "marked.toml"
    file.write_bytes(b'\xef\xbb\xbfmodel = "m"\n[[stage]]\ndata = { path = "x.tsv" }\n')
    assert read_recipe(file).model == "m"


def test_a_run_without_a_checkpoint_says_that_it_begins_anew(tiny_bert: Path, data: Path) -> None:
    asked = ("-m", tiny_bert, "--examples", data / "triplets.tsv", "-o", data / "out", "--max-steps", 1)
    assert "begins anew" in call("train", *asked, "--resume").stderr
    old = data / "out" / ".last.abc.old"
    old.mkdir()
    (data / "out" / "last").rename(old / "model")  # killed before the new one was there
    (data / "out" / "result.json").unlink()
    assert "begins anew" not in call("train", *asked, "--resume").stderr


def test_questions_and_documents_are_learnt_with_what_stands_before_them(tiny_bert: Path, data: Path) -> None:
    asked = ("-m", tiny_bert, "--examples", data / "triplets.tsv", "--max-steps", 1, "--batch-size", 8)
    prompts = ("--prompt", "anchor=dog ", "--prompt", "positive=cat ")
    line = json.loads(call("train", *asked, *prompts, "-o", data / "prompted").stdout)
    model = load_encoder(line["model"])
    assert dict(model.spec.prompts) == {"query": "dog ", "document": "cat "}
    table = [row.split("\t") for row in (data / "triplets.tsv").read_text("utf-8").splitlines()[1:]]
    written = [(f"dog {a}", f"cat {b}", f"cat {c}") for a, b, c in table]
    write_table(data / "written.tsv", ["anchor", "positive", "negative"], written)
    by_hand = ("-m", tiny_bert, "--examples", data / "written.tsv", *asked[4:], "-o", data / "by-hand")
    other = json.loads(call("train", *by_hand).stdout)
    np.testing.assert_array_equal(
        *(load_file(Path(made["model"]) / "model.safetensors")["encoder.layer.0.output.dense.weight"]
          for made in (line, other))
    )  # fmt: skip
    with pytest.raises(InvalidInput, match=r"prompts names 'text', and the examples have first, second"):
        call("train", *asked, "--prompt", "text=x", "-o", data / "wrong")
    with pytest.raises(InvalidInput, match="prompts, which go with a transformer that learns vectors"):
        call("train", *asked, *prompts, "--cross-encoder", "-o", data / "cross")
