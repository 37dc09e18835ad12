"""A headless browser controlled through a pipe: no driver, no socket, no further package."""

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-pipe",
)  # fmt: skip
# The browser expects its two ends of the pipe as file descriptors 3 and 4.
LAUNCH = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)


def installed() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One tab. All network requests, warnings and errors of the page are recorded."""

    def __init__(self, reading: int, writing: int):
        self.read, self.write = os.fdopen(reading, "rb"), os.fdopen(writing, "wb")
        self.number, self.session = 0, None
        self.requests: list[str] = []
        self.complaints: list[str] = []

    def open(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{part}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a request and wait for the answer, recording the events before it."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        self.write.write(json.dumps(message).encode() + b"\0")
        self.write.flush()
        while (answer := self._receive()).get("id") != self.number:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def _receive(self) -> dict[str, Any]:
        letters = bytearray()
        while (letter := self.read.read(1)) not in (b"\0", b""):
            letters += letter
        if not letters:
            raise RuntimeError("the browser has exited")
        received = json.loads(letters)
        method, parameters = received.get("method"), received.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        if method == "Runtime.exceptionThrown":
            self.complaints.append(parameters["exceptionDetails"]["text"])
        if method == "Log.entryAdded" and parameters["entry"]["level"] in ("warning", "error"):
            self.complaints.append(parameters["entry"]["text"])
        if method == "Runtime.consoleAPICalled" and parameters["type"] in ("warning", "error", "assert"):
            self.complaints.append(str(parameters["args"]))
        return received

    def show(
        self, page: Path | str, width: int = 1280, height: int = 900, dark: bool = False, calm: bool = True
    ) -> None:
        """Open a page on a screen of this size, for a reader with these preferences."""
        preferences = {
            "prefers-color-scheme": "dark" if dark else "light",
            "prefers-reduced-motion": "reduce" if calm else "",
        }
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **screen)
        self.call(
            "Emulation.setEmulatedMedia", features=[{"name": name, "value": is_} for name, is_ in preferences.items()]
        )
        self.requests, self.complaints = [], []
        self.call("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        self.ask("new Promise(done => document.readyState == 'complete' ? done() : addEventListener('load', done))")

    def ask(self, expression: str) -> Any:
        """The value of an expression on the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def until(self, expression: str, tries: int = 100) -> Any:
        """The value of an expression on the page once it is true; its last value if that takes too long."""
        look = f"const look = (left) => {{ const now = {expression}; now || !left ? done(now) : "
        look += f"setTimeout(look, 50, left - 1); }}; look({tries});"
        return self.ask(f"new Promise(done => {{ {look} }})")

    def press(self, key: str, code: int) -> None:
        """A key, as from a keyboard; `code` is its Windows virtual key code."""
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def type(self, key: str, held: float = 0.0) -> None:
        """A key of the keyboard by the name that pages know it by, pressed and let go."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        codes = {"ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39, "Enter": 13, "Backspace": 8}
        code = codes.get(key, ord(key[0].upper()))
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        if held:
            self.wait_for(f"!await new Promise(done => setTimeout(() => done(false), {1000 * held}))")
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def wait_for(self, condition: str, seconds: float = 60.0) -> None:
        """Until an expression is true on the page."""
        waiting = f"""(async () => {{
            const until = Date.now() + {1000 * seconds};
            while (!({condition})) {{
                if (Date.now() > until) return false;
                await new Promise(done => setTimeout(done, 20));
            }}
            return true;
        }})()"""
        if not self.ask(waiting):
            raise TimeoutError(f"after {seconds} s still not: {condition}; the page says {self.complaints}")

    def picture(self, path: Path, whole: bool = True) -> None:
        """A screenshot, of the whole page if wanted."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browser(folder: Path) -> Generator[Browser, None, None]:
    """A browser with its data in this folder; it exits with the block."""
    path = installed()
    assert path is not None
    (its_in, our_out), (our_in, its_out) = os.pipe(), os.pipe()
    with (folder / "browser.log").open("wb") as log:
        command = [sys.executable, "-c", LAUNCH, str(its_in), str(its_out), path, *FLAGS, f"--user-data-dir={folder}"]
        process = subprocess.Popen(command, pass_fds=(its_in, its_out), stdout=log, stderr=log)
    os.close(its_in)
    os.close(its_out)
    tab = Browser(our_in, our_out)
    try:
        tab.open()
        yield tab
    finally:
        tab.write.close()  # it exits when the pipe closes
        tab.read.close()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
