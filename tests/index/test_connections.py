"""Connections, forks and folders that are no longer what they were: nothing acknowledged is lost."""

from __future__ import annotations

import fcntl
import gc
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
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
    """A forked process that does a step when told to, and says how it went, until the block ends."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        (here, self._orders), (self._answers, there) = os.pipe(), os.pipe()
        self.process = os.fork()
        if not self.process:
            try:
                os.close(self._orders)  # so that its end is seen, should the parent be gone
                for step in steps:
                    if not os.read(here, 1):
                        break
                    os.write(there, (repr(step()) + "\n").encode())
            except BaseException as error:
                os.write(there, f"{type(error).__name__}: {error}\n".encode())
            finally:
                os._exit(0)
        os.close(here)
        os.close(there)

    def step(self) -> str:
        os.write(self._orders, b"x")
        answers = select.poll()
        answers.register(self._answers, select.POLLIN)
        if not answers.poll(ANSWER_SECONDS * 1_000):
            return f"no answer in {ANSWER_SECONDS} seconds"
        return os.read(self._answers, 10_000).decode().strip()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._orders)
        os.close(self._answers)
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)


def adding(collection: Collection, *ids: int) -> Child:
    """A child that adds a text with each of the ids, a step each."""
    return Child(*(lambda id_=id_: collection.add([f"text {id_}"], [id_]).n_new for id_ in ids))


def finding(collection: Collection) -> Child:
    """A child that searches, and tells how much it has found."""
    return Child(lambda: len(collection.search(["dog"], k=2)[0]))


def beside(work: Callable[[], object]) -> threading.Thread:
    """A thread that keeps nobody waiting when a test fails."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def assert_ended(thread: threading.Thread) -> None:
    thread.join(60)
    assert not thread.is_alive()


def test_what_a_forked_child_writes_outlives_its_parents_closing(tmp_path: Path) -> None:
    encoder = ToyEncoder()
    collection = Collection.create(tmp_path / "c", encoder)
    collection.add(TEXTS, range(3))
    with adding(collection, 10, 11) as child:
        assert child.step() == "1"
        collection.close()
        with Collection.open(tmp_path / "c", read_only=True) as other:  # and whoever else comes and goes
            assert len(other) == 4
        assert child.step() == "1"
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

    reader = beside(read_slowly)
    assert going_on.wait(30)
    with Child(
        lambda: len(collection.search(["dog"], k=5)[0]), lambda: collection.add(["new"], [9])
    ) as child:
        assert child.step() == "3"
        assert "was in use by a thread when this process was forked" in child.step()
    done.set()
    assert_ended(reader)
    assert collection.add(["new"], [9]).n_new == 1  # the parent goes on


def test_a_fork_beside_threads_that_read_and_write_keeps_nobody_waiting(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gemel.index.gated.STATEMENT_SECONDS", 60.0)  # disks may be slow
    collection.add(TEXTS, range(3))
    stop = threading.Event()

    def work() -> None:
        number = 100
        while not stop.is_set():
            collection.add([f"text {number}"], [number])
            collection.search(["dog"], k=2)
            number += 1

    worker = beside(work)
    try:
        for _ in range(200):  # one in eighty met a lock of SQLite's that was held, before there was a gate
            with finding(collection) as child:
                assert child.step() == "2"
    finally:
        stop.set()
        assert_ended(worker)
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

    counting = beside(count_for_ever)
    try:
        assert begun.wait(30)
        yield
    finally:
        connection.interrupt()
        assert_ended(counting)
        connection.close()


def test_a_child_forked_beside_a_statement_without_end_is_told(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection.add(TEXTS, range(3))
    other = collection.path.with_name("other")
    monkeypatch.setattr("gemel.index.gated.STATEMENT_SECONDS", 0.2)
    with endless_statement():
        for work in (lambda: collection.search(["dog"], k=2), lambda: Collection.create(other, ToyEncoder())):
            with Child(work) as child:
                assert "in the middle of a statement for more than 0.2 seconds" in child.step()
        assert len(collection.search(["dog"], k=2)[0]) == 2  # the parent goes on
    with finding(collection) as child:
        assert child.step() == "2"


class Interrupted(Exception):
    """What Ctrl-C raises here: KeyboardInterrupt itself would end the tests, should it come too late."""


@contextmanager
def ctrl_c_in_forks() -> Iterator[None]:
    """Ctrl-C is pressed as soon as a fork waits."""
    shut = gated.GATE.shut

    def press_ctrl_c(*_: object) -> None:
        raise Interrupted

    def alarm_and_shut(seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        shut(seconds)

    before = signal.signal(signal.SIGALRM, press_ctrl_c)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gated.GATE, "shut", alarm_and_shut)
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_while_a_fork_waits_makes_no_child_that_hangs(collection: Collection) -> None:
    collection.add(TEXTS, range(3))
    with endless_statement(), ctrl_c_in_forks():
        with finding(collection) as child:
            assert "when this process was forked" in child.step()
        assert len(collection.search(["dog"], k=2)[0]) == 2
    with adding(collection, 7) as child:
        assert child.step() == "1"
    assert collection.add(["y"], [8]).n_new == 1


def test_a_statement_that_was_not_read_to_its_end_keeps_no_child_from_writing(collection: Collection) -> None:
    collection.add([f"text {n}" for n in range(2_000)], range(2_000))
    with collection._database.reading() as connection:
        unread = connection.execute("select * from records")
        assert next(unread)
    with adding(collection, 5_000, 5_001) as child:
        assert child.step() == "1"
        del unread
        collection.close()
        Collection.open(collection.path, read_only=True).close()
        assert child.step() == "1"
    with Collection.open(collection.path) as opened:
        assert len(opened) == 2_002


PROGRAM = """
import os, sys
from pathlib import Path
from gemel.index.database import Database, lay_out

folder = Path(sys.argv[1])
lay_out(folder, {}, ())
database = Database(folder, read_only=False, timeout_seconds=5)
with database.writing() as connection:
    connection.execute("pragma cache_size = 20")
    rows = ((f"{n}", "x" * 2_000) for n in range(6_000))
    connection.executemany("insert into settings values (?, ?)", rows)
    process = os.fork()
    if not process:
        sys.exit(0)
    os.waitpid(process, 0)
with database.outside() as connection:
    print(*connection.execute("select count(*) from settings").fetchone())
    print(*connection.execute("pragma integrity_check").fetchone())
"""


def test_a_child_that_ends_as_programs_do_closes_nothing_of_its_parents(tmp_path: Path) -> None:
    program = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120)
    assert (done.stdout.split(), done.stderr) == (["6000", "ok"], "")


def test_two_threads_that_fork_at_once_keep_nobody_waiting(collection: Collection) -> None:
    collection.add(TEXTS, range(3))

    def fork_often() -> None:
        for _ in range(20):
            with finding(collection) as child:
                assert child.step() == "2"

    for thread in [beside(fork_often), beside(fork_often)]:
        assert_ended(thread)  # two that waited for each other would do so for 40 seconds, and again
    assert collection.doctor().is_sound


def test_a_child_that_was_forked_within_a_change_leaves_it_to_its_parent(collection: Collection) -> None:
    collection.add(TEXTS, range(3))
    database = collection._database

    with database.writing() as connection:
        connection.execute("pragma cache_size = 20")
        rows = ((f"{n}", "x" * 2_000) for n in range(6_000))  # more than is kept in memory
        connection.executemany("insert into settings values (?, ?)", rows)
        with Child(connection.rollback, connection.close, lambda: connection.execute("commit")) as child:
            assert (child.step(), child.step()) == ("None", "None")
            assert "begun before the process was forked" in child.step()
    with database.outside() as connection:
        (n_settings,) = connection.execute(
            "select count(*) from settings where length(value) = 2000"
        ).fetchone()
        assert n_settings == 6_000
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)


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

    def collect_and_shut(seconds: float) -> None:
        gc.collect()
        shut(seconds)

    monkeypatch.setattr(gated.GATE, "shut", collect_and_shut)
    with finding(collection) as child:
        assert child.step() == "2"
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
        with child:
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
    with child, locked(tmp_path / "lock", 0.1):
        descriptor = os.open(tmp_path / "lock", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)


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

    changing = beside(change_slowly)
    assert begun.wait(30)
    with Child(
        lambda: len(whole.search(vectors[:1], 5).ids[0]), lambda: changed.search(vectors[:1], 5)
    ) as child:
        may_end.set()
        assert child.step() == "5"
        assert "was being changed by a thread when this process was forked" in child.step()
    assert_ended(changing)
    assert changed.search(vectors[:1], 5).ids[0, 0] == 0  # the parent goes on
