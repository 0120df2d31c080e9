"""`gemel train` and `gemel classify` as a shell sees them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from encoders.made import write_glove
from stand_ins import sentences

from gemel import load_encoder, load_reranker
from gemel.cli import gemel
from gemel.errors import InvalidInput
from gemel.reproduce.recipe import read_recipe

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
    again = call("train", recipe, "--data", data, "-o", data / "out", "--resume")
    assert again.stdout == done.stdout
    with pytest.raises(InvalidInput, match="holds a run already"):
        call("train", recipe, "--data", data, "-o", data / "out")


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
    for part in ("24 classified pairs", "entailment 33%", "objective: Softmax", "steps: 2,", "minutes here"):
        assert part in done.stdout
    assert not (data / "out").exists()


def test_a_cross_encoder_is_trained_by_the_same_loop(tiny_bert: Path, data: Path) -> None:
    arguments = ("--examples", data / "sts.tsv", "--validate", data / "sts.tsv", "-o", data / "out")
    done = call("train", "-m", tiny_bert, "--cross-encoder", "--score-range", 0, 5, *arguments)
    line = json.loads(done.stdout)
    assert load_reranker(line["model"]).score([("the man", "a dog")]).shape == (1,)
    assert -1 <= line["best_score"] <= 1


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


def test_nothing_to_train_on_is_told() -> None:
    with pytest.raises(InvalidInput, match="give a recipe, or at least --model and --examples"):
        call("train")


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


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.stem)
def test_every_recipe_of_the_project_is_read(recipe: Path) -> None:
    assert read_recipe(recipe).stages


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model = 3 =", "is not TOML"),
        ("[[stage]]", "needs a model and at least one"),
        (
            'model = "x"\n[[stage]]\ndata = { path = "a" }\nlr = 3',
            "unknown key 'lr'; the known keys are data",
        ),
        ('model = "x"\n[[stage]]\ndata = { path = "a" }\ntrain = { lr = 3 }', "the setting 'lr' is unknown"),
        (
            'model = "x"\nkind = "magic"\n[[stage]]\ndata = { path = "a" }',
            "expected encoder or cross-encoder",
        ),
        ('model = "x"\n[[stage]]\ndata = { file = "a" }', "unknown key 'file'"),
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
