"""Several machines: files into vectors or a collection, pairs and duplicates of blocks, here or on Ray."""

from gemel.scale.duplicates import dedupe
from gemel.scale.encode import EncodedFiles, EncodingSettings, encode_files
from gemel.scale.fill import fill
from gemel.scale.pairs import mine
from gemel.scale.parts import open_parts
from gemel.scale.runners import LocalRunner, RayRunner, Runner, make_runner

__all__ = [
    "EncodedFiles",
    "EncodingSettings",
    "LocalRunner",
    "RayRunner",
    "Runner",
    "dedupe",
    "encode_files",
    "fill",
    "make_runner",
    "mine",
    "open_parts",
]
