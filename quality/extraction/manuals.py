"""Labelled pages from manuals of Debian packages: the content is the text of each manual's main container.

They cover what news lack: API listings, options, definition lists, reference cards. `MANUALS` names a folder with
one subfolder per unpacked package (`dpkg -x`). Markup rules exclude what a manual repeats on every page, so the labels
are only as good as these rules.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import NamedTuple

import lxml.html
from gold import GoldPage

PAGES = 40  # of each manual
LEAST_WORDS = 15  # of a page's content: shorter pages are only directions to others
LARGEST_BYTES = 400_000


class ManualRule(NamedTuple):
    """The location of a manual's pages, and the rule for their content."""

    package: str  # folder below MANUALS
    pages: str  # pattern below it
    content: str  # CSS classes or ids as XPath steps, of the body's descendants; the outermost are taken
    without: str = ""  # XPath of navigation within them


# inline elements
_INLINE = frozenset((
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i", "ins",
    "kbd", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "tt", "u", "var",
    "wbr",
))  # fmt: skip
_DOCBOOK = "//body/*[not(self::hr)]"
_DOCBOOK_NAVIGATION = (
    "//*[@class='navheader' or @class='navfooter' or contains(@class, 'reportbug')"
    " or starts-with(@class, 'docnav') or @class='banner' or @class='title' and not(node())]"
)
_DOXYGEN = "//*[@id='doc-content']"
RULES = {
    "apache": ManualRule(
        "apache2-doc",
        "usr/share/doc/apache2-doc/manual/en/**/*.html",
        "//*[@id='page-content']",
        "//*[@class='toplang' or @class='bottomlang' or @class='top' or @id='quickview']",
    ),
    "debian-handbook": ManualRule(
        "debian-handbook",
        "usr/share/doc/debian-handbook/html/en-US/*.html",
        "//body/div[not(@class='banner')]",
        _DOCBOOK_NAVIGATION,
    ),
    "erlang": ManualRule("erlang-doc", "**/doc/html/*.html", "//*[@id='content']"),
    "ghc-guide": ManualRule("ghc-doc", "**/users_guide/**/*.html", "//*[@itemprop='articleBody']"),
    "haskell-base": ManualRule(
        "ghc-doc", "**/libraries/base-*/*-*.html", "//*[@id='content']", "//*[@id='table-of-contents']"
    ),
    "git": ManualRule("git-doc", "usr/share/doc/git-doc/**/*.html", "//*[@id='header' or @id='content']"),
    "boost": ManualRule(
        "libboost1.74-doc",
        "**/doc/html/**/*.html",
        "//body/div[not(@class='spirit-nav')]",
        "//*[@class='copyright-footer']",
    ),
    "eigen": ManualRule("libeigen3-doc", "**/html/*.html", _DOXYGEN, "//*[@class='toc interactive']"),
    "glib": ManualRule(
        "libglib2.0-doc",
        "usr/share/gtk-doc/html/**/*.html",
        "//body/div[not(@class='footer')]",
        "//*[@class='navigation' or @id='top' or @class='navheader']",
    ),
    "gtk": ManualRule(
        "libgtk-3-doc",
        "usr/share/gtk-doc/html/gtk3/*.html",
        "//body/div[not(@class='footer')]",
        "//*[@class='navigation' or @id='top' or @class='navheader']",
    ),
    "libstdc++-guide": ManualRule("libstdc++-12-doc", "**/libstdc++/manual/*.html", _DOCBOOK, _DOCBOOK_NAVIGATION),
    "libstdc++-classes": ManualRule("libstdc++-12-doc", "**/libstdc++/user/a*.html", _DOXYGEN),
    "java": ManualRule(
        "openjdk-17-doc", "**/api/java.base/java/**/*.html", "//main", "//*[contains(@class, 'sub-title')]"
    ),
    "django": ManualRule("python-django-doc", "**/html/**/*.html", "//*[@class='yui-b']//*[@id]", ""),
    "rust-std": ManualRule("rust-doc", "**/html/std/**/*.html", "//*[@id='main-content']"),
    "rust-book": ManualRule("rust-doc", "**/html/book/ch*.html", "//main"),
    "vim": ManualRule("vim-doc", "usr/share/doc/vim/html/*.html", "//pre"),
    "gimp-help-en": ManualRule("gimp-help-en", "**/help/en/*.html", _DOCBOOK, _DOCBOOK_NAVIGATION),
}


def folder() -> Path | None:
    """The folder of unpacked packages, if the environment names one."""
    named = os.environ.get("MANUALS")
    return Path(named) if named else None


def read() -> list[GoldPage]:
    """A fixed sample of pages of each available manual."""
    place = folder()
    return [page for name, rule in RULES.items() for page in _of_manual(name, rule, place)] if place else []


def _of_manual(name: str, rule: ManualRule, place: Path) -> list[GoldPage]:
    paths = sorted(path for path in place.glob(f"{rule.package}/{rule.pages}") if path.is_file())
    random.Random(name).shuffle(paths)
    pages: list[GoldPage] = []
    for path in paths:
        if len(pages) == PAGES:
            break
        if path.is_symlink() or path.stat().st_size > LARGEST_BYTES:
            continue
        html = path.read_bytes().decode("utf-8", "replace")
        content = _content(html, rule)
        if len(content.split()) >= LEAST_WORDS:
            pages.append(GoldPage(name, html, content))
    return pages


def _content(html: str, rule: ManualRule) -> str:
    """The words of a page's content, one text node per line."""
    tree = lxml.html.document_fromstring(html.encode(), parser=lxml.html.HTMLParser(encoding="utf-8"))
    for node in [*tree.xpath("//script|//style|//noscript"), *(tree.xpath(rule.without) if rule.without else ())]:
        node.drop_tree()
    nodes = tree.xpath(rule.content)
    chosen = set(nodes)
    outermost = [node for node in nodes if not any(above in chosen for above in node.iterancestors())]
    for node in outermost:
        for part in node.iter(lxml.html.etree.Element):
            if part.tag not in _INLINE:
                part.text, part.tail = f"\n{part.text or ''}", f"\n{part.tail or ''}"
    return "\n".join(node.text_content() for node in outermost)
