"""The compiled module."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from gemel import _native


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the sets named here are those of x86-64")
def test_the_probe_claims_no_more_than_the_processor_does() -> None:
    features = _native.cpu_features()
    assert list(features) == [
        "avx2", "f16c", "avx_vnni", "avx512", "avx512_vnni", "avx512_fp16", "amx_int8",
    ]  # fmt: skip
    flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    names = {"avx512": "avx512f"}
    for feature, works in features.items():
        assert not works or names.get(feature, feature) in flags
    assert features["avx2"] == ("avx2" in flags)


def test_probing_twice_gives_the_same() -> None:
    assert _native.cpu_features() == _native.cpu_features()
