"""Packages that only the environment of the adapters has."""

from __future__ import annotations

import warnings
from typing import Any

import pytest


def imported(name: str) -> Any:
    """The module, or a skip that says where it is; what others warn of while they are imported is theirs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reason = f"{name} is not installed here: `make test-extras` has an environment with it"
        return pytest.importorskip(name, reason=reason)
