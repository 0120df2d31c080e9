"""The process: listening, stopping without losing a request, loading models anew."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from socket import AF_INET, AF_INET6, SO_REUSEADDR, SOL_SOCKET, socket
from types import FrameType
from typing import cast

import uvicorn

from gemel.errors import GemelError, InvalidInput, UnknownWordsWarning
from gemel.serve.app import make_app
from gemel.serve.calls import Serving
from gemel.serve.demo import add_demo
from gemel.serve.doorman import Doorman
from gemel.serve.keys import Keys
from gemel.serve.library import Library
from gemel.serve.logs import log, set_up
from gemel.serve.models import Shelf, load_models
from gemel.serve.protocol import PatientProtocol
from gemel.serve.settings import ServeSettings

SWITCH_SECONDS = 0.0005  # how long the interpreter may keep the batcher's thread waiting; 5 ms by default
LOOK_SECONDS = 0.01  # how often the server looks around while it stops
IDLE_GRACE_SECONDS = 1.0  # without any request, in which connections may send one more while the server stops
NEW_GRACE_SECONDS = 5.0  # for those that have sent none yet: who has just connected means to ask
ACCEPT_SECONDS = 0.05  # to accept what has connected before the server stops listening
KEEP_ALIVE_SECONDS = 75  # longer than clients keep idle connections: who closes first must not be the server
BACKLOG = 2_048

OnReady = Callable[[int], object]


class GracefulServer(uvicorn.Server):
    """uvicorn, which on SIGTERM answers what it has accepted, and on SIGHUP loads the models anew."""

    def __init__(self, config: uvicorn.Config, serving: Serving, on_ready: OnReady) -> None:
        super().__init__(config)
        self._serving = serving
        self._on_ready = on_ready
        self._reloading: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Begin to listen, and to heed SIGHUP."""
        if type(asyncio.get_running_loop()).__module__.startswith("uvloop") and sockets:
            await super().startup([])
            doormen = [Doorman(each, self._protocol, BACKLOG) for each in sockets]
            self.servers = cast(
                "list[asyncio.Server]", doormen
            )  # of which uvicorn needs no more than they have
        else:
            await super().startup(sockets)
        if hasattr(signal, "SIGHUP") and self.started:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._reload)
        log("ready", host=self.config.host, port=self.port, model=self._serving.shelf.current.name)
        if self.started:
            self._on_ready(self.port)

    def _protocol(self) -> asyncio.Protocol:
        state, kept = self.server_state, self.lifespan.state
        return PatientProtocol(config=self.config, server_state=state, app_state=kept)

    @property
    def port(self) -> int:
        """The port that the server listens on, also where it was told to choose one."""
        for server in self.servers:
            for listening in server.sockets:
                return int(listening.getsockname()[1])
        return self.config.port

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal begins to stop; a second one does not wait."""
        self._serving.is_draining = True
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """No new connections; those that there are get their answers, and are told to close."""
        serving = self._serving
        serving.is_draining = True
        log("stopping", requests=serving.n_requests)
        await self._stop_listening()
        await self._drain()
        await super().shutdown(sockets)
        log("stopped", abandoned=serving.n_requests + self._n_being_sent())

    async def _drain(self) -> None:
        """Wait until nobody asks any more: one who has just connected may still be about to."""
        state, serving = self.server_state, self._serving
        began = looked = time.monotonic()
        idle_seconds, before = 0.0, None
        while state.connections and not self.force_exit:
            await asyncio.sleep(LOOK_SECONDS)
            now = time.monotonic()
            seen = serving.n_requests, len(state.connections), state.total_requests
            is_idle = seen == before and not serving.n_requests and not self._n_being_sent()
            # While the process itself was kept waiting it has read nothing, so that this does not count.
            idle_seconds = idle_seconds + min(now - looked, 2 * LOOK_SECONDS) if is_idle else 0.0
            before, looked = seen, now
            if idle_seconds > self._idle_grace or now - began > serving.settings.drain_seconds:
                break

    @property
    def _idle_grace(self) -> float:
        is_anyone_new = any(not connection.has_asked for connection in self._connections)
        return NEW_GRACE_SECONDS if is_anyone_new else IDLE_GRACE_SECONDS

    @property
    def _connections(self) -> set[PatientProtocol]:
        return cast("set[PatientProtocol]", self.server_state.connections)  # of no other protocol

    def _n_being_sent(self) -> int:
        """How many connections have an answer on its way that the client has not taken yet."""
        return sum(connection.transport.get_write_buffer_size() > 0 for connection in self._connections)

    async def _stop_listening(self) -> None:
        """Accept what has connected already, then close: a connection that waits would be reset."""
        for server in self.servers:
            for listening in server.sockets:
                with socket(fileno=os.dup(listening.fileno())) as same:
                    same.listen(0)  # whoever comes now is kept at the door, and then told that nobody is here
        await asyncio.sleep(ACCEPT_SECONDS)
        for server in self.servers:
            server.close()
            if isinstance(server, Doorman):
                await server.wait_closed()

    def _reload(self) -> None:
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.ensure_future(self._load_anew())

    async def _load_anew(self) -> None:
        before = self._serving.shelf.current.encoder.fingerprint
        try:
            models = await asyncio.get_running_loop().run_in_executor(None, self._serving.shelf.reload)
        except (GemelError, OSError) as error:
            log("reload failed", level=logging.ERROR, failure=error, message=str(error))
            return
        after = models.encoder.fingerprint
        log("reloaded", model=models.name, fingerprint=after, changed=before != after)


def serve(
    settings: ServeSettings,
    keys: Keys,
    *,
    log_level: str = "info",
    on_ready: OnReady = lambda port: None,
    on_demo: Callable[[int], object] = lambda n_sentences: None,
) -> None:
    """Load the models and answer requests until a signal says to stop; `on_ready` is told the port."""
    if not settings.is_local and not len(keys) and not settings.allows_anyone:
        raise InvalidInput(
            f"host={settings.host!r} lets other machines in and there is no key; give --key-file or the "
            "environment variable GEMEL_API_KEYS, or say --allow-anyone"
        )
    set_up(log_level)
    warnings.simplefilter("ignore", UnknownWordsWarning)
    sys.setswitchinterval(SWITCH_SECONDS)
    bound = _bound_socket(settings)
    models = load_models(settings.models)
    serving = Serving(settings, Shelf(models, settings.models), keys)
    if settings.has_demo and isinstance(serving.library, Library):
        try:
            add_demo(serving.library, models.encoder, models.name, on_begin=on_demo)
        except OSError as error:  # no room, or no right to write: everything else can be served
            log("no demo collection", level=logging.WARNING, failure=error, message=str(error))
    server = GracefulServer(_config(settings, serving), serving, on_ready)
    try:
        server.run(sockets=[bound])
    finally:
        serving.close()


def _bound_socket(settings: ServeSettings) -> socket:
    """The server's address, taken before the models are loaded; nobody is let in yet."""
    bound = socket(AF_INET6 if ":" in settings.host else AF_INET)
    try:
        bound.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        bound.bind((settings.host, settings.port))
    except OSError as error:
        bound.close()
        raise InvalidInput(
            f"port {settings.port} of {settings.host!r} cannot be listened on ({error.strerror or error}); "
            "give another --port or --host"
        ) from None
    return bound


def _config(settings: ServeSettings, serving: Serving) -> uvicorn.Config:
    PatientProtocol.timeout_seconds = settings.limits.body_timeout_seconds
    app = make_app(serving)
    PatientProtocol.overload = app.overload
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=PatientProtocol,
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=1,  # what comes after drain_seconds
    )
