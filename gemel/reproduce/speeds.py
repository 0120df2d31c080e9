"""Table 7: how many sentences a second, with texts of like length put together and without."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemel.contracts import Encoder
from gemel.data.catalogue import find_set
from gemel.data.example_files import read_examples
from gemel.errors import InvalidInput
from gemel.reproduce.lines import Line
from gemel.reproduce.paper import TABLE_7, PaperRow
from gemel.reproduce.stand_ins import UNMEASURABLE, Cast, StandIn, open_encoder, short_name

BATCH = 32  # texts a call where nothing is put together: what others take by default
N_ROUNDS = 3
N_TEXTS = 5_000
_SORTED, _AS_THEY_COME = "smart batching", "no smart batching"


@dataclass
class _Runner:
    """An encoder, and the best time of each of the two ways."""

    name: str
    model: StandIn
    encoder: Encoder
    rows: Mapping[str, PaperRow | None]  # way -> the paper's line
    seconds: dict[str, float]


def measure_speeds(
    cast: Cast, data: str | Path | None, compute: Mapping[str, Any], tell: Callable[[str], None]
) -> Iterator[Line]:
    """The lines of the table, and those of the guests; the encoders take turns, so that noise is shared."""
    try:
        texts = _sentences(data)
    except InvalidInput as error:
        yield from (Line(row.name, row, missing=str(error)) for row in TABLE_7.rows)
        yield from (Line(short_name(guest), missing=str(error)) for guest in cast.guests)
        return
    runners, missing = _runners(cast, compute)
    for number in range(N_ROUNDS):
        for runner in runners:
            for way in runner.rows:
                _time(runner, way, texts)
        tell(f"speed: round {number + 1} of {N_ROUNDS}, {len(runners)} encoders, {len(texts):,} sentences")
    yield from missing
    for runner in runners:
        for way, row in runner.rows.items():
            name = row.name if row is not None else f"{runner.name}, {way}"
            rate = {_column(runner.encoder): len(texts) / runner.seconds[way]}
            model = runner.model
            yield Line(name, row, short_name(model.model), model.note, rate, source=model.model)


def _sentences(data: str | Path | None) -> list[str]:
    pairs = read_examples(find_set("stsb", "train", data), kind="scored pairs")
    return list(dict.fromkeys(text for column in pairs.columns.values() for text in column))[:N_TEXTS]


def _runners(cast: Cast, compute: Mapping[str, Any]) -> tuple[list[_Runner], list[Line]]:
    runners, missing = [], []
    for name, ways in _lines_of_models().items():
        try:
            model = cast.models_for(name)[0]
            runners.append(_Runner(name, model, open_encoder(model, compute), ways, {}))
        except UNMEASURABLE as error:
            missing += [Line(row.name, row, missing=str(error)) for row in ways.values()]
    for guest in cast.guests:
        model, ways_of_guest = StandIn(guest), dict.fromkeys((_AS_THEY_COME, _SORTED))
        try:
            opened = open_encoder(model, compute)
        except UNMEASURABLE as error:
            missing.append(Line(short_name(guest), missing=str(error)))
            continue
        runners.append(_Runner(short_name(guest), model, opened, ways_of_guest, {}))
    return runners, missing


def _lines_of_models() -> dict[str, dict[str, PaperRow]]:
    """The model of each line, and its lines by the way they were measured: SBERT's are two."""
    models: dict[str, dict[str, PaperRow]] = {}
    for row in TABLE_7.rows:
        model, _, way = row.name.partition(", ")
        models.setdefault(model, {})[way or _SORTED] = row
    return models


def _column(encoder: Encoder) -> str:
    """The paper's column for where this encoder computes."""
    return "CPU" if str(getattr(encoder, "device", "cpu")) == "cpu" else "GPU"


def _time(runner: _Runner, way: str, texts: Sequence[str]) -> None:
    began = time.perf_counter()
    if way == _AS_THEY_COME:
        for start in range(0, len(texts), BATCH):
            runner.encoder.encode(texts[start : start + BATCH])
    else:
        runner.encoder.encode(texts)
    seconds = time.perf_counter() - began
    runner.seconds[way] = min(runner.seconds.get(way, seconds), seconds)
