"""What several verbs tell on standard error."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import click

from gemel.errors import TruncationWarning, UnknownWordsWarning


@contextmanager
def one_truncation_report() -> Iterator[None]:
    """Gather what all windows say of texts that were cut or unknown into a line each; others pass through."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TruncationWarning)
        warnings.simplefilter("always", UnknownWordsWarning)
        try:
            yield
        finally:
            cut = [each.message for each in caught if isinstance(each.message, TruncationWarning)]
            if cut:
                n_cut = sum(warning.n_truncated for warning in cut)
                remedy = "; --on-truncate chunk reads long texts whole" if _takes("on_truncate") else ""
                click.echo(
                    f"gemel: {n_cut:,} {'text was' if n_cut == 1 else 'texts were'} longer than "
                    f"{cut[0].max_tokens} tokens and cut{remedy}",
                    err=True,
                )
            unknown = [each.message for each in caught if isinstance(each.message, UnknownWordsWarning)]
            if unknown:
                n_unknown = sum(warning.n_unknown for warning in unknown)
                click.echo(
                    f"gemel: {n_unknown:,} {'text has' if n_unknown == 1 else 'texts have'} no word that "
                    "this model knows: a vector of zeros, which is like nothing",
                    err=True,
                )
    for each in caught:
        if not isinstance(each.message, TruncationWarning | UnknownWordsWarning):
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


def _takes(option: str) -> bool:
    """Whether the command that runs has this option."""
    context = click.get_current_context(silent=True)
    return context is not None and option in context.params
