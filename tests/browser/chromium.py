"""A browser without a window: Chromium, driven through two pipes in its own DevTools protocol.

`python -m tests.browser.chromium` finds the browser or installs it, and prints where it is. Without one the
tests that look at pages are skipped; with CI in the environment they fail.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from tests import debian_packages

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
PACKAGES = ("chromium", "fonts-liberation")
PATIENCE = 60  # seconds without a word from the browser, after which it is given up
# The browser is told things on descriptor 3 and answers on 4. A shell knows no descriptor above 9.
START = """
import fcntl, os, sys
told, said = (fcntl.fcntl(int(end), fcntl.F_DUPFD_CLOEXEC, 10) for end in sys.argv[1:3])
os.dup2(told, 3)
os.dup2(said, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
ABSENT = (
    "no Chromium was found: install it (Debian: apt-get install chromium), or say where a browser of its kind"
    " is: SFUMATO_BROWSER=/path/to/chrome"
)


def find() -> str | None:
    """Return the path of a browser, None if there is none."""
    named = os.environ.get("SFUMATO_BROWSER")
    if named:
        return shutil.which(named)
    return next((path for path in map(shutil.which, NAMES) if path), None)


def find_or_install() -> str | None:
    """Return the path of a browser, which is installed where it may be."""
    return debian_packages.find_or_install(find, "SFUMATO_BROWSER", *PACKAGES)


class Browser:
    """A browser that is running. No name resolves in it: it reaches no other host."""

    def __init__(self, path: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="sfumato-browser-", ignore_cleanup_errors=True)
        told, self._tell = os.pipe()
        self._hear, said = os.pipe()
        options = [
            "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self._folder.name}",
            "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions",
            "--disable-background-networking", "--disable-sync", "--no-first-run",
            "--no-default-browser-check", "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND",
        ]  # fmt: skip
        start = [sys.executable, "-c", START, str(told), str(said), path, *options]
        self._process = subprocess.Popen(
            start, pass_fds=(told, said), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        os.close(told)
        os.close(said)
        self._numbers = itertools.count(1)
        self._heard = b""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._tell)  # the browser ends when nobody can tell it anything
        os.close(self._hear)
        try:
            self._process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()

    def call(self, method: str, *, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Run a command of the protocol and return its result; what happens meanwhile is kept as events."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        left = json.dumps(message).encode() + b"\0"
        while left:
            left = left[os.write(self._tell, left) :]
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def wait_for(self, event: str, *, session: str) -> None:
        """Wait until something has happened in a tab."""
        while not any(one.get("method") == event and one.get("sessionId") == session for one in self.events):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._heard:
            if not select.select([self._hear], [], [], PATIENCE)[0]:
                raise TimeoutError("the browser says nothing")
            if not (more := os.read(self._hear, 1 << 20)):
                raise RuntimeError("the browser has ended")
            self._heard += more
        message, self._heard = self._heard.split(b"\0", 1)
        return dict(json.loads(message))

    def open(self, path: Path, *, width: int, dark: bool = False) -> Tab:
        """Open a file in a new tab: so many pixels wide, in the light or in the dark."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session)
        for domain in ("Page", "Network", "Runtime"):
            tab.call(f"{domain}.enable")
        tab.call("Page.setBypassCSP", enabled=True)  # see what the page would load, were it not forbidden
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        tab.call("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        tab.call("Page.navigate", url=path.as_uri())
        self.wait_for("Page.loadEventFired", session=session)
        return tab


class Tab:
    """One page that is open."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Run a command of the protocol in this tab."""
        return self._browser.call(method, session=self._session, **parameters)

    def run(self, script: str) -> Any:
        """Run JavaScript in the page and return its value; a promise is awaited."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise RuntimeError(str(done["exceptionDetails"]))
        return done["result"].get("value")

    def requests(self) -> list[str]:
        """Return the addresses of everything that was asked for, the page first."""
        events = self._browser.events
        sent = [one for one in events if one.get("method") == "Network.requestWillBeSent"]
        return [one["params"]["request"]["url"] for one in sent if one.get("sessionId") == self._session]

    def screenshot(self, path: Path) -> None:
        """Write a picture of the whole page."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        """Close the tab."""
        self.call("Page.close")


if __name__ == "__main__":
    debian_packages.tell(find_or_install(), ABSENT, "look at pages")
