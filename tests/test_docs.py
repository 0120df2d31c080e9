"""The documentation is true: its code runs, every verb is in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gemel
from gemel.cli import VERBS
from gemel.cli.serve import command as serve
from gemel.cli.train import OBJECTIVE_NAMES
from gemel.cli.train import command as train

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def guide(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def code_blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def run_python(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("default_weights")
def test_the_tour_of_the_readme_runs(tmp_path: Path) -> None:
    *tour, _ = code_blocks("python")
    assert "A man is eating food." in run_python("\n".join(tour), tmp_path)
    assert (tmp_path / "my-model" / "modules.json").is_file()


@pytest.mark.usefixtures("default_weights")
def test_training_takes_ten_lines_that_run_alone(tmp_path: Path) -> None:
    *_, training = code_blocks("python")
    assert len([line for line in training.splitlines() if line]) <= 10
    assert "(1, 384)" in run_python(training, tmp_path)
    assert (tmp_path / "out" / "mine" / "model" / "modules.json").is_file()


@pytest.mark.usefixtures("default_weights")
def test_the_classifier_of_the_training_guide_is_trained_and_knows_its_classes(tmp_path: Path) -> None:
    (code,) = code_blocks("python", guide("training"))
    assert "('contradiction', 'entailment', 'neutral')" in run_python(code, tmp_path)


@pytest.mark.usefixtures("default_weights")
@pytest.mark.parametrize("code", code_blocks("bash"))
def test_the_commands_of_the_readme_run(code: str, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert '"cosine": 0.' in done.stdout
    assert '"rows": 2' in done.stdout
    assert "all-MiniLM-L6-v2" in done.stdout


def test_the_readme_has_code_to_run() -> None:
    assert len(code_blocks("python")) == 3
    assert len(code_blocks("bash")) == 1


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_is_documented(verb: str) -> None:
    assert f"| `gemel {verb}" in README


def test_the_tree_of_the_readme_names_what_is_there() -> None:
    tree = README.split("## What is where")[1].split("```")[1]
    named = {line.split()[0].rstrip("/") for line in tree.strip().splitlines() if line.startswith("  ")}
    there = {
        path.name
        for path in (ROOT / "gemel").iterdir()
        if path.suffix == ".py" or (path.is_dir() and not path.name.startswith("__"))
    }
    assert there - {"version.py", "progress.py", "table.py", "drawing.py", "threads.py"} == named


@pytest.mark.usefixtures("default_weights")
def test_the_python_of_the_guide_to_search_runs(tmp_path: Path) -> None:
    (code,) = code_blocks("python", guide("searching"))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    first, *_, last = done.stdout.splitlines()
    assert "The battery lasts two days." in first
    assert last == "2 exact"


def test_every_route_is_in_the_guide_to_serving_and_no_other() -> None:
    from gemel.serve.app import ROUTES

    told = set(re.findall(r"`((?:GET|POST|DELETE) /[^`]*)`", guide("serving")))
    assert told == {f"{route.method} {route.path}" for route in ROUTES}


def test_the_limits_in_the_guide_to_serving_are_the_servers() -> None:
    from gemel.serve.settings import Limits

    limits = vars(Limits())
    told = re.findall(r"^\| `--([a-z-]+)`[^|]*\| ([\d,]+)", guide("serving"), re.MULTILINE)
    assert len(told) == len(limits) - 1  # of all bodies together only the server's author thinks
    for flag, value in told:
        assert limits[flag.replace("-", "_")] == float(value.replace(",", ""))


def test_every_recipe_and_setting_is_in_the_guide_to_training() -> None:
    from gemel.train import OBJECTIVES, TrainConfig

    text = guide("training")
    named = (
        {path.stem for path in (ROOT / "recipes").glob("*.toml")} | set(vars(TrainConfig())) | set(OBJECTIVES)
    )
    assert {name for name in named if f"`{name}`" not in text} == set()


@pytest.mark.parametrize("path", sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")]))
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", path.read_text(encoding="utf-8")):
        file, anchor = target
        if file.startswith("http"):
            continue
        found = path if not file else path.parent / file
        assert found.exists(), f"{path.name} links to {file}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", found.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, f"{path.name} links to #{anchor} of {found.name}"


def test_what_other_libraries_are_translated_to_is_there() -> None:
    lines = [line.split(" | ", 1) for line in guide("coming-from").splitlines() if " | " in line]
    losses = [here for there, here in lines if "Loss" in there and "--teacher" not in here]
    objectives = {re.findall(r"`([a-z-]+)`", here)[0] for here in losses if "any objective" not in here}
    assert len(objectives) == 8
    assert objectives <= set(OBJECTIVE_NAMES.split(", "))
    functions = {name for _, here in lines for name in re.findall(r"`([a-z_]+)\(", here)}
    assert len(functions) > 5
    assert functions <= set(gemel.__all__)
    options = {option for _, here in lines for option in re.findall(r"`(--[a-z-]+)", here)}
    known = {option for each in (*serve.params, *train.params) for option in each.opts}
    assert "--alias" in options
    assert options <= known
