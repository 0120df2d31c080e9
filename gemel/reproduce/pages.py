"""A reproduction as a page: its tables, the pictures that go with them, and where it was run."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from gemel import _native
from gemel.drawing import Picture
from gemel.reproduce.cells import was_run
from gemel.reproduce.lines import Line, Reproduction
from gemel.reproduce.paper import TABLE_1, TABLE_7
from gemel.reproduce.pictures import (
    Similarities,
    SpeedPoint,
    ours_against_paper,
    quality_against_speed,
    reliability,
    similarity_histograms,
)
from gemel.reproduce.report import write_report
from gemel.reproduce.stand_ins import UNMEASURABLE, short_name
from gemel.reproduce.workbench import Workbench
from gemel.version import VERSION

RAW = "BERT average"
_SMART = ", smart batching"


def write_pages(folder: Path, bench: Workbench, reproductions: Sequence[Reproduction]) -> Path:
    """Write report.html and report.json; without matplotlib, the page has no pictures."""
    pictures = list(_pictures(bench, reproductions)) if find_spec("matplotlib") else []
    shown = {picture.title: picture.svg for picture in pictures}
    return write_report(folder, reproductions, shown, _facts(bench))


def _facts(bench: Workbench) -> dict[str, str]:
    sets = _native.instruction_sets()
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "gemel": VERSION,
        "machine": f"{platform.machine()}, {_native.usable_cores()} cores, {sets[-1]}",
        "system": f"{platform.system()}, Python {platform.python_version()}",
        "data folder": str(bench.data or os.environ.get("GEMEL_DATA", "the cache")),
    }


def _pictures(bench: Workbench, reproductions: Sequence[Reproduction]) -> Iterator[Picture]:
    by_number = {each.table.number: each for each in reproductions}
    if 1 in by_number and any(was_run(line) and line.paper for line in by_number[1].lines):
        yield ours_against_paper(by_number[1])
    if 1 in by_number and 7 in by_number:
        points = _speed_points(by_number[1], by_number[7])
        if points:
            yield quality_against_speed([*points, *_points_of_the_paper()])
    if 6 in by_number and any(map(was_run, by_number[6].lines)):
        yield from (ours_against_paper(by_number[6], column) for column in by_number[6].table.columns)
    compared = _similarities(bench)
    if compared is not None:
        yield similarity_histograms(*compared)
        yield reliability(compared)


def _speed_points(quality: Reproduction, speed: Reproduction) -> list[SpeedPoint]:
    averages = {line.source: line for line in quality.lines if was_run(line)}
    points = []
    for line in speed.lines:
        known = averages.get(line.source)
        if was_run(line) and known is not None and not line.name.endswith("no smart batching"):
            rate = next(iter(line.figures.values()))
            points.append(SpeedPoint(_plain(known), rate, known.figures["average"]))
    return points


def _plain(line: Line) -> str:
    return line.name if line.paper is None else f"{line.name} here"


def _points_of_the_paper() -> list[SpeedPoint]:
    """The paper's CPU was another one: its points stand apart."""
    names = {"SBERT-base": "SBERT-NLI-base"}
    points = []
    for row in TABLE_7.rows:
        name = row.name.removesuffix(_SMART)
        quality = next((each for each in TABLE_1.rows if each.name == names.get(name, name)), None)
        if quality is not None:
            points.append(
                SpeedPoint(f"{quality.name} (paper)", row.figures["CPU"], quality.figures["average"], True)
            )
    return points


def _similarities(bench: Workbench) -> tuple[Similarities, Similarities] | None:
    """Cosines of STSb's test pairs by a raw transformer and by a tuned one, if there is one of each."""
    if not bench.cast.guests:
        return None
    try:
        raw = bench.cast.models_for(RAW)[0]
        return (
            Similarities("raw transformer, averaged", *bench.similarities(raw)),
            Similarities(short_name(bench.cast.guests[0]), *bench.similarities(bench.guest(0))),
        )
    except UNMEASURABLE:
        return None
