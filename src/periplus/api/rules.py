"""URL rules of a collection: their text, their effect on a URL, and proposals from its pages."""

from __future__ import annotations

from pathlib import Path

from periplus.acquire.clock import SystemClock
from periplus.analyse.equivalences import Proposal, SeenPage, propose
from periplus.api.homes import changing, home_of
from periplus.files import read_rules
from periplus.model.web import UrlId
from periplus.settings import SETTINGS_FILE
from periplus.store.reader import CollectionReader
from periplus.store.sqlite import aliases, reading
from periplus.store.sqlite.aliases import AliasChanges
from periplus.store.sqlite.listing import SqliteReader
from periplus.urls.aliases import urls_with_twin
from periplus.urls.canonical import canonical
from periplus.urls.parameters import RuleResult, apply, rules_key, rules_of
from periplus.values import Place

SAMPLING = 4  # one shingle in four is compared: enough to recognise a print version


def rules_text(folder: Path) -> str:
    """Text of the collection's periplus.toml; empty if there is none.

    Raises UsageError if it is unreadable or invalid.
    """
    path = folder / SETTINGS_FILE
    text = read_rules(path)
    rules_of(text, str(path))
    return text


def explain_url(folder: Path, text: str) -> RuleResult:
    """Effect of the collection's rules on a URL, step by step.

    The folder needs to contain only periplus.toml.
    """
    return apply(canonical(text if "://" in text else f"https://{text}"), rules_of(rules_text(folder)))


def apply_now(place: Place) -> AliasChanges | None:
    """Applies the URL rules of periplus.toml to a stored collection, without fetching. A collection in a database gets
    those of the periplus.toml in the current directory.

    Returns None if the rules are already applied. Raises StoreError during a crawl.
    """
    home = home_of(place)
    home.runs()  # raises NoCollection
    with home.only_crawl(), changing(place) as (folder, follow):
        text = rules_text(folder)
        done = aliases.reapply(folder, rules_of(text), rules_key(text), SystemClock().now(), follow)
        if isinstance(place, str):  # workers on other machines read the rules from the database
            home.change_note("rules_text", lambda _: text)
    return done


def proposals(folder: Path) -> tuple[Proposal, ...]:
    """Rules for parameters and spellings suggested by the collection's pages, most certain first."""
    with reading.moment(folder) as connection:
        contents = SqliteReader(connection)
        pages = list(aliases.fetched_pages(connection))
        near = urls_with_twin(url for _, url, _ in pages)
        return propose(
            SeenPage(url, digest, _sample(contents, url_id) if url in near else None) for url_id, url, digest in pages
        )


def _sample(contents: CollectionReader, url_id: UrlId) -> frozenset[int] | None:
    text = contents.text(url_id)
    from periplus.analyse.duplicates import shingles  # imported here: crawls import this module without proposing rules

    return None if text is None else frozenset(number for number in shingles(text).tolist() if number % SAMPLING == 0)
