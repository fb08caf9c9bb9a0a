"""What a run reads of its collection beside leases and lists, in the words of every database."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from periplus.model.frontier import HostRow, Lease, PatternRecord, RunCounts, ShownLines, StoredRobots, TrapMemory
from periplus.model.visit import Reason
from periplus.model.web import HostKey, Origin, SiteKey, Url, UrlId
from periplus.store.dialect import Row, Statements
from periplus.store.ledger_tables import shard_of_origin
from periplus.urls.canonical import url_id
from periplus.urls.scope import site_key

T = TypeVar("T")
READ_AT_ONCE = 10_000  # of the URLs that an earlier run left out: there may be millions
_FIRST_ID = -(1 << 63)  # no id is below it


class CrawlReads(Protocol):
    """The part of `model.ports.RunStore` that only reads. A store of one database says how its statements are run."""

    run_id: int

    @abstractmethod
    def read(self, action: Callable[[Statements], T]) -> T:
        """The action's result, without a transaction. It must bear to be done twice. Raises StoreError."""

    @abstractmethod
    def moment(self, now: float) -> float:
        """The time by which the store goes: the caller's, or a database's own."""

    def robots(self, origin: Origin) -> StoredRobots | None:
        def stored(statements: Statements) -> StoredRobots | None:
            dialect = statements.dialect
            find = f"SELECT origin, status, cause, body, fetched, expires FROM robots WHERE {dialect.here}origin = ?"
            rows = statements.rows(find, dialect.placed(shard_of_origin(statements, origin), origin))
            return StoredRobots(*rows[0]) if rows else None

        return self.read(stored)

    def trap_memory(self, lease: Lease) -> TrapMemory:
        def stored(statements: Statements) -> TrapMemory:
            dialect, rows = statements.dialect, statements.rows
            here = f"WHERE {dialect.here}host_id = ?"
            host = dialect.placed(dialect.shard_of(lease.site), lease.host_id)
            records = rows(f"SELECT record FROM family {here} ORDER BY key", host)
            shown = rows(f"SELECT first, keys FROM shown {here} ORDER BY first", host)
            doubts = rows(f"SELECT url_id, doubt FROM doubtful {here} ORDER BY url_id", host)
            lines = ShownLines(shown[0][0], b"".join(keys for _, keys in shown)) if shown else ShownLines()
            patterns = tuple(PatternRecord(*json.loads(record)) for (record,) in records)
            return TrapMemory(patterns, lines, tuple((UrlId(url), doubt) for url, doubt in doubts))

        return self.read(stored)

    def seen(self, lease: Lease, urls: Sequence[UrlId]) -> frozenset[UrlId]:
        def stored(statements: Statements) -> frozenset[UrlId]:
            shard = statements.dialect.shard_of(lease.site)
            return frozenset(UrlId(row[0]) for row in statements.at("id", "url", "id", [(shard, url) for url in urls]))

        return self.read(stored)

    def texts(self, site: SiteKey, most: int) -> Iterator[tuple[Url, bytes]]:
        """(url, digest of its text) of the site's pages that were fetched, the latest `most`, oldest first."""

        def latest(statements: Statements) -> list[tuple[str, bytes]]:
            dialect = statements.dialect
            find = (
                f"SELECT u.text, p.text_md5 FROM site s JOIN host h ON {dialect.beside('h', 's')}h.site_id = s.id"
                f" JOIN url u ON {dialect.beside('u', 'h')}u.host_id = h.id"
                f" JOIN page p ON {dialect.beside('p', 'u')}p.url_id = u.id"
                f" WHERE {dialect.here_of('s')}s.key = ? AND u.reason IN ('ok', 'noindex')"
                " ORDER BY p.fetched DESC, u.id LIMIT ?"
            )
            return statements.rows(find, (*dialect.placed(dialect.shard_of(site), site), most))

        for text, digest in reversed(self.read(latest)):
            yield Url(text), digest

    def counts(self) -> RunCounts:
        def counted(statements: Statements) -> RunCounts:
            rows = statements.rows
            tallies = {name: int(value) for name, value in rows("SELECT name, sum(value) FROM tally GROUP BY name")}
            by_reason = {
                name.removeprefix("reason:"): value
                for name, value in tallies.items()
                if name.startswith("reason:") and value
            }
            of_run = "SELECT kind, fetched, wire_bytes FROM run WHERE id = ?"
            kind, fetched, wire_bytes = rows(of_run, (self.run_id,))[0]
            # PostgreSQL's writers keep a run's sums by part
            of_parts = "SELECT name, sum(value) FROM run_count WHERE run_id = ? GROUP BY name"
            sums = {name: int(value) for name, value in rows(of_parts, (self.run_id,))}
            waiting = by_reason.get("waiting", 0)
            if kind == "refresh":  # what is asked again is not waiting, but it is work
                waiting = int(rows("SELECT coalesce(sum(pending), 0) FROM host WHERE pending > 0")[0][0])
            fetched, wire_bytes = fetched + sums.get("fetched", 0), wire_bytes + sums.get("wire_bytes", 0)
            return RunCounts(tallies.get("known", 0), waiting, fetched, wire_bytes, by_reason)

        return self.read(counted)

    def url_state(self, url: Url) -> tuple[Reason, str]:
        """How a known URL stands, and by which rule."""

        def stored(statements: Statements) -> tuple[Reason, str]:
            shard = statements.dialect.shard_of(site_key(url))
            ((reason, rule),) = statements.at("reason, rule", "url", "id", [(shard, url_id(url))])
            return Reason(reason), rule

        return self.read(stored)

    def never_asked(self, reasons: Sequence[Reason]) -> Iterator[tuple[Url, int | None, bool]]:
        """(url, depth, in sitemap) of the URLs that stand at one of these reasons, none of which means that they were
        fetched.
        """
        last: tuple[object, ...] = ()

        def following(statements: Statements) -> list[Row]:
            dialect = statements.dialect
            place = f"{dialect.shard}id"
            behind = last or dialect.placed(-1, _FIRST_ID)
            find = (
                f"SELECT {place}, text, depth, in_sitemap FROM url WHERE ({place}) > ({', '.join('?' * len(behind))})"
                f" AND reason IN ({', '.join('?' * len(reasons))}) ORDER BY {place} LIMIT {READ_AT_ONCE}"
            )
            return statements.rows(find, (*behind, *(reason.value for reason in reasons)))

        while rows := self.read(following):
            yield from ((Url(text), depth, bool(in_sitemap)) for *_, text, depth, in_sitemap in rows)
            last = rows[-1][:-3]

    def busiest(self, most: int, now: float) -> Sequence[HostRow]:
        """Hosts with work, those with most waiting first."""

        find = (
            "SELECT key, pending, fetched, next_at, waits_for, lease_by IS NOT NULL FROM host WHERE pending > 0"
            " ORDER BY pending DESC LIMIT ?"
        )
        rows, moment = self.read(lambda statements: statements.rows(find, (most,))), self.moment(now)
        return [
            HostRow(HostKey(key), pending, fetched, max(0.0, next_at - moment), why, bool(leased))
            for key, pending, fetched, next_at, why, leased in rows
        ]
