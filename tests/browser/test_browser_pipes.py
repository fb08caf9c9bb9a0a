"""The two pipes to a browser work with any numbers of file descriptors."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import pytest

from periplus_browser.chromium import Chromium

ECHO = "#!/bin/sh\nexec cat <&3 >&4\n"  # instead of the browser: sends back each message


@pytest.fixture
def echo(tmp_path: Path) -> str:
    program = tmp_path / "echo"
    program.write_text(ECHO)
    program.chmod(0o700)
    return str(program)


def answers(program: str) -> bool:
    received: list[object] = []
    with contextlib.closing(Chromium(program)) as browser, contextlib.suppress(BrokenPipeError):
        browser.send("Browser.getVersion", then=received.append)
        deadline = time.monotonic() + 120
        while not received and time.monotonic() < deadline:
            browser.receive()
            time.sleep(0.002)
    return bool(received)


def test_a_browser_answers_with_any_descriptor_numbers(
    echo: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With about 60 open connections, a crawl's browser never answered: its pipe had a number that a child used."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with contextlib.ExitStack() as stack:
        deaf = []
        for _ in range(70):
            number = os.open(os.devnull, os.O_RDONLY)
            stack.callback(os.close, number)
            if number <= 70 and not answers(echo):
                deaf.append(number)
        assert deaf == []
