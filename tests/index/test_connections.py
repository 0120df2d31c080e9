"""Connections, forks and folders that are no longer what they were: nothing acknowledged is lost."""

from __future__ import annotations

import fcntl
import gc
import os
import select
import shutil
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest
from stand_ins import ToyEncoder

from gemel.errors import InvalidInput
from gemel.index import Collection, HnswIndex, gated
from gemel.index.lock import locked

TEXTS = ["the dog sleeps", "the cat sleeps", "a man plays guitar"]
ANSWER_SECONDS = 60


class Child:
    """A forked process that does a step whenever it is told to, and says how it went."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        (here, self._orders), (self._answers, there) = os.pipe(), os.pipe()
        self.process = os.fork()
        if not self.process:
            try:
                for step in steps:
                    os.read(here, 1)
                    os.write(there, (repr(step()) + "\n").encode())
            except BaseException as error:
                os.write(there, f"{type(error).__name__}: {error}\n".encode())
            os._exit(0)
        os.close(there)

    def step(self) -> str:
        os.write(self._orders, b"x")
        if not select.select([self._answers], [], [], ANSWER_SECONDS)[0]:
            os.kill(self.process, signal.SIGKILL)
            return f"no answer in {ANSWER_SECONDS} seconds"
        return os.read(self._answers, 10_000).decode().strip()

    def end(self) -> None:
        os.waitpid(self.process, 0)


def test_what_a_forked_child_writes_outlives_its_parents_closing(tmp_path: Path) -> None:
    encoder = ToyEncoder()
    collection = Collection.create(tmp_path / "c", encoder)
    collection.add(TEXTS, range(3))
    child = Child(lambda: collection.add(["one"], [10]).n_new, lambda: collection.add(["two"], [11]).n_new)
    assert child.step() == "1"
    collection.close()
    with Collection.open(tmp_path / "c", read_only=True) as other:  # and whoever else comes and goes
        assert len(other) == 4
    assert child.step() == "1"
    child.end()
    with Collection.open(tmp_path / "c", encoder) as opened:
        assert [record.id for record in opened] == [0, 1, 2, 10, 11]
        assert opened.doctor().is_sound


def test_a_child_forked_in_the_middle_of_something_reads_and_does_not_write(collection: Collection) -> None:
    collection.add(TEXTS, range(3))
    going_on, done = threading.Event(), threading.Event()

    def read_slowly() -> None:
        for _ in collection.records():
            going_on.set()
            done.wait(30)

    reader = threading.Thread(target=read_slowly)
    reader.start()
    assert going_on.wait(30)
    child = Child(lambda: len(collection.search(["dog"], k=5)[0]), lambda: collection.add(["new"], [9]))
    assert child.step() == "3"
    assert "was in use by a thread when this process was forked" in child.step()
    child.end()
    done.set()
    reader.join(30)
    assert collection.add(["new"], [9]).n_new == 1  # the parent goes on


def test_a_fork_beside_threads_that_read_and_write_keeps_nobody_waiting(collection: Collection) -> None:
    collection.add(TEXTS, range(3))
    stop = threading.Event()

    def work() -> None:
        number = 100
        while not stop.is_set():
            collection.add([f"text {number}"], [number])
            collection.search(["dog"], k=2)
            number += 1

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(200):  # one in eighty met a lock of SQLite's that was held, before there was a gate
            child = Child(lambda: len(collection.search(["dog"], k=2)[0]))
            assert child.step() == "2"
            child.end()
    finally:
        stop.set()
        worker.join(60)
    assert collection.doctor().is_sound


@contextmanager
def endless_statement() -> Iterator[None]:
    """Another thread is inside SQLite for as long as this lasts."""
    connection = gated.connect(":memory:", check_same_thread=False)
    begun = threading.Event()
    connection.create_function("begun", 0, lambda: begun.set() or 0)

    def count_for_ever() -> None:
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            connection.execute(
                "with recursive n(i) as (select begun() union all select i + 1 from n) select count(*) from n"
            ).fetchone()

    counting = threading.Thread(target=count_for_ever)
    counting.start()
    try:
        assert begun.wait(30)
        yield
    finally:
        connection.interrupt()
        counting.join(30)
        connection.close()


def test_a_child_forked_beside_a_statement_without_end_is_told(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection.add(TEXTS, range(3))
    monkeypatch.setattr("gemel.index.connections.STATEMENT_SECONDS", 0.2)
    with endless_statement():
        child = Child(lambda: collection.search(["dog"], k=2))
        assert "in the middle of a statement for more than 0.2 seconds" in child.step()
        child.end()
        assert len(collection.search(["dog"], k=2)[0]) == 2  # the parent goes on
    child = Child(lambda: len(collection.search(["dog"], k=2)[0]))
    assert child.step() == "2"
    child.end()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_while_a_fork_waits_makes_no_child_that_hangs(collection: Collection) -> None:
    collection.add(TEXTS, range(3))

    def press_ctrl_c(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, press_ctrl_c)
    try:
        with endless_statement():
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            child = Child(lambda: collection.search(["dog"], k=2))
            assert "when this process was forked" in child.step()
            child.end()
            assert len(collection.search(["dog"], k=2)[0]) == 2
    finally:
        signal.signal(signal.SIGALRM, before)
    child = Child(lambda: len(collection.search(["dog"], k=2)[0]), lambda: collection.add(["x"], [7]).n_new)
    assert (child.step(), child.step()) == ("2", "1")
    child.end()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # generators end in any order
def test_what_the_collector_gives_back_during_a_fork_keeps_nobody_waiting(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection.add(TEXTS, range(3))
    records = collection.records()
    next(records)
    cycle: list[object] = [records]
    cycle.append(cycle)
    del records, cycle
    shut = gated.GATE.shut

    def collect_and_shut(seconds: float) -> bool:
        gc.collect()
        return shut(seconds)

    monkeypatch.setattr(gated.GATE, "shut", collect_and_shut)
    child = Child(lambda: len(collection.search(["dog"], k=2)[0]))
    assert child.step() == "2"
    child.end()
    assert collection.add(["new"], [9]).n_new == 1


@pytest.mark.parametrize("work", ["add", "remove", "compact", "search", "len"])
def test_a_folder_that_another_took_the_place_of_is_left_alone(
    collection: Collection, toy_encoder: ToyEncoder, work: str
) -> None:
    collection.add(TEXTS, range(3))
    shutil.rmtree(collection.path)
    with Collection.create(collection.path, toy_encoder) as other:
        other.add([f"text {n}" for n in range(50)], range(50))
    with pytest.raises(InvalidInput, match="was replaced by another collection since it was opened"):
        {
            "add": lambda: collection.add(["new"], [9]),
            "remove": lambda: collection.remove([1]),
            "compact": lambda: collection.compact(),
            "search": lambda: collection.search(["dog"]),
            "len": lambda: len(collection),
        }[work]()
    with Collection.open(collection.path, toy_encoder) as opened:
        assert len(opened) == 50
        assert opened.doctor().is_sound


def test_a_folder_that_is_gone_is_told(collection: Collection) -> None:
    collection.add(TEXTS, range(3))
    collection.path.rename(collection.path.with_name("elsewhere"))
    with pytest.raises(InvalidInput, match="was removed or renamed since it was opened"):
        collection.search(["dog"])


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
def test_who_may_not_write_sees_what_others_write(tmp_path: Path, toy_encoder: ToyEncoder) -> None:
    shared = Path("/tmp") / f"gemel-{os.getpid()}-readable"  # pytest's own folders are closed to others
    shared.mkdir(mode=0o755)
    try:
        path = shared / "c"
        with Collection.create(path, toy_encoder) as collection:
            collection.add([f"the dog number {n}" for n in range(500)], range(500))
        open_to_all(path)

        def open_as_nobody() -> None:
            os.setgid(65534)
            os.setuid(65534)
            opened.append(Collection.open(path, toy_encoder, read_only=True))

        opened: list[Collection] = []
        begun = ExitStack()  # a reading from before the change, that ends after others have seen it
        child = Child(
            lambda: (
                open_as_nobody(),
                begun.enter_context(opened[0].moment(by_vector=False)),
                len(opened[0]),
            )[2],
            lambda: (len(opened[0]), begun.close(), text_of(opened[0], 700)),
            lambda: (len(opened[0]), len(opened[0].lexical("dog", k=1_000))),
        )
        assert child.step() == "500"
        with Collection.open(path, toy_encoder) as collection:
            collection.add([f"the dog number {n}" for n in range(500, 1_000)], range(500, 1_000))
        open_to_all(path)
        assert child.step() == "(1000, None, 'the dog number 700')"
        with Collection.open(path, toy_encoder) as collection:
            collection.remove(range(900))
            collection.compact()
        open_to_all(path)
        assert child.step() == "(100, 100)"
        child.end()
    finally:
        shutil.rmtree(shared)


def text_of(collection: Collection, id_: int) -> str:
    (record,) = collection.get([id_])
    assert record is not None
    return record.text


def open_to_all(folder: Path) -> None:
    folder.chmod(0o755)
    for file in folder.iterdir():
        file.chmod(0o644)


def test_a_lock_is_let_go_although_a_child_was_forked_meanwhile(tmp_path: Path) -> None:
    with locked(tmp_path / "lock", 1):
        child = Child(lambda: None)
    with locked(tmp_path / "lock", 0.1):
        descriptor = os.open(tmp_path / "lock", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)
    child.step()
    child.end()


def test_a_graph_that_was_being_changed_at_a_fork_says_so() -> None:
    vectors = np.random.default_rng(0).standard_normal((20, 8)).astype(np.float32)
    changed, whole = HnswIndex(8), HnswIndex(8)
    for index in (changed, whole):
        index.add(range(20), vectors)
    begun, may_end = threading.Event(), threading.Event()

    def change_slowly() -> None:
        with changed._held(changes=True):
            begun.set()
            may_end.wait(60)

    changing = threading.Thread(target=change_slowly)
    changing.start()
    assert begun.wait(30)
    child = Child(lambda: len(whole.search(vectors[:1], 5).ids[0]), lambda: changed.search(vectors[:1], 5))
    may_end.set()
    assert child.step() == "5"
    assert "was being changed by a thread when this process was forked" in child.step()
    child.end()
    changing.join(60)
    assert changed.search(vectors[:1], 5).ids[0, 0] == 0  # the parent goes on
