"""The interface as tests meet it, asked without a socket."""

from __future__ import annotations

import re
from pathlib import Path

from starlette.testclient import TestClient

from periplus.ui.app import application, house_at
from periplus.ui.places import places

COMMANDS = frozenset({"crawl", "check", "refresh", "survey"})


def client(folder: Path, *, token: str = "", names: tuple[str, ...] = (), host: str = "127.0.0.1:8321") -> TestClient:
    """Someone who asks, with a cookie jar of his own. Redirects are not followed."""
    house = house_at(places([folder]), token, names, COMMANDS, works=False)
    return TestClient(application(house), base_url=f"http://{host}", follow_redirects=False)


def sealed(asking: TestClient, page: str = "/") -> str:
    """The seal of the forms of a page."""
    found = re.search(r'name="seal" value="([^"]+)"', asking.get(page).text)
    assert found, f"no form on {page}"
    return found[1]
