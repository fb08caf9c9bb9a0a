"""The interface as tests meet it, asked without a socket."""

from __future__ import annotations

import re
from pathlib import Path

from starlette.testclient import TestClient

from periplus.api.tables import Browser
from periplus.ui.app import application
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
    """Someone who asks, with a cookie jar of his own. Redirects are not followed."""
    state = AppState(places([folder]), Locks(token, names), COMMANDS, browser=browser or Browser())
    return TestClient(application(state), base_url=f"http://{host}", follow_redirects=False)


def token_of(asking: TestClient, page: str = "/") -> str:
    """The secret of the forms of a page."""
    found = re.search(r'name="csrf_token" value="([^"]+)"', asking.get(page).text)
    assert found, f"no form on {page}"
    return found[1]
