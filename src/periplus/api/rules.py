"""The rules of a collection for its URLs: what they make of one, and which its pages suggest."""

from __future__ import annotations

from pathlib import Path

from periplus.analyse.equivalences import Proposal, SeenPage, propose
from periplus.model.web import UrlId
from periplus.settings import SETTINGS_FILE, read_rules
from periplus.store.sqlite import aliases, reading
from periplus.store.sqlite.page_rows import Contents
from periplus.urls.aliases import cores_shared
from periplus.urls.canonical import canonical
from periplus.urls.parameters import Applied, apply, rules_of

SAMPLED = 4  # one shingle in so many is compared: enough to tell a print version, a quarter of the memory


def rules_text(folder: Path) -> str:
    """The text of the collection's periplus.toml; empty where there is none.

    Raises UsageError when it cannot be read or is wrong.
    """
    path = folder / SETTINGS_FILE
    text = read_rules(path)
    rules_of(text, str(path))
    return text


def checked(folder: Path, text: str) -> Applied:
    """What becomes of a URL by the collection's rules, step by step.

    The folder need hold no more than periplus.toml.
    """
    return apply(canonical(text if "://" in text else f"https://{text}"), rules_of(rules_text(folder)))


def proposals(folder: Path) -> tuple[Proposal, ...]:
    """What the collection's pages say of their parameters and spellings, surest first."""
    with reading.moment(folder) as connection:
        contents = Contents(connection)
        pages = list(aliases.fetched_pages(connection))
        near = cores_shared(url for _, url, _ in pages)
        return propose(
            SeenPage(url, digest, _sample(contents, url_id) if url in near else None) for url_id, url, digest in pages
        )


def _sample(contents: Contents, url_id: UrlId) -> frozenset[int] | None:
    text = contents.text(url_id)
    from periplus.analyse.duplicates import shingles  # a crawl reads rules and proposes none

    return None if text is None else frozenset(number for number in shingles(text).tolist() if number % SAMPLED == 0)
