"""`gemel search` and `gemel rerank` as a shell and as a terminal see them."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest
import torch
from stand_ins import sentences
from terminals import GEMEL, lines_of, on_a_terminal, run

from gemel import load_encoder, load_reranker
from gemel.checkpoint import read_encoder_folder
from gemel.index import Collection, Record
from gemel.model import CrossEncoder
from gemel.tasks.passages import Chunking, add_documents
from gemel.tasks.search import search

TEXTS = ["the dog sleeps", "a man plays guitar", "a cold green street", "the cat and the dog", "old house"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path) -> Path:
    path = tmp_path_factory.mktemp("search") / "c"
    with Collection.create(path, load_encoder(tiny_bert), model=str(tiny_bert)) as opened:
        opened.add(TEXTS, ids=range(5), metadata=[{"n": n} for n in range(5)])
        add_documents(opened, [Record("book", "big red house. " * 40 + "A happy piano.")], Chunking(30))
    return path


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path) -> Path:
    folder = tmp_path_factory.mktemp("cross") / "encoder"
    torch.manual_seed(0)
    CrossEncoder.from_encoder(read_encoder_folder(tiny_bert), ("score",), device="cpu").save(folder)
    return folder


@pytest.mark.parametrize("mode", ["dense", "lexical", "hybrid"])
def test_the_command_finds_what_the_library_finds(made: Path, tiny_bert: Path, mode: str) -> None:
    found = lines_of("search", made, "the dog", "-k", 3, "--mode", mode, "--filter", "n < 4")
    with Collection.open(made, load_encoder(tiny_bert)) as opened:
        expected = search(opened, ["the dog"], 3, mode=mode, filter="n < 4")[0]  # type: ignore[arg-type]
    assert [line["id"] for line in found] == [hit.id for hit in expected]
    assert [line["score"] for line in found] == pytest.approx([hit.score for hit in expected], abs=1e-4)
    assert [line["rank"] for line in found] == list(range(1, len(found) + 1))
    assert all(line["metadata"] == {"n": line["id"]} for line in found)


def test_lines_of_standard_input_are_queries(made: Path) -> None:
    found = lines_of("search", made, "-k", 1, "--mode", "lexical", stdin="guitar\n\nstreet\n")
    assert [(line["query"], line["id"]) for line in found] == [("guitar", 1), ("street", 2)]
    by_name = lines_of("search", made, "-", "-k", 1, "--mode", "lexical", stdin="guitar\n\nstreet\n")
    assert by_name == found
    assert lines_of("search", made, "-k", 1, "--offset", 1, "--mode", "lexical", stdin="dog") == [
        {"query": "dog", "rank": 2, "id": 3, "text": TEXTS[3], "metadata": {"n": 3}}
        | {"score": pytest.approx(0.0, abs=5)}
    ]


def test_standard_input_is_utf8_with_or_without_a_byte_order_mark(made: Path) -> None:
    lexical = ("search", made, "-k", 1, "--mode", "lexical")
    (hit,) = lines_of(*lexical, stdin="\ufeffguitar\r\n")
    assert hit["query"] == "guitar"
    done = subprocess.run([*GEMEL, *map(str, lexical)], input=b"guitar\n\xff\n", capture_output=True)
    assert (done.returncode, b"stdin, line 2: invalid start byte" in done.stderr) == (1, True)


def test_a_filter_that_names_no_field_is_told_once(made: Path) -> None:
    asked = ("search", made, "-", "--mode", "lexical", "--filter")
    found = run(*asked, "nn > 1 and n >= 0", stdin="dog\ncat\n")
    assert (found.returncode, found.stdout) == (0, "")
    assert found.stderr.count("no record has the field nn that the filter names") == 1
    assert "no record has" not in run(*asked, "n > 100", stdin="dog").stderr
    assert "no record has the field not, a.b that" in run(*asked, "`not` = 1 or a.b = 2", stdin="dog").stderr
    assert "no record has the field a field" in run(*asked, "`a field` = 1", stdin="dog").stderr


def test_a_passage_points_into_its_document(made: Path) -> None:
    (line,) = lines_of("search", made, "piano", "-k", 1, "--mode", "lexical")
    assert line["id"] == "book"
    assert line["text"].endswith("A happy piano.")
    passage = line["passage"]
    assert passage["number"] == passage["count"] > 3
    assert passage["end"] - passage["start"] == len(line["text"])


def test_an_explanation_names_channels_and_words(made: Path) -> None:
    (line,) = lines_of("search", made, "the man plays guitar", "-k", 1, "--filter", "n = 1", "--explain")
    told = line["explanation"]
    assert set(told["channels"]) == {"dense", "lexical"}
    assert line["score"] == pytest.approx(sum(place["share"] for place in told["channels"].values()))
    assert [each["word"] for each in told["matches"]] == ["man", "plays", "guitar"]
    assert {each["words"] for each in told["influences"]} == {"a", "man", "plays", "guitar"}


def test_a_cross_encoder_reads_again(made: Path, cross_encoder: Path) -> None:
    found = lines_of("search", made, "dog", "-k", 6, "--rerank", cross_encoder, "--candidates", 6)
    scores = load_reranker(cross_encoder).score([("dog", line["text"]) for line in found])
    assert [line["score"] for line in found] == pytest.approx(scores.tolist(), abs=1e-4)
    assert [line["score"] for line in found] == sorted((line["score"] for line in found), reverse=True)
    asking = ("search", made, "dog", "-k", 6, "--rerank", cross_encoder, "--candidates", 5)
    assert "the reranker reads 5" in run(*asking, check=1).stderr


# A terminal ------------------------------------------------------------------------------------------------


def test_a_terminal_gets_marked_words(made: Path) -> None:
    shown = on_a_terminal("search", made, "the DOG", "-k", 2, "--explain")
    assert "\x1b[33m\x1b[1mdog\x1b[0m sleeps" in shown
    plain = re.sub(r"\x1b\[\d+m", "", shown)
    assert "0  n=0\n         the dog sleeps\n" in plain
    assert "words: the, dog" in plain
    assert re.search(r"dense: rank \d+, score [-\d.]+, adds 0\.0\d+", plain)
    assert re.search(r"2 hits in [\d.]+ ms", plain)


def test_without_a_query_there_is_a_prompt_until_an_empty_line(made: Path) -> None:
    shown = on_a_terminal("search", made, "-k", 1, typed=["guitar\n", "piano\n", "\n"])
    plain = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown)
    assert plain.count("search: ") == 3
    assert "a man plays guitar" in plain
    assert "book, passage" in plain
    assert "A happy piano." in plain


def test_a_prompt_ends_with_the_input(made: Path) -> None:
    shown = on_a_terminal("search", made, "-k", 1, "--json", typed=["guitar\n", "\x04"])
    assert '"id": 1' in shown


def test_a_prompt_leaves_only_results_in_a_file(made: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, b"guitar\n\x04")
    with (tmp_path / "found.jsonl").open("wb") as found:
        done = subprocess.run(
            [*GEMEL, "search", str(made), "-k", "1", "--mode", "lexical"],
            stdin=theirs,
            stdout=found,
            stderr=subprocess.PIPE,
            timeout=120,
            check=True,
        )
    os.close(theirs)
    os.close(ours)
    (line,) = (tmp_path / "found.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["id"] == 1
    assert done.stderr.count(b"search: ") == 2


def test_what_would_not_be_heeded_is_refused(made: Path, tiny_bert: Path) -> None:
    alone = run("search", made, "dog", "--candidates", 6, check=2).stderr
    assert "--candidates goes with --rerank" in alone
    lexical = run("search", made, "dog", "--mode", "lexical", "-m", tiny_bert, check=2).stderr
    assert "--mode lexical compares words and takes no model; leave out -m" in lexical


def test_a_long_text_is_shown_from_its_first_match(made: Path, tmp_path: Path, tiny_bert: Path) -> None:
    text = " ".join(sentences(200, max_words=10)).replace("horse", "dog") + " horse \x1b[31m end"
    with Collection.create(tmp_path / "c", load_encoder(tiny_bert, on_truncate="ignore")) as opened:
        opened.add([text], ids=["x"])
    shown = on_a_terminal("search", tmp_path / "c", "horse", "--mode", "lexical")
    assert "\x1b[33m\x1b[1mhorse\x1b[0m" in shown
    assert "\x1b[31m" not in shown  # what a text holds does not command the terminal
    assert shown.count("\n") <= 10


# rerank ----------------------------------------------------------------------------------------------------


def test_texts_are_put_in_the_order_of_the_cross_encoder(cross_encoder: Path, tmp_path: Path) -> None:
    found = lines_of("rerank", "who sleeps?", *TEXTS, "-m", cross_encoder)
    scores = load_reranker(cross_encoder).score([("who sleeps?", text) for text in TEXTS])
    assert [line["id"] for line in found] == (-scores).argsort(kind="stable").tolist()
    assert [TEXTS[line["id"]] for line in found] == [line["text"] for line in found]
    (tmp_path / "t.tsv").write_text("key\ttext\n" + "".join(f"k{n}\t{t}\n" for n, t in enumerate(TEXTS)))
    file = (tmp_path / "t.tsv", "--id-column", "key", "-k", 2)
    best = lines_of("rerank", "who sleeps?", *file, "-m", cross_encoder)
    assert [line["id"] for line in best] == [f"k{line['id']}" for line in found[:2]]
    by_input = lines_of("rerank", "who sleeps?", "-", "-m", cross_encoder, stdin="\n".join(TEXTS))
    assert by_input == found


def test_what_can_only_be_a_file_is_no_text_to_rerank(tmp_path: Path, cross_encoder: Path) -> None:
    asking = ("rerank", "who sleeps?", "-m", cross_encoder)
    assert "cannot read missing.txt: No such file" in run(*asking, "missing.txt", check=1).stderr
    assert "give one file, or texts alone" in run(*asking, "a.txt", "b.csv", check=2).stderr
    (tmp_path / "a.pdf").touch()
    unknown = run(*asking, tmp_path / "a.pdf", check=1).stderr
    assert unknown.endswith("; rename the file\n")  # there is no --input-format to say it with
    for option in ("--column", "--id-column"):
        assert "go with a file" in run(*asking, "the dog sleeps", option, "x", check=2).stderr


def test_an_encoder_is_no_reranker(tiny_bert: Path, cross_encoder: Path) -> None:
    assert run("rerank", "a", "b", "-m", tiny_bert, check=1).stderr.count("\n") == 1
    assert len(lines_of("rerank", "who sleeps?", "the dog sleeps. " * 1000, "-m", cross_encoder)) == 1
    assert "the query is empty" in run("rerank", " ", "b", "-m", cross_encoder, check=1).stderr
