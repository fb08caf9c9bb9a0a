"""Exclusive changes of a whole collection, in a folder or a database."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from periplus.acquire.clock import SystemClock
from periplus.api.homes import home_of
from periplus.api.rules import rules_text
from periplus.extras import extra_needed
from periplus.store.sqlite import aliases
from periplus.store.sqlite.aliases import AliasChanges
from periplus.store.sqlite.reading import Follow
from periplus.urls.parameters import rules_key, rules_of
from periplus.values import Place


@contextlib.contextmanager
def changing(place: Place, *, alone: bool = True) -> Iterator[tuple[Path, Follow]]:
    """Yields (folder to change, context for each transaction). For a database, the folder is the local copy and the
    context replicates each transaction to the database.

    alone: no crawl may run; for a folder, the caller holds `only_crawl`. Raises StoreError if the collection is in use,
    UsageError, NoCollection.
    """
    if isinstance(place, Path):
        yield place, contextlib.nullcontext
        return
    with extra_needed():
        from periplus.api import following
    with following.alone(place) if alone else following.changing(place) as changed:
        yield changed


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
