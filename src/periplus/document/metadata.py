"""Reads what a page says about itself."""

from __future__ import annotations

from dataclasses import dataclass

from periplus.document import headers, html
from periplus.document.robots import page_directives
from periplus.model.visit import Headers

META_MOST = 500  # meta elements that are heeded; real pages have 0 to 60
TITLE_CHARS = 2_000
DESCRIPTION_CHARS = 5_000


@dataclass(frozen=True, slots=True)
class Metadata:
    """A page's word on itself. Empty and 0.0: it does not say."""

    title: str = ""
    description: str = ""
    h1: str = ""
    h1s: int = 0
    images_without_alt: int = 0
    language: str = ""  # BCP 47 as declared, lower case
    noindex: bool = False
    nofollow: bool = False
    last_modified: float = 0.0  # seconds since the epoch
    expires: float = 0.0
    refreshes: tuple[str, ...] = ()  # targets as written


def metadata(tree: html.Tree, fields: Headers) -> Metadata:
    """What an HTML page says, its meta elements before the HTTP header where both speak (SPEC A4)."""
    by_name: dict[str, str] = {}
    by_equivalent: dict[str, str] = {}
    directives: list[tuple[str, str]] = []
    refreshes: list[str] = []
    for meta in html.elements(tree, "meta")[:META_MOST]:
        content = html.attribute(meta, "content")
        if name := html.attribute(meta, "name").strip().lower():
            by_name.setdefault(name, content)
            directives.append((name, content))
        elif equivalent := html.attribute(meta, "http-equiv").strip().lower():
            by_equivalent.setdefault(equivalent, content)
            if equivalent == "refresh" and (target := headers.refresh_target(content)):
                refreshes.append(target)
    robots = page_directives(fields.all("x-robots-tag"), directives)
    return Metadata(
        title=html.title_of(tree)[:TITLE_CHARS],
        description=" ".join(by_name.get("description", "").split())[:DESCRIPTION_CHARS],
        h1=_first_h1(tree)[:TITLE_CHARS],
        h1s=len(html.elements(tree, "h1")),
        images_without_alt=html.attributes(html.elements(tree, "img"), "alt").count(None),
        language=_language(tree, by_equivalent.get("content-language", ""), fields),
        noindex=robots.noindex,
        nofollow=robots.nofollow,
        last_modified=headers.date_s(by_equivalent.get("last-modified") or fields.get("last-modified")),
        expires=headers.date_s(by_equivalent.get("expires") or fields.get("expires")),
        refreshes=tuple(refreshes),
    )


def metadata_of_headers(fields: Headers) -> Metadata:
    """What the HTTP header alone says, of a document that says nothing of itself."""
    robots = page_directives(fields.all("x-robots-tag"), ())
    return Metadata(
        language=_one_language(fields.get("content-language")),
        noindex=robots.noindex,
        nofollow=robots.nofollow,
        last_modified=headers.date_s(fields.get("last-modified")),
        expires=headers.date_s(fields.get("expires")),
    )


def _first_h1(tree: html.Tree) -> str:
    """The first heading with words; a logo's alt text counts as words."""
    for heading in html.elements(tree, "h1")[:8]:
        if text := html.words_of(heading):
            return text
    return ""


def _language(tree: html.Tree, equivalent: str, fields: Headers) -> str:
    """The root's lang, else the meta element's, else the header's."""
    for root in html.elements(tree, "html")[:1]:
        if declared := html.attribute(root, "lang") or html.attribute(root, "xml:lang"):
            return _one_language(declared)
    return _one_language(equivalent) or _one_language(fields.get("content-language"))


def _one_language(declared: str) -> str:
    """A list of languages says for whom a page is, not what it is written in: only a single one counts."""
    return "" if "," in declared else declared.strip().replace("_", "-").lower()[:35]  # RFC 5646, 4.4.1: 35 suffice
