"""How much a request may hold: the same limits, in the same words, wherever they are noticed."""

from __future__ import annotations

from gemel.serve.refusals import Refusal
from gemel.serve.settings import Limits


def check_n_inputs(n_inputs: int, where: str, limits: Limits) -> None:
    """Refuse more inputs than a request may hold."""
    if n_inputs > limits.max_inputs:
        raise Refusal(
            "too_large",
            f"{where} has {n_inputs:,} entries, over the limit max_inputs={limits.max_inputs:,}; send them "
            "in parts",
            parameter=where,
        )


def check_n_tokens(n_tokens: int, limits: Limits) -> None:
    """Refuse more tokens than a request may hold."""
    if n_tokens > limits.max_request_tokens:
        raise Refusal(
            "too_large",
            f"the inputs have {n_tokens:,} tokens, over the limit "
            f"max_request_tokens={limits.max_request_tokens:,}; send them in several requests",
        )
