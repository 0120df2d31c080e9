"""What the timings of `encode.py` say: figures of each system, ratios, tables and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from encode_systems import GEMEL_FLOAT32, GEMEL_INT8, ONE_CORE, ONE_THREAD, TORCH

from gemel.table import format_table

SENTENCES, UNSORTED, DOCUMENTS, LATENCY = "sentences", "no smart batching", "documents", "one at a time"
FORMATS = ("png", "svg")


@dataclass(frozen=True)
class Claim:
    """One figure that was asked for: its value in each round (or its only value), and the bar."""

    what: str
    values: list[float]
    asked: str
    form: str = "{:.2f}x"

    def line(self) -> str:
        middle = self.form.format(float(np.median(self.values)))
        if len(self.values) == 1:
            return f"{self.what}: {middle} (asked: {self.asked})"
        low, high = self.form.format(min(self.values)), self.form.format(max(self.values))
        return f"{self.what}: {middle} (asked: {self.asked}; rounds {low} to {high})"

    def to_dict(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "asked": self.asked,
            "median": float(np.median(self.values)),
            "values": self.values,
        }


class Report:
    """The results of a run, as figures."""

    def __init__(self, results: dict[str, Any]) -> None:
        self.results = results
        self.timings: dict[str, dict[str, list[list[float]]]] = results["timings"]
        self.peers = [name for name in self.timings if not name.startswith("gemel")]

    def paces(self, name: str, task: str) -> list[float]:
        """Texts a second in each round."""
        n_texts = self.results["data"][DOCUMENTS if task == DOCUMENTS else SENTENCES]["texts"]
        return [n_texts / sum(seconds) for seconds in self.timings.get(name, {}).get(task, [])]

    def latencies(self, name: str, percentile: float) -> list[float]:
        """Milliseconds in each round."""
        rounds = self.timings.get(name, {}).get(LATENCY, [])
        return [1000 * float(np.percentile(seconds, percentile)) for seconds in rounds]

    def best_paces(self, names: list[str], tasks: tuple[str, ...]) -> tuple[str, list[float]]:
        """The best of several systems in each round, each in its quicker way; who that is by the medians."""
        kept = [(name, pace) for name in names for task in tasks if (pace := self.paces(name, task))]
        if not kept:
            return "", []
        usual = max(kept, key=lambda pair: float(np.median(pair[1])))[0]
        return usual, [max(paces) for paces in zip(*(pace for _, pace in kept), strict=True)]

    def figures(self, name: str) -> dict[str, Any]:
        """Medians over the rounds, the best round, quality, memory and start of one system."""
        sentences = self.paces(name, SENTENCES)
        data = self.results["data"][SENTENCES]
        return {
            "sentences_per_second": _median(sentences),
            "best": max(sentences, default=None),
            "tokens_per_second": _median([pace * data["tokens"] / data["texts"] for pace in sentences]),
            "no_smart_batching": _median(self.paces(name, UNSORTED)),
            "documents_per_second": _median(self.paces(name, DOCUMENTS)),
            "p50_ms": _median(self.latencies(name, 50)),
            "p99_ms": _median(self.latencies(name, 99)),
            "peak_mb": max(self.results["peak_mb"][name].values()),
            "sentences_peak_mb": self.results["peak_mb"][name].get(SENTENCES),
            "start_seconds": _median(self.results["starts"][name]),
            **self.results["quality"].get(name, {}),
        }

    def claims(self) -> list[Claim]:
        """What is asked of gemel, as far as the systems for it were measured."""
        found = [*self._throughput(), *self._scaling(), *self._quality()]
        return [claim for claim in found if claim.values]

    def _throughput(self) -> list[Claim]:
        int8, float32 = self.paces(GEMEL_INT8, SENTENCES), self.paces(GEMEL_FLOAT32, SENTENCES)
        peer, quickest = self.best_paces(
            [name for name in self.peers if "int8" in name], (SENTENCES, UNSORTED)
        )
        reader, reads = self.best_paces(self.peers, (DOCUMENTS,))
        torch = self.paces(TORCH, SENTENCES)
        waits = {name: self.latencies(name, 50) for name in self.peers if self.latencies(name, 50)}
        shortest = [min(values) for values in zip(*waits.values(), strict=True)]
        prompt = min(waits, key=lambda name: float(np.median(waits[name])), default="")
        return [
            Claim(f"int8 against the best int8 peer ({peer})", _ratios(int8, quickest), "1.8x"),
            Claim("share of the int8 GEMM ceiling", _ratios(int8, self._ceilings()), "65%", "{:.0%}"),
            Claim("int8 against sentence-transformers as installed", _ratios(int8, torch), "6x"),
            Claim("float32 against sentence-transformers as installed", _ratios(float32, torch), "1.6x"),
            Claim(
                f"long texts, int8 against the best peer ({reader})",
                _ratios(self.paces(GEMEL_INT8, DOCUMENTS), reads),
                "1.5x",
            ),
            Claim(
                f"one sentence at a time, int8 against the best peer ({prompt}), p50 shorter by",
                _ratios(shortest, self.latencies(GEMEL_INT8, 50)),
                "2x",
            ),
        ]

    def _scaling(self) -> list[Claim]:
        threads = self.results["machine"]["cores"]
        int8 = self.paces(GEMEL_INT8, SENTENCES)
        return [
            Claim(
                f"int8, {threads} threads against one (which may tokenise on another core)",
                _ratios(int8, self.paces(ONE_THREAD, SENTENCES)),
                "1.9x",
            ),
            Claim(
                f"int8, {threads} cores against one core for all",
                _ratios(int8, self.paces(ONE_CORE, SENTENCES)),
                "1.9x",
            ),
        ]

    def _quality(self) -> list[Claim]:
        quality: dict[str, dict[str, float]] = self.results["quality"]
        int8, float32, torch = (quality.get(name, {}) for name in (GEMEL_INT8, GEMEL_FLOAT32, TORCH))
        loss = [torch["stsb"] - int8["stsb"]] if "stsb" in torch and "stsb" in int8 else []
        number = "{:.6f}"
        return [
            Claim("int8, mean cosine to fp32", _one(int8, "mean_cosine"), ">= 0.9985", number),
            Claim("int8, smallest cosine to fp32", _one(int8, "min_cosine"), ">= 0.99", number),
            Claim("int8, loss on STSb in points", loss, "<= 0.15", "{:.2f}"),
            Claim("float32, smallest cosine to torch", _one(float32, "min_cosine"), ">= 0.99999", "{:.7f}"),
        ]

    def _ceilings(self) -> list[float]:
        ceilings: list[float] = self.results["ceiling"]["sentences_per_second"]
        return ceilings

    def tables(self) -> str:
        """Speed, then what it costs."""
        figures = {name: self.figures(name) for name in self.timings}
        speed = [
            ("sentences/s", "sentences_per_second", ",.0f"),
            ("best", "best", ",.0f"),
            ("tokens/s", "tokens_per_second", ",.0f"),
            ("no smart batching", "no_smart_batching", ",.0f"),
            ("long texts/s", "documents_per_second", ",.1f"),
            ("p50 ms", "p50_ms", ".2f"),
            ("p99 ms", "p99_ms", ".2f"),
        ]
        cost = [
            ("mean cosine", "mean_cosine", ".6f"),
            ("min cosine", "min_cosine", ".6f"),
            ("STSb", "stsb", ".2f"),
            ("start s", "start_seconds", ".2f"),
            ("peak MB, sentences", "sentences_peak_mb", ",.0f"),
            ("peak MB", "peak_mb", ",.0f"),
        ]
        return "\n\n".join(_table(figures, columns) for columns in (speed, cost))


def draw(report: Report, target: Path) -> list[Path]:
    """Sentences a second as bars, with the quality beside them, as PNG and SVG; the files."""
    from matplotlib.figure import Figure

    shown = {name: report.figures(name) for name in report.timings if name not in (ONE_THREAD, ONE_CORE)}
    names = sorted(shown, key=lambda name: float(shown[name]["sentences_per_second"]))
    paces = [float(shown[name]["sentences_per_second"]) for name in names]
    figure = Figure(figsize=(8.4, 1.1 + 0.42 * len(names)), layout="constrained")
    axes = figure.add_subplot()
    data, machine = report.results["data"][SENTENCES], report.results["machine"]
    axes.set_title(
        f"{report.results['model']}, {data['texts']:,} sentences, {machine['cores']} cores", pad=18
    )
    axes.set_xlabel("sentences a second, tokenising included")
    axes.grid(axis="x", alpha=0.25)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    colours = ["tab:blue" if name.startswith("gemel") else "tab:gray" for name in names]
    bars = axes.barh(names, paces, color=colours, height=0.65)
    axes.bar_label(bars, [f"{pace:,.0f}" for pace in paces], padding=4, fontsize=9)
    _draw_ceiling(axes, report.results["ceiling"]["sentences_per_second"], max(paces))
    _draw_column(axes, 1.06, "cosine\nto fp32", [_cell(shown[name], "mean_cosine", ".4f") for name in names])
    _draw_column(axes, 1.19, "STSb", [_cell(shown[name], "stsb", ".2f") for name in names])
    target.parent.mkdir(parents=True, exist_ok=True)
    files = [target.with_name(f"{target.name}.{suffix}") for suffix in FORMATS]
    for file in files:
        figure.savefig(file, dpi=150, bbox_inches="tight", pad_inches=0.1)
    return files


def _draw_ceiling(axes: Any, ceilings: list[float], quickest: float) -> None:
    ceiling = float(np.median(ceilings)) if ceilings else 0.0
    axes.set_xlim(right=1.12 * max(quickest, ceiling))
    if ceilings:
        axes.axvline(ceiling, color="tab:orange", linestyle="--", linewidth=1.2)
        axes.annotate(
            f"int8 matrix products alone: {ceiling:,.0f}", (ceiling, 0), xytext=(-5, 0),
            textcoords="offset points", ha="right", va="center", color="tab:orange", fontsize=9,
        )  # fmt: skip


def _draw_column(axes: Any, place: float, title: str, cells: list[str]) -> None:
    """A column of a table to the right of the bars."""
    beside = {"transform": axes.get_yaxis_transform(), "ha": "center", "fontsize": 9}
    for row, cell in enumerate(cells):
        axes.text(place, row, cell, va="center", **beside)
    axes.text(place, len(cells) - 0.5, title, va="bottom", **beside)


def _cell(figures: dict[str, Any], key: str, form: str) -> str:
    return f"{figures[key]:{form}}" if figures.get(key) is not None else ""


def _table(figures: dict[str, dict[str, Any]], columns: list[tuple[str, str, str]]) -> str:
    rows = [[name, *(_cell(row, key, form) for _, key, form in columns)] for name, row in figures.items()]
    return format_table(["system", *(title for title, _, _ in columns)], rows)


def _ratios(above: list[float], below: list[float]) -> list[float]:
    """Round by round; nothing if either was not measured."""
    return [a / b for a, b in zip(above, below, strict=True)] if above and below else []


def _one(figures: dict[str, float], key: str) -> list[float]:
    return [figures[key]] if key in figures else []


def _median(values: list[float]) -> float | None:
    return float(np.median(values)) if values else None
