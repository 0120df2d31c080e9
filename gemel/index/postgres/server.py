"""Connections to a PostgreSQL server: pooled, made again when they break, and its errors in plain words."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from gemel.errors import Busy, GemelError, InvalidInput, ServerError, WriteFailed
from gemel.index.postgres.address import PostgresAddress, driver, pool_library
from gemel.index.postgres.wire import register_types
from gemel.threads import thread_lock

Result = TypeVar("Result")
Connection = Any  # psycopg's, which is imported only where it is used

MAX_CONNECTIONS = 8
IDLE_SECONDS = 60.0
CONNECT_SECONDS = 10
FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS = 0.05, 1.0
# Of an attempt that may be made again: the connection is lost, the server stops or starts, or transactions
# were in each other's way.
_PASSING = ("08", "57P", "40001", "40P01")
_NO_ACCESS = ("28000", "28P01")

# The pool speaks of every attempt to connect; the last one becomes an error of ours, which is enough.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())


class Server:
    """One database; each piece of work is a transaction, tried again for a while if the server goes away."""

    def __init__(self, address: PostgresAddress, *, timeout_seconds: float) -> None:
        self.address = address
        self.timeout_seconds = timeout_seconds
        self._psycopg = driver()
        self._lock = thread_lock()
        self._pools: dict[int, Any] = {}  # of each process: a child must not use its parent's
        self._is_closed = False
        self._search_path = ""

    def open(self) -> None:
        """Connect once, so that what is wrong is told as it is; see that pgvector is there."""
        with self.plain_errors(), self._connected() as connection:
            found = connection.execute(
                "select extversion, nspname, pg_encoding_to_char(encoding) from pg_database "
                "left join (pg_extension join pg_namespace n on n.oid = extnamespace) on extname = 'vector' "
                "where datname = current_database()"
            ).fetchone()
        version, schema, encoding = found
        if encoding != "UTF8":
            raise InvalidInput(f"{self.address.shown} keeps texts as {encoding}; expected a database in UTF8")
        if version is None:
            self._create_extension()
            version, schema = self._extension()
        if tuple(map(int, version.split(".")[:2])) < (0, 8):
            raise InvalidInput(
                f"{self.address.shown} has pgvector {version}; expected 0.8 or newer: install it there, then "
                "run: alter extension vector update"
            )
        self._search_path = f'"{schema}", pg_catalog'

    def run(self, work: Callable[[Connection], Result], **settings: str | int) -> Result:
        """What the work gives, in one transaction under these settings; it must bear being tried again."""
        deadline = time.monotonic() + self.timeout_seconds
        delay = FIRST_DELAY_SECONDS
        while True:
            try:
                with self._pool().connection(timeout=max(0.1, deadline - time.monotonic())) as connection:
                    self._set(connection, settings)
                    return work(connection)
            except self._psycopg.Error as error:
                if not self._is_passing(error) or time.monotonic() + delay > deadline:
                    raise self.told(error) from error
            time.sleep(delay)
            delay = min(2 * delay, LONGEST_DELAY_SECONDS)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection whose statements all see the same commit, for what is read bit by bit."""
        with self.plain_errors(), self._pool().connection(timeout=self.timeout_seconds) as connection:
            connection.execute("set transaction isolation level repeatable read, read only")
            self._set(connection, {})
            yield connection

    @contextmanager
    def outside(self) -> Iterator[Connection]:
        """A connection of its own without transactions, for what PostgreSQL does in none."""
        with self.plain_errors(), self._connected() as connection:
            connection.autocommit = True
            connection.execute("select set_config('search_path', %s, false)", (self._search_path,))
            yield connection

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self._is_closed = True
            pool = self._pools.pop(os.getpid(), None)
        if pool is not None:
            pool.close()

    @contextmanager
    def plain_errors(self) -> Iterator[None]:
        """PostgreSQL's errors as ours."""
        try:
            yield
        except self._psycopg.Error as error:
            raise self.told(error) from error

    def told(self, error: Any) -> GemelError:
        """What an error of PostgreSQL's means, and what to do; never with the password."""
        shown, reason = self.address.shown, self.address.masked(str(error))
        state = error.sqlstate or ""
        if state in _NO_ACCESS or "password" in reason or "authentication" in reason:
            return ServerError(f"{shown} does not let this user in ({reason}); see user and password")
        if state == "55P03":
            return Busy(
                f"{self.address} is being written by others, and was not free within "
                f"{self.timeout_seconds:g} seconds; try again later"
            )
        if state == "42501":
            return InvalidInput(f"{shown} does not allow this ({reason}); use a user who may, or grant it")
        if state in ("3F000", "42P01"):
            return InvalidInput(f"{self.address} is no collection, or was removed meanwhile ({reason})")
        if state[:2] in ("53", "58") or state == "25006":
            return WriteFailed(f"{shown} could not keep this ({reason}); nothing of it was stored")
        if self._is_passing(error):
            return ServerError(
                f"{shown} cannot be reached, and was not back within {self.timeout_seconds:g} seconds "
                f"({reason}); see that it runs: what was acknowledged is safe there"
            )
        return ServerError(f"{shown} has failed ({reason}); the server's log may say more")

    # Steps ------------------------------------------------------------------------------------------------

    def _is_passing(self, error: Any) -> bool:
        if isinstance(error, self._psycopg.InterfaceError):
            return True
        is_ours = isinstance(error, self._psycopg.OperationalError)
        return is_ours and (error.sqlstate is None or error.sqlstate.startswith(_PASSING))

    def _set(self, connection: Connection, settings: dict[str, str | int]) -> None:
        # For each transaction, as poolers between us and the server hand out sessions that others have used.
        # A plan made for other values of a filter may look at every row, hence a plan for each.
        given = {
            "search_path": self._search_path,
            "synchronous_commit": "on",
            "plan_cache_mode": "force_custom_plan",
            **settings,
        }
        calls = ", ".join(["set_config(%s, %s, true)"] * len(given))
        connection.execute(
            f"select {calls}", [part for name, value in given.items() for part in (name, str(value))]
        )

    def _pool(self) -> Any:
        with self._lock:
            if self._is_closed:
                raise InvalidInput(f"{self.address} has been closed; open it again to use it")
            pool = self._pools.get(os.getpid())
            if pool is None:
                pools = pool_library()
                pool = pools.ConnectionPool(
                    self.address.conninfo,
                    kwargs=self._options(),
                    min_size=0,
                    max_size=MAX_CONNECTIONS,
                    max_idle=IDLE_SECONDS,
                    num_workers=1,
                    open=True,
                    configure=self._configure,
                    check=pools.ConnectionPool.check_connection,
                )
                self._pools[os.getpid()] = pool
            return pool

    def _options(self) -> dict[str, Any]:
        seconds = max(2, min(CONNECT_SECONDS, int(self.timeout_seconds)))
        return {"connect_timeout": seconds, "client_encoding": "UTF8", "application_name": "gemel"}

    def _configure(self, connection: Connection) -> None:
        connection.prepare_threshold = None  # poolers between us and the server lose prepared statements
        register_types(connection)
        connection.rollback()

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """A connection outside of the pool; tries for a while where the server is starting."""
        deadline = time.monotonic() + self.timeout_seconds
        delay = FIRST_DELAY_SECONDS
        while True:
            try:
                connection = self._psycopg.connect(self.address.conninfo, **self._options())
                break
            except self._psycopg.OperationalError as error:
                is_starting = "starting up" in str(error) or "in recovery" in str(error)
                if not is_starting or time.monotonic() + delay > deadline:
                    raise
            time.sleep(delay)
            delay = min(2 * delay, LONGEST_DELAY_SECONDS)
        try:
            yield connection
            if not connection.autocommit:
                connection.commit()
        finally:
            connection.close()

    def _extension(self) -> tuple[str, str]:
        with self.plain_errors(), self._connected() as connection:
            found: tuple[str, str] = connection.execute(
                "select extversion, nspname from pg_extension "
                "join pg_namespace on pg_namespace.oid = extnamespace where extname = 'vector'"
            ).fetchone()
            return found

    def _create_extension(self) -> None:
        psycopg = self._psycopg
        with suppress(psycopg.errors.UniqueViolation):  # by another process at the same moment
            try:
                with self._connected() as connection:
                    connection.execute("create extension if not exists vector")
            except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile):
                raise InvalidInput(
                    f"{self.address.shown} has no pgvector; install it on the server (packages call it "
                    "postgresql-NN-pgvector), then try again"
                ) from None
            except psycopg.errors.InsufficientPrivilege:
                raise InvalidInput(
                    f"{self.address.shown} has no pgvector yet, and this user may not create it; let an "
                    "administrator run: create extension vector"
                ) from None
