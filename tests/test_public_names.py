"""What `import gemel` offers, and what it costs."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

import gemel
import gemel.errors


def test_the_list_of_public_names_is_sorted_and_resolves() -> None:
    assert gemel.__all__ == sorted(gemel.__all__)
    assert set(gemel.__all__) - {"__version__"} == set(gemel._HOMES)
    assert dir(gemel) == gemel.__all__
    for name in gemel.__all__:
        assert getattr(gemel, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        gemel.nothing  # noqa: B018


def test_every_error_is_a_gemel_error_and_a_built_in() -> None:
    errors = [value for value in vars(gemel.errors).values() if isinstance(value, type)]
    raised = [error for error in errors if issubclass(error, gemel.GemelError)][1:]
    assert len(raised) == 11
    for error in raised:  # as when a worker of a cluster has raised it
        made = error("reading parquet", "parquet") if error is gemel.MissingExtra else error("it is so")
        assert str(pickle.loads(pickle.dumps(made))) == str(made)
    for error in raised:
        assert any(issubclass(error, kind) for kind in (ValueError, ImportError, OSError, RuntimeError))


def imported_by(module: str) -> tuple[set[str], float]:
    """The modules that an import brings in, and the seconds it takes at its best of five."""
    seconds = []
    for _ in range(5):
        run = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", f"import {module}"],
            capture_output=True,
            text=True,
            check=True,
        )
        rows = [line.split("|") for line in run.stderr.splitlines() if line.startswith("import time:")]
        cumulative = {name.strip(): microseconds for _, microseconds, name in rows}
        seconds.append(int(cumulative[module]) / 1e6)
    return set(cumulative), min(seconds)


def test_importing_gemel_is_quick_and_brings_neither_torch_nor_transformers() -> None:
    modules, seconds = imported_by("gemel")
    assert not {"torch", "transformers", "numpy", "huggingface_hub"} & modules
    assert seconds < 0.15


def test_the_command_line_shows_its_help_without_torch() -> None:
    modules, _ = imported_by("gemel.cli")
    assert not {"torch", "transformers", "numpy"} & modules
