"""Table 6 with a tiny transformer: which trainings there are, that a killed job goes on, what is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reproduced import of_table_6
from stand_ins import sentences

from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.reproduce.ablation import TRIALS, Ablation, AblationPlan, Trial
from gemel.reproduce.orderings import agreement, orderings
from gemel.reproduce.paper import TABLE_6
from gemel.reproduce.printing import formatted
from gemel.reproduce.stand_ins import Cast
from gemel.reproduce.workbench import Workbench
from gemel.train import SentenceEncoderStep


@pytest.fixture
def data(tmp_path: Path) -> Path:
    first, second = (sentences(24, seed, 6) for seed in range(2))
    labels = ["entailment", "neutral", "contradiction"] * 8
    nli = [f"{a}\t{b}\t{label}\tmnli" for a, b, label in zip(first, second, labels, strict=True)]
    scored = [f"{a}\t{b}\t{n % 6}" for n, (a, b) in enumerate(zip(first, second, strict=True))]
    write(tmp_path / "data" / "nli_mix" / "train.tsv", "premise\thypothesis\tlabel\tsource", nli)
    for part in ("train", "dev"):
        write(tmp_path / "data" / "stsb" / f"{part}.tsv", "sentence1\tsentence2\tscore", scored)
    return tmp_path / "data"


def write(file: Path, header: str, rows: list[str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")


def test_thirteen_cells_are_twelve_trainings() -> None:
    assert len(TRIALS) == 13
    assert len(set(TRIALS.values())) == 12
    assert TRIALS["pooling MEAN", "NLI"] == TRIALS["concatenation (u, v, |u-v|)", "NLI"]
    assert TRIALS["pooling MAX", "STSb"] == Trial("STSb", "max")
    assert TRIALS["concatenation (|u-v|, u*v)", "NLI"] == Trial("NLI", "mean", ("|u-v|", "u*v"))
    assert len({trial.name for trial in TRIALS.values()}) == 12
    assert AblationPlan("x").n_trainings == 36


def test_a_job_that_was_killed_goes_on_and_more_seeds_add_to_it(
    tiny_bert: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses, loss = [], SentenceEncoderStep.loss

    def interrupted(self: SentenceEncoderStep, examples: Examples, rows: Any) -> Any:
        losses.append(len(rows))
        if len(losses) == 6:  # the second of the two steps of the third training
            raise KeyboardInterrupt
        return loss(self, examples, rows)

    def job(n_seeds: int, work: str) -> Any:
        plan = AblationPlan(
            str(tiny_bert), n_pairs=8, n_seeds=n_seeds, batch_size=4, learning_rate=1e-2, device="cpu"
        )
        return Ablation(plan, data=data, work=tmp_path / work)

    monkeypatch.setattr(SentenceEncoderStep, "loss", interrupted)
    with pytest.raises(KeyboardInterrupt):
        job(1, "work").run()
    one = job(1, "work").run()
    assert len(losses) == 6 + 1 + 9 * 2  # only what was missing
    assert all(not line.spread for line in one.lines)
    two = job(2, "work").run()
    assert len(losses) == 25 + 12 * 2
    places = sorted(job(2, "work").place.iterdir())
    assert len(places) == 24
    assert [file.name for file in sorted(places[0].iterdir())] == ["metrics.jsonl", "score.json"]
    by_name = {line.name: line for line in two.lines}
    assert by_name["pooling MEAN"].figures["NLI"] == by_name["concatenation (u, v, |u-v|)"].figures["NLI"]
    assert by_name["pooling MEAN"].spread["STSb"] > 0
    assert len(by_name["pooling CLS"].scores) == 4
    assert len(two.remarks) == 3
    again = job(1, "elsewhere").run()  # the same training gives the same score
    assert [line.figures for line in again.lines] == [line.figures for line in one.lines]


def test_without_data_or_a_model_every_line_says_so(tiny_bert: Path, data: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for plan, folder, reason in [
        (AblationPlan(str(tiny_bert)), tmp_path / "empty", "gemel data get allnli"),
        (AblationPlan("./nowhere"), data, "there is no model folder"),
        (None, data, "--train FOLDER"),
    ]:
        bench = Workbench(Cast(), data=folder, ablation=plan, work=tmp_path)
        lines = bench.reproduce(6).lines
        assert all(reason in line.missing and not line.figures for line in lines)
    with pytest.raises(InvalidInput, match="8 pairs and 3 seeds were asked for"):
        AblationPlan("x", n_pairs=8)


def test_orders_are_told_beside_the_papers_with_what_seeds_cannot_tell() -> None:
    reproduction = of_table_6()
    pooling, regression = orderings(TABLE_6, reproduction.lines)
    assert pooling == (
        "NLI, pooling: ours CLS ≈ MEAN > MAX; the paper MEAN > CLS > MAX; 2 of 3 pairs are in the same order"
    )
    assert regression.startswith("STSb, pooling: ours MEAN > CLS > MAX;")
    shown = formatted(reproduction)
    assert "- NLI, pooling: ours CLS ≈ MEAN > MAX" in shown


def test_agreement_counts_pairs() -> None:
    assert agreement({"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 1.0, "b": 3.0, "c": 2.0}) == (2, 3)
    assert agreement({"a": 1.0, "b": 2.0}, {"a": 5.0, "b": 5.0}) == (0, 0)
