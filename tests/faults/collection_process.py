"""A writer that is killed, over and over, and an examiner that sees what is left.

    python collection_process.py '{"folder": ..., "n_kills": ..., "seed": ...}'

kills at random moments; with {"folder": ..., "steps": true} at every step towards the disk, one after the
other. It prints a JSON line: how often it killed, in the midst of what, and everything that was wrong after.
Each writer and each examiner is a process of its own, forked from this one, which touches no collection.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from encoding_process import HashEncoder

from gemel.errors import WriteFailed
from gemel.index import Collection, Record, database, dense, upkeep

State = dict[str, str]  # id -> text

# Sizes at which an index is built every now and then, and every file has many blocks.
dense.EXACT_ROWS, upkeep.UNINDEXED_ROWS = 40, 60
dense.PASS_COST = dense.GATHER_COST = 1e9  # so that a search goes by the index once there is one


class Log:
    """What a writer was about to do and what it has done: lines in a file, which outlive it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, *entry: Any) -> None:
        """Note one thing."""
        with self.path.open("ab", buffering=0) as file:
            file.write(json.dumps(entry).encode() + b"\n")

    def read(self) -> list[list[Any]]:
        """All that was noted wholly."""
        if not self.path.exists():
            return []
        lines = self.path.read_bytes().split(b"\n")[:-1]
        return [json.loads(line) for line in lines]


def changes(seed: int, version: int) -> Iterator[tuple[str, Any]]:
    """What a writer does: mostly additions of many sizes, some of them over what is there."""
    choice = random.Random(seed)
    for turn in count():
        kind = choice.choices(["add", "remove", "compact", "index"], [8, 4, 1, 1])[0]
        ids = [f"r{choice.randrange(300)}" for _ in range(choice.choice([1, 3, 20, 60]))]
        if kind == "add":
            yield kind, {id_: f"text of {id_}, version {version}.{turn}" for id_ in ids}
        else:
            yield kind, ids


def applied(state: State, kind: str, what: Any) -> State:
    if kind == "add":
        return state | what
    if kind == "remove":
        return {id_: text for id_, text in state.items() if id_ not in what}
    return state


def write(folder: Path, log: Log, seed: int, version: int = 0, n_changes: int | None = None) -> None:
    """Change a collection until killed, or so often; another version of the same has other texts."""
    with Collection.open(folder, HashEncoder()) as collection:
        for number, (kind, what) in enumerate(changes(seed, version or seed)):
            if number == n_changes:
                return
            log.append("begin", kind, what)
            if kind == "add":
                collection.add([Record(id_, text, {"length": len(text)}) for id_, text in what.items()])
            elif kind == "remove":
                collection.remove(what)
            elif kind == "compact":
                collection.compact()
            else:
                collection.build_index()
            log.append("end")


def examine(folder: Path, possible: list[State]) -> tuple[list[str], int]:
    """What is wrong with a collection that has to be in one of these states, and in which it is."""
    wrong = []
    with warnings.catch_warnings(), Collection.open(folder, HashEncoder()) as collection:
        warnings.simplefilter("error")
        found = {str(record.id): record.text for record in collection}
        if found not in possible:
            wrong.append(f"{len(found)} records are there, of {[len(state) for state in possible]} possible")
        for text in list(found.values())[:10]:
            hits = collection.search([text], k=len(found))[0]
            if hits[0].record.text != text or len(hits) != len(found):
                wrong.append(f"{text!r} finds {len(hits)} of {len(found)}, first {hits[0].record.text!r}")
            if collection.lexical(text, k=1)[0].score <= 0:
                wrong.append(f"{text!r} is not found by its words")
        diagnosis = collection.doctor(repair=False)
        wrong += [finding.what for finding in diagnosis.findings]
        diagnosis = collection.doctor()
        wrong += [finding.what for finding in diagnosis.findings]
        if len(list(folder.glob("vectors-*"))) > 1 or len(list(folder.glob("*index-*"))) > 1:
            wrong.append("a file that does not count is still there")
    return wrong, possible.index(found) if found in possible else -1


def in_a_process(work: Callable[[], Any], report: Path) -> Any:
    """What a function returns in a process of its own."""
    child = os.fork()
    if not child:
        try:
            report.write_text(json.dumps(work()))
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    found = json.loads(report.read_text())
    report.unlink()
    return found


def forked(work: Callable[[], Any]) -> int:
    """The process that does the work and no more."""
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(0)
    return child


def kill_after(seconds: float, work: Callable[[], Any]) -> bool:
    """Run a function in a process and kill that; whether it was still running."""
    child = forked(work)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


class Trial:
    """One collection through many deaths of its writers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "collection"
        self.log = Log(folder / "log")
        self.report = folder / "report"
        self.state: State = {}
        self.wrong: list[str] = []
        self.interrupted: Counter[str] = Counter()
        in_a_process(lambda: Collection.create(self.folder, HashEncoder()).close(), self.report)

    def settle(self, name: str) -> None:
        """See that the collection holds all that was acknowledged, and of the last change all or nothing."""
        possible = [self.state]
        for entry in self.log.read():
            if entry[0] == "begin":
                kind, what = entry[1:]
                possible.append(applied(possible[-1], kind, what))
                self.interrupted[kind] += 1
            else:
                possible = possible[-1:]
                self.interrupted[kind] -= 1
        self.log.path.unlink(missing_ok=True)
        wrong, place = in_a_process(lambda: examine(self.folder, possible), self.report)
        self.wrong += [f"{name}: {what}" for what in wrong]
        self.state = possible[place]

    def told(self, **more: Any) -> dict[str, Any]:
        """What came of it."""
        interrupted = dict(+self.interrupted)
        return {"wrong": self.wrong, "interrupted": interrupted, "n_records": len(self.state), **more}


def kill_at_random(folder: str, n_kills: int, seed: int = 0) -> dict[str, Any]:
    """Kill writers at random moments, one after the other, and look after each."""
    trial, chance, n_killed = Trial(Path(folder)), random.Random(seed), 0
    for number in range(n_kills):
        work = partial(write, trial.folder, trial.log, seed * 1_000_003 + number)
        n_killed += kill_after(chance.uniform(0.005, 0.4), work)
        trial.settle(f"kill {number}")
    return trial.told(n_killed=n_killed)


def die_at(step: int) -> None:
    """Kill this process as it is about to take its nth step towards the disk, or its nth statement of SQL."""
    steps = 0

    def counted(*_: Any) -> None:
        nonlocal steps
        steps += 1
        if steps == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def before(function: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            counted()
            return function(*arguments, **named)

        return call

    for name in ("pwrite", "fsync", "ftruncate", "replace", "unlink"):
        setattr(os, name, before(getattr(os, name)))
    connect = database.Database._connect

    def traced(self: database.Database) -> Any:
        connection = connect(self)
        connection.set_trace_callback(counted)
        return connection

    database.Database._connect = traced  # type: ignore[method-assign]


def kill_at_every_step(folder: str, stride: int = 1, n_changes: int = 12) -> dict[str, Any]:
    """Kill writers at their first step, at their second and so on; each begins where the last one died."""
    trial = Trial(Path(folder))

    def work(step: int) -> None:
        die_at(step)
        write(trial.folder, trial.log, 3, step, n_changes)

    step = 1
    while kill_after_all(partial(work, step)):
        trial.settle(f"step {step}")
        step += stride
    return trial.told(n_steps=step)


def run_out_of_room(folder: str, max_file_bytes: int) -> dict[str, Any]:
    """Let no file grow beyond a size, until a writer is told so; then look, and go on without the limit."""
    trial = Trial(Path(folder))

    def work() -> str:
        resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, resource.RLIM_INFINITY))
        try:
            write(trial.folder, trial.log, 8)
        except WriteFailed as error:
            return str(error)
        return ""

    message = in_a_process(work, trial.report)
    trial.settle("limited")
    in_a_process(lambda: write(trial.folder, trial.log, 9, n_changes=10), trial.report)
    trial.settle("unlimited")
    return trial.told(message=message)


def read_along(folder: str, seconds: float) -> dict[str, Any]:
    """Search in one process while another adds, removes, compacts and builds indexes."""
    trial = Trial(Path(folder))
    writer = os.fork()
    if not writer:
        try:
            write(trial.folder, trial.log, 5)
        finally:
            os._exit(0)

    def n_changes() -> int:
        return sum(entry == ["end"] for entry in trial.log.read())

    def work() -> tuple[list[str], int]:
        warnings.simplefilter("error")
        wrong, n_searches, end = [], 0, time.monotonic() + seconds
        latest = end + 120  # for where both are slow
        with Collection.open(trial.folder, HashEncoder(), read_only=True) as collection:
            while time.monotonic() < (end if min(n_searches, n_changes()) > 10 else latest):
                found = [hit.record for hits in collection.search(["a", "b"], k=50) for hit in hits]
                found += [hit.record for hit in collection.lexical("text of r1", k=50)]
                found += list(collection.records("length > 20"))
                n_searches += 1
                wrong += [repr(r) for r in found if not r.text.startswith(f"text of {r.id}, ")]
        return wrong, n_searches

    try:
        wrong, n_searches = in_a_process(work, trial.report)
    finally:
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
    n_made = n_changes()
    trial.settle("at the end")
    return trial.told(n_searches=n_searches, n_changes=n_made) | {"wrong": [*wrong, *trial.wrong]}


def kill_after_all(work: Callable[[], Any]) -> bool:
    """Run a function that may kill its own process; whether it did."""
    return os.waitpid(forked(work), 0)[1] == signal.SIGKILL


if __name__ == "__main__":
    settings = json.loads(sys.argv[1])
    run: Any = kill_at_every_step if settings.pop("steps", False) else kill_at_random
    if "max_file_bytes" in settings:
        run = run_out_of_room
    if "seconds" in settings:
        run = read_along
    print(json.dumps(run(**settings)))  # noqa: T201
