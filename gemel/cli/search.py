"""`gemel search`: a collection asked, once or at a prompt."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from gemel.cli import options

if TYPE_CHECKING:
    from gemel.index import Store
    from gemel.tasks.explain import Explanation, Match
    from gemel.tasks.search import Hit

QUERIES_AT_ONCE = 256
SHOWN_LINES = 6
SHOWN_INFLUENCES = 5
PROMPT = "search: "


@click.command("search")
@options.collection
@click.argument("query", required=False)
@click.option("-k", type=click.IntRange(min=1), default=10, show_default=True, help="How many to find.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Leave out the first so many.")
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "dense", "lexical"]),
    help="By meaning (dense), by words (lexical), or both.  [default: hybrid]",
)
@click.option(
    "--filter",
    "filter",
    metavar="FILTER",
    help="Find only what passes, as in 'year >= 2019 and lang = \"en\"'.",
)
@click.option("--rerank", metavar="MODEL", help="A cross-encoder that reads the best ones again.")
@click.option(
    "--candidates",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="How many the cross-encoder reads.",
)
@click.option("--explain", is_flag=True, help="Tell why each was found.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines, also on a terminal.")
@click.option("-m", "--model", metavar="NAME", help="The model.  [default: the one COLLECTION was made with]")
@options.compute
def command(path: str, query: str | None, as_json: bool, **choices: Any) -> None:
    """Find what fits QUERY best in COLLECTION.

    Without QUERY a terminal gets a prompt; lines of standard input, which is also called -, are queries. On a
    terminal hits are printed with the words of the query marked, elsewhere as JSON lines.

    \b
    Examples:
      gemel search reviews "too expensive for what it is"
      gemel search reviews "battery" --filter 'year >= 2019' --explain
      gemel search reviews
      gemel search reviews < questions.txt > answers.jsonl
      gemel search postgresql://me@localhost/texts/reviews "battery"
    """
    _check(choices)
    asker = Asker(_opened(path, choices), choices)
    shows = sys.stdout.isatty() and not as_json
    with closing(asker.collection):
        if query is not None and query != "-":
            asker.answer([query], shows=shows)
        elif query is None and sys.stdin.isatty():
            _prompt(asker, shows=shows)
        else:
            from gemel.data.lines import decoded_lines

            lines = (line.strip() for line in decoded_lines(sys.stdin.buffer, "stdin"))
            queries = (line for line in lines if line)
            while window := list(islice(queries, QUERIES_AT_ONCE)):
                asker.answer(window, shows=shows)


def _check(choices: Mapping[str, Any]) -> None:
    """Refuse what would not be heeded."""
    if options.was_given("candidates") and choices["rerank"] is None:
        raise click.UsageError("--candidates goes with --rerank, the cross-encoder that reads them")
    if choices["model"] is not None and choices["mode"] == "lexical":
        raise click.UsageError("--mode lexical compares words and takes no model; leave out -m")


class Asker:
    """A collection, and how it is to be asked."""

    def __init__(self, collection: Store, choices: Mapping[str, Any]) -> None:
        self.collection = collection
        self._asked = {name: choices[name] for name in ("k", "mode", "filter", "offset", "explain")}
        self._asked["reranker"] = _reranking(choices)
        self._has_told = False

    def answer(self, queries: Sequence[str], *, shows: bool) -> None:
        """Search for each query, and print what was found."""
        from gemel.tasks.search import found_words, search

        began = time.perf_counter()
        found = search(self.collection, queries, **self._asked)
        seconds = time.perf_counter() - began
        for query, hits in zip(queries, found, strict=True):
            if shows:
                _show(hits, found_words(self.collection, query), seconds / len(queries))
            else:
                _write_lines(query, hits, self._asked["offset"])
        if not any(found) and self._asked["filter"] is not None:
            self._tell_unknown_fields(self._asked["filter"])

    def _tell_unknown_fields(self, filter_: str) -> None:
        from gemel.tasks.unknown_fields import unknown_fields

        names = [] if self._has_told else unknown_fields(self.collection, filter_)
        self._has_told = True
        if names:
            spoken = ", ".join(names)
            click.echo(f"gemel: no record has the field {spoken} that the filter names", err=True)


def _opened(path: str, choices: Mapping[str, Any]) -> Store:
    from gemel.cli.opening import open_plain, open_with_model

    if choices["mode"] == "lexical":  # words need no model
        return open_plain(path, read_only=True)
    compute = {name: choices[name] for name in ("device", "precision", "threads")}
    return open_with_model(path, choices["model"], compute, read_only=True)


def _reranking(choices: Mapping[str, Any]) -> Any:
    if choices["rerank"] is None:
        return None
    from gemel.loading import load_reranker
    from gemel.tasks.rerank import Reranking

    compute = {name: choices[name] for name in ("device", "precision", "threads")}
    return Reranking(load_reranker(choices["rerank"], **compute), n_candidates=choices["candidates"])


def _prompt(asker: Asker, *, shows: bool) -> None:
    """Ask until the end of input, or an empty line; where results go to a file, only results do."""
    with suppress(ImportError):
        import readline  # noqa: F401  lines can be edited, and called back

    n_records = len(asker.collection)
    click.secho(f"{n_records:,} records in {asker.collection.name}; an empty line leaves", dim=True, err=True)
    while True:
        try:
            query = _asked().strip()
        except EOFError:
            click.echo(err=True)
            return
        if not query:
            return
        asker.answer([query], shows=shows)


def _asked() -> str:
    if sys.stdout.isatty():
        return input(PROMPT)  # which has to know it, to draw an edited line anew
    click.echo(PROMPT, nl=False, err=True)
    return input()


# JSON lines ------------------------------------------------------------------------------------------------


def _write_lines(query: str, hits: Iterable[Hit], offset: int) -> None:
    from gemel.tasks.hit_fields import fields_of

    for rank, hit in enumerate(hits, offset + 1):
        line = {"query": query, "rank": rank, **fields_of(hit)}
        sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
    sys.stdout.flush()


# A terminal ------------------------------------------------------------------------------------------------


def _show(hits: Sequence[Hit], words: str, seconds: float) -> None:
    """Hits with their scores, the words of the query marked."""
    from gemel.tasks.explain import matches

    for hit in hits:
        click.echo(f"{click.style(f'{hit.score:7.4f}', fg='green')}  {click.style(_origin(hit), fg='cyan')}")
        for line in _marked_lines(hit.text, matches(words, hit.text)):
            click.echo(f"         {line}")
        if hit.explanation is not None:
            for line in _told(hit.text, hit.explanation):
                click.secho(f"         {line}", dim=True)
    counted = "1 hit" if len(hits) == 1 else f"{len(hits)} hits"
    click.secho(f"         {counted} in {1000 * seconds:,.1f} ms\n", dim=True)


def _origin(hit: Hit) -> str:
    passage = f", passage {hit.passage.number} of {hit.passage.count}" if hit.passage else ""
    known = "".join(f"  {name}={_short(value)}" for name, value in hit.metadata.items())
    return f"{_short(hit.id)}{passage}{known}"


def _short(value: object) -> str:
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 60 else f"{shown[:59]}…"


def _marked_lines(text: str, found: Sequence[Match]) -> Iterator[str]:
    """The text wrapped to the screen, its matches bold; a long one is shown from its first match on."""
    width = min(110, max(40, shutil.get_terminal_size((100, 24)).columns)) - 9
    marked = bytearray(len(text))
    for start, end in found:
        marked[start:end] = b"\1" * (end - start)
    room = width * SHOWN_LINES
    begin = max(0, min(found[0].start - width, len(text) - room)) if found and len(text) > room else 0
    for number, (start, end) in enumerate(_wrapped(text, begin, width), 1):
        is_last = number == SHOWN_LINES and end < len(text)
        before = "…" if number == 1 and begin else ""
        yield before + _styled(text[start:end], marked[start:end]) + (" …" if is_last else "")
        if is_last:
            return


def _wrapped(text: str, begin: int, width: int) -> Iterator[tuple[int, int]]:
    """Where lines begin and end: at the last white space that leaves them short enough."""
    start = begin
    while start < len(text):
        end = min(start + width, len(text))
        if end < len(text):
            space = max(text.rfind(" ", start + 1, end + 1), text.rfind("\n", start + 1, end + 1))
            end = space if space > start else end
        yield start, end
        start = end
        while start < len(text) and text[start].isspace():
            start += 1


def _styled(text: str, marked: bytearray) -> str:
    """The text on one line, what is marked in bold; control characters are shown as such."""
    styled, start = "", 0
    for at in range(1, len(text) + 1):
        if at == len(text) or marked[at] != marked[start]:
            part = "".join(letter if letter.isprintable() else " " for letter in text[start:at])
            styled += click.style(part, fg="yellow", bold=True) if marked[start] else part
            start = at
    return styled


def _told(text: str, explanation: Explanation) -> Iterator[str]:
    """Why a hit was found, a line each."""
    for channel, place in explanation.channels.items():
        yield f"{channel}: rank {place.rank}, score {place.score:.4f}, adds {place.share:.4f}"
    if explanation.reranked_from is not None:
        yield f"read again: was rank {explanation.reranked_from}"
    if explanation.matches:
        words = dict.fromkeys(text[start:end].lower() for start, end in explanation.matches)
        yield f"words: {', '.join(words)}"
    telling = [each for each in explanation.influences if each.share > 0][:SHOWN_INFLUENCES]
    if telling:
        shares = (
            f"{_short(' '.join(text[start:end].split()))} {share:+.3f}" for start, end, share in telling
        )
        yield f"without these it would be less alike: {', '.join(shares)}"
