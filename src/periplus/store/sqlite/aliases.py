"""Aliases of pages, and the update of a stored collection when its URL rules change.

A URL matched by a rule has one row in `alias`: the page that it is an alias of (or NULL if it breaks a rule), the rule,
and the URL's previous state. So every application can be undone. Content is never deleted: if only an alias was
fetched, its page and links are moved to the page's URL, and moved back when the rule is removed.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from periplus.model.frontier import Candidate
from periplus.model.tables import any_of
from periplus.model.visit import FETCHED_REASONS, Reason
from periplus.model.web import Url, UrlId
from periplus.store.page_links import move_links
from periplus.store.sqlite import schema
from periplus.store.sqlite.ledger import FolderLedger
from periplus.store.sqlite.reading import Follow
from periplus.store.sqlite.schema import SqliteStatements
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


@frozen
class RewrittenUrl:
    """Result of the rules for one stored URL. page: empty if it breaks a rule."""

    url_id: UrlId
    page: Url | str
    rule: str


@frozen
class AliasChanges:
    """Effect of a change of the rules on a collection."""

    aliases: int  # URLs that are now aliases
    excluded: int  # URLs that now break a rule
    undone: int  # URLs restored to their previous state
    merged: int  # fetched pages merged with another fetched page


def rewritten_urls(connection: sqlite3.Connection, rules: Rules) -> Iterator[RewrittenUrl]:
    """URLs matched by the rules, with the result, ascending by id."""
    find = (
        "SELECT u.id, u.text, CASE WHEN a.learned = 0 THEN a.was ELSE u.reason END FROM url u LEFT"
        " JOIN alias a ON a.url_id = u.id ORDER BY u.id"
    )
    for identity, text, reason in connection.execute(find) if rules else ():
        if reason not in FOREIGN:
            applied = apply(Url(text), rules)
            if applied.url != text:
                yield RewrittenUrl(UrlId(identity), applied.url or "", applied.rule)


def reapply(
    folder: Path,
    rules: Rules,
    key: str,
    now: float,
    follow: Follow = contextlib.nullcontext,
) -> AliasChanges | None:
    """Updates the collection in folder to its rules, in one transaction. No crawl may be running.

    key: the rules in canonical spelling; follow: context for the transaction, given its connection. Returns None if the
    rules are already in force.
    """
    with contextlib.closing(schema.connect(folder)) as connection, contextlib.closing(schema.WriteLock(folder)) as lock:
        held = connection.execute("SELECT value FROM meta WHERE name = 'rules'").fetchone()
        if (held[0] if held else "") == key:
            return None
        ledger = FolderLedger(connection, 0)
        with lock.transaction(connection), follow(connection):
            ledger.open()
            reapplication = Reapplication(connection, ledger, now)
            # a rule may contradict merged aliases; those that are still equal are merged again
            reapplication.part_aliases()
            done = reapplication.apply(list(rewritten_urls(connection, rules)))
            for merger in alias_mergers(connection):
                merge(connection, ledger, merger)
            ledger.close()
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('rules', ?)", (key,))
        return done


class Reapplication:
    """Updates a collection to its rules, within one transaction of the caller."""

    def __init__(self, connection: sqlite3.Connection, ledger: FolderLedger, now: float) -> None:
        self._connection, self._ledger, self._now = connection, ledger, now
        self._merged = 0
        self._waiting: set[int] = set()  # pages queued by this application

    def apply(self, rewritten: list[RewrittenUrl]) -> AliasChanges:
        """Undoes obsolete aliases and adds new ones; others stay unchanged."""
        wants = {url.url_id: (url_id(Url(url.page)) if url.page else None, url.rule) for url in rewritten}
        present = {
            row[0]: (row[1], row[2])
            for row in self._connection.execute(
                "SELECT url_id, page_id, rule FROM alias WHERE learned = 0 ORDER BY url_id"
            )
        }
        gone = [identity for identity, row in present.items() if wants.get(UrlId(identity)) != row]
        for identity in gone:
            self._undo(identity)
        dropped = self._drop_needless({present[identity][0] for identity in gone} - {None})
        rewritten = [url for url in rewritten if url.url_id not in dropped]
        for url in rewritten:
            if url.url_id not in present or wants[url.url_id] != present[url.url_id]:
                self._do(url)
        self._ledger.clear_lists()
        self._await()
        excluded = sum(not url.page for url in rewritten)
        undone = sum(UrlId(identity) not in wants for identity in gone)
        return AliasChanges(len(rewritten) - excluded, excluded, undone, self._merged)

    def part_aliases(self) -> None:
        """Undoes `merge`."""
        for (identity,) in self._connection.execute(
            "SELECT url_id FROM alias WHERE learned = 1 AND was <> 'waiting' ORDER BY url_id"
        ).fetchall():
            self._undo(identity)

    def _restate(self, identity: int, reason: Reason, rule: str) -> None:
        self._ledger.restate(identity, reason, rule)
        if reason is Reason.WAITING:
            self._waiting.add(identity)

    def _mark(self, ids: set[int]) -> None:
        self._connection.execute("CREATE TEMP TABLE IF NOT EXISTS marked (id INTEGER PRIMARY KEY)")
        self._connection.execute("DELETE FROM marked")
        self._connection.executemany("INSERT INTO marked VALUES (?)", [(identity,) for identity in sorted(ids)])

    def _await(self) -> None:
        """Queues the pages that wait because of this application, unless they are queued."""
        self._mark(self._waiting)
        find = (
            "SELECT m.id FROM marked m JOIN url u ON u.id = m.id WHERE u.reason = 'waiting'"
            " AND m.id NOT IN (SELECT url_id FROM queue) ORDER BY m.id"
        )
        self._ledger.await_again([identity for (identity,) in self._connection.execute(find).fetchall()])

    def _do(self, url: RewrittenUrl) -> None:
        reason, rule, depth = self._connection.execute(
            "SELECT reason, rule, depth FROM url WHERE id = ?", (url.url_id,)
        ).fetchone()
        # a user's rule has priority over a learned alias
        if self._connection.execute("DELETE FROM alias WHERE url_id = ? AND learned = 1", (url.url_id,)).rowcount:
            reason, rule = Reason.WAITING.value, ""
        page_id = url_id(Url(url.page)) if url.page else None
        moved, page_depth = "", None
        if page_id is not None:
            page_was, page_depth = self._page_row(Url(url.page), page_id, reason, depth)
            if reason in FETCHED_REASONS:
                moved = self._take_content(url.url_id, page_id, page_was)
        row = (url.url_id, page_id, url.rule, reason, rule, moved, page_depth)
        self._connection.execute("INSERT INTO alias VALUES (?, ?, ?, 0, ?, ?, ?, ?)", row)
        self._restate(url.url_id, Reason.ALIAS if url.page else Reason.RULE, url.rule)

    def _page_row(self, page: Url, page_id: UrlId, reason: str, depth: int | None) -> tuple[str, int | None]:
        """Makes sure that the page's URL is known, and waiting if its alias was.

        Returns its previous reason, and its previous depth if that changed.
        """
        row = self._connection.execute("SELECT reason, depth FROM url WHERE id = ?", (page_id,)).fetchone()
        offered = Reason(reason) if reason in HELD_BACK else Reason.WAITING
        if row is None:
            # it then gets the alias's content and reason
            first = Reason.DEPTH if reason in FETCHED_REASONS else offered
            self._offer(page, page_id, first, depth)
            return INVENTED_URL, None
        self._offer(page, page_id, offered, depth)
        nearer = depth is not None and (row[1] is None or depth < row[1])
        return str(row[0]), (NO_DEPTH if row[1] is None else row[1]) if nearer else None

    def _offer(self, page: Url, page_id: UrlId, reason: Reason, depth: int | None) -> None:
        candidate = Candidate(page, page_id, host_key(page), site_key(page), reason, depth)
        self._ledger.offer([candidate], (), self._now)

    def _take_content(self, alias: UrlId, page: UrlId, page_was: str) -> str:
        """Moves the content of a fetched alias to its page, if the page has none.

        Returns the previous reason of the page, or empty if nothing was moved.
        """
        if (
            self._connection.execute("SELECT 1 FROM page WHERE url_id = ?", (page,)).fetchone() is not None
            or page_was in FETCHED_REASONS
        ):
            self._merged += 1
            return ""
        self._move(alias, page)
        reason, rule, status, visited = self._connection.execute(
            "SELECT reason, rule, status, visited FROM url WHERE id = ?", (alias,)
        ).fetchone()
        self._restate(page, Reason(reason), rule)
        self._connection.execute("UPDATE url SET status = ?, visited = ? WHERE id = ?", (status, visited, page))
        return page_was

    def _move(self, source: int, target: int) -> None:
        for table in ("page", "rendering"):
            self._connection.execute(f"UPDATE {table} SET url_id = ? WHERE url_id = ?", (target, source))
        move_links(SqliteStatements(self._connection), (0, source), (0, target))
        self._connection.execute("UPDATE bad_link SET source = ? WHERE source = ?", (target, source))

    def _undo(self, identity: int) -> None:
        """Restores the previous state and content of the URL and of its page."""
        find = "SELECT page_id, was, was_rule, moved, page_depth FROM alias WHERE url_id = ?"
        page_id, was, was_rule, moved, depth = self._connection.execute(find, (identity,)).fetchone()
        self._connection.execute("DELETE FROM alias WHERE url_id = ?", (identity,))
        if moved:
            self._move(page_id, identity)
            self._restate(page_id, Reason.WAITING if moved == INVENTED_URL else Reason(moved), "")
            self._connection.execute("UPDATE url SET status = NULL, visited = NULL WHERE id = ?", (page_id,))
        if depth is not None:  # of several aliases, the one that first reduced the depth has the greatest value
            self._connection.execute(
                "UPDATE url SET depth = nullif(max(depth, ?), ?) WHERE id = ?", (depth, NO_DEPTH, page_id)
            )
        self._restate(identity, Reason(was), was_rule)

    def _drop_needless(self, pages: set[int]) -> frozenset[int]:
        """Deletes URLs that only rules created; a rule that still creates one does so again."""
        self._mark(pages)
        needs = ("page_id FROM alias WHERE page_id", "target FROM link WHERE target", "url_id FROM page WHERE url_id",
            "url_id FROM visit WHERE url_id",
                 "url_id FROM start WHERE url_id", "id FROM url WHERE in_sitemap AND id")  # fmt: skip
        for need in needs if pages else ():  # one scan of each table
            self._connection.execute(f"DELETE FROM marked WHERE id IN (SELECT {need} IN (SELECT id FROM marked))")
        dropped = [page for (page,) in self._connection.execute("SELECT id FROM marked ORDER BY id").fetchall()]
        for page in dropped:
            self._ledger.forget_url(page)
        return frozenset(dropped)


def merge_aliases_in(folder: Path) -> int:
    """See `model.ports.RunStore.merge_aliases`; no crawl may be running in folder."""
    with contextlib.closing(schema.connect(folder)) as connection, contextlib.closing(schema.WriteLock(folder)) as lock:
        mergers = alias_mergers(connection)
        ledger = FolderLedger(connection, 0)
        with lock.transaction(connection):
            ledger.open()
            for merger in mergers:
                merge(connection, ledger, merger)
            ledger.close()
    return len(mergers)


def part_aliases(folder: Path, now: float) -> None:
    """Undoes `merge`, since a refresh requests each URL. Aliases are merged again if they are still equal."""
    with contextlib.closing(schema.connect(folder)) as connection, contextlib.closing(schema.WriteLock(folder)) as lock:
        ledger = FolderLedger(connection, 0)
        with lock.transaction(connection):
            ledger.open()
            Reapplication(connection, ledger, now).part_aliases()
            ledger.close()


def alias_mergers(connection: sqlite3.Connection) -> list[Merger]:
    """Finds pages that are equal to others, in one scan of the pages."""
    starts = connection.execute("SELECT u.text FROM start s JOIN url u ON u.id = s.url_id")

    def links_of(pages: Sequence[UrlId]) -> Iterator[tuple[int, Iterable[int]]]:
        find = "SELECT source, targets FROM page_links WHERE source IN (SELECT value FROM json_each(?))"
        for source, targets in connection.execute(find, (json.dumps(pages),)):
            yield source, map(int, targets.split())

    return find_aliases(_alike(connection), frozenset(Url(text) for (text,) in starts), links_of)


def _alike(connection: sqlite3.Connection) -> Iterator[AliasPage]:
    """Pages with the same text as another page."""
    find = (
        f"SELECT u.id, u.text, u.depth, p.body_md5, p.text_md5, p.canonical, {HAS_TEXT} FROM page p"
        " JOIN url u ON u.id = p.url_id"
        f" WHERE u.reason IN {any_of(MERGEABLE_REASONS)} AND u.status = 200"
        " AND p.text_md5 IN (SELECT text_md5 FROM page GROUP BY text_md5 HAVING count(*) > 1)"
    )
    return map(AliasPage._make, connection.execute(find))


def merge(connection: sqlite3.Connection, ledger: FolderLedger, merger: Merger) -> None:
    """Makes a page an alias of another. The alias keeps its row and content; the page gets the smaller depth.

    Call it within a transaction.
    """
    alias, page = merger.alias, merger.page
    reason, rule = connection.execute("SELECT reason, rule FROM url WHERE id = ?", (alias.url_id,)).fetchone()
    (depth,) = connection.execute("SELECT depth FROM url WHERE id = ?", (page.url_id,)).fetchone()
    nearer = alias.depth is not None and (depth is None or alias.depth < depth)
    if nearer:
        connection.execute("UPDATE url SET depth = ? WHERE id = ?", (alias.depth, page.url_id))
    was = (reason, rule, "", (NO_DEPTH if depth is None else depth) if nearer else None)
    connection.execute(
        "INSERT OR REPLACE INTO alias VALUES (?, ?, ?, 1, ?, ?, ?, ?)", (alias.url_id, page.url_id, merger.why, *was)
    )
    ledger.restate(alias.url_id, Reason.ALIAS, merger.why)


def fetched_pages(connection: sqlite3.Connection) -> Iterator[tuple[UrlId, Url, bytes]]:
    """(id, URL, digest of its text) of every page with a known text, including fetched aliases."""
    find = (
        "SELECT u.id, u.text, p.text_md5 FROM url u JOIN page p ON p.url_id = u.id"
        " WHERE u.reason IN ('ok', 'noindex', 'alias') ORDER BY u.id"
    )
    for identity, text, digest in connection.execute(find):
        yield UrlId(identity), Url(text), digest
