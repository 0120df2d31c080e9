"""How the server is set up: frozen data, checked once."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from gemel.errors import InvalidInput

SENDING_SECONDS = 15.0
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Limits:
    """What one request and all requests together may ask for; each is named in the error that it causes."""

    max_body_bytes: int = 16_000_000
    max_bodies_bytes: int = 256_000_000  # of all requests that are being read or answered
    max_inputs: int = 16_384
    max_request_tokens: int = 300_000
    max_queue_tokens: int = 600_000  # of large requests that wait
    max_interactive_tokens: int = 32_768  # of small requests that wait: about a second of work
    max_concurrent_requests: int = 512
    timeout_seconds: float = 60.0
    body_timeout_seconds: float = 20.0  # for the head of a request, and again for its body

    def __post_init__(self) -> None:
        for limit in fields(self):
            if not getattr(self, limit.name) > 0:
                raise InvalidInput(f"{limit.name}={getattr(self, limit.name)} was given; it must be positive")
        if self.max_request_tokens > self.max_queue_tokens:
            raise InvalidInput(
                f"max_request_tokens={self.max_request_tokens:,} would never fit into "
                f"max_queue_tokens={self.max_queue_tokens:,}; raise the latter"
            )


@dataclass(frozen=True)
class ModelChoice:
    """Which models are loaded, by folder or name, and how they compute."""

    encoder: str | None = None
    reranker: str | None = None
    classifier: str | None = None
    aliases: tuple[str, ...] = ()  # other names that requests may call the encoder by
    precision: str | None = None
    device: str | None = None
    threads: int | None = None


@dataclass(frozen=True)
class ServeSettings:
    """Where the server listens, to whom, and for what."""

    host: str = "127.0.0.1"
    port: int = 8080
    models: ModelChoice = field(default_factory=ModelChoice)
    collections: str | None = None  # the folder of all collections; without one there are none
    store: str | None = field(default=None, repr=False)  # or the address of a store that has them
    has_demo: bool = False  # make a collection of Python's own documentation there, if it is not there yet
    limits: Limits = field(default_factory=Limits)
    allowed_hosts: tuple[str, ...] = ()  # besides the loopback names and the host itself
    cors_origins: tuple[str, ...] = ()
    allows_anyone: bool = False  # other machines too, without a key
    auto_truncate: bool = True  # cut inputs that are too long, where a request does not say

    @property
    def drain_seconds(self) -> float:
        """How long stopping may take: as a request may, and then its answer on its way to a slow client."""
        return self.limits.timeout_seconds + SENDING_SECONDS

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        return self.host in LOOPBACK

    @property
    def host_names(self) -> frozenset[str]:
        """The names that a request's Host header may have."""
        every_interface = ("0.0.0.0", "::", "")
        own = () if self.host in every_interface else (self.host,)
        return frozenset(name.lower() for name in (*LOOPBACK, *own, *self.allowed_hosts))
