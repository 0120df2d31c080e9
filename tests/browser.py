"""A real Chromium, driven over its own debugging pipe: nothing to install but the browser."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--remote-debugging-pipe",
)
# Chromium reads commands from 3 and answers on 4.
ON_THE_PIPE = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); "
    "os.execv(sys.argv[3], sys.argv[3:])"
)
WAIT_SECONDS = 120.0
KEYS = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowRight": 39, "ArrowLeft": 37, "End": 35, "Home": 36}


def find_chromium() -> str | None:
    """The browser's program, or None where there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """One page in a browser of its own; what it logs, requests and throws is kept."""

    def __init__(self, program: str, profile: Path) -> None:
        to_browser, from_us = os.pipe()
        to_us, from_browser = os.pipe()
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", ON_THE_PIPE, str(to_browser), str(from_browser)),
                *(program, *FLAGS, f"--user-data-dir={profile}"),
            ],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._out, self._in = os.fdopen(from_us, "wb"), os.fdopen(to_us, "rb")
        self._answers: dict[int, dict[str, Any]] = {}
        self._news = threading.Condition()
        self._count = 0
        self._session: str | None = None
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.call(f"{domain}.enable")

    def _read(self) -> None:
        rest = b""
        while chunk := os.read(self._in.fileno(), 1 << 16):
            *messages, rest = (rest + chunk).split(b"\0")
            for message in messages:
                self._note(json.loads(message))

    def _note(self, message: dict[str, Any]) -> None:
        given = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(given["request"]["url"])
            case "Runtime.exceptionThrown":
                self.errors.append(json.dumps(given["exceptionDetails"])[:500])
            case "Runtime.consoleAPICalled" if given["type"] in ("error", "warning", "assert"):
                self.errors.append(json.dumps(given["args"])[:500])
            case "Log.entryAdded" if given["entry"]["level"] in ("error", "warning"):
                self.errors.append(f"{given['entry']['text']} {given['entry'].get('url', '')}")
        if "id" in message:
            with self._news:
                self._answers[message["id"]] = message
                self._news.notify_all()

    def call(self, method: str, **given: Any) -> Any:
        """The result of a command of the DevTools protocol."""
        self._count += 1
        number = self._count
        command: dict[str, Any] = {"id": number, "method": method, "params": given}
        if self._session is not None:
            command["sessionId"] = self._session
        self._out.write(json.dumps(command).encode() + b"\0")
        self._out.flush()
        with self._news:
            assert self._news.wait_for(lambda: number in self._answers, WAIT_SECONDS), f"{method} hangs"
            answer = self._answers.pop(number)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def resize(self, width: int, height: int, *, is_phone: bool = False) -> None:
        """Be a screen of this size."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if is_phone else 1,
            mobile=is_phone,
        )
        self.call("Emulation.setTouchEmulationEnabled", enabled=is_phone)

    def open(self, url: str) -> None:
        """Go to a page, and wait until it says that it is ready."""
        self.call("Page.navigate", url=url)
        self.wait_for(f"location.href.startsWith({url!r}) && document.querySelector('html[data-ready]')")

    def run(self, script: str) -> Any:
        """The value of an expression in the page, waited for if it is a promise."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, f"{script[:200]}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def wait_for(self, claim: str, seconds: float = WAIT_SECONDS) -> None:
        """Wait until an expression is true."""
        until = time.monotonic() + seconds
        while not self.run(f"Boolean({claim})"):
            assert time.monotonic() < until, f"never true: {claim}"
            time.sleep(0.05)

    def text(self, selector: str) -> str:
        """What a person reads there."""
        return str(self.run(f"document.querySelector({selector!r}).innerText"))

    def middle_of(self, selector: str) -> tuple[float, float]:
        """Where on the screen an element is, once it has been scrolled to."""
        x, y = self.run(
            f"(() => {{ const found = document.querySelector({selector!r}); "
            "found.scrollIntoView({block: 'center'}); const box = found.getBoundingClientRect(); "
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        return x, y

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """A mouse event: mousePressed, mouseReleased, mouseMoved or mouseWheel."""
        pressed = {} if kind == "mouseWheel" else {"button": "left", "buttons": 1, "clickCount": 1}
        self.call("Input.dispatchMouseEvent", **{"type": kind, "x": x, "y": y, **pressed, **more})

    def click(self, selector: str) -> None:
        """Click on an element, where it is."""
        x, y = self.middle_of(selector)
        self.mouse("mouseMoved", x, y, buttons=0, button="none")
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def write(self, selector: str, text: str) -> None:
        """Type a text into a field, in place of what is there."""
        self.click(selector)
        self.run(f"document.querySelector({selector!r}).select()")
        self.call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Press a key."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key])

    def choose_file(self, selector: str, path: Path) -> None:
        """Choose a file in a field for files."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", files=[str(path)], nodeId=node)

    def screenshot(self, path: Path) -> None:
        """Keep what is on the screen as a PNG."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self) -> None:
        """End the browser."""
        self._out.close()
        self._process.terminate()
        self._process.wait(WAIT_SECONDS)
        self._reader.join(WAIT_SECONDS)
        self._in.close()
