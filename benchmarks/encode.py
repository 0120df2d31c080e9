"""Encoding beside its peers: the same texts, the same model, text in and vectors out, in one go.

    make bench-encode GEMEL_DATA=DATA [MODEL=FOLDER]

Each system runs in a process of its own (each peer in its own environment) that stays alive, so that the
rounds can be interleaved: for every task all systems take turns, in another order each round. Medians and
best rounds are reported; ratios are taken round by round. Loading is not counted, tokenising is.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any

import click
import numpy as np
from encode_report import DOCUMENTS, LATENCY, SENTENCES, UNSORTED, Report, draw
from encode_systems import GEMEL_INT8, SCALING, TORCH, System, Unavailable, Worker, prepare, systems
from scipy.stats import spearmanr

from gemel import _native
from gemel.checkpoint import ModelFolder, read_encoder_folder
from gemel.checkpoint.resolving import resolve
from gemel.loading import load_encoder

N_SENTENCES = 10_000
N_CALIBRATION = 300
USUAL_TOKENS = 18  # the mean of the sentences: what is encoded one at a time
CEILING_SECONDS = 1.0
PAUSE_SECONDS = 0.3  # for the threads of the system before to fall asleep
# name -> what a worker does, and with which texts
TASKS = {
    SENTENCES: ("as is", "sentences"),
    UNSORTED: ("no smart batching", "sentences"),
    DOCUMENTS: ("as is", "documents"),
    LATENCY: ("one at a time", "singles"),
}


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    sentences: int
    documents: int
    singles: int
    pairs: int | None
    rounds: int


def read_rows(file: Path) -> Iterator[dict[str, str]]:
    """The rows of a table in which nothing is quoted."""
    open_text: Any = gzip.open if file.suffix == ".gz" else open
    with open_text(file, "rt", encoding="utf-8") as opened:
        names = next(opened).rstrip("\n").split("\t")
        for line in opened:
            yield dict(zip(names, line.rstrip("\n").split("\t"), strict=True))


class Material:
    """The texts of all tasks, and how many tokens they have."""

    def __init__(self, data: Path, model: str | None, sizes: Sizes) -> None:
        rows = read_rows(data / "sentences_en" / "sentences_open.tsv.gz")
        read = [row["text"] for row in islice(rows, max(sizes.sentences, N_SENTENCES) + N_CALIBRATION)]
        # What peers are calibrated on is never measured, and is the same in shorter runs.
        sentences, self.calibration = read[: sizes.sentences], read[-N_CALIBRATION:]
        corpus = read_rows(data / "cranfield" / "corpus.tsv")
        documents = [row["text"] for row in islice(corpus, sizes.documents)]
        pairs = list(islice(read_rows(data / "stsb" / "test.tsv"), sizes.pairs))
        self.gold = [float(pair["score"]) for pair in pairs]
        encoder = load_encoder(model, precision="int8", device="cpu", on_truncate="ignore")
        longest = encoder.spec.max_tokens
        tokens = encoder.count_tokens(sentences).clip(max=longest)
        nearest = np.argsort(np.abs(tokens - USUAL_TOKENS), kind="stable")[: sizes.singles]
        self.texts = {
            "sentences": sentences,
            "documents": documents,
            "singles": [sentences[row] for row in nearest],
            "pairs": [pair[column] for column in ("sentence1", "sentence2") for pair in pairs],
        }
        self.n_tokens = {
            "sentences": int(tokens.sum()),
            "documents": int(encoder.count_tokens(documents).clip(max=longest).sum()),
            "singles": int(tokens[nearest].sum()),
        }
        self.operations_per_token = operations_per_token(encoder.folder)

    def described(self) -> dict[str, dict[str, int]]:
        return {name: {"texts": len(self.texts[name]), "tokens": n} for name, n in self.n_tokens.items()}


def operations_per_token(folder: ModelFolder) -> int:
    """Multiplications and additions of the matrix products for one token."""
    config = folder.config
    layers = config.get("num_hidden_layers") or config["n_layers"]
    inner = config.get("intermediate_size") or config["hidden_dim"]
    hidden = folder.spec.hidden_size
    return int(2 * layers * (4 * hidden * hidden + 2 * hidden * inner))


class Trial:
    """All systems that run here, round after round."""

    def __init__(self, material: Material, cache: Path) -> None:
        self.material = material
        self.cache = cache
        self.workers: dict[str, Worker] = {}
        self.left_out: dict[str, str] = {}
        self.starts: dict[str, list[float]] = {}
        self.timings: dict[str, dict[str, list[list[float]]]] = {}
        self.ceilings: list[float] = []  # operations a second
        self.quality: dict[str, dict[str, float]] = {}

    def start(self, chosen: list[System], n_starts: int) -> None:
        """Start every system several times, in turns, and keep the last process of each."""
        for _ in range(n_starts):
            for system in chosen:
                if system.name in self.workers:
                    self.workers.pop(system.name).close()
                if system.name in self.left_out:
                    continue
                try:
                    worker = Worker(system, self.cache / "logs")
                except Unavailable as reason:
                    self.leave_out(system.name, reason)
                    continue
                self.workers[system.name] = worker
                self.starts.setdefault(system.name, []).append(worker.start_seconds)
        for name, worker in list(self.workers.items()):
            self.timings[name] = {}
            self._do(name, worker, {"texts": self.material.texts})

    def leave_out(self, name: str, reason: Exception) -> None:
        """Go on without a system, and say so."""
        self.left_out[name] = str(reason)
        self.workers.pop(name, None)
        self.timings.pop(name, None)
        say(f"{name} is left out: {reason}")

    def run_round(self, number: int, vectors: Path | None = None) -> None:
        """Every task once on every system; with `vectors`, nothing is recorded and vectors are saved."""
        for task, (way, of) in TASKS.items():
            names = list(self.workers)
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                if name not in self.workers or (name in SCALING and task != SENTENCES):
                    continue
                is_bounded = name == GEMEL_INT8 and task == SENTENCES and vectors is None
                before = self._ceiling() if is_bounded else 0.0
                save = str(vectors / f"{name}.sentences.npy") if vectors and task == SENTENCES else None
                answer = self._do(name, self.workers[name], {"task": way, "of": of, "save": save})
                if is_bounded:
                    self.ceilings.append((before + self._ceiling()) / 2)
                if answer:
                    self.workers[name].peak_mb.setdefault(task, answer["peak_mb"])
                    self.workers[name].peak_mb["end"] = answer["peak_mb"]
                if answer and vectors is None:
                    self.timings[name].setdefault(task, []).append(answer["seconds"])

    def judge(self, vectors: Path) -> None:
        """Cosine to sentence-transformers' own vectors, and STSb, of every system."""
        for name, worker in list(self.workers.items()):
            if name not in SCALING:
                self._do(
                    name, worker, {"task": "as is", "of": "pairs", "save": str(vectors / f"{name}.pairs.npy")}
                )
        exact = vectors / f"{TORCH}.sentences.npy"
        for name in self.workers:
            if name in SCALING:
                continue
            first, second = np.split(np.load(vectors / f"{name}.pairs.npy"), 2)
            rank = float(spearmanr(cosines(first, second), self.material.gold).statistic)
            self.quality[name] = {"stsb": 100 * rank}
            if exact.exists():
                cosine = cosines(np.load(vectors / f"{name}.sentences.npy"), np.load(exact))
                self.quality[name] |= {"mean_cosine": float(cosine.mean()), "min_cosine": float(cosine.min())}

    def results(self) -> dict[str, Any]:
        """Every raw timing and what was derived from them."""
        per_sentence = self.material.operations_per_token * (
            self.material.n_tokens["sentences"] / len(self.material.texts["sentences"])
        )
        return {
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "machine": machine(),
            "data": self.material.described(),
            "versions": {name: worker.versions for name, worker in self.workers.items()},
            "left_out": self.left_out,
            "operations_per_token": self.material.operations_per_token,
            "ceiling": {
                "operations_per_second": self.ceilings,
                "sentences_per_second": [ceiling / per_sentence for ceiling in self.ceilings],
            },
            "starts": {name: self.starts[name] for name in self.workers},
            "peak_mb": {name: worker.peak_mb for name, worker in self.workers.items()},
            "quality": self.quality,
            "timings": self.timings,
        }

    def close(self) -> None:
        """Let all processes end."""
        for worker in self.workers.values():
            worker.close()

    def _do(self, name: str, worker: Worker, job: dict[str, Any]) -> dict[str, Any]:
        time.sleep(PAUSE_SECONDS)
        try:
            return worker.do(job)
        except Unavailable as reason:
            self.leave_out(name, reason)
            return {}

    def _ceiling(self) -> float:
        """Operations a second of the bare int8 tile on all cores."""
        best = _native.instruction_sets()[-1]
        return _native.tile_ceiling(best, True, _native.usable_cores(), CEILING_SECONDS)


def cosines(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Row by row, in double precision."""
    first, second = first.astype(np.float64), second.astype(np.float64)
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    found: np.ndarray[Any, Any] = (first * second).sum(axis=1) / lengths
    return found


def machine() -> dict[str, Any]:
    """What kind of machine this is."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": named[0] if named else platform.processor(),
        "cores": _native.usable_cores(),
        "instruction_set": _native.instruction_sets()[-1],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load_average": list(os.getloadavg()),
    }


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


def measure(
    model: str | None, data: Path, peers: Path, cache: Path, sizes: Sizes, only: tuple[str, ...]
) -> Trial:
    """Make the exports, start everything, warm up, run the rounds."""
    folder = read_encoder_folder(resolve(model))
    cache = (cache / folder.fingerprint[:12]).absolute()
    cache.mkdir(parents=True, exist_ok=True)
    trial = Trial(Material(data, model, sizes), cache)
    chosen = []
    for system in systems(folder, model, cache, peers):
        if only and not any(part in system.name for part in only):
            continue
        try:
            prepare(system, folder, cache, peers, trial.material.calibration)
        except Unavailable as reason:
            trial.leave_out(system.name, reason)
            continue
        chosen.append(system)
    trial.start(chosen, sizes.rounds)
    if not trial.workers:
        raise click.ClickException("no system could be started")
    with tempfile.TemporaryDirectory() as vectors:
        say(f"{len(trial.workers)} systems have started; the first round warms up")
        trial.run_round(0, Path(vectors))
        trial.judge(Path(vectors))
    for number in range(1, sizes.rounds + 1):
        trial.run_round(number)
        say(f"round {number} of {sizes.rounds} is done")
    return trial


@click.command()
@click.option("--data", type=Path, envvar="GEMEL_DATA", required=True, help="The folder of data sets.")
@click.option("--model", help="A model folder; the default model if none.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--sentences", default=N_SENTENCES, show_default=True)
@click.option("--documents", default=1_400, show_default=True)
@click.option("--singles", default=300, show_default=True, help="Sentences that are encoded one at a time.")
@click.option("--pairs", type=int, help="Pairs of STSb; all if not given.")
@click.option("--only", multiple=True, help="Systems whose name has this in it.")
@click.option("--peers", type=Path, default=Path(".venv-peers"), help="How the peers' environments begin.")
@click.option("--cache", type=Path, default=Path("build/bench-encode-cache"), help="For the peers' exports.")
@click.option("--output", type=Path, default=Path("build/bench-encode.json"), show_default=True)
@click.option("--plot", type=Path, help="Draw PREFIX.png and PREFIX.svg.")
def main(model: str | None, data: Path, **given: Any) -> None:
    """Print speed, quality and memory of gemel and its peers, and the ratios between them."""
    sizes = Sizes(*(given[name] for name in ("sentences", "documents", "singles", "pairs", "rounds")))
    trial = measure(model, data, given["peers"], given["cache"], sizes, given["only"])
    results = {"model": Path(model).name if model else "all-MiniLM-L6-v2", **trial.results()}
    trial.close()
    report = Report(results)
    claims = report.claims()
    results["figures"] = {name: report.figures(name) for name in results["timings"]}
    results["ratios"] = [claim.to_dict() for claim in claims]
    given["output"].parent.mkdir(parents=True, exist_ok=True)
    given["output"].write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    say(f"\n{report.tables()}\n")
    ceiling = results["ceiling"]["sentences_per_second"]
    if ceiling:
        say(f"the int8 matrix products alone: {np.median(ceiling):,.0f} sentences/s\n")
    for claim in claims:
        say(claim.line())
    for name, reason in results["left_out"].items():
        say(f"left out: {name}: {reason}")
    if given["plot"]:
        draw(report, given["plot"])


if __name__ == "__main__":
    main()
