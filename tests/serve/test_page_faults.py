"""The page when things change or fail: another collection, one that is gone, keys that are refused."""

from __future__ import annotations

import functools
import http.server
import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from browser import Browser, find_chromium
from serve.made import TinyModels
from serving_process import RunningServer
from stand_ins import sentences

READ_KEY, WRITE_KEY = "r" * 24, "w" * 24
NOTHING_TO_EXPORT = (
    "document.querySelector('#export-csv').disabled && document.querySelector('#export-jsonl').disabled"
    " && document.querySelector('#more-groups').hidden && !document.querySelector('.group')"
)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("chromium is not installed: the page cannot be tried in a browser")
    opened = Browser(program, tmp_path / "profile")
    opened.resize(1280, 800)
    yield opened
    opened.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "collections"


@pytest.fixture
def keeper(tiny_models: TinyModels, root: Path) -> Iterator[RunningServer]:
    """A server with collections of several sizes, of which one is full of repeated texts."""
    running = RunningServer("--model", str(tiny_models.encoder_folder), "--collections", str(root))
    texts = sentences(100, seed=8)
    for name, held in (("twice", texts + texts), ("doomed", texts + texts[:50]), ("lonely", texts[:1])):
        running.post("/v1/collections", {"name": name})
        ids = list(range(len(held)))
        added = running.post(f"/v1/collections/{name}/add", {"texts": held, "ids": ids})
        assert added.json()["n_records"] == len(held)
    yield running
    assert running.stop() == 0


def choice_of(collection: str) -> str:
    """A script that chooses a collection."""
    return (
        "(() => { const picker = document.querySelector('#collection');"
        f"picker.value = {json.dumps(collection)}; picker.dispatchEvent(new Event('change')); }})()"
    )


def choose(browser: Browser, collection: str) -> None:
    browser.run(choice_of(collection))


@pytest.mark.extras
def test_what_is_exported_is_of_the_collection_that_is_named(
    browser: Browser, keeper: RunningServer, root: Path
) -> None:
    browser.open(keeper.url + "/#duplicates")
    browser.run("document.querySelector('#threshold').value = 1")  # each text and its repetition
    choose(browser, "twice")
    browser.wait_for("document.querySelectorAll('.group').length === 40")
    assert not browser.run("document.querySelector('#more-groups').hidden")
    choose(browser, "lonely")
    browser.wait_for("document.querySelector('#groups .empty')")
    assert browser.run(NOTHING_TO_EXPORT)
    assert browser.text("#duplicates-status") == ""
    choose(browser, "twice")
    browser.wait_for("document.querySelector('.group') && !document.querySelector('#export-csv').disabled")
    # In one script: what is found meanwhile may be there before a second one looks.
    assert browser.run(
        f"{choice_of('doomed')}; new Promise(done => setTimeout(done)).then(() => {NOTHING_TO_EXPORT})"
    )
    browser.wait_for("document.querySelector('.group') && !document.querySelector('#export-csv').disabled")
    choose(browser, "twice")
    browser.wait_for("document.querySelector('.group') && !document.querySelector('#export-csv').disabled")
    assert browser.errors == []
    shutil.rmtree(root / "doomed")
    choose(browser, "doomed")
    browser.wait_for("!document.querySelector('#notice').hidden")
    assert "there is no collection 'doomed'" in browser.text("#notice")
    assert browser.run(NOTHING_TO_EXPORT)
    assert browser.text("#duplicates-status") == ""
    choose(browser, "twice")
    browser.wait_for("document.querySelector('.group')")
    assert browser.run("document.querySelector('#notice').hidden")


@pytest.mark.extras
def test_a_list_that_cannot_be_made_anew_is_not_kept(
    browser: Browser, keeper: RunningServer, root: Path
) -> None:
    browser.open(keeper.url + "/#duplicates")
    choose(browser, "doomed")
    browser.wait_for("document.querySelector('.group') && !document.querySelector('#export-csv').disabled")
    shutil.rmtree(root / "doomed")
    browser.run(
        "(() => { const slider = document.querySelector('#threshold'); slider.value = 0.7;"
        "slider.dispatchEvent(new Event('input')); })()"
    )
    assert browser.run("document.querySelector('#export-csv').disabled")
    browser.wait_for("!document.querySelector('#notice').hidden")
    assert browser.run(NOTHING_TO_EXPORT)


@pytest.mark.extras
def test_the_map_is_of_the_collection_that_is_named(
    browser: Browser, keeper: RunningServer, root: Path
) -> None:
    browser.open(keeper.url + "/#map")
    choose(browser, "twice")
    browser.wait_for("document.querySelectorAll('#legend button').length === 12")
    browser.click("#legend button")
    browser.wait_for("document.querySelectorAll('#picked li').length")
    assert browser.errors == []
    shutil.rmtree(root / "doomed")
    choose(browser, "doomed")
    browser.wait_for("!document.querySelector('#notice').hidden")
    browser.errors.clear()  # that the server has not known the collection
    nothing = "!document.querySelector('#legend button') && !document.querySelector('#picked li')"
    assert browser.run(nothing)
    assert browser.text("#map-status") == ""
    browser.click("#map-lasso")
    x, y = browser.middle_of("#map-canvas")
    browser.mouse("mousePressed", x - 50, y - 50)
    for dx, dy in ((50, -50), (50, 50), (-50, 50)):
        browser.mouse("mouseMoved", x + dx, y + dy)
    browser.mouse("mouseReleased", x - 50, y + 50)
    assert browser.run(nothing)
    choose(browser, "lonely")
    assert browser.text("#picked .empty")
    choose(browser, "twice")
    browser.wait_for("document.querySelectorAll('#legend button').length === 12")
    assert "12 clusters of 200 texts" in browser.text("#map-status")
    assert browser.errors == []


def give_key(browser: Browser, key: str) -> None:
    browser.wait_for("document.querySelector('#key-dialog')?.open")
    browser.write("#key", key)
    browser.click("#key-use")


def check_accessibility(browser: Browser) -> None:
    source = os.environ.get("GEMEL_AXE")
    if not source:
        return
    browser.run(Path(source).read_text(encoding="utf-8") + "; true")
    found = browser.run("axe.run().then(found => found.violations)")
    assert [fault["id"] for fault in found if fault["impact"] in ("serious", "critical")] == []


@pytest.mark.extras
def test_a_key_that_is_refused_is_told_and_another_can_be_given(
    browser: Browser, tiny_models: TinyModels, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "keys").write_text(f"{READ_KEY} read\n{WRITE_KEY}\n", encoding="utf-8")
    file = tmp_path / "notes.txt"
    file.write_text("\n".join(sentences(20)), encoding="utf-8")
    options = ("--collections", str(root), "--key-file", str(tmp_path / "keys"))
    running = RunningServer("--model", str(tiny_models.encoder_folder), *options)
    is_closed = "!document.querySelector('#key-dialog').open"
    try:
        browser.call("Page.navigate", url=running.url + "/")
        give_key(browser, "x" * 24)
        browser.wait_for("document.querySelector('#key-problem').textContent.includes('was refused')")
        browser.wait_for("document.querySelector('#key-dialog').open")
        check_accessibility(browser)
        browser.press("Escape")
        browser.wait_for(f"{is_closed} && !document.querySelector('#notice').hidden")
        assert "key" in browser.text("#notice")
        browser.run("new Promise(done => setTimeout(done, 500))")
        assert browser.run(is_closed)
        assert browser.run("sessionStorage.getItem('gemel-key')") is None
        browser.click("#key-open")
        give_key(browser, READ_KEY)
        browser.wait_for("document.querySelector('html[data-ready]')")
        browser.click("#upload-open")
        browser.write("#upload-name", "notes")
        browser.choose_file("#upload-file", file)
        browser.wait_for("document.querySelector('#upload-found').textContent === '20 rows'")
        browser.click("#upload-start")
        browser.wait_for("document.querySelector('#key-dialog').open")
        assert "this key may only read" in browser.text("#key-problem")
        check_accessibility(browser)
        browser.click("#key-cancel")
        browser.wait_for("document.querySelector('#upload-error').textContent.includes('may only read')")
        browser.click("#upload-start")
        give_key(browser, "y" * 24)
        browser.wait_for("document.querySelector('#key-problem').textContent.includes('was refused')")
        browser.press("Escape")
        browser.wait_for(f"{is_closed} && document.querySelector('#upload-error').textContent")
        assert browser.run("sessionStorage.getItem('gemel-key')") == READ_KEY  # with which one may go on
        browser.click("#upload-start")
        give_key(browser, WRITE_KEY)
        browser.wait_for("!document.querySelector('#upload').open")
        headers = {"Authorization": f"Bearer {READ_KEY}"}
        assert running.get("/v1/collections/notes", headers=headers).json()["n_records"] == 20
    finally:
        assert running.stop() == 0


@contextmanager
def another_site(folder: Path) -> Iterator[str]:
    """A page of another origin."""
    folder.mkdir()
    (folder / "index.html").write_text("<!doctype html><title>A page</title>", encoding="utf-8")
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    handler = functools.partial(quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as site:
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{site.server_port}"
        finally:
            site.shutdown()
            thread.join()


@pytest.mark.extras
def test_a_page_that_may_asks_with_its_client_s_own_headers(
    browser: Browser, tiny_models: TinyModels, tmp_path: Path
) -> None:
    with another_site(tmp_path / "site") as site:
        running = RunningServer("--model", str(tiny_models.encoder_folder), "--cors-origin", site)
        try:
            browser.call("Page.navigate", url=f"{site}/index.html")
            browser.wait_for(f"location.href.startsWith({site!r}) && document.title === 'A page'")
            headers = {
                "authorization": "Bearer none",
                "content-type": "application/json",
                "x-stainless-lang": "js",
                "x-stainless-retry-count": "0",
            }
            request = {"method": "POST", "headers": headers, "body": json.dumps({"input": "the man " * 600})}
            told = browser.run(
                f"fetch('{running.url}/v1/embeddings', {json.dumps(request)}).then(answer => [answer.status,"
                "answer.headers.get('x-request-id'), answer.headers.get('x-truncated-inputs')])"
            )
        finally:
            assert running.stop() == 0
    assert told[0] == 200
    assert len(told[1]) == 32
    assert told[2] == "1"
