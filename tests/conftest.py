"""What all tests share: a collection in a database, where one is asked for;
who asks for a browser is left out where there is none.
"""

import os
import tempfile

import pytest

import browser

# which crawls of this machine share an address is no business of the tests'
os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="periplus-run-")


def pytest_collection_modifyitems(items):
    """Who asks for a browser needs one."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
            if not browser.PROGRAM:
                item.add_marker(pytest.mark.skip(reason="no Chromium here: make test-browser"))


@pytest.fixture
def address(tmp_path, monkeypatch):
    """The address of an empty collection on PostgreSQL, this test's own; its copy lies where the test's files are."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    from periplus.store.postgres.address import address_of
    from postgres_server import empty_collection

    with empty_collection() as text:
        yield address_of(text)


def pytest_terminal_summary(terminalreporter):
    """What needs PostgreSQL is never left out in silence."""
    left_out = [
        report for report in terminalreporter.stats.get("skipped", ()) if "NO POSTGRESQL" in str(report.longrepr)
    ]
    if left_out:
        terminalreporter.write_line(
            f"{len(left_out)} tests were LEFT OUT: {left_out[0].longrepr[2]}", red=True, bold=True
        )
