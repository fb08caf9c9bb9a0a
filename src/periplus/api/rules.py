"""URL rules of a collection: their text, their effect on a URL, and proposals from its pages."""

from __future__ import annotations

from periplus.acquire.clock import SystemClock
from periplus.analyse.equivalences import Proposal, SeenPage, propose
from periplus.api.homes import home_of, snapshot_of
from periplus.api.page_segments import rules_file
from periplus.files import read_rules
from periplus.model.web import UrlId
from periplus.settings import segments_written
from periplus.store import aliases
from periplus.store.aliases import AliasChanges
from periplus.store.notes import put_note
from periplus.store.reader import CollectionReader
from periplus.urls.aliases import urls_with_twin
from periplus.urls.canonical import canonical
from periplus.urls.parameters import RuleResult, apply, rules_key, rules_of
from periplus.values import Place

SAMPLING = 4  # one shingle in four is compared: enough to recognise a print version


def rules_text(place: Place) -> str:
    """Text of the collection's periplus.toml; empty if there is none. For a database that of the current directory,
    with the segments of the database if it has none; without such a file the rules in the database.

    Raises UsageError if it is unreadable or invalid.
    """
    path = rules_file(place)
    text = read_rules(path)
    if isinstance(place, str):
        stored = home_of(place).rules_text()
        segments = segments_written(stored)
        if not path.is_file():
            text = stored
        elif segments and not segments_written(text):
            text = f"{text}\n\n{segments}\n"
    rules_of(text, str(path))
    return text


def explain_url(place: Place, text: str) -> RuleResult:
    """Effect of the collection's rules on a URL, step by step.

    A folder needs to contain only periplus.toml.
    """
    return apply(canonical(text if "://" in text else f"https://{text}"), rules_of(rules_text(place)))


def apply_now(place: Place) -> AliasChanges | None:
    """Applies the URL rules of periplus.toml to a stored collection, without fetching. A collection in a database gets
    those of the periplus.toml in the current directory.

    Returns None if the rules are already applied. Raises StoreError during a crawl.
    """
    home = home_of(place)
    home.runs()  # raises NoCollection
    with home.only_crawl():
        text = rules_text(place)
        with home.alias_ledger() as ledger:
            done = aliases.reapply(ledger, rules_of(text), rules_key(text), SystemClock().now())
            if isinstance(place, str):  # workers on other machines read the rules from the database
                put_note(ledger.statements, "rules_text", text)
    return done


def proposals(place: Place) -> tuple[Proposal, ...]:
    """Rules for parameters and spellings suggested by the collection's pages, most certain first."""
    with snapshot_of(place) as reader:
        pages = list(aliases.fetched_pages(reader))
        near = urls_with_twin(url for _, url, _ in pages)
        return propose(
            SeenPage(url, digest, _sample(reader, url_id) if url in near else None) for url_id, url, digest in pages
        )


def _sample(contents: CollectionReader, url_id: UrlId) -> frozenset[int] | None:
    text = contents.text(url_id)
    from periplus.analyse.duplicates import shingles  # imported here: crawls import this module without proposing rules

    return None if text is None else frozenset(number for number in shingles(text).tolist() if number % SAMPLING == 0)
