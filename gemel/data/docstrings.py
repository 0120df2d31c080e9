"""English that every Python machine has: the sentences of the standard library's own docstrings.

The files are parsed, never imported or run. A docstring becomes paragraphs (doctests, tables, signatures
and other code left out), a paragraph becomes sentences, and only what reads like a sentence is kept.
"""

from __future__ import annotations

import ast
import os
import random
import re
import sys
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gemel.errors import InvalidInput

_SKIPPED_FOLDERS = {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__"}
_MIN_WORDS, _MAX_WORDS = 5, 60


@dataclass(frozen=True)
class DocstringCorpus:
    """Distinct sentences, in the order of the files, and what they were taken from."""

    sentences: list[str]
    n_files: int
    n_docstrings: int
    n_repeats: int  # sentences set aside because they had been seen before


def standard_library_sentences(limit: int = 10_000, seed: int = 0) -> list[str]:
    """At most `limit` distinct English sentences, always the same for one Python and one seed."""
    return read_docstring_corpus(limit, seed).sentences


def read_docstring_corpus(
    limit: int | None = None, seed: int = 0, *, folder: str | os.PathLike[str] | None = None
) -> DocstringCorpus:
    """The distinct sentences of the standard library, or of a folder; a seeded sample if over the limit."""
    if limit is not None and limit < 1:
        raise InvalidInput(f"limit is {limit!r}; expected at least 1: ask for one sentence or more")
    root = Path(folder or sysconfig.get_path("stdlib"))
    n_files = n_docstrings = 0
    counts: Counter[str] = Counter()
    for path in _python_files(root):
        n_files += 1
        for docstring in _docstrings(path):
            n_docstrings += 1
            counts.update(sentences_of(docstring))
    if n_files == 0:
        raise InvalidInput(f"{root} holds no .py files; expected the source of a library: give its folder")
    sentences = list(counts)
    if limit is not None and len(sentences) > limit:
        chosen = random.Random(seed).sample(range(len(sentences)), limit)
        sentences = [sentences[i] for i in sorted(chosen)]
    return DocstringCorpus(sentences, n_files, n_docstrings, counts.total() - len(counts))


def sentences_of(docstring: str) -> Iterator[str]:
    """The full English sentences of one docstring, each on one line."""
    for paragraph in _paragraphs(docstring):
        yield from filter(_reads_well, _split(paragraph))


def _python_files(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - _SKIPPED_FOLDERS)
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(".py"))


def _docstrings(path: Path) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an old file's invalid escapes are not the reader's concern
        try:
            nodes: list[ast.stmt | ast.Module] = [ast.parse(path.read_bytes())]
        except (SyntaxError, ValueError, OSError):
            return
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                yield docstring
        statements = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
        nodes.extend(reversed(statements))


# From a docstring to paragraphs ----------------------------------------------------------------------

_DOCTEST = re.compile(r">>>|\.\.\. ")
_UNDERLINE = re.compile(r"([=\-~^*#+_`\"|])\1{2,}[\s=\-~^*#+_|]*$")
_FIELD_OR_DIRECTIVE = re.compile(r":\w[^:]*:|@\w+\b|\.\. ")
_BULLET = re.compile(r"(?:[-*+•o]|\(?(?:\d{1,2}|[a-z])[.)])\s+(?=\S)")
_SIGNATURE = r"[\w.]+\((?:[^()]|\([^()]*\))*\)\s*(?:->|=>|--|:|$)"
_TABLE = r"\||.*[^\s.!?:;,)'\"] {2,}\S"
_STATEMENT = (
    r"def \w+\(|class \w+[(:]|import [\w.]+$|from \S+ import |return \S*[\[({]|[\w.\[\]'\"]+ [-+*/|&]?= "
)
_CODE = r"#|%|\$ |<\w|--?\w|.*(?:[{}]|\);)$"
_NOT_PROSE = re.compile("|".join([_SIGNATURE, _TABLE, _STATEMENT, _CODE]))


def _paragraphs(docstring: str) -> Iterator[str]:
    """Wrapped lines joined; a new paragraph at each blank line, bullet and change of indentation."""
    lines: list[str] = []
    depths = range(0)  # how far in a line may stand to go on with the paragraph
    literal: int | None = None  # a block that is not prose lasts while lines stand further in than this
    in_doctest = False
    for line in docstring.expandtabs().splitlines():
        text, depth = line.strip(), len(line) - len(line.lstrip())
        if literal is not None and (not text or depth > literal):
            continue
        literal = depth if _FIELD_OR_DIRECTIVE.match(text) or text.endswith("::") else None
        in_doctest = bool(text) and (in_doctest or _DOCTEST.match(text) is not None)
        bullet = _BULLET.match(text)
        if _UNDERLINE.match(text):
            lines = []  # they were a title
        elif not text or literal is not None or in_doctest or _NOT_PROSE.match(text):
            yield " ".join(lines)
            lines = []
        elif bullet or not lines or depth not in depths:
            yield " ".join(lines)
            lines = [text[bullet.end() :] if bullet else text]
            depths = range(depth + 1, sys.maxsize) if bullet else range(depth, depth + 1)
        else:
            lines.append(text)
            depths = range(depth, depth + 1)
    yield " ".join(lines)


# From a paragraph to sentences -----------------------------------------------------------------------

_END = re.compile(r"[.!?][\"')\]]*(?:\s+(?=[^\s\d])|$)")
_ABBREVIATION = re.compile(
    r"(?:\b(?i:e\.g|i\.e|a\.k\.a|vs|cf|viz|al|approx|resp|incl|esp|mr|mrs|ms|dr|st)"
    r"|\b(?:[A-Z][a-z]+|by|and) [A-Z]|\.\.)\.$"
)


def _split(paragraph: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(paragraph):
        sentence, rest = paragraph[start : end.end()].rstrip(), paragraph[end.end() :]
        goes_on = _ABBREVIATION.search(sentence) or (sentence.endswith("etc.") and not rest[:1].isupper())
        if not (rest and goes_on):
            yield " ".join(sentence.split())
            start = end.end()


_SHAPE = re.compile(r"(?:[A-Z]|``?\w).*[^.][.!?]$")
_LABEL = re.compile(
    r"(?!Note|NOTE|Warning|WARNING|Caution)\S+:\s"
    r"|(?:Arg|Param|Return|Raise|Option|Usage|Example|Alias|Attribute|Input|Output|Keyword)[^.,]{0,40}:"
)
_FRAGMENT = re.compile(r"(?:If|When|That|Unless|Because|Which|Whether)\b[^,;:]*$")
_NOT_ENGLISH = re.compile(
    r"[{}|\\^~$@]|->|=>|[-+*/<>!%=]=|=\?|<<|>>|::|://|:\w+:|\s=\s|%\w|%\(|</|\s#|/\S*/\S*/|\.\.\.|\S{35}|XXX|TODO"
)
_WORD = re.compile(r"[\"'`(*]*[A-Za-z][a-z]*(?:[-'/][A-Za-z]+)*[\"'`)*,.;:!?]*$")
_COMMON_WORD = re.compile(
    r"\b(?:an?|and|are|as|at|be|been|but|by|can|does?|for|from|has|have|if|in|into|is|its?|may|must|no|not|of|on|or"
    r"|should|so|than|that|the|their|then|there|these|they|this|to|was|when|which|will|with|you)\b",
    re.IGNORECASE,
)


def _reads_well(sentence: str) -> bool:
    words = sentence.split()
    return (
        _MIN_WORDS <= len(words) <= _MAX_WORDS
        and _SHAPE.match(sentence) is not None
        and not any(kind.match(sentence) for kind in (_LABEL, _FRAGMENT))
        and _NOT_ENGLISH.search(sentence) is None
        and _COMMON_WORD.search(sentence) is not None
        and sum(_WORD.match(word) is not None for word in words) >= 0.75 * len(words)
        and sum(word.isupper() and len(word) > 1 for word in words) <= 0.3 * len(words)
        and sentence.count("(") == sentence.count(")")
        and sentence.count("[") == sentence.count("]")
        and sentence.count('"') % 2 == 0
    )
