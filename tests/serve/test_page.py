"""The page in a real browser, used as a person would, on a desk and on a phone.

Screenshots are kept in the folder that GEMEL_SCREENSHOTS names. GEMEL_AXE names the file axe.min.js of the
npm package axe-core, which looks for faults of accessibility.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from browser import Browser, find_chromium
from serve.made import TinyModels
from serving_process import RunningServer

from gemel.data.docstrings import standard_library_sentences
from gemel.serve.demo import NAME

SIZES = {"desktop": (1280, 800), "phone": (390, 844)}
TABS = ("search", "compare", "map", "duplicates", "model")


def test_the_page_asks_nobody_else_and_runs_nothing_inline(server: RunningServer) -> None:
    page = server.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http://" not in page.text.replace("http://www.w3.org", "")
    assert "https://" not in page.text
    for forbidden in (" style=", " onclick=", "<style", "<script>"):
        assert forbidden not in page.text


def test_only_the_page_s_own_parts_are_sent(server: RunningServer) -> None:
    assert server.get("/page/app.js").headers["content-type"] == "text/javascript; charset=utf-8"
    for name in ("absent.js", "..%2fapp.py", "%2e%2e%2fapp.py", "../app.py"):
        assert httpx.get(f"{server.url}/page/{name}", timeout=60).status_code == 404


@pytest.fixture(scope="module")
def served(
    default_weights: Path, tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    """A server with 2,000 real sentences, and a re-ranker that knows nothing but is one."""
    running = RunningServer(
        *("--collections", str(tmp_path_factory.mktemp("page") / "collections")),
        *("--reranker", str(tiny_models.reranker_folder)),
    )
    running.post("/v1/collections", {"name": NAME})
    texts = standard_library_sentences(2_000)
    metadata = [{"length": len(text.split())} for text in texts]
    added = running.post(f"/v1/collections/{NAME}/add", {"texts": texts, "metadata": metadata})
    assert added.json()["n_records"] == 2_000
    yield running
    assert running.stop() == 0


@pytest.fixture(params=SIZES)
def page(
    request: pytest.FixtureRequest, served: RunningServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Page]:
    program = find_chromium()
    if program is None:
        pytest.skip("chromium is not installed: the page cannot be tried in a browser")
    opened = Browser(program, tmp_path_factory.mktemp("profile"))
    width, height = SIZES[request.param]
    try:
        opened.resize(width, height, is_phone=request.param == "phone")
        opened.open(served.url + "/")
        yield Page(opened, request.param)
    finally:
        opened.close()
    assert opened.errors == []
    assert [url for url in opened.requests if not url.startswith((served.url, "blob:", "data:"))] == []


class Page:
    """The page and the size at which it is seen."""

    def __init__(self, browser: Browser, size: str) -> None:
        self.browser = browser
        self.size = size

    def keep(self, name: str) -> None:
        """Keep a screenshot, where a folder for them is named; nothing may stick out to the right."""
        assert self.browser.run("document.documentElement.scrollWidth <= window.innerWidth")
        folder = os.environ.get("GEMEL_SCREENSHOTS")
        if folder:
            self.browser.screenshot(Path(folder) / f"{name}-{self.size}.png")


@pytest.mark.extras
def test_hits_come_as_one_types_and_say_why(page: Page) -> None:
    browser = page.browser
    page.keep("start")
    browser.write("#query", "how do I compress a file")
    browser.wait_for("document.querySelectorAll('.hit').length >= 10")
    browser.wait_for("document.querySelector('.hit mark')")
    assert "compress" in browser.text(".hit").lower()
    assert "meaning #" in browser.text(".hits")
    page.keep("search")
    if page.size == "desktop":
        assert browser.run("document.querySelectorAll('.column').length") == 2
    browser.write("#filter", "length < 9")
    browser.wait_for(
        "[...document.querySelectorAll('.hit i')].length >= 10 && "
        "[...document.querySelectorAll('.hit i')].every(each => Number(each.textContent.split('= ')[1]) < 9)"
    )
    browser.write("#filter", "length <")
    browser.wait_for("document.querySelector('#results .empty')")
    browser.run("new Promise(done => setTimeout(done, 1500))")  # the explained hits are asked for later
    browser.wait_for("document.querySelector('#results .empty')")
    assert "filter" in browser.text("#results")
    browser.errors.clear()  # that the server has refused the half-written filter


@pytest.mark.extras
def test_a_server_with_keys_asks_for_one_and_without_collections_says_how_to_have_some(
    tiny_models: TinyModels, tmp_path: Path
) -> None:
    program = find_chromium()
    if program is None:
        pytest.skip("chromium is not installed: the page cannot be tried in a browser")
    key = "a-key-for-the-page"
    running = RunningServer("--model", str(tiny_models.encoder_folder), GEMEL_API_KEYS=key)
    browser = Browser(program, tmp_path)
    try:
        browser.resize(*SIZES["desktop"])
        browser.call("Page.navigate", url=running.url + "/")
        browser.wait_for("document.querySelector('#key-dialog')?.open")
        browser.write("#key", key)
        browser.click("#key-use")
        browser.wait_for("document.querySelector('html[data-ready]')")
        browser.wait_for("document.querySelector('#results .empty')")
        assert "gemel serve --collections" in browser.text("#results")
        assert browser.run("document.querySelector('#query').disabled")
        browser.click("#tab-compare")
        browser.wait_for("document.querySelector('#heat td')")
    finally:
        browser.close()
        assert running.stop() == 0


@pytest.mark.extras
def test_told_nothing_the_server_makes_a_demo_and_says_where_to_click(
    default_weights: Path, tmp_path: Path
) -> None:
    for n_made in (1, 0):  # the second time it is there already
        running = RunningServer(GEMEL_CACHE=str(tmp_path))
        try:
            told = [entry["event"] for entry in running.log]
            running.wait_for(f"gemel: open {running.url}/ in a browser")
            assert sum("10,000 sentences" in event for event in told) == n_made
            (demo,) = running.get("/v1/collections").json()["data"]
            assert (demo["name"], demo["n_records"]) == (NAME, 10_000)
        finally:
            assert running.stop() == 0


@pytest.mark.extras
def test_ways_to_search_stand_side_by_side(page: Page) -> None:
    browser = page.browser
    browser.write("#query", "wait until another thread is finished")
    for way in ("dense", "reranked"):
        if not browser.run(f"document.querySelector('#way-{way}').checked"):
            browser.click(f"#way-{way}")
    browser.wait_for("document.querySelectorAll('.column').length === 3")
    browser.wait_for("document.querySelector('#results').dataset.explained")
    titles = browser.run("[...document.querySelectorAll('.column')].map(each => each.ariaLabel)")
    assert titles == ["Hybrid", "Dense", "Re-ranked"]
    assert "was #" in browser.text(".column:last-child")
    page.keep("side-by-side")
    browser.click(".hit button")
    browser.wait_for("document.querySelector('#query').value.length > 5")
    browser.wait_for("document.querySelector('.hit p').innerText === document.querySelector('#query').value")


@pytest.mark.extras
def test_sentences_are_compared(page: Page) -> None:
    browser = page.browser
    browser.click("#tab-compare")
    browser.wait_for("document.querySelectorAll('#heat td').length > 60")
    assert "A man is eating food." in browser.text("#nearest li")
    page.keep("compare")
    browser.write("#sentences", "The cat sleeps.\nA cat is asleep.\nPrices rise.")
    browser.wait_for("document.querySelectorAll('#heat tbody tr').length === 3")
    assert "A cat is asleep." in browser.text("#nearest li")
    browser.write("#sentences", "Only one.")
    browser.wait_for("document.querySelector('#heat .empty')")


@pytest.mark.extras
def test_the_map_is_hovered_zoomed_and_lassoed(page: Page) -> None:
    browser = page.browser
    browser.click("#tab-map")
    browser.wait_for("document.querySelectorAll('#legend button').length === 12")
    assert "12 clusters of 2,000 texts" in browser.text("#map-status")
    x, y = browser.middle_of("#map-canvas")
    for step in range(60):  # some dot is there
        browser.mouse("mouseMoved", x - 90 + 3 * step, y - 30 + step, buttons=0, button="none")
        if not browser.run("document.querySelector('#map-tip').hidden"):
            break
    assert browser.text("#map-tip")
    page.keep("map")
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-300)
    browser.click("#map-reset")
    browser.click("#map-lasso")
    x, y = browser.middle_of("#map-canvas")
    browser.mouse("mousePressed", x - 120, y - 120)
    for dx, dy in ((120, -120), (120, 120), (-120, 120)):
        browser.mouse("mouseMoved", x + dx, y + dy)
    browser.mouse("mouseReleased", x - 120, y + 120)
    browser.wait_for("document.querySelectorAll('#picked li').length > 5")
    assert "within the lasso" in browser.text("#picked-title")
    browser.click("#legend button")
    browser.wait_for("document.querySelector('#picked-title').textContent.startsWith('Cluster of')")
    page.keep("map-cluster")


@pytest.mark.extras
def test_duplicates_follow_the_threshold_and_are_exported(page: Page, tmp_path: Path) -> None:
    browser = page.browser
    browser.click("#tab-duplicates")
    browser.wait_for("document.querySelector('.group')")
    few = browser.text("#duplicates-status")
    page.keep("duplicates")
    browser.run(
        "(() => { const slider = document.querySelector('#threshold'); slider.value = 0.7;"
        "slider.dispatchEvent(new Event('input')); })()"
    )
    browser.wait_for(
        f"document.querySelector('#duplicates-status').textContent.includes('dropped') && "
        f"document.querySelector('#duplicates-status').textContent !== {json.dumps(few)}"
    )
    assert browser.text("#threshold-value") == "0.700"
    n_dropped = int(browser.text("#duplicates-status").split(", ")[-1].split()[0].replace(",", ""))
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    for kind in ("csv", "jsonl"):
        browser.click(f"#export-{kind}")
        file = tmp_path / f"duplicates.{kind}"
        browser.wait_for("true")
        for _ in range(1_200):
            if file.is_file():
                break
            browser.run("new Promise(done => setTimeout(done, 50))")
        n_lines = len(file.read_text(encoding="utf-8").splitlines())
        assert n_lines == n_dropped + (kind == "csv")


@pytest.mark.extras
def test_the_model_shows_what_it_reads_and_what_it_cuts(page: Page) -> None:
    browser = page.browser
    browser.click("#tab-model")
    browser.wait_for("document.querySelectorAll('#tokens span').length > 10")
    assert "all-MiniLM-L6-v2" in browser.text("#cards")
    page.keep("model")
    browser.write("#token-text", "word " * 300)
    browser.wait_for("document.querySelector('#tokens .cut')")
    assert "302 tokens; the model reads 256, and 46 are cut" in browser.text("#token-status")
    assert browser.run("document.querySelectorAll('#tokens .cut').length") == 46
    browser.click("#measure")
    browser.wait_for("document.querySelector('#speed').textContent.includes('sentences/s')")


@pytest.mark.extras
def test_a_file_is_brought_into_a_collection_and_found(
    page: Page, served: RunningServer, tmp_path: Path
) -> None:
    browser = page.browser
    file = tmp_path / "notes.csv"
    rows = "".join(f'{n},"Note {n}: the ""whale"", said number {n}, swims."\n' for n in range(600))
    file.write_text("id,body\n" + rows, encoding="utf-8")
    name = f"notes-{page.size}"
    browser.click("#upload-open")
    browser.write("#upload-name", name)
    browser.choose_file("#upload-file", file)
    browser.wait_for("document.querySelector('#upload-found').textContent === '600 rows'")
    assert browser.run("document.querySelector('#upload-column').value") == "body"
    page.keep("upload")
    browser.click("#upload-start")
    browser.wait_for("!document.querySelector('#upload').open")
    assert browser.run("document.querySelector('#collection').value") == name
    browser.write("#query", "whale 17")
    browser.wait_for("document.querySelector('.hit')")
    assert '"whale"' in browser.text(".hit")
    assert served.get(f"/v1/collections/{name}").json()["n_records"] == 600
    browser.errors.clear()  # that the server has not known the collection at first


@pytest.mark.extras
def test_the_keyboard_reaches_every_tab(page: Page) -> None:
    browser = page.browser
    browser.run("document.querySelector('#tab-search').focus()")
    for name in (*TABS[1:], TABS[0]):
        browser.press("ArrowRight")
        assert browser.run("document.activeElement.id") == f"tab-{name}"
        assert not browser.run(f"document.querySelector('#panel-{name}').hidden")
    browser.press("End")
    assert browser.run("document.activeElement.id") == "tab-model"


@pytest.mark.extras
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_fault(page: Page, theme: str) -> None:
    source = os.environ.get("GEMEL_AXE")
    if not source:
        pytest.skip("GEMEL_AXE does not name axe.min.js: accessibility cannot be examined")
    browser = page.browser
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
    browser.run(Path(source).read_text(encoding="utf-8") + "; true")
    browser.write("#query", "how do I compress a file")
    for name, is_there in zip(
        TABS, (".hit mark", "#heat td", "#legend button", ".group", "#tokens span"), strict=True
    ):
        browser.click(f"#tab-{name}")
        browser.wait_for(f"document.querySelector('#panel-{name} {is_there}')")
        found, n_passes = browser.run("axe.run().then(found => [found.violations, found.passes.length])")
        assert n_passes > 15  # that is, it has looked
        faults = [
            (fault["id"], fault["nodes"][0]["html"][:120], fault["nodes"][0].get("failureSummary", "")[:200])
            for fault in found
            if fault["impact"] in ("serious", "critical")
        ]
        assert faults == [], f"{name}: {faults}"
        page.keep(f"{name}-{theme}")
