"""Headless Chromium for tests of pages, controlled with the DevTools protocol over two pipes.

    with Browser.started() as browser:
        browser.open(url); browser.value("document.title"); browser.alarms; browser.picture(path, 390, 900)

`alarms` lists what no page of ours may do: a call of `alarm(...)`, a dialog, an uncaught error.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PROGRAM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
# In CI a missing Chromium fails the tests instead of skipping them.
PROGRAM = PROGRAM or ("chromium" if os.environ.get("CI") else "")
PATIENCE_S = 300.0


class Browser:
    """A page in a browser."""

    def __init__(self, process: subprocess.Popen[bytes], write: int, read: int) -> None:
        self._process, self._write, self._read = process, write, read
        self._rest, self._number, self._session = b"", 0, ""
        self._answers = select.poll()
        self._answers.register(read, select.POLLIN)
        self.alarms: list[str] = []
        self._loaded = False

    @classmethod
    @contextlib.contextmanager
    def started(cls) -> Iterator[Browser]:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            its_read, write = os.pipe()
            read, its_write = os.pipe()
            flags = (
                "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
                "--remote-debugging-pipe --hide-scrollbars"
            )
            # The protocol uses file descriptors 3 and 4. The shell moves the pipes there through 8 and 9, which are
            # unused.
            line = f'exec 8<&{its_read} 9>&{its_write}; exec 3<&8 4>&9; exec "$0" "$@"'
            command = ["bash", "-c", line, PROGRAM, *flags.split(), f"--user-data-dir={folder}", "about:blank"]
            process = subprocess.Popen(
                command,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(its_read, its_write),
                start_new_session=True,
            )
            os.close(its_read)
            os.close(its_write)
            browser = cls(process, write, read)
            try:
                browser.begin()
                yield browser
            finally:
                os.close(write)  # the browser exits when its input pipe is closed
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                os.close(read)

    def begin(self) -> None:
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime"):
            self.ask(f"{domain}.enable")
        self.ask("Runtime.addBinding", name="alarm")

    def ask(self, method: str, **parameters: object) -> dict:
        """The result of a command. Handles the events that arrive before it."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self._next(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self, deadline: float) -> dict:
        while b"\0" not in self._rest:
            # not select(), which refuses descriptors from 1,024 on
            ready = self._answers.poll(max(0.0, deadline - time.monotonic()) * 1000)
            assert ready, "the browser does not answer"
            part = os.read(self._read, 1 << 20)
            assert part, "the browser has ended"
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(text)
        self._note(message)
        return message

    def _note(self, message: dict) -> None:
        method, details = message.get("method", ""), message.get("params", {})
        if method == "Runtime.bindingCalled":
            self.alarms.append(f"a script ran: {details['payload']}")
        elif method == "Page.javascriptDialogOpening":
            self.alarms.append(f"a dialog: {details['message']}")
            message = {
                "id": 0,
                "method": "Page.handleJavaScriptDialog",
                "params": {"accept": False},
                "sessionId": self._session,
            }
            os.write(self._write, json.dumps(message).encode() + b"\0")
        elif method == "Runtime.exceptionThrown":
            self.alarms.append(f"an error: {details['exceptionDetails']}")
        elif method == "Page.loadEventFired":
            self._loaded = True

    def open(self, url: str) -> None:
        """Opens a URL and waits until it is loaded."""
        self._loaded = False
        answer = self.ask("Page.navigate", url=url)
        assert "errorText" not in answer or answer["errorText"] == "net::ERR_ABORTED", answer  # a download aborts it
        self.loaded(unless="errorText" in answer)

    def loaded(self, *, unless: bool = False) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self._loaded and not unless:
            self._next(deadline)

    def value(self, expression: str) -> object:
        """The value of a JavaScript expression, evaluated in the page."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, expression: str) -> None:
        """Waits until a JavaScript expression is true, also across page loads."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with contextlib.suppress(AssertionError):
                if self.value(expression):
                    return
            assert time.monotonic() < deadline, (
                f"still false: {expression}; text of the page: {self.value('document.body.innerText')}"
            )
            select.select([], [], [], 0.02)

    def send(self, expression: str) -> None:
        """Evaluates an expression that navigates, and waits for the new page."""
        self._loaded = False
        self.value(expression)
        self.loaded()

    def without_policy(self, on: bool) -> None:
        """Switches Content-Security-Policy off, so that only escaping keeps injected scripts from running."""
        self.ask("Page.setBypassCSP", enabled=on)

    def look(self, width: int, height: int, scheme: str = "light") -> None:
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))
