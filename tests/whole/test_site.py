"""The documentation is built as a site if its builder is installed: no dead link, no other host, a search."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from voyage import PATIENCE_S, told

from browser import PROGRAM, Browser

pytest.importorskip("zensical", reason="make site installs it")
ROOT = Path(__file__).parents[2]
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]+)\"|<link\b(?=[^>]*stylesheet)[^>]*\bhref=\"([^\"]+)\""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "site"
    line = [sys.executable, str(ROOT / ".ci" / "site"), str(folder)]
    ran = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder


def test_every_page_is_in_it_and_no_link_is_dead(site: Path, tmp_path: Path) -> None:
    sources = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    pages = {path.relative_to(site) for path in site.rglob("*.html")}
    assert sources <= pages and Path("ARCHITECTURE.html") in pages
    ran = told("check", str(site), "--no-external", "--fail-on", "broken", "-f", "jsonl", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "broken-link" not in ran.stdout and "broken-fragment" not in ran.stdout


def test_the_navigation_lists_every_page(site: Path) -> None:
    named = set(re.findall(r'"([^"]+\.md)"', (ROOT / "zensical.toml").read_text("utf-8")))
    written = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert {name for name in written - named if not name.startswith("decisions/")} == set()


def test_no_page_requests_other_hosts(site: Path) -> None:
    for page in site.rglob("*.html"):
        for match in LOADED.finditer(page.read_text("utf-8")):
            assert not re.match(r"(?:\w+:)?//", match[1] or match[2]), (page, match[0])
    config = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))
    assert config["project"]["theme"]["font"] is False


@pytest.mark.browser
@pytest.mark.skipif(not PROGRAM, reason="no Chromium")
def test_search_works_in_local_files(site: Path) -> None:
    with Browser.started() as browser:
        browser.open((site / "index.html").as_uri())
        browser.value("document.querySelector('.md-search__button').click()")
        results = "[...document.querySelectorAll('div')].map(one => one.shadowRoot?.textContent ?? '').join('')"
        browser.until("document.activeElement.shadowRoot?.activeElement?.tagName === 'INPUT'")
        browser.ask("Input.insertText", text="reciprocity")
        browser.until(f"{results}.includes('What is counted')")
        assert browser.alarms == []
