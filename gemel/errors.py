"""Everything gemel raises on purpose.

GemelError
├── InvalidInput    (ValueError)         what the caller gave is not what was asked for
├── InvalidModel    (ValueError)         a model folder is damaged, unsafe or of an unknown kind
├── ModelNotFound   (FileNotFoundError)  no such model here, and no way to get it
├── ModelMismatch   (ValueError)         two things that belong to different models were mixed
├── MissingExtra    (ImportError)        an optional dependency is not installed
├── WriteFailed     (OSError)            an output could not be written; what is kept is named
├── Damaged         (OSError)            what is on the disk is not what was written there
├── Busy            (TimeoutError)       another process is at it, and did not end in time
├── Overloaded      (RuntimeError)       more work than the limits allow; try again later
├── ProcessLost     (ConnectionError)    another process or machine of the same work is gone
└── ServerError     (ConnectionError)    a server could not be reached, or has refused or failed

TruncationWarning   (UserWarning)        texts were longer than the model reads, and were cut
PoolingWarning      (UserWarning)        a model of the hub names no pooling: perhaps it is not all there
SlowSearchWarning   (UserWarning)        an index is lost or damaged, and searches look at every vector
UnknownWordsWarning (UserWarning)        texts had no word that the model knows, and got a vector of zeros

Each message says what was given, what was expected and what to do.
"""

from __future__ import annotations


class GemelError(Exception):
    """The root of every error that gemel raises on purpose."""


class InvalidInput(GemelError, ValueError):
    """What the caller gave is not what was asked for."""


class InvalidModel(GemelError, ValueError):
    """A model folder is damaged, unsafe or of an unknown kind."""


class ModelNotFound(GemelError, FileNotFoundError):
    """No such model is here, and there is no way to get it."""


class ModelMismatch(GemelError, ValueError):
    """Two things that belong to different models were mixed."""


class MissingExtra(GemelError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, purpose: str, extra: str) -> None:
        super().__init__(f"{purpose} needs an optional dependency: pip install 'gemel[{extra}]'")
        self.purpose, self.extra = purpose, extra

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        return type(self), (self.purpose, self.extra)  # a worker's error is told by another process


class WriteFailed(GemelError, OSError):
    """An output could not be written; what is kept is named."""


class Damaged(GemelError, OSError):
    """What is on the disk is not what was written there."""


class Busy(GemelError, TimeoutError):
    """Another process is at it, and did not end in time."""


class Overloaded(GemelError, RuntimeError):
    """More work than the limits allow; try again later."""


class ProcessLost(GemelError, ConnectionError):
    """Another process or machine of the same work is gone."""


class ServerError(GemelError, ConnectionError):
    """A server could not be reached, or has refused or failed."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


_ADVICE = {
    "texts": 'on_truncate="chunk" reads them whole, "error" refuses them, "ignore" says nothing',
    "pairs": "shorter passages of them would be read whole, or max_tokens allows more where the model does",
}


class TruncationWarning(UserWarning):
    """Texts, or pairs of them, were longer than the model reads, and were cut."""

    def __init__(self, n_truncated: int, n_texts: int, max_tokens: int, what: str = "texts") -> None:
        super().__init__(
            f"{n_truncated:,} of {n_texts:,} {what} were longer than {max_tokens} tokens and were cut; "
            + _ADVICE[what]
        )
        self.n_truncated = n_truncated
        self.n_texts = n_texts
        self.max_tokens = max_tokens


class SlowSearchWarning(UserWarning):
    """An index is lost or damaged, and searches look at every vector."""


class PoolingWarning(UserWarning):
    """A model of the hub names no pooling, perhaps since only a part of it is in the cache."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} has no modules.json in the hub cache and names no pooling, so the mean is taken: if it "
            "is a sentence encoder of which another program has fetched a part, fetch all of it with "
            f"`hf download {name}`; if it is a raw transformer, the mean is what is usually meant"
        )


class UnknownWordsWarning(UserWarning):
    """Texts had no word that the model knows, and got a vector of zeros."""

    def __init__(self, n_unknown: int, n_texts: int) -> None:
        super().__init__(
            f"{n_unknown:,} of {n_texts:,} texts have no word that this model knows and got a vector of "
            "zeros, which is like nothing; leave them out, or use a model that reads every word"
        )
        self.n_unknown = n_unknown
        self.n_texts = n_texts
