"""Similar pairs and clusters beside sentence-transformers and faiss, on vectors of real sentences.

    make bench-pairs GEMEL_DATA=DATA [ARGUMENTS="--rounds 3"]

Each measurement is a process of its own (each peer in its own environment) that maps the same file of
vectors; only the search itself is timed, not the import and not the reading. Systems take turns; ratios are
taken round by round. The answers are compared, too.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click
import numpy as np

from gemel import _native
from gemel.data.texts import TextSource
from gemel.loading import load_encoder
from gemel.progress import progress_bar
from gemel.table import format_table
from gemel.tasks.encode import EncodeOptions, encode_file

WORKERS = Path(__file__).parent / "workers"
SIZES = (10_000, 50_000, 200_000, 800_000)
GROWTH_THRESHOLD = 0.9
CLUSTER_THRESHOLD = 0.75
CEILING_SECONDS = 2.0


@dataclass
class Bench:
    """Where everything is, and what was measured."""

    vectors: Path
    pythons: dict[str, str]
    work: Path
    lines: list[dict[str, Any]] = field(default_factory=list)

    def run(
        self, system: str, n: int, task: str, argument: float, timeout: float | None = None
    ) -> dict[str, Any]:
        """One measurement; seconds is infinite where the time was not enough."""
        result = self.work / f"{system}-{n}-{task}.npz"
        worker = WORKERS / f"pairs_{system}.py"
        command = [
            self.pythons[system],
            str(worker),
            str(self.vectors),
            str(n),
            task,
            str(argument),
            str(result),
        ]
        try:
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            line: dict[str, Any] = {"seconds": math.inf}
        else:
            line = json.loads(done.stdout.splitlines()[-1])
        line |= {"system": system, "rows": n, "task": task, "argument": argument, "result": str(result)}
        self.lines.append(line)
        click.echo(f"  {system}, {n:,} rows, {task} {argument:g}: {line['seconds']:.2f} s", err=True)
        return line


def beside(bench: Bench, peer: str, n: int, task: str, argument: float, rounds: int) -> list[float]:
    """How many times as long the peer takes, in each round; the systems take turns in who begins."""
    ratios = []
    for number in range(rounds):
        order = ("gemel", peer) if number % 2 else (peer, "gemel")
        seconds = {system: bench.run(system, n, task, argument)["seconds"] for system in order}
        ratios.append(seconds[peer] / seconds["gemel"])
    return ratios


def agreement(bench: Bench, peer: str, n: int, task: str) -> str:
    """How the answers of the last round differ."""
    own, other = (np.load(bench.work / f"{system}-{n}-{task}.npz") for system in ("gemel", peer))
    ours = dict(zip(_keys(own, n), own["scores"].tolist(), strict=True))
    theirs = dict(zip(_keys(other, n), other["scores"].tolist(), strict=True))
    common = ours.keys() & theirs.keys()
    apart = max((abs(ours[key] - theirs[key]) for key in common), default=0.0)
    return (
        f"{len(ours):,} and {len(theirs):,} pairs, {len(common):,} common, scores {apart:.1e} apart at most"
    )


def _keys(pairs: Any, n: int) -> list[int]:
    low, high = np.minimum(pairs["first"], pairs["second"]), np.maximum(pairs["first"], pairs["second"])
    keys: list[int] = (low.astype(np.int64) * n + high.astype(np.int64)).tolist()
    return keys


def exactness(bench: Bench, n: int) -> str:
    """gemel's best pairs against plain float32 products of numpy."""
    found = np.load(bench.work / f"gemel-{n}-top.npz")
    vectors = np.load(bench.vectors, mmap_mode="r")[:n]
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    products = units @ units.T
    upper = products[np.triu_indices(n, 1)]
    kth = np.partition(upper, -len(found["first"]))[-len(found["first"])]
    apart = np.abs(products[found["first"], found["second"]] - found["scores"]).max()
    missed = int((upper > kth + 1e-6).sum() - (found["scores"] > kth + 1e-6).sum())
    return f"brute force: {missed} pairs missed, scores {apart:.1e} apart at most"


def ceiling() -> float:
    """Operations a second of the bare int8 tile on all cores."""
    return _native.tile_ceiling(_native.instruction_sets()[-1], True, _native.usable_cores(), CEILING_SECONDS)


def growth(bench: Bench, sizes: tuple[int, ...], dim: int) -> list[dict[str, Any]]:
    """All pairs above a threshold for growing numbers of rows, each between two looks at the ceiling."""
    rows = []
    for n in sizes:
        before = ceiling()
        line = bench.run("gemel", n, "above", GROWTH_THRESHOLD)
        rate = n * (n - 1) * dim / line["seconds"]  # a product and a sum for each of n (n - 1) / 2 x dim
        share = rate / ((before + ceiling()) / 2)
        rows.append({**line, "operations_per_second": rate, "share_of_ceiling": share})
    return rows


def clustering(bench: Bench, n: int, most_seconds: float) -> dict[str, Any]:
    """gemel on n rows, against the peer on as many as it manages in time, extrapolated by its own growth."""
    own = bench.run("gemel", n, "cluster", CLUSTER_THRESHOLD)
    done: list[dict[str, Any]] = []
    for size in _doubling(10_000, n):
        if done and done[-1]["seconds"] * 4.5 > most_seconds:
            break
        line = bench.run("sentence_transformers", size, "cluster", CLUSTER_THRESHOLD, most_seconds)
        if math.isinf(line["seconds"]):
            break
        done.append(line)
    last = done[-1]
    exponent = math.log(last["seconds"] / done[-2]["seconds"], 2) if len(done) > 1 else 2.0
    expected = last["seconds"] * (n / last["rows"]) ** exponent
    return {
        "rows": n, "seconds": own["seconds"], "n_clusters": own["n"], "peer_rows": last["rows"],
        "peer_seconds": last["seconds"], "exponent": exponent, "expected_seconds": expected,
        "ratio": expected / own["seconds"],
    }  # fmt: skip


def _doubling(first: int, last: int) -> Iterator[int]:
    while first <= last:
        yield first
        first *= 2


def vectors_of(data: Path, n: int, work: Path) -> Path:
    """The vectors of the first n sentences, made once."""
    file = work / "sentences.npy"
    source = TextSource(str(data / "sentences_en" / "sentences_open.tsv.gz"), format="tsv")
    if not file.exists():
        encoder = load_encoder(on_truncate="ignore")
        with progress_bar(source.count_rows(), "encode") as bar:
            options = EncodeOptions()
            encode_file(
                encoder, source, str(file), options=options, on_progress=lambda n: bar.update(n - bar.n)
            )
    assert len(np.load(file, mmap_mode="r")) >= n, f"{file} has fewer than {n:,} rows"
    return file


def draw(rows: list[dict[str, Any]], others: list[dict[str, Any]], target: Path) -> None:
    """Seconds over rows, both logarithmic, with the peers' points beside them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    axes.set(xscale="log", yscale="log", xlabel="sentences", ylabel="seconds")
    axes.set_title(f"All pairs of sentence vectors, {_native.usable_cores()} cores")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.plot(
        [row["rows"] for row in rows], [row["seconds"] for row in rows], "o-", color="#0072b2",
        label=f"gemel: all pairs above {GROWTH_THRESHOLD}",
    )  # fmt: skip
    for row in rows:
        axes.annotate(
            f"{row['seconds']:,.{0 if row['seconds'] >= 10 else 2}f} s",
            (row["rows"], row["seconds"]),
            xytext=(6, -12),
            textcoords="offset points",
        )
    colours = {"sentence_transformers": "#d55e00", "faiss": "#7b838c", "gemel": "#56b4e9"}
    symbols = {"top": "s", "cluster": "D", "above": "^"}
    shown = set()
    for line in others:
        label = f"{line['system'].replace('_', '-')}: {line['task']} {line['argument']:,g}"
        axes.plot(
            line["rows"],
            line["seconds"],
            symbols[line["task"]],
            color=colours[line["system"]],
            mfc="none",
            label=None if label in shown else label,
        )
        shown.add(label)
    axes.legend(fontsize=8)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,g}")
    for suffix in ("png", "svg"):
        figure.savefig(target.with_name(f"{target.name}.{suffix}"), dpi=150)


def claims(results: dict[str, Any]) -> str:
    """The figures that were asked for, as a table."""
    rows = []
    for name, asked in (("10k", "50"), ("200k", "8"), ("above", "3")):
        if ratios := results.get(name, {}).get("ratios"):
            span = f"{min(ratios):.1f} to {max(ratios):.1f}"
            rows.append([results[name]["what"], f"{np.median(ratios):.1f}", asked, span])
    if found := results.get("clustering"):
        what = f"clusters of {found['rows']:,} rows, the peer extrapolated from {found['peer_rows']:,}"
        rows.append([what, f"{found['ratio']:.1f}", "20", ""])
    for row in results.get("growth", []):
        what = f"all pairs above {GROWTH_THRESHOLD} of {row['rows']:,}: {row['seconds']:,.1f} s, "
        what += f"{row['n']:,} pairs, {row['peak_mb']:,.0f} MB; share of the int8 ceiling"
        rows.append([what, f"{row['share_of_ceiling']:.2f}", "0.50", ""])
    return format_table(["what", "times", "asked", "rounds"], rows)


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=os.environ.get("GEMEL_DATA"), required=True)
@click.option("--peers", type=click.Path(path_type=Path), default=".venv-peers", show_default=True)
@click.option(
    "--vectors", type=click.Path(path_type=Path), help="A .npy of sentence vectors, if there is one."
)
@click.option("--work", type=click.Path(path_type=Path), help="Where vectors and answers are kept.")
@click.option("--rounds", default=3, show_default=True)
@click.option("--sizes", default=",".join(map(str, SIZES)), show_default=True, help="For the growth.")
@click.option(
    "--cluster-seconds", default=600.0, show_default=True, help="What the peer's clustering may take."
)
@click.option("--only", default="10k,200k,above,clustering,growth", show_default=True)
@click.option("--plot", type=click.Path(path_type=Path), help="Draw to this name, as .png and .svg.")
@click.option("--json", "json_file", type=click.Path(path_type=Path))
def main(data: Path, peers: Path, work: Path | None, rounds: int, **choices: Any) -> None:
    """Measure, compare and print."""
    work = work or Path(tempfile.mkdtemp(prefix="gemel-pairs-"))
    work.mkdir(parents=True, exist_ok=True)
    sizes = tuple(int(size) for size in choices["sizes"].split(","))
    vectors = choices["vectors"] or vectors_of(data, max(sizes), work)
    pythons = {
        "gemel": sys.executable,
        "sentence_transformers": str(peers / "bin" / "python"),
        "faiss": str(peers.with_name(peers.name + "-faiss") / "bin" / "python"),
    }
    bench, only = Bench(Path(vectors), pythons, work), choices["only"].split(",")
    dim = np.load(vectors, mmap_mode="r").shape[1]
    results: dict[str, Any] = {"date": datetime.now(timezone.utc).isoformat(timespec="minutes"), "dim": dim}
    if "growth" in only:
        results["growth"] = growth(bench, sizes, dim)
    for name, peer, n, task, argument in (
        ("10k", "sentence_transformers", 10_000, "top", 500_000),
        ("200k", "sentence_transformers", 200_000, "top", 100_000),
        ("above", "faiss", 200_000, "above", 0.8),
    ):
        if name in only:
            what = f"{task} {argument:g} of {n:,} rows against {peer.replace('_', '-')}"
            ratios = beside(bench, peer, n, task, argument, rounds if n < 100_000 else max(1, rounds - 1))
            results[name] = {"what": what, "ratios": ratios, "agreement": agreement(bench, peer, n, task)}
            click.echo(f"  {results[name]['agreement']}", err=True)
    if "10k" in only:
        results["10k"]["exactness"] = exactness(bench, 10_000)
        click.echo(f"  {results['10k']['exactness']}", err=True)
    if "clustering" in only:
        results["clustering"] = clustering(bench, 200_000, choices["cluster_seconds"])
    if choices["plot"] and "growth" in only:
        draw(results["growth"], bench.lines[len(sizes) :], choices["plot"])
    results["lines"] = bench.lines
    click.echo(claims(results))
    if choices["json_file"]:
        choices["json_file"].write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
