"""An encoder into a smaller transformer: the recipe of `gemel distil`, run beside its outcome."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gemel.checkpoint import whole_folder
from gemel.data.plain_texts import TextFile
from gemel.errors import InvalidInput
from gemel.reproduce.beginning import FILE_NAME as BEGINNING
from gemel.reproduce.recipe import Recipe, parse_recipe
from gemel.reproduce.runner import RecipeRunner
from gemel.train import TrainResult

# Measured with layers 0, 2 and 5 of all-MiniLM-L6-v2, 120 steps: STSb dev 86.00 at 1e-3, 85.97 at
# 3e-4; 86.03 where the token table moves as well, which is most of the weights and takes two thirds more
# time. What was pretrained for something else wants smaller steps, and its table has to move.
OF_LAYERS = {"batch_size": 128, "learning_rate": 1e-3, "freeze": ["backbone.embeddings"]}
EVALUATE_EVERY = 100  # steps: a tenth of the time with STSb's dev set
OF_ANOTHER_MODEL = {"batch_size": 128, "learning_rate": 1e-4}


@dataclass(frozen=True)
class DistilPlan:
    """Who learns from whom, and what they read."""

    teacher: str
    corpus: Sequence[TextFile]
    layers: int | tuple[int, ...] | None = None  # of the teacher that the student keeps
    student: str | None = None  # another model in their place
    n_sentences: int | None = None
    validate: Mapping[str, Any] | None = None  # scored pairs, such as STSb's dev set
    compute: Mapping[str, Any] = field(default_factory=dict)  # precision and threads of the teacher
    training: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.layers is None) == (self.student is None):
            raise InvalidInput("the student is some layers of the teacher, or another model: say one of them")

    def recipe(self, name: str) -> Recipe:
        """The same as `gemel train` would read it."""
        files: list[dict[str, Any]] = [
            {
                "path": str(file.path),
                "columns": list(file.columns),
                **({"where": file.where} if file.where else {}),
            }
            for file in self.corpus
        ]
        limit = {} if self.n_sentences is None else {"limit": self.n_sentences}
        usual = OF_ANOTHER_MODEL if self.layers is None else OF_LAYERS
        stage: dict[str, Any] = {
            "data": {"files": files, **limit},
            "teacher": {"model": self.teacher, **self.compute},
            "train": {**usual, **self.training},
        }
        if self.validate is not None:
            stage["validate"] = dict(self.validate)
            stage["train"].setdefault("evaluate_every", EVALUATE_EVERY)
        values: dict[str, Any] = {"model": self.student or self.teacher, "stage": [stage]}
        if self.layers is not None:
            values["layers"] = list(self.layers) if isinstance(self.layers, tuple) else self.layers
        return parse_recipe(values, name)


def distil(
    plan: DistilPlan,
    output: str | Path,
    *,
    device: str | None = None,
    overwrite: bool = False,
    resume: bool = False,
    tell: Callable[[str], None] = lambda message: None,
) -> TrainResult:
    """Train a student and put it in a folder; the run is beside it until then, and can be continued."""
    output = Path(output).expanduser()
    place = output.with_name(f"{output.name}.run")
    if place.exists() and not (place / BEGINNING).is_file():
        raise InvalidInput(
            f"{place} is there and holds no run, and a run would be put and removed there; move it, or name "
            "another output"
        )
    runner = RecipeRunner(plan.recipe(output.name), device=device)
    (run,) = runner.run(place, resume=resume, on_stage=tell)
    if runner.team.is_leader:
        with whole_folder(output, overwrite) as draft:
            shutil.copytree(run.result.model, draft, dirs_exist_ok=True)
        shutil.rmtree(place)
    return run.result
