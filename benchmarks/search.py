"""Search in collections beside faiss, hnswlib, LanceDB and sqlite-vec, on vectors of real sentences.

    make bench-search GEMEL_DATA=DATA [ARGUMENTS="--rows 1000000"]

Each system is a process of its own, in its own environment, that maps the same file of vectors. Queries are
other sentences. Recall is measured against exact search, plainly and under filters that keep a tenth and a
hundredth of the rows. Of a system that can search harder, the least effort that reaches the asked recall is
shown. gemel stores records and checksums in SQLite besides; its seconds include that. Where there are fewer
real sentences than rows, the rest is made from them by templates, and the report says how many.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any

import click
import numpy as np

from gemel import _native
from gemel.data.plain_texts import TextFile, read_plain_texts
from gemel.loading import load_encoder
from gemel.progress import progress_bar
from gemel.similarity import top_k
from gemel.table import format_table

WORKERS = Path(__file__).parent / "workers"
SYSTEMS = ("gemel", "faiss", "hnswlib", "lancedb", "sqlite_vec")
SHARES = (1.0, 0.1, 0.01)
K = 10
ASKED_RECALL = 0.98
N_QUERIES = 1_000
TEXTS = (
    ("sentences_en/sentences_open.tsv.gz", ("text",)),
    ("nli_mix/train.tsv.gz", ("premise", "hypothesis")),
    ("quora_duplicates_positive/all.tsv.gz", ("question1", "question2")),
)
# What a real sentence is put into where there are too few of them.
TEMPLATES = ("As they say: {}", "{} That is how it was.", "Somebody asked: {}", "{} And so on.")


@dataclass
class Bench:
    """Where everything is, and what was measured."""

    vectors: Path
    queries: Path
    pythons: dict[str, str]
    work: Path
    seconds: float
    lines: list[dict[str, Any]] = field(default_factory=list)
    truths: dict[tuple[int, float], Any] = field(default_factory=dict)

    def run(self, system: str, rows: int, shares: tuple[float, ...] = SHARES) -> dict[str, Any]:
        """Build and search with one system, in a process of its own."""
        folder = Path(tempfile.mkdtemp(prefix=f"{system}-{rows}-", dir=self.work)) / "index"
        asked = {
            "vectors": str(self.vectors), "queries": str(self.queries), "rows": rows, "k": K,
            "shares": shares, "seconds": self.seconds, "folder": str(folder),
        }  # fmt: skip
        line = worked(self.pythons[system], f"search_{system}.py", asked)
        for found in line["searches"]:
            ids = np.load(found.pop("result"))
            found["recall"] = recall(ids, self.truth(rows, found["share"]))
        line |= {"system": system, "rows": rows}
        self.lines.append(line)
        plain = chosen(line, 1.0)
        click.echo(
            f"  {system}, {rows:,} rows: built in {line['build_seconds']:.1f} s, "
            f"recall {plain['recall']:.3f}, p50 {plain['p50_ms']:.2f} ms, "
            f"{plain['queries_per_second']:,.0f} queries/s",
            err=True,
        )
        return line

    def truth(self, rows: int, share: float) -> Any:
        """What exact search finds, worked out once."""
        if (rows, share) not in self.truths:
            step = round(1 / share)
            kept = np.load(self.vectors, mmap_mode="r")[:rows:step]
            self.truths[rows, share] = top_k(np.load(self.queries), kept, K).ids * step
        return self.truths[rows, share]


def worked(python: str, worker: str, asked: dict[str, Any]) -> dict[str, Any]:
    """What a worker prints as its last line."""
    done = subprocess.run(
        [python, str(WORKERS / worker), json.dumps(asked)], check=True, stdout=subprocess.PIPE, text=True
    )
    line: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return line


def recall(found: Any, truth: Any) -> float:
    """The share of the true neighbours that were found, over the queries that were answered."""
    pairs = zip(found.tolist(), truth[: len(found)].tolist(), strict=True)
    return float(np.mean([len(set(ours) & set(theirs)) / len(theirs) for ours, theirs in pairs]))


def chosen(line: dict[str, Any], share: float) -> dict[str, Any]:
    """The least effort that reaches the asked recall, or the one that comes nearest to it."""
    searches = [found for found in line["searches"] if found["share"] == share]
    enough = [found for found in searches if found["recall"] >= ASKED_RECALL]
    best: dict[str, Any] = enough[0] if enough else max(searches, key=lambda found: found["recall"])
    return best


# Texts and vectors -----------------------------------------------------------------------------------------


def texts_of(data: Path, n: int) -> tuple[list[str], int]:
    """Texts in no order, and how many of them are real; where these are too few, the same in templates."""
    real = read_plain_texts([TextFile(data / file, columns) for file, columns in TEXTS]).columns["text"]
    random.Random(0).shuffle(real)
    texts = list(islice((each.format(text) for each in ("{}", *TEMPLATES) for text in real), n))
    if n > len(real):  # else templates would come last, and be the queries
        random.Random(1).shuffle(texts)
    return texts, min(n, len(real))


def vectors_of(data: Path, n: int, work: Path) -> Path:
    """The vectors of n texts, made once."""
    file = work / f"vectors-{n}.npy"
    if not file.exists():
        encoder = load_encoder(on_truncate="ignore")
        draft = work / "vectors-unfinished.npy"
        rows = np.lib.format.open_memmap(draft, "w+", np.float32, (n, encoder.dim))
        texts, n_real = texts_of(data, n)
        with progress_bar(n, "encode") as bar:
            for start in range(0, n, 8_192):
                part = slice(start, min(start + 8_192, n))
                encoder.encode(texts[part], out=rows[part], show_progress=False)
                bar.update(part.stop - part.start)
        rows.flush()
        file.with_suffix(".json").write_text(json.dumps({"texts": n, "real": n_real}), encoding="utf-8")
        draft.rename(file)
    return file


# What was found --------------------------------------------------------------------------------------------


def report(results: dict[str, Any]) -> str:
    """All figures as tables."""
    about = results["about"]
    parts = (
        [f"{about['real']:,} of {about['texts']:,} texts are real, the rest by templates"] if about else []
    )
    for rows in sorted({line["rows"] for line in results["lines"] if len(shares_of(line)) > 1}):
        lines = [line for line in results["lines"] if line["rows"] == rows and len(shares_of(line)) > 1]
        parts.append(
            f"{rows:,} rows of {results['dim']} numbers\n" + format_table(HEADER, [*map(row_of, lines)])
        )
    if found := results.get("end_to_end"):
        rows = [[mode, f"{at['p50_ms']:.2f}", f"{at['p99_ms']:.2f}"] for mode, at in found["search"].items()]
        parts.append(f"text in, hits out, at {found['rows']:,} rows ({found['plan']})")
        parts.append(format_table(["mode", "p50 ms (asked 5)", "p99 ms (asked 15)"], rows))
        ratios = [line["ratio"] for line in found["ingest"]]
        parts.append(f"adding takes {np.median(ratios):.2f} times as long as encoding (asked 1.15; {ratios})")
    return "\n\n".join(parts)


HEADER = [
    "system", "effort", "recall", "at 10%", "at 1%", "p50 ms", "p99 ms", "queries/s", "10% p50", "1% p50",
    "build s", "peak MB", "file MB",
]  # fmt: skip


def row_of(line: dict[str, Any]) -> list[str]:
    """One system's figures."""
    plain, tenth, hundredth = (chosen(line, share) for share in SHARES)
    return [
        line["system"], str(plain["effort"] or "–"), f"{plain['recall']:.3f}", f"{tenth['recall']:.3f}",
        f"{hundredth['recall']:.3f}", f"{plain['p50_ms']:.2f}", f"{plain['p99_ms']:.2f}",
        f"{plain['queries_per_second']:,.0f}", f"{tenth['p50_ms']:.2f}", f"{hundredth['p50_ms']:.2f}",
        f"{line['build_seconds']:,.1f}", f"{line['peak_mb']:,.0f}", f"{line['bytes'] / 1e6:,.0f}",
    ]  # fmt: skip


def shares_of(line: dict[str, Any]) -> set[float]:
    """The filters that a line was measured with."""
    return {found["share"] for found in line["searches"]}


def draw(lines: list[dict[str, Any]], target: Path) -> None:
    """Milliseconds a query and seconds to build, over rows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    rows = [line["rows"] for line in lines]
    milliseconds, seconds = figure.subplots(1, 2)
    milliseconds.set(title="milliseconds a query, one at a time")
    seconds.set(title="seconds to build, records and index", yscale="log", ylim=(0.5, 1_000))
    for axes, values in (
        (milliseconds, [chosen(line, 1.0)["p50_ms"] for line in lines]),
        (seconds, [line["build_seconds"] for line in lines]),
    ):
        axes.set(xscale="log", xlabel="rows")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.plot(rows, values, "o-", color="#0072b2")
        for row, value in zip(rows, values, strict=True):
            axes.annotate(f"{value:,.3g}", (row, value), xytext=(4, -14), textcoords="offset points")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:,g}")
        axes.margins(x=0.1)
    milliseconds.set_ylim(bottom=0)
    figure.suptitle(f"A collection as it grows, {_native.usable_cores()} cores")
    for suffix in ("png", "svg"):
        figure.savefig(target.with_name(f"{target.name}.{suffix}"), dpi=150)


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=os.environ.get("GEMEL_DATA"), required=True)
@click.option("--peers", type=click.Path(path_type=Path), default=".venv-peers", show_default=True)
@click.option(
    "--vectors", type=click.Path(path_type=Path), help="A .npy of sentence vectors, if there is one."
)
@click.option(
    "--texts", help="The texts of these vectors, in their order: a .tsv or .tsv.gz with a column text."
)
@click.option("--work", type=click.Path(path_type=Path), help="Where vectors and indexes are kept.")
@click.option("--rows", default=1_000_000, show_default=True)
@click.option("--sizes", default="10000,100000,400000,1000000", show_default=True, help="For the growth.")
@click.option("--end-to-end-rows", default=100_000, show_default=True)
@click.option("--ingest-rows", default=10_000, show_default=True)
@click.option("--systems", default=",".join(SYSTEMS), show_default=True)
@click.option("--seconds", default=20.0, show_default=True, help="That one measurement may take.")
@click.option("--only", default="systems,end_to_end,growth", show_default=True)
@click.option("--plot", type=click.Path(path_type=Path), help="Draw to this name, as .png and .svg.")
@click.option("--json", "json_file", type=click.Path(path_type=Path))
def main(data: Path, peers: Path, work: Path | None, rows: int, **choices: Any) -> None:
    """Measure, compare and print."""
    work = work or Path(tempfile.mkdtemp(prefix="gemel-search-"))
    work.mkdir(parents=True, exist_ok=True)
    only, systems = choices["only"].split(","), choices["systems"].split(",")
    sizes = [int(size) for size in choices["sizes"].split(",") if int(size) <= rows]
    vectors = choices["vectors"] or vectors_of(data, rows + N_QUERIES, work)
    everything = np.load(vectors, mmap_mode="r")
    if len(everything) < rows + N_QUERIES:
        raise click.UsageError(f"{vectors} has {len(everything):,} rows; expected {rows + N_QUERIES:,}")
    np.save(work / "queries.npy", everything[rows : rows + N_QUERIES])
    pythons = {
        name: str(peers.with_name(f"{peers.name}-{name.replace('_', '-')}") / "bin" / "python")
        for name in systems
    }
    bench = Bench(
        Path(vectors), work / "queries.npy", {**pythons, "gemel": sys.executable}, work, choices["seconds"]
    )
    about = Path(vectors).with_suffix(".json")
    results: dict[str, Any] = {
        "about": json.loads(about.read_text(encoding="utf-8")) if about.exists() else {},
        "date": datetime.now(timezone.utc).isoformat(timespec="minutes"),
        "dim": everything.shape[1],
        "lines": bench.lines,
    }
    if "systems" in only:
        for system in systems:
            bench.run(system, rows)
    if "end_to_end" in only:
        results["end_to_end"] = end_to_end(data, work, choices)
    if "growth" in only:
        known = {line["rows"]: line for line in bench.lines if line["system"] == "gemel"}
        grown = [known.get(size) or bench.run("gemel", size, (1.0,)) for size in sizes]
        if choices["plot"]:
            draw(grown, choices["plot"])
    click.echo(report(results))
    if choices["json_file"]:
        choices["json_file"].write_text(json.dumps(results, indent=1), encoding="utf-8")


def end_to_end(data: Path, work: Path, choices: dict[str, Any]) -> dict[str, Any]:
    """A collection of real sentences: how fast it takes them in, and how fast it answers."""
    texts = choices["texts"] or str(data / "sentences_en" / "sentences_open.tsv.gz")
    folder = Path(tempfile.mkdtemp(prefix="end-to-end-", dir=work)) / "c"
    asked = {
        "texts": texts, "format": "tsv", "vectors": str(choices["vectors"] or ""), "folder": str(folder),
        "rows": choices["end_to_end_rows"], "queries": 500, "ingest_rows": choices["ingest_rows"],
        "rounds": 3,
    }  # fmt: skip
    return worked(sys.executable, "search_end_to_end.py", asked)


if __name__ == "__main__":
    main()
