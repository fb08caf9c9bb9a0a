"""How is an edition of a portal told to programs?"""

from __future__ import annotations

from dataclasses import asdict

from periplus.model.portal import Edition, Entry
from periplus.present.wording import iso


def kinds(edition: Edition, waiting: bool) -> list[tuple[str, tuple[Entry, ...]]]:
    """Its entries by what becomes of them."""
    kinds = [("published", edition.entries), ("waiting for approval", edition.waiting), ("hidden", edition.hidden)]
    return kinds[1:2] if waiting else kinds


def edition_values(edition: Edition, limit: int, waiting: bool) -> dict[str, object]:
    """The edition for programs; times ISO 8601."""
    found: dict[str, object] = {"portal": asdict(edition.portal), "made": iso(edition.made), "run": edition.run, "lacks": list(edition.lacks)}
    found["entries"] = [_entry_json(entry, kind) for kind, entries in kinds(edition, waiting) for entry in entries[:limit]]
    found["sites"] = [asdict(site) for site in edition.sites]
    found["covered"] = edition.covered
    return found


def _entry_json(entry: Entry, kind: str) -> dict[str, object]:
    pages = [{"url": page.url, "site": page.site, "title": page.title, "date": iso(page.date.when), "by": page.date.source} for page in entry.story.pages]
    return {
        "key": entry.key, "kind": kind.partition(" ")[0], "verdict": entry.verdict, "title": entry.story.title, "published": iso(entry.published),
        "updated": iso(entry.updated), "weight": entry.weight, "relevance": entry.relevance, "sentence": entry.sentence,
        "keywords": list(entry.keywords), "pages": pages, "links": list(entry.story.links),
    }  # fmt: skip
