"""Control characters in settings are not sent: checked with a listener that records every byte."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from voyage import flags_for, told

from interface import client, token_of

SMUGGLED = "a\r\nContent-Length: 0\r\n\r\nDELETE /x HTTP/1.1\r\nHost: inner\r\nContent-Length: 0\r\n\r\n"


class Listener:
    """Records received bytes, and sends nothing."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.received = b""
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection = self.socket.accept()[0]
            except OSError:  # closed
                return
            with connection:
                self.received += connection.recv(65_536)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.socket.getsockname()[1]}/"


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.socket.close()


@pytest.mark.parametrize("flag", ["--user-agent", "--contact"])
def test_a_flag_smuggles_no_request(tmp_path: Path, listener: Listener, flag: str) -> None:
    refused = told("crawl", listener.url, "-o", "C", flag, SMUGGLED, *flags_for(()), cwd=tmp_path)
    assert refused.returncode == 2 and "control character" in refused.stderr
    assert listener.received == b""
    told("crawl", listener.url, "-o", "C", flag, "plain", *flags_for((), retries=0), cwd=tmp_path)
    assert b"plain" in listener.received, "so it listens"


@pytest.mark.parametrize("name", ["user_agent", "contact"])
@pytest.mark.parametrize("path", ["/new", "/presets/save"])
def test_a_form_smuggles_no_request(tmp_path: Path, name: str, path: str) -> None:
    asking = client(tmp_path)
    form = {"csrf_token": token_of(asking), "preset": "map", "url": "http://a.test/", "preset_name": "a"}
    refused = asking.post(path, data=form | {f"set_{name}": SMUGGLED})
    assert refused.status_code == 400 and "control character" in refused.text
    assert asking.get("/jobs?format=json").json()["jobs"] == [] and not list(tmp_path.glob("*.toml"))


@pytest.mark.parametrize(
    "line",
    [
        'headers = { X-A = "a\\r\\nX-Evil: 1" }', 'headers = { "X-A\\r\\nX-Evil" = "1" }', 'bearer = "a\\nX-Evil: 1"',
        'cookies = { a = "b\\r\\nX-Evil: 1" }', 'cookies = { "a\\r\\nX-Evil: 1" = "b" }',
    ],
)  # fmt: skip
def test_a_login_smuggles_no_header(tmp_path: Path, listener: Listener, line: str) -> None:
    (tmp_path / "login.toml").write_text(f'hosts = ["{listener.url}"]\n{line}\n')
    refused = told("crawl", listener.url, "-o", "C", "--login", "login.toml", *flags_for(()), cwd=tmp_path)
    assert refused.returncode == 2, refused.stdout
    assert listener.received == b""
