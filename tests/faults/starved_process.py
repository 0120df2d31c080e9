"""A writer on a disk that fails at one call after the other; run with failing_disk.c's library preloaded.

    LD_PRELOAD=... python starved_process.py '{"folder": ..., "library": ..., "errno": 28, "stride": 1}'

prints a JSON line: how many calls were made to fail, and everything that was wrong.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import collection_process
from collection_process import in_a_process
from encoding_process import HashEncoder

from gemel.errors import GemelError, WriteFailed
from gemel.index import Collection

State = dict[str, str]
ALWAYS = 1 << 60


def texts_of(version: str, first: int, last: int) -> State:
    return {f"r{n}": f"text {n} of version {version}" for n in range(first, last)}


CHANGES: dict[str, Callable[[Collection, str], Any]] = {
    "add": lambda made, version: made.add(
        list(texts_of(version, 20, 60).values()), list(texts_of(version, 20, 60))
    ),
    "remove": lambda made, version: made.remove([f"r{n}" for n in range(10, 30)]),
    "compact": lambda made, version: made.compact(),
    "index": lambda made, version: made.build_index(),
}


def after(kind: str, state: State, version: str) -> State:
    if kind == "add":
        return state | texts_of(version, 20, 60)
    if kind == "remove":
        return {id_: text for id_, text in state.items() if id_ not in {f"r{n}" for n in range(10, 30)}}
    return state


def attempt(disk: Any, folder: Path, kind: str, first: int, last: int, number: int) -> dict[str, Any]:
    """Make one change on a failing disk, and look at what is left, in this process and in another."""
    wrong: list[str] = []
    with Collection.open(folder, HashEncoder(), keeps_index=False) as made:
        before = {str(record.id): record.text for record in made}
        version = f"{kind}.{first}.{last}"
        disk.disk_fails(os.fsencode(folder), first, last, number)
        is_told = False
        try:
            CHANGES[kind](made, version)
        except WriteFailed:
            is_told = True
        except GemelError as error:
            wrong.append(f"another error: {error!r}")
        n_calls = disk.disk_calls()
        disk.disk_fails(b"/", -1, -1, 0)
        done = after(kind, before, version)
        possible = [before, done] if is_told else [done]
        found = {str(record.id): record.text for record in made}
        if found not in possible:
            wrong.append(f"{len(found)} records are there, told {is_told}")
        hits = made.search(["text"], k=500)[0]
        if len(hits) != len(found):
            wrong.append(f"{len(hits)} of {len(found)} are found")
        CHANGES[kind](made, version)  # again, now that the disk is well
        if {str(record.id): record.text for record in made} != done:
            wrong.append("the change does not succeed when it is made again")
    return {"n_calls": n_calls, "is_told": is_told, "wrong": wrong, "done": done}


def starve(folder: str, library: str, errno: int, stride: int = 1) -> dict[str, Any]:
    """Let each call of each change fail, once alone and once with all that follow."""
    disk = ctypes.CDLL(library)
    disk.disk_fails.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_long, ctypes.c_int]
    disk.disk_calls.restype = ctypes.c_long
    path, report = Path(folder) / "collection", Path(folder) / "report"

    def fill() -> None:
        with Collection.create(path, HashEncoder()) as made:
            first = texts_of("first", 0, 90)
            made.add(list(first.values()), list(first))

    in_a_process(fill, report)
    wrong, n_failed, n_told = [], 0, 0
    for kind in CHANGES:
        for sticks in (False, True):
            call = 1
            while True:
                last = ALWAYS if sticks else call + 1
                found = in_a_process(lambda: attempt(disk, path, kind, call, last, errno), report)  # noqa: B023
                lost = in_a_process(lambda: collection_process.examine(path, [found["done"]]), report)  # noqa: B023
                name = f"{kind}, call {call} {'and on' if sticks else 'alone'}"
                wrong += [f"{name}: {what}" for what in (*found["wrong"], *lost[0])]
                if found["n_calls"] < call:
                    break
                n_failed, n_told, call = n_failed + 1, n_told + found["is_told"], call + stride
    return {"n_failed": n_failed, "n_told": n_told, "wrong": wrong}


if __name__ == "__main__":
    print(json.dumps(starve(**json.loads(sys.argv[1]))))  # noqa: T201
