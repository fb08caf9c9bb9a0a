"""Aliases of pages, and the update of a stored collection when its URL rules change, in SQL for both databases.

A URL matched by a rule has one row in `alias`: the page that it is an alias of (or NULL if it breaks a rule), the rule,
and the URL's previous state. So every application can be undone. Content is never deleted: if only an alias was
fetched, its page and links are moved to the page's URL, and moved back when the rule is removed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from periplus.model.frontier import Candidate, SideRequest
from periplus.model.tables import any_of
from periplus.model.visit import FETCHED_REASONS, Reason
from periplus.model.web import HostKey, SiteKey, Url, UrlId
from periplus.store.ledger import HostRef, Sums
from periplus.store.notes import note, put_note
from periplus.store.page_links import move_links
from periplus.store.reader import CollectionReader
from periplus.store.statements import PageKey, Row, Statements
from periplus.store.url_state import HAS_TEXT, MERGEABLE_REASONS
from periplus.urls.aliases import AliasPage, Merger, find_aliases
from periplus.urls.canonical import url_id
from periplus.urls.hosts import host_key
from periplus.urls.parameters import Rules, apply
from periplus.urls.scope import site_key
from periplus.values import frozen

# not pages of this collection; rules do not apply
FOREIGN = frozenset(
    {Reason.SCOPE.value, Reason.SCHEME.value, Reason.RESOURCE.value, Reason.DELETED.value, Reason.OTHER_PART.value}
)
# reasons that the page inherits from its alias
HELD_BACK = frozenset(
    {Reason.DEPTH, Reason.NOFOLLOW, Reason.ROBOTS, Reason.ROBOTS_UNREACHABLE, Reason.HOST_DOWN, Reason.BOT_WALL}
)
# instead of a depth: no link led to the page; greater than all depths, since undoing restores the greatest depth
NO_DEPTH = 2_000_000_000
INVENTED_URL = "invented"  # instead of a reason: the page's URL was created by the rule and never linked


URLS_AT_ONCE = 20_000  # rows in memory while all URLs are read
ALIAS_COLUMNS = "url_id, page_id, rule, learned, was, was_rule, moved, page_depth"
_WAS_MERGED = "learned = 1 AND was <> 'waiting'"


class AliasLedger(Protocol):
    """The ledger of a transaction that changes aliases, while no crawl runs. Counters are written at its end."""

    @property
    def statements(self) -> Statements: ...

    @property
    def sums(self) -> Sums: ...

    def offer(self, candidates: Sequence[Candidate], side_requests: Sequence[SideRequest], now: float) -> int:
        """Stores URLs that are not from pages; returns how many are newly waiting."""

    def await_again(self, pages: Sequence[PageKey]) -> None:
        """Queues waiting URLs that have no queue entry."""


@frozen
class RewrittenUrl:
    """Result of the rules for one stored URL. page: empty if it breaks a rule."""

    key: PageKey
    page: Url | str
    rule: str


@frozen
class AliasChanges:
    """Effect of a change of the rules on a collection."""

    aliases: int  # URLs that are now aliases
    excluded: int  # URLs that now break a rule
    undone: int  # URLs restored to their previous state
    merged: int  # fetched pages merged with another fetched page


def rewritten_urls(statements: Statements, rules: Rules) -> Iterator[RewrittenUrl]:
    """URLs matched by the rules, with the result, ascending by key."""
    dialect = statements.dialect
    shard, after = ("u.shard", "(?, ?)") if dialect.has_shards else ("0", "?")
    find = dialect.expand_keys(
        f"SELECT {shard}, u.id, u.text, CASE WHEN a.learned = 0 THEN a.was ELSE u.reason END FROM url u LEFT JOIN"
        f" alias a ON (@a.url_id) = (@u.id) WHERE (@u.id) > {after} ORDER BY @u.id LIMIT {URLS_AT_ONCE}"
    )
    last: PageKey = (-1, -(1 << 63))  # the id of no URL
    while rules and (rows := statements.rows(find, dialect.shard_values(*last))):
        last = rows[-1][:2]
        for *key, text, reason in rows:
            if reason not in FOREIGN:
                applied = apply(Url(text), rules)
                if applied.url != text:
                    yield RewrittenUrl((key[0], key[1]), applied.url or "", applied.rule)


def reapply(ledger: AliasLedger, rules: Rules, key: str, now: float) -> AliasChanges | None:
    """Updates a collection to its rules, in one transaction of the caller. No crawl may be running.

    key: the rules in canonical spelling. Returns None if the rules are already in force.
    """
    statements = ledger.statements
    if note(statements, "rules") == key:
        return None
    reapplication = Reapplication(ledger, now)
    # a rule may contradict merged aliases; those that are still equal are merged again
    reapplication.part_aliases()
    done = reapplication.apply(list(rewritten_urls(statements, rules)))
    mergers, shards = alias_mergers(statements)
    reapplication.merge(mergers, shards)
    put_note(statements, "rules", key)
    return done


class Reapplication:
    """Updates a collection to its rules, within one transaction of the caller."""

    def __init__(self, ledger: AliasLedger, now: float) -> None:
        self._ledger, self._now = ledger, now
        self._statements, self._dialect = ledger.statements, ledger.statements.dialect
        self._merged = 0
        self._waiting: set[PageKey] = set()  # pages queued by this application
        self._sites: dict[HostKey, SiteKey] = {}  # of the pages' hosts, as far as they are known
        self._history_run = history_run(ledger.statements)

    def _rows(self, statement: str, *values: object) -> list[Row]:
        """Executes a statement with `@id` for keys."""
        return self._statements.rows(self._dialect.expand_keys(statement), values)

    def _change(self, statement: str, *values: object) -> int:
        return self._statements.change(self._dialect.expand_keys(statement), values)

    def _url(self, columns: str, url: PageKey) -> Row | None:
        find = f"SELECT {columns} FROM url WHERE {self._dialect.here}id = ?"
        return next(iter(self._statements.rows(find, self._dialect.shard_values(*url))), None)

    def _set(self, sets: str, url: PageKey, *values: object) -> None:
        update = f"UPDATE url SET {sets} WHERE {self._dialect.here}id = ?"
        self._statements.change(update, (*values, *self._dialect.shard_values(*url)))

    def apply(self, rewritten: list[RewrittenUrl]) -> AliasChanges:
        """Undoes obsolete aliases and adds new ones; others stay unchanged."""
        wants = {url.key: (url_id(Url(url.page)) if url.page else None, url.rule) for url in rewritten}
        present = {(row[0], row[1]): (row[2], row[3]) for row in self._aliases("learned = 0")}
        gone = [url for url, row in present.items() if wants.get(url) != row]
        pages = self._undo(gone)
        dropped = self._drop_needless(pages)
        rewritten = [url for url in rewritten if url.key not in dropped]
        self._load_sites({host_key(Url(url.page)) for url in rewritten if url.page})
        changed = (url for url in rewritten if wants[url.key] != present.get(url.key))
        self._statements.insert("alias", ALIAS_COLUMNS, list(map(self._do, changed)))
        self._clear_lists()
        self._await()
        excluded = sum(not url.page for url in rewritten)
        undone = sum(url not in wants for url in gone)
        return AliasChanges(len(rewritten) - excluded, excluded, undone, self._merged)

    def _aliases(self, where: str) -> list[Row]:
        shard = "shard" if self._dialect.has_shards else "0"
        return self._rows(f"SELECT {shard}, url_id, page_id, rule FROM alias WHERE {where} ORDER BY 1, 2")

    def part_aliases(self) -> None:
        """Undoes `merge`."""
        self._undo([(row[0], row[1]) for row in self._aliases(_WAS_MERGED)])

    def merge(self, mergers: Sequence[Merger], shards: dict[UrlId, int]) -> None:
        """Makes pages aliases of others. An alias keeps its row and content; its page gets the smaller depth."""
        for merger in mergers:
            alias, page = ((shards[each.url_id], each.url_id) for each in (merger.alias, merger.page))
            ((reason, rule), (depth,)) = self._url("reason, rule", alias) or (), self._url("depth", page) or ()
            nearer = merger.alias.depth is not None and (depth is None or merger.alias.depth < depth)
            if nearer:
                self._set("depth = ?", page, merger.alias.depth)
            was = (reason, rule, "", (NO_DEPTH if depth is None else depth) if nearer else None)
            self._change(f"DELETE FROM alias WHERE {self._dialect.here}url_id = ?", *self._dialect.shard_values(*alias))
            self._statements.insert("alias", ALIAS_COLUMNS, [(*alias, page[1], merger.why, 1, *was)])
            self._restate(alias, Reason.ALIAS, merger.why)

    def _restate(self, url: PageKey, reason: Reason, rule: str) -> None:
        """Sets a URL's reason. The queue is updated at the end."""
        before = self._url("reason, rule, status, depth, first_seen", url)
        assert before is not None
        if not self._dialect.has_triggers and before[:2] != (reason.value, rule):
            run_id, started = self._history_run
            if before[4] < started:
                columns = "url_id, run_id, reason, rule, status, depth"
                self._statements.upsert("url_history", columns, [(*url, run_id, *before[:4])])
        self._set("reason = ?, rule = ?", url, reason.value, rule)
        self._ledger.sums.tallies["reason:" + before[0]] -= 1
        self._ledger.sums.tallies["reason:" + reason.value] += 1
        if reason is Reason.WAITING:
            self._waiting.add(url)

    def _await(self) -> None:
        """Queues the pages that wait because of this application, unless they are queued."""
        keys = sorted(self._waiting)
        waiting = {row[0] for row in self._statements.at("id, reason", "url", "id", keys) if row[1] == Reason.WAITING}
        waiting -= {row[0] for row in self._statements.at("url_id", "queue", "url_id", keys)}
        self._ledger.await_again([key for key in keys if key[1] in waiting])

    def _clear_lists(self) -> None:
        """Removes pages from the queue that are no longer waiting."""
        stale = (
            "FROM queue WHERE purpose = 'page' AND url_id <> 0 AND NOT EXISTS (SELECT 1 FROM url u"
            " WHERE (@u.id) = (@queue.url_id) AND u.reason = 'waiting')"
        )
        shard = "shard" if self._dialect.has_shards else "0"
        for *host, entries in self._rows(f"SELECT {shard}, host_id, count(*) {stale} GROUP BY 1, 2"):
            self._ledger.sums.pending[HostRef(*host)] -= entries
        self._change(f"DELETE {stale}")

    def _load_sites(self, hosts: set[HostKey]) -> None:
        find = (
            f"SELECT h.key, s.key FROM host h JOIN site s ON (@s.id) = (@h.site_id) WHERE h.key {self._dialect.among}"
        )
        self._sites = dict(self._rows(find, self._dialect.list_value(hosts)))

    def _do(self, url: RewrittenUrl) -> Row:
        """Makes a URL an alias, or excludes it; returns its row of `alias`."""
        reason, rule, depth = self._url("reason, rule, depth", url.key) or ()
        # a user's rule has priority over a learned alias
        drop = f"DELETE FROM alias WHERE {self._dialect.here}url_id = ? AND learned = 1"
        if self._change(drop, *self._dialect.shard_values(*url.key)):
            reason, rule = Reason.WAITING.value, ""
        page_id = url_id(Url(url.page)) if url.page else None
        moved, page_depth = "", None
        if page_id is not None:
            page_key, page_was, page_depth = self._page_row(Url(url.page), page_id, reason, depth)
            if reason in FETCHED_REASONS:
                moved = self._take_content(url.key, page_key, page_was)
        self._restate(url.key, Reason.ALIAS if url.page else Reason.RULE, url.rule)
        return (*url.key, page_id, url.rule, 0, reason, rule, moved, page_depth)

    def _page_row(self, page: Url, page_id: UrlId, reason: str, depth: int | None) -> tuple[PageKey, str, int | None]:
        """Makes sure that the page's URL is known, and waiting if its alias was.

        Returns its key, its previous reason, and its previous depth if that changed.
        """
        host = host_key(page)
        site = self._sites.get(host) or site_key(page)
        key = (self._dialect.shard_of(site), page_id)
        row = self._url("reason, depth", key)
        offered = Reason(reason) if reason in HELD_BACK else Reason.WAITING
        if row is None and reason in FETCHED_REASONS:
            offered = Reason.DEPTH  # it then gets the alias's content and reason
        self._ledger.offer([Candidate(page, page_id, host, site, offered, depth)], (), self._now)
        if row is None:
            return key, INVENTED_URL, None
        nearer = depth is not None and (row[1] is None or depth < row[1])
        return key, str(row[0]), (NO_DEPTH if row[1] is None else row[1]) if nearer else None

    def _take_content(self, alias: PageKey, page: PageKey, page_was: str) -> str:
        """Moves the content of a fetched alias to its page, if the page has none.

        Returns the previous reason of the page, or empty if nothing was moved.
        """
        find = f"SELECT 1 FROM page WHERE {self._dialect.here}url_id = ?"
        has_page = self._rows(find, *self._dialect.shard_values(*page))
        if has_page or page_was in FETCHED_REASONS or alias[0] != page[0]:  # bodies stay in their shard
            self._merged += 1
            return ""
        self._move(alias, page)
        reason, rule, status, visited = self._url("reason, rule, status, visited", alias) or ()
        self._restate(page, Reason(reason), rule)
        self._set("status = ?, visited = ?", page, status, visited)
        return page_was

    def _move(self, source: PageKey, target: PageKey) -> None:
        places = (target[1], *self._dialect.shard_values(*source))
        for table, column in (("page", "url_id"), ("rendering", "url_id"), ("bad_link", "source")):
            self._change(f"UPDATE {table} SET {column} = ? WHERE {self._dialect.here}{column} = ?", *places)
        move_links(self._statements, source, target)

    def _undo(self, urls: Sequence[PageKey]) -> set[PageKey]:
        """Restores the previous states and contents of URLs and of their pages. Returns the pages."""
        find = f"page_id, was, was_rule, moved, page_depth FROM alias WHERE {self._dialect.here}url_id = ?"
        taken = [(url, *self._rows(f"SELECT {find}", *self._dialect.shard_values(*url))[0]) for url in urls]
        self._statements.delete("alias", "url_id", urls)
        shards = self._shards_of({page_id for _, page_id, *_ in taken if page_id is not None})
        pages = set[PageKey]()
        for url, page_id, was, was_rule, moved, depth in taken:
            if page_id in shards:
                page = (shards[page_id], page_id)
                pages.add(page)
                if moved:
                    self._move(page, url)
                    self._restate(page, Reason.WAITING if moved == INVENTED_URL else Reason(moved), "")
                    self._set("status = NULL, visited = NULL", page)
                if depth is not None:  # of several aliases, the one that first reduced the depth has the greatest value
                    self._set(f"depth = nullif({self._dialect.greatest}(depth, ?), ?)", page, depth, NO_DEPTH)
            self._restate(url, Reason(was), was_rule)
        return pages

    def _shards_of(self, ids: set[int]) -> dict[int, int]:
        """Shards of URLs; in a folder 0."""
        if not self._dialect.has_shards:
            return dict.fromkeys(ids, 0)
        return dict(self._rows(f"SELECT id, shard FROM url WHERE id {self._dialect.among}", list(ids)))

    def _drop_needless(self, pages: set[PageKey]) -> frozenset[PageKey]:
        """Deletes URLs that only rules created; a rule that still creates one does so again."""
        left = {url: (shard, url) for shard, url in pages}
        needs = ("page_id FROM alias WHERE page_id", "target FROM link WHERE target", "url_id FROM page WHERE url_id",
            "url_id FROM visit WHERE url_id",
                 "url_id FROM start WHERE url_id", "id FROM url WHERE in_sitemap <> 0 AND id")  # fmt: skip
        for need in needs if pages else ():  # one scan of each table
            find = f"SELECT DISTINCT {need} {self._dialect.among}"
            for (url,) in self._rows(find, self._dialect.list_value(list(left))):
                del left[url]
        for url in left.values():
            (reason,) = self._url("reason", url) or ()
            self._change(f"DELETE FROM url WHERE {self._dialect.here}id = ?", *self._dialect.shard_values(*url))
            self._ledger.sums.tallies["known"] -= 1
            self._ledger.sums.tallies["reason:" + reason] -= 1
        return frozenset(left.values())


def history_run(statements: Statements) -> tuple[int, float]:
    """(run of the history of URLs that change now, its start). Only URLs known before have a history. In a folder a
    trigger does the same.
    """
    for run_id, started, state in statements.rows("SELECT id, started, state FROM run ORDER BY id DESC LIMIT 1"):
        return (run_id, started) if state == "running" else (run_id + 1, math.inf)
    return 0, -math.inf


def alias_mergers(statements: Statements) -> tuple[list[Merger], dict[UrlId, int]]:
    """Finds pages that are equal to others, in one scan of the pages; also returns the shards of the pages."""
    starts = statements.rows(
        statements.dialect.expand_keys("SELECT u.text FROM start s JOIN url u ON (@u.id) = (@s.url_id)")
    )
    alike = _alike(statements)
    shards = {row[1]: row[0] for row in alike}

    def links_of(pages: Sequence[UrlId]) -> Iterator[tuple[int, Iterable[int]]]:
        keys = [(shards[page], page) for page in pages]
        for source, targets in statements.at("source, targets", "page_links", "source", keys):
            yield source, map(int, targets.split()) if isinstance(targets, bytes) else targets

    pages = map(AliasPage._make, (row[1:] for row in alike))
    return find_aliases(pages, frozenset(Url(text) for (text,) in starts), links_of), shards


def _alike(statements: Statements) -> list[Row]:
    """(shard, then an AliasPage) of pages with the same text as another page."""
    expand_keys = statements.dialect.expand_keys
    values: Sequence[object] = ()
    shard, pages = "0", "page p"
    among = " AND p.text_digest IN (SELECT text_digest FROM page GROUP BY text_digest HAVING count(*) > 1)"
    if statements.dialect.has_shards:
        # two statements: before the first ANALYZE a single one was planned badly, and took 8 s for 12,000 pages
        find = "SELECT shard, unnest(array_agg(url_id)) FROM page GROUP BY shard, text_digest HAVING count(*) > 1"
        values = list(map(list, zip(*statements.rows(find), strict=True))) or [[], []]
        keys = "unnest(?::smallint[], ?::bigint[]) k(shard, id)"
        shard, pages, among = "u.shard", f"{keys} JOIN page p ON p.shard = k.shard AND p.url_id = k.id", ""
    return statements.rows(
        expand_keys(
            f"SELECT {shard}, u.id, u.text, u.depth, p.body_digest, p.text_digest, p.canonical, {HAS_TEXT} FROM {pages}"
            " JOIN url u ON (@u.id) = (@p.url_id)"
            f" WHERE u.reason IN {any_of(MERGEABLE_REASONS)} AND u.status = 200{among}"
        ),
        values,
    )


def fetched_pages(reader: CollectionReader) -> Iterator[tuple[UrlId, Url, bytes]]:
    """(id, URL, digest of its text) of every page with a known text, including fetched aliases."""
    find = (
        "SELECT u.id, u.text, p.text_digest FROM url u JOIN page p ON p.url_id = u.id"
        " WHERE u.reason IN ('ok', 'noindex', 'alias') ORDER BY u.id"
    )
    for identity, text, digest in reader.stream(find):
        yield UrlId(identity), Url(text), digest
