"""Shared by all tests: a collection in PostgreSQL, and the skipping of browser tests where there is no Chromium."""

import os
import tempfile

import pytest

import browser

# Separates the tests from other crawls on this machine, which would wait for one another at shared addresses.
os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="periplus-run-")


def pytest_collection_modifyitems(items):
    """Marks tests that use a browser, and skips them where there is none.

    Processes that share the work begin with the longest tests, so that neither waits for the other in the end.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: item.path.parent.name not in ("whole", "browser"))
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
            if not browser.PROGRAM:
                item.add_marker(pytest.mark.skip(reason="no Chromium here: make test-browser"))


@pytest.fixture
def address(tmp_path, monkeypatch):
    """The address of an empty PostgreSQL collection for this test. Its local copy is in the test's folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    from periplus_postgres.address import address_of
    from postgres_server import empty_collection

    with empty_collection() as text:
        yield address_of(text)


def pytest_terminal_summary(terminalreporter):
    """Reports how many tests were skipped because there is no PostgreSQL."""
    skipped = [
        report for report in terminalreporter.stats.get("skipped", ()) if "NO POSTGRESQL" in str(report.longrepr)
    ]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} tests were SKIPPED: {skipped[0].longrepr[2]}", red=True, bold=True)
