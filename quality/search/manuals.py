"""Pages for the known-item test: manuals of installed or unpacked Debian packages, and a small generated set.

Nothing is fetched: the project's own document code parses the files as if a site had sent them.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from periplus.document.understand import understand
from periplus.model.page import Document, LinkKind
from periplus.model.search import PageToIndex
from periplus.model.visit import Fetched, Headers
from periplus.model.web import SiteKey, Url
from periplus.retrieval.index import IndexWriter
from periplus.urls.canonical import canonical, url_id

MANUALS = {  # name: (language, folder below the root)
    "python-en": ("en", "usr/share/doc/python3.11/html"),
    "postgresql-en": ("en", "usr/share/doc/postgresql-doc-15/html"),
    "handbook-en": ("en", "usr/share/doc/debian-handbook/html/en-US"),
    "handbook-cs": ("cs", "usr/share/doc/debian-handbook/html/cs-CZ"),
    "handbook-ru": ("ru", "usr/share/doc/debian-handbook/html/ru-RU"),
    "handbook-de": ("de", "usr/share/doc/debian-handbook/html/de-DE"),
    "handbook-ja": ("ja", "usr/share/doc/debian-handbook/html/ja-JP"),
    "guide-cs": ("cs", "usr/share/doc/installation-guide-amd64/cs"),
    "gimp-hu": ("hu", "usr/share/gimp/2.0/help/hu"),
    "guide-ru": ("ru", "usr/share/doc/installation-guide-amd64/ru"),
    "handbook-fr": ("fr", "usr/share/doc/debian-handbook/html/fr-FR"),
    "django-en": ("en", "usr/share/doc/python-django-doc/html"),
    "git-en": ("en", "usr/share/doc/git-doc"),
    "apache-fr": ("fr", "usr/share/doc/apache2-doc/manual/fr"),
}
ASKED_ONLY = ("handbook-fr", "django-en", "git-en", "apache-fr")  # manuals with questions, without known items
COMMON_ANCHOR = 3  # a link text to more pages than this identifies none of them: "next", "here"
WHEN = 1_700_000_000.0


@dataclass(frozen=True, slots=True)
class Manual:
    """The pages of a manual, with the texts of the links to each."""

    name: str
    language: str
    pages: tuple[PageToIndex, ...]


def manuals(roots: list[Path], names: Collection[str]) -> Iterator[Manual]:
    """The available manuals of these names, from the first root that has them."""
    for name, (language, folder) in MANUALS.items():
        for root in roots if name in names else ():
            if (root / folder).is_dir():
                yield manual(name, language, root / folder)
                break


def manual(name: str, language: str, folder: Path) -> Manual:
    documents: dict[Url, Document] = {}
    for path in sorted(folder.rglob("*.html")):
        url = canonical(f"https://{name}.test/{path.relative_to(folder)}")
        documents[url] = understand(url, Fetched(200, Headers((("content-type", "text/html"),)), path.read_bytes()))
    anchors = _anchors(documents)
    return Manual(
        name, language, tuple(_page(name, language, url, document, anchors[url]) for url, document in documents.items())
    )


def _anchors(documents: dict[Url, Document]) -> dict[Url, list[str]]:
    """Texts of the links to each page, most frequent first."""
    counts: defaultdict[Url, Counter[str]] = defaultdict(Counter)
    for source, document in documents.items():
        for link in document.links:
            if link.kind is LinkKind.ANCHOR and link.anchor and link.target != source:
                counts[link.target][link.anchor] += 1
    targets = Counter(text for words in counts.values() for text in words)
    found = {
        url: [text for text, _ in words.most_common() if targets[text] <= COMMON_ANCHOR]
        for url, words in counts.items()
    }
    return defaultdict(list, found)


def _page(name: str, language: str, url: Url, document: Document, anchors: list[str]) -> PageToIndex:
    site = SiteKey(f"{name}.test")
    told = document.language_found or document.language or language
    return PageToIndex(
        url_id(url),
        url,
        site,
        "text/html",
        told,
        document.title,
        document.blocks,
        (),
        anchors,
        WHEN,
        document.digests.folded,
    )


def index_of(folder: Path, pages: Sequence[PageToIndex]) -> float:
    """Builds the index; returns pages per second."""
    begun = time.perf_counter()
    writer = IndexWriter(folder, "known items")
    writer.put(pages)
    writer.commit((0, 0))
    writer.close()
    return len(pages) / (time.perf_counter() - begun)
