"""Does a browser hear and answer through its two pipes, whatever descriptors are open beside them?"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import pytest

from periplus.acquire.browser import Chromium

ECHO = "#!/bin/sh\nexec cat <&3 >&4\n"  # in the browser's place: what it is sent it sends back


@pytest.fixture
def echo(tmp_path: Path) -> str:
    program = tmp_path / "echo"
    program.write_text(ECHO)
    program.chmod(0o700)
    return str(program)


def answers(program: str) -> bool:
    heard: list[object] = []
    with contextlib.closing(Chromium(program)) as browser, contextlib.suppress(BrokenPipeError):
        browser.send("Browser.getVersion", then=heard.append)
        deadline = time.monotonic() + 120
        while not heard and time.monotonic() < deadline:
            browser.receive()
            time.sleep(0.002)
    return bool(heard)


def test_answers_whatever_descriptors_its_pipes_get(echo: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With some 60 connections open a crawl's browser never answered: its pipe had the number that a child used."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with contextlib.ExitStack() as stack:
        deaf = []
        for _ in range(70):
            number = os.open(os.devnull, os.O_RDONLY)
            stack.callback(os.close, number)
            if number <= 70 and not answers(echo):
                deaf.append(number)
        assert deaf == []
