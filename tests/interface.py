"""A client of the web interface that needs no socket."""

from __future__ import annotations

import re
from pathlib import Path

from starlette.testclient import TestClient

from periplus.api.tables import Browser
from periplus.ui.routes import application
from periplus.ui.safety import Locks
from periplus.ui.state import AppState, places

COMMANDS = frozenset({"crawl", "check", "refresh", "survey"})


def client(
    folder: Path,
    *,
    token: str = "",
    names: tuple[str, ...] = (),
    host: str = "127.0.0.1:8321",
    browser: Browser | None = None,
) -> TestClient:
    """A client with its own cookies. It does not follow redirects."""
    state = AppState(places([folder]), Locks(token, names), COMMANDS, browser=browser or Browser())
    return TestClient(application(state), base_url=f"http://{host}", follow_redirects=False)


def token_of(asking: TestClient, page: str = "/") -> str:
    """The CSRF token of a page's forms."""
    match = re.search(r'name="csrf_token" value="([^"]+)"', asking.get(page).text)
    assert match, f"no form on {page}"
    return match[1]
