"""Lines of text from bytes: any compression, strict UTF-8, exact line ends and numbers."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

from gemel.errors import InvalidInput, MissingExtra

COMPRESSIONS = ("gz", "zst")
# A bound on memory, not on taste: what is longer is hardly a file of texts.
MAX_LINE_BYTES = 1 << 26
# One byte of zstd can hold 32 KiB of output, so small bites keep the worst case at 128 MiB.
_BITE_BYTES = 1 << 12
_BOM = b"\xef\xbb\xbf"


def decompressed(file: IO[bytes], compression: str) -> IO[bytes]:
    """The bytes inside a gzip or zstd file, or the file itself where `compression` is empty."""
    if not compression:
        return file
    if compression == "gz":
        chunks = _inflated(file, lambda: zlib.decompressobj(wbits=31), zlib.error)
    else:
        try:
            import zstandard
        except ImportError as error:
            raise MissingExtra("reading .zst", "zstd") from error
        chunks = _inflated(file, zstandard.ZstdDecompressor().decompressobj, zstandard.ZstdError)
    return io.BufferedReader(_ChunkStream(chunks))


def decoded_lines(stream: IO[bytes], name: str) -> Iterator[str]:
    """Lines with their ends on, which are `\\n` alone: U+2028, `\\x85` or `\\x0c` stay inside a text."""
    number = 1
    while line := _read_line(stream, name, number):
        try:
            yield (line.removeprefix(_BOM) if number == 1 else line).decode()
        except UnicodeDecodeError as error:
            raise InvalidInput(
                f"{name}, line {number}: {error.reason} at byte {error.start}; "
                f"expected UTF-8, so convert the file first"
            ) from error
        number += 1


def without_end(line: str) -> str:
    """The line without its `\\n` or `\\r\\n`."""
    return line.removesuffix("\n").removesuffix("\r") if line.endswith("\n") else line


def _read_line(stream: IO[bytes], name: str, number: int) -> bytes:
    try:
        line = stream.readline(MAX_LINE_BYTES)
    except (EOFError, OSError) as error:
        raise InvalidInput(
            f"{name}, line {number}: cannot read on ({error}); expected a whole and undamaged file"
        ) from error
    if len(line) == MAX_LINE_BYTES:
        raise InvalidInput(
            f"{name}, line {number} has {MAX_LINE_BYTES:,} bytes or more; expected shorter lines"
        )
    return line


def _inflated(file: IO[bytes], new_member: Callable[[], Any], failure: type[Exception]) -> Iterator[bytes]:
    """The contents of a file's members, one after the other; a file that stops in mid-member is refused.

    zstandard's own reader takes such a file for a whole one, and gzip's takes an empty file for one.
    """
    member = new_member()
    while bite := file.read(_BITE_BYTES):
        # Zeros after a member are padding, as gzip(1) has it.
        while bite := bite.lstrip(b"\0") if member.eof else bite:
            if member.eof:
                member = new_member()
            try:
                yield member.decompress(bite)
            except failure as error:
                raise OSError(str(error)) from error
            bite = member.unused_data
    if not member.eof:
        raise EOFError("the compressed stream is cut off")


class _ChunkStream(io.RawIOBase):
    """A readable stream of the chunks that an iterator gives."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        n_bytes = min(len(buffer), len(self._rest))
        buffer[:n_bytes] = self._rest[:n_bytes]
        self._rest = self._rest[n_bytes:]
        return n_bytes
