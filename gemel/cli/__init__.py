"""The command `gemel`: each verb parses, calls the library and prints."""

from __future__ import annotations

import io
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import click

from gemel.cli.termination import heard_as_interrupt
from gemel.errors import GemelError
from gemel.version import VERSION

# as shells count those that a signal has ended
INTERRUPTED, TERMINATED = 130, 143

# verb -> the module of its command; a verb's module is imported only when it is used.
VERBS = {
    "bench": "bench",
    "calibrate": "calibrate",
    "classify": "classify",
    "cluster": "cluster",
    "convert": "convert",
    "data": "data",
    "dedupe": "dedupe",
    "demo": "demo",
    "distil": "distil",
    "encode": "encode",
    "evaluate": "evaluate",
    "index": "index",
    "mine": "mine",
    "models": "models",
    "negatives": "negatives",
    "push": "push",
    "reproduce": "reproduce",
    "rerank": "rerank",
    "search": "search",
    "serve": "serve",
    "similarity": "similarity",
    "train": "train",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"gemel.cli.{VERBS[cmd_name]}").command
        return command


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(VERSION, prog_name="gemel")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def gemel(debug: bool) -> None:
    """Sentence embeddings: encode, compare, search, cluster.

    Results go to standard output as JSON lines, progress to standard error.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and leave with its code: 0 done, 1 failed, 2 called wrongly, 130 or 143 stopped."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stdout is None:  # as after >&-, and the next file that is opened would take its place
        click.echo(
            "gemel: standard output is closed, and results go there; send it to a file, or to /dev/null",
            err=True,
        )
        sys.exit(1)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What the terminal cannot show is written as JSON would escape it, not as a traceback.
        sys.stdout.reconfigure(errors="backslashreplace")
    elsewhere = warnings.formatwarning
    warnings.formatwarning = partial(_told, elsewhere)
    try:
        with heard_as_interrupt() as termination:
            code = _exit_code(arguments)
    finally:
        warnings.formatwarning = elsewhere
    sys.exit(TERMINATED if termination.was_asked and code == INTERRUPTED else code)


def _told(elsewhere: Callable[..., str], message: Warning | str, category: type[Warning], *place: Any) -> str:
    """A warning of gemel's as its errors are told: the line of code that it came from helps nobody."""
    is_own = category.__module__ == "gemel.errors"
    return f"gemel: {message}\n" if is_own else elsewhere(message, category, *place)


def _exit_code(arguments: list[str]) -> int:
    try:
        code = gemel.main(args=arguments, prog_name="gemel", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("gemel: stopped", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (as `head` does); nobody is left to be told.
        sys.stderr.close()
        return 1
    except (GemelError, OSError) as error:
        if "--debug" in arguments:
            traceback.print_exc()
        click.echo(f"gemel: {' '.join(str(error).split())}", err=True)
        _forget_output()
        return 1
    return code if isinstance(code, int) else 0


def _forget_output() -> None:
    """Let what a full disk has refused not be tried, and complained of, once more at the exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
