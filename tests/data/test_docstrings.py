"""What is taken out of a docstring, and the corpus of this Python's own library."""

from __future__ import annotations

import inspect
import re
import sys
import sysconfig
from pathlib import Path

import pytest

from gemel.data.docstrings import (
    DocstringCorpus,
    read_docstring_corpus,
    sentences_of,
    standard_library_sentences,
)
from gemel.errors import InvalidInput


def sentences(text: str) -> list[str]:
    return list(sentences_of(inspect.cleandoc(text)))


@pytest.fixture(scope="module")
def corpus() -> DocstringCorpus:
    return read_docstring_corpus()


# One docstring ---------------------------------------------------------------------------------------


def test_wrapped_lines_are_joined_and_white_space_collapsed() -> None:
    text = """Return the name of the file.  The name,
    if there is one,   is relative to the
    folder that was given."""
    assert sentences(text) == [
        "Return the name of the file.",
        "The name, if there is one, is relative to the folder that was given.",
    ]


def test_a_paragraph_is_cut_into_its_sentences() -> None:
    assert sentences("Is the file open or not? Close it before you leave! The lock is then free.") == [
        "Is the file open or not?",
        "Close it before you leave!",
        "The lock is then free.",
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "Use a mapping, e.g. Python dictionaries, for the values.",
        "Only the first (i.e. The Great One) is kept in the list.",
        "Compare text vs. Binary files when they are opened.",
        "The names, values, etc. are kept in the order given.",
        "This is new in Python 3.11 and in all later versions.",
        "Join the parts with os.path.join and read the file setup.cfg then.",
        "The class was written by Barry A. Warsaw for the mail package.",
        "The numbers 1.5 and 2.5 are both rounded to the same even number.",
        "`name` is the name of the module to be found.",
        "Return the `mixed' type of the message.",
    ],
)
def test_a_sentence_is_not_broken_inside(sentence: str) -> None:
    assert sentences(sentence) == [sentence]


def test_a_name_in_small_letters_begins_a_new_sentence() -> None:
    assert sentences("Return the new string and a number. new_string is the text after all changes.") == [
        "Return the new string and a number."
    ]


def test_doctests_and_their_output_are_dropped() -> None:
    text = """Return the sum of the two numbers.

    >>> print("This is not a sentence of ours.")
    This is not a sentence of ours.
    Nor is this one of our sentences.

    The numbers may be of any type.
    """
    assert sentences(text) == ["Return the sum of the two numbers.", "The numbers may be of any type."]


def test_fields_directives_and_literal_blocks_are_dropped() -> None:
    text = """Open the file that has this name.

    :param name: The name of the file to be opened.
        It may be a path as well.
    :returns: The file that has been opened.

    .. note::
        This note is not taken over.

    A literal block looks like this::

        This is a block of literal text.

    After that the prose goes on.
    """
    assert sentences(text) == ["Open the file that has this name.", "After that the prose goes on."]


def test_titles_tables_signatures_and_code_are_dropped() -> None:
    text = """split(text, separator) -> list of strings
    Split the text at the separator.

    The Title Of A Section Is Long.
    ===============================

    name      The name of the thing that is split.
    | A table | that has | two rows |
    result = split(text)
    from text import split as the function.

    An empty text gives an empty list.
    """
    assert sentences(text) == ["Split the text at the separator.", "An empty text gives an empty list."]


def test_bullets_are_paragraphs_without_their_markers() -> None:
    text = """There are two ways to do it:
    - Read the whole file into memory
      and split it into lines.
    * Read the file line by line.
      1. Count the lines that are empty.
    2. Count the others
    The first way is the quicker one.
    """
    assert sentences(text) == [
        "Read the whole file into memory and split it into lines.",
        "Read the file line by line.",
        "Count the lines that are empty.",
        "The first way is the quicker one.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Return the name.",
        "the name of the file to open.",
        "Return the name of the file",
        "The values that follow are these:",
        "And so the story goes on...",
        "Returns x == y for the two values.",
        "See https://docs.python.org for more of it.",
        "Return the (name of the file to open.",
        "Arguments: the name of the file.",
        "ValueError: The value is not in the list.",
        "If the name is not in the list.",
        "THE SOFTWARE IS PROVIDED AS IT IS.",
        "Foo Bar Baz Qux Quux Corge.",
        "Word " * 60 + "is too long.",
    ],
)
def test_what_does_not_read_like_a_sentence_is_left_out(text: str) -> None:
    assert sentences(text) == []


# A folder of files -----------------------------------------------------------------------------------


def test_files_are_read_in_order_and_never_run(tmp_path: Path) -> None:
    (tmp_path / "b.py").write_text('"""This is the second file of all."""\nraise SystemExit("it was run")\n')
    (tmp_path / "a.py").write_text(
        '"""This is the first file of all."""\n'
        "class Box:\n"
        '    """A box that holds many things."""\n'
        "    if True:\n"
        "        async def open(self):\n"
        '            r"""Open the \\d box with a key."""\n'
        '            "This is not a docstring at all."\n'
        'def close():\n    """A box that holds many things."""\n'
    )
    assert read_docstring_corpus(folder=tmp_path) == DocstringCorpus(
        [
            "This is the first file of all.",
            "A box that holds many things.",
            "This is the second file of all.",
        ],
        n_files=2,
        n_docstrings=5,
        n_repeats=1,
    )


def test_tests_installed_packages_and_broken_files_are_skipped(tmp_path: Path) -> None:
    for folder in ("", "test", "site-packages", "package/tests", "__pycache__"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "module.py").write_text(f'"""This is in the folder {folder or "root"}."""')
    (tmp_path / "broken.py").write_text('"""This file does not parse at all."""\ndef (')
    (tmp_path / "zeros.py").write_bytes(b'"""This file has a zero byte."""\0')
    (tmp_path / "escape.py").write_text('"""This has an invalid escape in it."""\nx = "\\d"\n')
    assert read_docstring_corpus(folder=tmp_path).sentences == [
        "This has an invalid escape in it.",
        "This is in the folder root.",
    ]


def test_a_folder_without_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no \.py files"):
        read_docstring_corpus(folder=tmp_path)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit: int) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        standard_library_sentences(limit)


def test_over_the_limit_a_seeded_sample_is_taken_in_order(tmp_path: Path) -> None:
    everything = [f"This is the sentence number {i} of them." for i in range(50)]
    (tmp_path / "many.py").write_text('"""' + "\n\n".join(everything) + '"""')
    sample = read_docstring_corpus(10, folder=tmp_path).sentences
    assert len(sample) == 10
    assert sample == [sentence for sentence in everything if sentence in sample]
    assert sample == read_docstring_corpus(10, folder=tmp_path).sentences
    assert sample != read_docstring_corpus(10, seed=1, folder=tmp_path).sentences
    assert read_docstring_corpus(50, folder=tmp_path).sentences == everything


# This Python's library -------------------------------------------------------------------------------


def test_the_standard_library_has_ten_thousand_sentences(corpus: DocstringCorpus) -> None:
    # Some distributions pack tkinter and idlelib, a fifth of the text, apart.
    is_whole = Path(sysconfig.get_path("stdlib"), "idlelib").is_dir()
    assert len(corpus.sentences) >= (10_000 if is_whole else 8_000)
    assert corpus.n_files > 300
    assert corpus.n_docstrings > 5_000


def test_sentences_of_the_standard_library_read_like_sentences(corpus: DocstringCorpus) -> None:
    assert len(set(corpus.sentences)) == len(corpus.sentences)
    for sentence in corpus.sentences:
        assert 5 <= len(sentence.split()) <= 60
        assert re.fullmatch(r"[A-Z`].*[.!?]", sentence), sentence
        assert not re.search(r"\s\s|>>>|\n", sentence), sentence


def test_reading_the_library_imports_none_of_it(corpus: DocstringCorpus) -> None:
    assert "antigravity" not in sys.modules
    assert "turtle" not in sys.modules


def test_the_sample_keeps_the_order_of_the_library(corpus: DocstringCorpus) -> None:
    sample = standard_library_sentences(100)
    assert len(sample) == 100
    assert sample == [sentence for sentence in corpus.sentences if sentence in set(sample)]
