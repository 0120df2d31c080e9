"""More than one machine: files into partitioned vectors, pairs and duplicates of blocks, here or on Ray."""

from gemel.scale.encode import EncodedFiles, EncodingSettings, encode_files
from gemel.scale.runners import LocalRunner, RayRunner, Runner

__all__ = [
    "EncodedFiles",
    "EncodingSettings",
    "LocalRunner",
    "RayRunner",
    "Runner",
    "encode_files",
]
