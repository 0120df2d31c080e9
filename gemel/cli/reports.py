"""What several verbs tell on standard error."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import click

from gemel.errors import TruncationWarning


@contextmanager
def one_truncation_report() -> Iterator[None]:
    """Gather the truncation warnings of all windows into one line at the end; others pass through."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TruncationWarning)
        try:
            yield
        finally:
            cut = [each.message for each in caught if isinstance(each.message, TruncationWarning)]
            if cut:
                n_cut = sum(warning.n_truncated for warning in cut)
                click.echo(
                    f"gemel: {n_cut:,} {'text was' if n_cut == 1 else 'texts were'} longer than "
                    f"{cut[0].max_tokens} tokens and cut; --on-truncate chunk reads long texts whole",
                    err=True,
                )
    for each in caught:
        if not isinstance(each.message, TruncationWarning):
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
