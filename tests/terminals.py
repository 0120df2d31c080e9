"""The command as a shell and as a terminal see it."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

GEMEL = [sys.executable, "-c", "from gemel.cli import main; main()"]


def run(
    *arguments: object, stdin: str = "", check: int = 0, **settings: Any
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*GEMEL, *map(str, arguments)], input=stdin, capture_output=True, text=True, timeout=300, **settings
    )
    assert done.returncode == check, done.stderr
    return done


def lines_of(*arguments: object, **settings: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(*arguments, **settings).stdout.splitlines()]


def shown_on(terminal: int) -> str:
    """What was written to a terminal whose other end is closed."""
    shown = b""
    try:
        while block := os.read(terminal, 1 << 16):
            shown += block
    except OSError:  # Linux ends a terminal with an error
        pass
    finally:
        os.close(terminal)
    return shown.decode().replace("\r\n", "\n")


def on_a_terminal(*arguments: object, typed: Sequence[str] = (), prompt: str = "search: ") -> str:
    """What a person sees who calls the command and types these lines, each at a prompt."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*GEMEL, *map(str, arguments)], stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL
    ) as process:
        os.close(theirs)
        shown, to_type = b"", list(typed)
        try:
            while select.select([ours], [], [], 300)[0] and (block := os.read(ours, 1 << 16)):
                shown += block
                if to_type and shown.count(prompt.encode()) > len(typed) - len(to_type):
                    os.write(ours, to_type.pop(0).encode())
        except OSError:  # Linux ends a terminal with an error
            pass
        finally:
            os.close(ours)
            process.kill()  # if it waits for more
    assert process.returncode == 0, shown
    return shown.decode().replace("\r\n", "\n")
