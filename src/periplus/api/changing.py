"""Changes a collection, in a folder or in a database, as a whole: while nobody crawls it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from periplus.acquire.clock import SystemClock
from periplus.api.homes import home_of
from periplus.api.rules import rules_text
from periplus.extras import extra_needed
from periplus.store.sqlite import aliases
from periplus.store.sqlite.aliases import Reapplied
from periplus.store.sqlite.reading import Follow
from periplus.urls.parameters import rules_key, rules_of


@contextlib.contextmanager
def changing(place: Path | str, *, alone: bool = True) -> Iterator[tuple[Path, Follow]]:
    """(the folder in which a collection is changed, what each transaction on it is within): of one in a database the
    copy, and the database follows.

    alone: nobody works on it; the caller holds it (`only_crawl`). Raises StoreError while somebody does, UsageError,
    NoCollection.
    """
    if isinstance(place, Path):
        yield place, contextlib.nullcontext
        return
    with extra_needed():
        from periplus.api import following
    with following.alone(place) if alone else following.changing(place) as changed:
        yield changed


def apply_now(place: Path | str) -> Reapplied | None:
    """Brings a collection into accord with the rules of its periplus.toml, without fetching; one at an address with
    those of the periplus.toml here.

    None: they hold already. Raises StoreError while a crawl goes on.
    """
    home = home_of(place)
    home.runs()  # there is a collection
    with home.only_crawl(), changing(place) as (folder, follow):
        text = rules_text(folder)
        done = aliases.reapply(folder, rules_of(text), rules_key(text), SystemClock().now(), follow)
        if isinstance(place, str):  # for its workers; a folder has them in its periplus.toml
            home.change_note("rules_text", lambda _: text)
    return done
