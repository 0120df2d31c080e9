"""What workers would warn of is counted over all of them, and told once."""

from __future__ import annotations

import warnings

import pytest

from gemel.errors import TruncationWarning, UnknownWordsWarning
from gemel.scale.flaws import Flaws, with_flaws


def encode(n_cut: int, n_unknown: int) -> str:
    warnings.warn(TruncationWarning(n_cut, 10, 32), stacklevel=1)
    warnings.warn(UnknownWordsWarning(n_unknown, 10), stacklevel=1)
    return "vectors"


def test_flaws_of_all_windows_are_told_as_one() -> None:
    flaws = Flaws()
    for n_cut, n_unknown in ((2, 1), (3, 0)):
        made, own = with_flaws(lambda n_cut=n_cut, n_unknown=n_unknown: encode(n_cut, n_unknown), 10)  # type: ignore[misc]
        assert made == "vectors"
        flaws = flaws.joined(own)
    assert flaws == Flaws(20, 5, 32, 1)
    with pytest.warns() as told:
        flaws.tell()
    assert [str(each.message).split(" texts")[0] for each in told] == ["5 of 20", "1 of 20"]


def test_where_nothing_is_wrong_nothing_is_told() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with_flaws(lambda: None, 3)[1].tell()
