"""How does a collection come to hold what was not fetched by it? Completions enter one by one, in transactions of many."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from periplus.model.frontier import Candidate, Completion
from periplus.model.page import FOLLOWED_KINDS
from periplus.model.visit import Reason
from periplus.model.web import UrlId
from periplus.settings import Keeping
from periplus.store.sqlite import schema
from periplus.store.sqlite.contents import Contents
from periplus.store.sqlite.history import History
from periplus.store.sqlite.ledger import Ledger
from periplus.store.sqlite.pages import PageWriter

_FOLLOWED = ", ".join(f"'{kind.value}'" for kind in sorted(FOLLOWED_KINDS))
_TARGETS = (
    f"SELECT l.target, l.kind = 'redirect', h.site_id FROM link l JOIN url u ON u.id = l.target JOIN host h ON h.id = u.host_id"
    f" WHERE l.source = ? AND l.kind IN ({_FOLLOWED}) AND NOT l.nofollow"
)
_BY_NOFOLLOW = f"('{Reason.NOFOLLOW.value}', '{Reason.RESOURCE.value}')"


class Filler:
    """The only writer of a collection, within one run. Use as a context: what is complete by then is stored at its end."""

    def __init__(self, folder: Path, run_id: int, keeping: Keeping) -> None:
        self._connection = schema.connect(folder)
        self._lock = schema.WriteLock(folder)
        self._pages = PageWriter(self._connection, keeping, History(self._connection, run_id))
        self._ledger = Ledger(self._connection, run_id, self._pages)
        self._contents = Contents(self._connection)
        self._at_once = keeping.commit_pages
        self._stack = contextlib.ExitStack()
        self._entered = 0

    def __enter__(self) -> Filler:
        self._open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None:
                self._ledger.close()
            self._stack.__exit__(kind, error, trace)
        finally:
            self._connection.close()
            self._lock.close()

    def _open(self) -> None:
        self._stack.enter_context(self._lock.transaction(self._connection))
        self._ledger.open()

    def _commit(self, sites: Iterable[str]) -> None:
        self._ledger.close()
        self._stack.close()
        learned = {site: self._pages.learn_dictionary(site) for site in sites}
        self._open()
        for site, data in learned.items():
            if data:
                self._pages.store_dictionary(site, data)

    def known(self, url_id: UrlId) -> tuple[int, int | None, float] | None:
        """(host id, layer, when it was last visited: 0.0 never) of a URL; None: never seen."""
        found = self._connection.execute("SELECT host_id, layer, coalesce(visited, 0) FROM url WHERE id = ?", (url_id,)).fetchone()
        return (int(found[0]), found[1], float(found[2])) if found else None

    def body(self, url_id: UrlId) -> bytes | None:
        """The bytes of a page that entered before."""
        return self._contents.body(url_id)

    def offer(self, candidate: Candidate, now: float) -> None:
        self._ledger.offer(candidate, now)

    def enter(self, completion: Completion) -> None:
        """One visit with all that it brought, as of the time at which it took place. Its URL must be known."""
        self._ledger.complete(completion, self._pages.pack(completion), completion.visit.started)
        self._entered += 1
        if self._entered % self._at_once == 0:
            self._commit([completion.lease.site])

    def count_clicks(self, starts: Iterable[UrlId]) -> None:
        """Layers anew, breadth first from the starts: archives need not be in any order. As a crawl counts them: along links
        that are followed, redirects for free, not from one start's site to another's. O(pages + links)."""
        run = self._connection.execute
        run(f"UPDATE url SET layer = NULL WHERE layer IS NOT NULL AND reason NOT IN {_BY_NOFOLLOW}")
        own = {start: self._site_of(start) for start in starts}
        sites = set(own.values())
        frontier = [(start, site) for start, site in own.items() if self._reach(start, 0)]
        layer = 0
        while frontier:
            following: list[tuple[UrlId, int]] = []
            for source, site in frontier:  # grows by what redirects lead to
                for target, is_redirect, target_site in run(_TARGETS, (source,)).fetchall():
                    clicks = layer if is_redirect else layer + 1
                    if (target_site == site or target_site not in sites) and self._reach(target, clicks):
                        (frontier if is_redirect else following).append((target, target_site))
            frontier, layer = following, layer + 1

    def _site_of(self, url_id: UrlId) -> int:
        found = self._connection.execute("SELECT h.site_id FROM url u JOIN host h ON h.id = u.host_id WHERE u.id = ?", (url_id,)).fetchone()
        return int(found[0]) if found else 0

    def _reach(self, url_id: UrlId, layer: int) -> bool:
        """True the first time."""
        update = f"UPDATE url SET layer = ? WHERE id = ? AND layer IS NULL AND reason NOT IN {_BY_NOFOLLOW}"
        return bool(self._connection.execute(update, (layer, url_id)).rowcount)
