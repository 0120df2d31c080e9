"""Counters and histograms for Prometheus, by the names that text-embeddings-inference has made common."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

SECONDS = tuple(0.0001 * 2**step for step in range(20))  # 0.1 ms to 52 s
SIZES = tuple(float(2**step) for step in range(20))

Labels = tuple[tuple[str, str], ...]


class Counter:
    """A number that only grows, by its labels."""

    def __init__(self, name: str, says: str) -> None:
        self.name, self.says = name, says
        self._values: dict[Labels, int] = {}

    def add(self, n: int = 1, **labels: str) -> None:
        """Count n more."""
        key = tuple(sorted(labels.items()))
        self._values[key] = self._values.get(key, 0) + n

    def value(self, **labels: str) -> int:
        """The count so far."""
        return self._values.get(tuple(sorted(labels.items())), 0)

    def lines(self) -> list[str]:
        """Prometheus' text."""
        values = self._values or {(): 0}
        return [
            f"# HELP {self.name} {self.says}",
            f"# TYPE {self.name} counter",
            *(f"{self.name}{_shown(labels)} {value}" for labels, value in sorted(values.items())),
        ]


class Histogram:
    """How often values fell between bounds."""

    def __init__(self, name: str, says: str, bounds: tuple[float, ...]) -> None:
        self.name, self.says = name, says
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self) -> list[str]:
        """Prometheus' text."""
        lines = [f"# HELP {self.name} {self.says}", f"# TYPE {self.name} histogram"]
        n = 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            n += count
            shown = "+Inf" if bound == float("inf") else f"{bound:g}"
            lines.append(f'{self.name}_bucket{{le="{shown}"}} {n}')
        return [*lines, f"{self.name}_sum {self._sum:.9g}", f"{self.name}_count {n}"]


class Gauge:
    """A number that is asked for when it is shown."""

    def __init__(self, name: str, says: str, value: Callable[[], float]) -> None:
        self.name, self.says, self._value = name, says, value

    def lines(self) -> list[str]:
        """Prometheus' text."""
        return [
            f"# HELP {self.name} {self.says}",
            f"# TYPE {self.name} gauge",
            f"{self.name} {self._value():g}",
        ]


class Metrics:
    """All that the server counts; each metric is written by one thread only, so none needs a lock."""

    def __init__(self) -> None:
        self.request_count = Counter(
            "te_request_count", "Requests by whether they held one input or several."
        )
        self.request_success = Counter("te_request_success", "Requests that were answered.")
        self.request_failure = Counter("te_request_failure", "Requests that were refused or failed.")
        self.embed_count = Counter("te_embed_count", "Texts to embed.")
        self.embed_success = Counter("te_embed_success", "Texts embedded.")
        self.predict_count = Counter("te_predict_count", "Pairs to score.")
        self.predict_success = Counter("te_predict_success", "Pairs scored.")
        self.truncated = Counter("gemel_truncated_count", "Inputs that were longer than the model reads.")
        self.abandoned = Counter("gemel_abandoned_count", "Requests whose client went away.")
        self.request_duration = Histogram("te_request_duration", "Seconds of a request.", SECONDS)
        self.tokenization = Histogram(
            "te_request_tokenization_duration", "Seconds of tokenising a request.", SECONDS
        )
        self.queue = Histogram("te_request_queue_duration", "Seconds a request waited.", SECONDS)
        self.inference = Histogram(
            "te_request_inference_duration", "Seconds from first to last step.", SECONDS
        )
        self.input_length = Histogram("te_request_input_length", "Tokens of a request.", SIZES)
        self.embed_duration = Histogram("te_embed_duration", "Seconds of an embedding request.", SECONDS)
        self.predict_duration = Histogram("te_predict_duration", "Seconds of a scoring request.", SECONDS)
        self.batch_size = Histogram("te_batch_next_size", "Inputs of a step.", SIZES)
        self.batch_tokens = Histogram("te_batch_next_tokens", "Tokens of a step.", SIZES)
        self.gauges: list[Gauge] = []

    def on_step(self, n_items: int, n_tokens: int, seconds: float) -> None:
        """What the batcher tells after each step."""
        self.batch_size.observe(n_items)
        self.batch_tokens.observe(n_tokens)

    def text(self) -> str:
        """All of it, as Prometheus reads it."""
        own = [value for value in vars(self).values() if isinstance(value, Counter | Histogram)]
        return "\n".join(line for metric in (*own, *self.gauges) for line in metric.lines()) + "\n"


def _shown(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels) + "}" if labels else ""
