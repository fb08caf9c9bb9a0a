"""Relative links of documents are valid in the repository; a small bad sample is found."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(#[^)\s]*)?\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives the headings of a page of Markdown."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """Relative links of a page whose file or anchor does not exist."""
    broken = []
    for name, anchor in LINK.findall(CODE.sub("", page.read_text("utf-8"))):
        target = (page.parent / name) if name else page
        if not target.exists() or (anchor and anchor[1:] not in anchors(target.read_text("utf-8"))):
            broken.append(f"{page.name}: {name}{anchor}")
    return broken


def test_every_relative_link_of_the_documents_is_valid():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert len(pages) > 50
    assert [link for page in pages for link in broken_links(page)] == []


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "a.md"
    page.write_text(
        "# One two\n[a](#one-two) [b](#three) [c](a.md) [d](b.md) [e](https://example.org/x)\n`[f](c.md)`\n"
    )
    assert broken_links(page) == ["a.md: #three", "a.md: b.md"]
