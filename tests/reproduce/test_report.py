"""The report of a reproduction: a page and a file."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from reproduced import REASON, of_table_1, of_table_2, of_table_7

from gemel.errors import InvalidInput, WriteFailed
from gemel.reproduce.inlining import inline_picture
from gemel.reproduce.lines import Line, Reproduction
from gemel.reproduce.page import PAPER, page_of
from gemel.reproduce.paper import TABLE_2
from gemel.reproduce.report import write_report

FACTS = {"machine": "2 cores", "date": "1 March 2026"}
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="9pt">'
    "<title>t</title><desc>what to see</desc><style>*{color: red}</style><defs>"
    '<clipPath id="c"><rect/></clipPath><path id="m"/></defs>'
    '<use xlink:href="#m" clip-path="url(#c)" style="fill: #24292f"/></svg>'
)
EVIL = "<script>alert(\"1\")</script> & 'x'"
VOID = {"meta", "br", "img", "link", "hr", "input"}


class Reading(HTMLParser):
    """What a browser would see of a page: elements, attributes, and the text of each table row."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.attributes: list[tuple[str, str, str]] = []
        self.tags: list[str] = []
        self.rows: list[dict[str, str]] = []
        self._open: list[tuple[str, str]] = []
        self.feed(page)
        assert not self._open, f"these are not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag == "tr":
            self.rows.append({})
        if tag not in VOID:
            self._open.append((tag, dict(attrs).get("class") or tag))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if self.rows and any(tag == "tr" for tag, _ in self._open):
            kind = self._open[-1][1].split()[0]
            row = self.rows[-1]
            row[kind] = f"{row.get(kind, '')} {data}".strip()

    def row(self, name: str) -> dict[str, str]:
        """The text of a row by class; in the order of its columns."""
        return next(row for row in self.rows if row.get("th") == name)


def test_ours_stands_beside_the_papers_with_the_difference() -> None:
    row = Reading(page_of([of_table_2()], {}, {})).row("SBERT-STSb-base")
    assert (row["ours"], row["paper"], row["difference"]) == ("84.17 ± 0.25", "84.67 ± 0.19", "−0.50")
    row = Reading(page_of([of_table_7()], {}, {})).row("SBERT-base, smart batching")
    assert (row["ours"], row["paper"], row["difference"]) == ("415 –", "83 2,042", "×5.0")


def test_a_missing_row_never_shows_a_figure_as_ours() -> None:
    row = TABLE_2.rows[0]
    told_both = Line("told both", row, figures={"STSb": 99.99}, missing="it was not here")
    for reproduction, name in (
        (of_table_1(), "SBERT-NLI-large"),
        (of_table_2(), "SBERT-STSb-large"),
        (Reproduction(TABLE_2, (told_both,)), "told both"),
    ):
        page = page_of([reproduction], {}, {})
        shown = Reading(page).row(name)
        assert set(shown["ours"].split()) == {"–"}
        assert not shown.get("difference")
        assert re.search(r"\d", shown["paper"])
        assert "99.99" not in page


def test_a_missing_row_says_why() -> None:
    page = page_of([of_table_2()], {}, {})
    assert f"<li>not at hand: {REASON}</li>" in page
    assert page.count('<tr class="missing">') == 1


def test_a_note_is_a_footnote() -> None:
    assert "<li>5 seeds</li>" in page_of([of_table_2()], {}, {})


def test_the_page_counts_what_was_run_and_what_is_near() -> None:
    # table 1: 7 of the 8 figures of SBERT-NLI-base; table 2: the line without a note; speeds are no scores
    page = page_of([of_table_1(), of_table_2(), of_table_7()], {}, {})
    assert "Of 7 lines in 3 tables, 5 were run here." in page
    assert "8 of 9 scores lie within 1 point" in page


def test_the_page_tells_hashes_fingerprints_measurements_and_facts() -> None:
    page = page_of([of_table_1()], {}, FACTS)
    for part in ("d1" * 32, "f1" * 16, "native int8", "74.00 to 79.00", "1,379", "2 cores", "1 March 2026"):
        assert part in page


def test_what_comes_from_outside_is_escaped() -> None:
    line = Line(EVIL, TABLE_2.rows[0], EVIL, EVIL, {"STSb": 50.0, EVIL: 1.0})
    missing = Line(EVIL, TABLE_2.rows[1], missing=EVIL)
    reading = Reading(page_of([Reproduction(TABLE_2, (line, missing))], {EVIL: SVG}, {EVIL: EVIL}))
    assert "script" not in reading.tags
    assert "alert" not in str(reading.attributes)


def test_the_page_asks_for_nothing_and_runs_nothing() -> None:
    page = page_of([of_table_1(), of_table_2(), of_table_7()], {"a picture": SVG}, FACTS)
    reading = Reading(page)
    for tag, name, value in reading.attributes:
        if name in ("src", "href", "xlink:href", "srcset", "action", "data"):
            assert value.startswith("#") or (tag, value) == ("a", PAPER)
        assert not name.startswith("on")
        assert "url(" not in value or "url(#" in value
    assert not {"script", "link", "iframe", "object", "embed", "img"} & set(reading.tags)
    assert "@import" not in page
    assert not re.search(r"https?://", page.replace(PAPER, ""))


def test_every_link_within_the_page_leads_somewhere() -> None:
    reading = Reading(page_of([of_table_1(), of_table_2()], {"one": SVG, "two": SVG}, {}))
    ids = [value for _, name, value in reading.attributes if name == "id"]
    links = {value[1:] for _, name, value in reading.attributes if name == "href" and value.startswith("#")}
    assert len(ids) == len(set(ids))
    assert links <= set(ids)
    assert {"table-1", "table-2", "picture-1-m", "picture-2-m"} <= links


def test_a_picture_follows_the_pages_colours_and_keeps_its_own_style_to_itself() -> None:
    picture = inline_picture(SVG, "p-", {"#24292f": "var(--ink)"})
    assert picture.caption == "what to see"
    assert 'style="fill: var(--ink)"' in picture.svg
    assert 'clip-path="url(#p-c)"' in picture.svg
    assert "color: red" not in picture.svg
    assert "width" not in picture.svg


@pytest.mark.parametrize(
    ("svg", "message"),
    [
        ("<svg><script>1</script></svg>", "must not hold <script>"),
        ("<svg><foreignObject/></svg>", "must not hold <foreignObject>"),
        ('<svg onload="f()"/>', "must stand alone, but it has onload"),
        ('<svg><use href="https://example.org/a.svg#x"/></svg>', "must stand alone"),
        ('<svg><path style="fill: url(file:///x)"/></svg>', "must stand alone"),
        ("<html/>", "must be SVG, and this is <html>"),
        ("plain text", "not XML"),
    ],
)
def test_a_picture_that_runs_or_fetches_is_refused(svg: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        page_of([], {"a picture": svg}, {})


def test_the_json_has_all_of_the_reproductions_and_facts(tmp_path: Path) -> None:
    reproductions = [of_table_1(), of_table_2(), of_table_7()]
    page = write_report(tmp_path / "new" / "out", reproductions, {"a picture": SVG}, FACTS)
    assert page == tmp_path / "new" / "out" / "report.html"
    values = json.loads(page.with_name("report.json").read_text(encoding="utf-8"))
    assert values["facts"] == FACTS
    assert values["reproductions"] == [json.loads(json.dumps(each.to_dict())) for each in reproductions]
    assert values["reproductions"][0]["lines"][0]["figures"]["STS12"] == 71.97
    assert sorted(file.name for file in page.parent.iterdir()) == ["report.html", "report.json"]


def test_what_is_no_number_is_null_in_the_json(tmp_path: Path) -> None:
    undefined = Reproduction(TABLE_2, (Line("a", figures={"STSb": math.nan}),))
    page = write_report(tmp_path, [undefined], {}, {})
    values = json.loads(page.with_name("report.json").read_text(encoding="utf-8"))
    assert values["reproductions"][0]["lines"][0]["figures"] == {"STSb": None}


def test_the_same_report_has_the_same_bytes(tmp_path: Path) -> None:
    files = []
    for name in ("one", "two"):
        page = write_report(tmp_path / name, [of_table_1()], {"a picture": SVG}, FACTS)
        files.append([file.read_bytes() for file in (page, page.with_name("report.json"))])
    assert files[0] == files[1]


def test_a_report_that_cannot_be_made_leaves_the_one_before(tmp_path: Path) -> None:
    page = write_report(tmp_path, [of_table_1()], {}, FACTS)
    files = (page, page.with_name("report.json"))
    before = [file.read_bytes() for file in files]
    with pytest.raises(InvalidInput):
        write_report(tmp_path, [], {"a picture": "no svg"}, FACTS)
    (tmp_path / "report.html.draft").mkdir()  # the page's draft has no place
    with pytest.raises(WriteFailed, match="cannot be written into"):
        write_report(tmp_path, [], {}, FACTS)
    assert [file.read_bytes() for file in files] == before
    assert not (tmp_path / "report.json.draft").exists()


def test_a_report_of_nothing_is_a_page(tmp_path: Path) -> None:
    page = write_report(tmp_path, [], {}, {}).read_text(encoding="utf-8")
    assert "Of 0 lines in 0 tables, 0 were run here." in page
    assert Reading(page).tags.count("h1") == 1


def test_showing_a_reproduction_needs_neither_torch_nor_matplotlib() -> None:
    code = (
        "import sys, gemel.reproduce.report, gemel.reproduce.printing, gemel.reproduce.pictures;"
        "sys.exit(bool({'torch', 'matplotlib'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
