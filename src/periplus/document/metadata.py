"""Reads a page's metadata."""

from __future__ import annotations

from periplus.document import headers
from periplus.document.reader import Reader
from periplus.document.robots import page_directives
from periplus.model.visit import Headers
from periplus.values import frozen

TITLE_CHARS = 2_000
DESCRIPTION_CHARS = 5_000


@frozen
class Metadata:
    """A page's metadata. '' and 0.0: not given."""

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


def metadata(page: Reader, fields: Headers) -> Metadata:
    """The metadata of an HTML page; meta elements override the HTTP header (SPEC A4)."""
    by_name: dict[str, str] = {}
    by_equivalent: dict[str, str] = {}
    directives: list[tuple[str, str]] = []
    refreshes: list[str] = []
    values = iter(page.metas.strings("\0"))
    for name, equivalent, content in zip(values, values, values, strict=True):
        if name := name.strip().lower():
            by_name.setdefault(name, content)
            directives.append((name, content))
        elif equivalent := equivalent.strip().lower():
            by_equivalent.setdefault(equivalent, content)
            if equivalent == "refresh" and (target := headers.refresh_target(content)):
                refreshes.append(target)
    noindex, nofollow = page_directives(fields.all("x-robots-tag"), directives)
    return Metadata(
        title=page.title[:TITLE_CHARS],
        description=" ".join(by_name.get("description", "").split())[:DESCRIPTION_CHARS],
        h1=page.h1[:TITLE_CHARS],
        h1s=page.h1_count,
        images_without_alt=page.images_without_alt,
        language=_language(page.language, by_equivalent.get("content-language", ""), fields),
        noindex=noindex,
        nofollow=nofollow,
        last_modified=headers.date_s(by_equivalent.get("last-modified") or fields.get("last-modified")),
        expires=headers.date_s(by_equivalent.get("expires") or fields.get("expires")),
        refreshes=tuple(refreshes),
    )


def metadata_of_headers(fields: Headers) -> Metadata:
    """Metadata from the HTTP header only, for documents without their own."""
    noindex, nofollow = page_directives(fields.all("x-robots-tag"), ())
    return Metadata(
        language=_one_language(fields.get("content-language")),
        noindex=noindex,
        nofollow=nofollow,
        last_modified=headers.date_s(fields.get("last-modified")),
        expires=headers.date_s(fields.get("expires")),
    )


def _language(declared: str, equivalent: str, fields: Headers) -> str:
    """The root's lang, else the meta element's, else the header's."""
    if declared:
        return _one_language(declared)
    return _one_language(equivalent) or _one_language(fields.get("content-language"))


def _one_language(declared: str) -> str:
    """A list of languages describes the audience, not the language of the text: only a single language counts."""
    return "" if "," in declared else declared.strip().replace("_", "-").lower()[:35]  # RFC 5646, 4.4.1: 35 suffice
