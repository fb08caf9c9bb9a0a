"""Deletes pages, a site or a run from a collection without leaving traces, in SQL for both databases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter

import numpy as np

from periplus.errors import UsageError
from periplus.features import stored_tables
from periplus.model.arrays import Ints
from periplus.model.collection import Deletion, DeletionPlan
from periplus.model.frontier import PRIORITY_WITHOUT_DEPTH
from periplus.model.tables import HAS_PAGE
from periplus.model.visit import STATE_OF, Reason
from periplus.model.web import Url, UrlId
from periplus.store.notes import change_note, count_change
from periplus.store.page_links import drop_targets
from periplus.store.reader import CollectionReader, CollectionWriter
from periplus.store.runs import add_tallies
from periplus.store.statements import Row
from periplus.urls.canonical import url_id
from periplus.urls.hosts import host_key

# URLs per transaction: takes about a second, during which other writers wait but readers do not
BATCH = 5_000
VISITS_AT_ONCE = 2_000  # visits without the number of a URL, whose URLs are looked up at a time
PAGES_AT_ONCE = 500  # pages whose links to deleted URLs are deleted at a time
HOLES = "holes"  # name of a note: segments of a database with bytes of deleted pages, one per line
# Temporary tables. `@id` stands for the key of a row, see `Dialect.expand_keys`.
TABLES = (
    "doomed ({key}, batch INTEGER NOT NULL, leaves INTEGER NOT NULL, stays INTEGER NOT NULL DEFAULT 0)",
    "chosen ({key})",
    "cited (id {whole} PRIMARY KEY, batch INTEGER NOT NULL)",  # targets of links of doomed pages
    "orphan ({key}, batch INTEGER NOT NULL)",
    "doomed_visit ({key}, batch INTEGER NOT NULL, url {whole} NOT NULL)",
    "doomed_body ({key}, batch INTEGER NOT NULL)",
    (
        "doomed_entry ({shard} host_id {whole}, priority {whole}, seq {whole}, batch INTEGER NOT NULL,"
        " PRIMARY KEY (@host_id, priority, seq)) {by_key}"
    ),
    ("inlink ({shard} source {whole}, target {whole}, batch INTEGER NOT NULL, PRIMARY KEY (@source, target)) {by_key}"),
    "gone_host ({key})",
)
_OF_SITE = "(SELECT @h.id FROM host h JOIN site s ON (@s.id) = (@h.site_id) WHERE s.key = ?)"
_ONLY_IN_RUN = (
    "SELECT @v.url_id FROM visit v LEFT JOIN freshness f ON (@f.url_id) = (@v.url_id)"
    " WHERE v.purpose = 'page' AND v.url_id <> 0 GROUP BY @v.url_id HAVING min(v.run_id) = ? AND max(v.run_id) = ?"
    " AND count(CASE WHEN v.outcome <> 'skipped' THEN 1 END) > 0"
    # and no later run found it unchanged
    " AND coalesce(max(f.checked), 0) < coalesce((SELECT min(started) FROM run WHERE id > ?), 1e99)"
)
# scans check the source first: links are stored in its order, so that this costs a tenth of checking the target
_LINKS = ("link", "link_history")
_DOOMED_IDS = "(SELECT @id FROM doomed)"
_BATCH = "(SELECT @id FROM doomed WHERE batch = :batch)"
_LEAVING = (
    "(SELECT @id FROM doomed WHERE leaves = :batch AND stays = 0 UNION ALL SELECT @id FROM orphan WHERE batch = :batch)"
)
_STAYING = "(SELECT @id FROM doomed WHERE batch = :batch AND stays = 1)"
_LATER = "(SELECT @id FROM doomed WHERE batch = :batch AND stays = 0 AND leaves > batch)"
_VISITS = "(SELECT @id FROM doomed_visit WHERE batch = :batch)"
_BODIES = "(SELECT @id FROM doomed_body WHERE batch = :batch)"
_OWN = (  # rows of the pages; all by key, so that the cost depends only on the batch
    f"DELETE FROM page WHERE (@url_id) IN {_BATCH}",
    f"DELETE FROM rendering WHERE (@url_id) IN {_BATCH}",
    f"DELETE FROM bad_link WHERE (@source) IN {_BATCH}",
    f"DELETE FROM page_links WHERE (@source) IN {_BATCH}",
    f"DELETE FROM link_history WHERE (@source) IN {_BATCH}",
    f"DELETE FROM page_history WHERE (@url_id) IN {_BATCH}",
    f"DELETE FROM freshness WHERE (@url_id) IN {_BATCH}",
    f"DELETE FROM start WHERE (@url_id) IN {_LEAVING}",
    f"DELETE FROM verdict WHERE (@url_id) IN {_LEAVING}",
    "DELETE FROM issue WHERE url_id IN (SELECT id FROM doomed WHERE batch = :batch)"
    " OR related_id IN (SELECT id FROM doomed WHERE batch = :batch)",
    f"DELETE FROM alias WHERE (@url_id) IN {_BATCH}",
    f"DELETE FROM alias WHERE (@url_id) IN {_LEAVING}",
    f"DELETE FROM look WHERE (@visit_id) IN {_VISITS}",
    f"DELETE FROM visit WHERE (@id) IN {_VISITS}",
    f"DELETE FROM xml WHERE (@body_id) IN {_BODIES}",
    f"DELETE FROM body WHERE (@id) IN {_BODIES}",
    "DELETE FROM link_history WHERE (@source, target) IN (SELECT @source, target FROM inlink WHERE batch = :batch)",
)
_REQUEST_COUNTS = (  # requests counted in totals, by host and run
    "SELECT @u.host_id, v.run_id, count(*), sum(v.wire_bytes)"
    " FROM doomed_visit d CROSS JOIN visit v ON (@v.id) = (@d.id) JOIN url u ON (@u.id) = (@d.url)"
    " WHERE d.batch = :batch AND v.outcome <> 'skipped'"
    " AND ((v.purpose = 'page' AND v.url_id <> 0) OR v.purpose IN ('head', 'check')) GROUP BY @u.host_id, v.run_id"
)

Watch = Callable[[int, int], bool]  # (URLs done, total) -> stop


class _Selection:
    """The rows to delete, in temporary tables of a reader's connection.

    A few scans of the tables find them, before anything is changed. Each row has the number of the transaction that
    deletes it: bodies with the last page that has them, URLs with the last page that links to them. So a crash between
    two transactions leaves a consistent collection, and repeating the deletion deletes the rest.
    """

    def __init__(self, reader: CollectionReader, deletion: Deletion) -> None:
        self.reader, self.deletion = reader, deletion
        self.statements, self.dialect = reader.statements, reader.statements.dialect
        reader.make_tables(TABLES)

    def rows(self, statement: str, *values: object, batch: int = 0) -> list[Row]:
        """Executes a statement with `@id` for keys, and `:batch` for the number of a transaction."""
        return self.statements.rows(self._text(statement, batch), values)

    def change(self, statement: str, *values: object, batch: int = 0) -> int:
        return self.statements.change(self._text(statement, batch), values)

    def change_rows(self, statement: str, rows: Iterable[Row]) -> None:
        self.statements.change_rows(self._text(statement, 0), rows)

    def _text(self, statement: str, batch: int) -> str:
        return self.dialect.expand_keys(statement).replace(":batch", str(batch))

    def total(self, statement: str, *values: object) -> int:
        return int(self.rows(statement, *values)[0][0] or 0)

    def settle(self, *tables: str) -> None:
        """Tells PostgreSQL's planner how many rows temporary tables have."""
        for table in tables if self.dialect.has_shards else ():
            self.statements.change(f"ANALYZE {table}")

    def _stays(self, column: str) -> str:
        """Condition: the URL is not doomed. PostgreSQL compares each row with a long list, and SQLite needs twice the
        time for the other form. Ids are unique over all shards.
        """
        if self.dialect.has_shards:
            return f"NOT EXISTS (SELECT 1 FROM doomed k WHERE k.id = {column})"
        return f"+{column} NOT IN (SELECT id FROM doomed)"

    @property
    def last_batch(self) -> int:
        """Number of the last transaction, from 0."""
        return self.total("SELECT max(batch) FROM doomed")

    def choose_urls(self) -> None:
        """Raises UsageError if the site or run does not exist."""
        deletion, dialect = self.deletion, self.dialect
        if deletion.pages:
            find = f"SELECT @u.id FROM url u WHERE {dialect.anywhere('u')}u.id {dialect.among} ON CONFLICT DO NOTHING"
            self.change(f"INSERT INTO chosen {find}", dialect.list_value(deletion.pages))
        if deletion.site is not None:
            if not self.rows("SELECT 1 FROM site WHERE key = ?", deletion.site):
                raise UsageError(
                    f"the collection has no site {deletion.site!r}; list its sites by `periplus sql 'SELECT name"
                    " FROM sites'`"
                )
            find = f"SELECT @id FROM url WHERE (@host_id) IN {_OF_SITE} ON CONFLICT DO NOTHING"
            self.change(f"INSERT INTO chosen {find}", deletion.site)
        if deletion.run:
            if not self.rows("SELECT 1 FROM run WHERE id = ?", deletion.run):
                raise UsageError(f"there is no run {deletion.run}; list the runs by `periplus status`")
            if deletion.run_pages:
                self.change(f"INSERT INTO chosen {_ONLY_IN_RUN} ON CONFLICT DO NOTHING", *[deletion.run] * 3)
        aliases = "SELECT @url_id FROM alias WHERE page_id IN (SELECT id FROM chosen) ON CONFLICT DO NOTHING"
        self.change(f"INSERT INTO chosen {aliases}")
        numbered = f"SELECT @id, (row_number() OVER (ORDER BY id) - 1) / {BATCH} AS batch FROM chosen"
        self.change(f"INSERT INTO doomed (@id, batch, leaves) SELECT @id, batch, batch FROM ({numbered}) c")
        self.settle("doomed")

    def _select(self) -> None:
        """Selects all rows that refer to the chosen URLs."""
        if not self.deletion.links_to:
            among = "IN (SELECT id FROM doomed)"
            stays = " UNION ".join(
                f"SELECT target FROM {table} l WHERE {self._stays('l.source')} AND target {among}" for table in _LINKS
            )
            stays += f" UNION SELECT id FROM url WHERE in_sitemap <> 0 AND (@id) IN {_DOOMED_IDS}"
            self.change(f"UPDATE doomed SET stays = 1 WHERE id IN ({stays} UNION SELECT url_id FROM start)")
        else:
            for table in _LINKS:
                self.change(
                    f"INSERT INTO inlink SELECT @l.source, l.target, d.batch FROM {table} l"
                    f" CROSS JOIN doomed d ON d.id = l.target WHERE {self._stays('l.source')} ON CONFLICT DO NOTHING"
                )
        fill(self.reader, _LINKS)
        self._orphans()
        self._bodies()
        self._visits()
        self._entries()
        self.settle("doomed", "inlink", "orphan", "doomed_body", "doomed_visit", "doomed_entry")

    def _orphans(self) -> None:
        """Keeps only orphans that were never requested and that nothing else refers to."""
        self.change(
            "INSERT INTO orphan SELECT @u.id, c.batch FROM cited c CROSS JOIN url u ON u.id = c.id"
            " WHERE u.visited IS NULL AND u.in_sitemap = 0"
        )
        self.settle("orphan")
        among = "IN (SELECT id FROM orphan)"
        for need in (
            f"SELECT url_id FROM page WHERE url_id {among}",
            f"SELECT url_id FROM start WHERE url_id {among}",
            f"SELECT page_id FROM alias a WHERE page_id {among} AND {self._stays('a.url_id')}",
            f"SELECT url_id FROM visit WHERE url_id {among} AND outcome <> 'skipped'",
            *(f"SELECT target FROM {table} l WHERE {self._stays('l.source')} AND target {among}" for table in _LINKS),
        ):
            self.change(f"DELETE FROM orphan WHERE id IN ({need})")

    def _bodies(self) -> None:
        for table in ("page", "page_history"):
            self.change(
                f"INSERT INTO doomed_body SELECT @p.body_id, max(d.batch) FROM doomed d"
                f" JOIN {table} p ON (@p.url_id) = (@d.id) WHERE p.body_id IS NOT NULL GROUP BY @p.body_id"
                f" ON CONFLICT (@id) DO UPDATE SET batch = {self.dialect.greatest}(doomed_body.batch, excluded.batch)"
            )
        self.settle("doomed_body")
        for table in ("page", "page_history"):
            others = (
                f"SELECT @t.body_id FROM {table} t WHERE {self._stays('t.url_id')}"
                " AND (@t.body_id) IN (SELECT @id FROM doomed_body)"
            )
            self.change(f"DELETE FROM doomed_body WHERE (@id) IN ({others})")

    def _visits(self) -> None:
        """Selects visits of the pages, and all other visits of a site or run."""
        deletion, last = self.deletion, self.last_batch
        insert = "INSERT INTO doomed_visit (@id, batch, url)"
        for table in ("doomed", "orphan"):
            self.change(
                f"{insert} SELECT @v.id, d.batch, v.url_id FROM visit v JOIN {table} d ON (@d.id) = (@v.url_id)"
                " WHERE v.url_id <> 0 ON CONFLICT DO NOTHING"
            )
        if deletion.run:
            of_run = "SELECT @id, ?, url_id FROM visit WHERE run_id = ? AND url_id <> 0 ON CONFLICT DO NOTHING"
            self.change(f"{insert} {of_run}", last, deletion.run)
        hosts = set[str]()
        if deletion.site is not None:
            of_site = self.rows(f"SELECT key FROM host WHERE (@id) IN {_OF_SITE}", deletion.site)
            hosts = {key for (key,) in of_site}
        marks = "?, ?, ?, ?" if self.dialect.has_shards else "?, ?, ?"
        for block in self._unnumbered_visits():
            batches = self._batches_of([url for *_, url in block])
            selected = [
                (*self.dialect.shard_values(shard, visit), batches.get(url, last), url)
                for shard, visit, run, text, url in block
                if url in batches or run == deletion.run or (hosts and host_key(text) in hosts)
            ]
            self.change_rows(f"{insert} VALUES ({marks})", selected)

    def _unnumbered_visits(self) -> Iterator[list[tuple[int, int, int, Url, UrlId]]]:
        """(shard, id, run, URL, number of the URL) of visits that were not requested for a page of the queue."""
        shard = "shard" if self.dialect.has_shards else "0"
        rows = self.reader.stream(f"SELECT {shard}, id, run_id, text FROM visit WHERE url_id = 0")
        while block := [(*row[:3], Url(row[3]), url_id(Url(row[3]))) for row in islice(rows, VISITS_AT_ONCE)]:
            yield block

    def _batches_of(self, urls: Sequence[UrlId]) -> dict[UrlId, int]:
        find = (f"SELECT id, batch FROM {table} WHERE id {self.dialect.among}" for table in ("doomed", "orphan"))
        return dict(self.rows(" UNION ALL ".join(find), *[self.dialect.list_value(urls)] * 2))

    def _entries(self) -> None:
        """Selects queue entries."""
        for table in ("doomed", "orphan"):
            self.change(
                "INSERT INTO doomed_entry SELECT @q.host_id, q.priority, q.seq, d.batch FROM queue q"
                f" JOIN {table} d ON (@d.id) = (@q.url_id) WHERE q.url_id <> 0 ON CONFLICT DO NOTHING"
            )
        if self.deletion.site is not None:
            find = f"SELECT @host_id, priority, seq, ? FROM queue WHERE (@host_id) IN {_OF_SITE}"
            values = self.last_batch, self.deletion.site
            self.change(f"INSERT INTO doomed_entry {find} ON CONFLICT DO NOTHING", *values)

    def plan(self) -> DeletionPlan:
        """Selects all rows and counts them. Raises UsageError if the site or run does not exist."""
        self.choose_urls()
        self._select()
        total = self.total
        urls, staying, orphans = (
            total("SELECT count(*) FROM doomed"),
            total("SELECT sum(stays) FROM doomed"),
            total("SELECT count(*) FROM orphan"),
        )
        pages, marks, parts = self.rows(
            f"SELECT count(*), count(parts), sum(length(parts)) FROM page WHERE (@url_id) IN {_DOOMED_IDS}"
        )[0]
        read = f"SELECT count(*) FROM page p JOIN url u ON (@u.id) = (@p.url_id) WHERE (@p.url_id) IN {_DOOMED_IDS}"
        in_segments = " + coalesce(b.length, 0)" if self.dialect.has_shards else ""
        bodies, texts, held = self.rows(
            "SELECT count(*), count(b.text), sum(length(b.data) + coalesce(length(b.text), 0) + "
            f"coalesce(length(b.blocks), 0){in_segments})"
            " FROM doomed_body d JOIN body b ON (@b.id) = (@d.id)"
        )[0]
        size = int(held or 0) + int(parts or 0)
        size += total("SELECT sum(length(x.data)) FROM doomed_body d JOIN xml x ON (@x.body_id) = (@d.id)")
        rendered = "sum(length(sent) + coalesce(length(screenshot), 0))"
        size += total(f"SELECT {rendered} FROM rendering WHERE (@url_id) IN {_DOOMED_IDS}")
        size += total("SELECT sum(length(v.head)) FROM doomed_visit d JOIN visit v ON (@v.id) = (@d.id)")
        past = sum(
            total(f"SELECT count(*) FROM {table} WHERE (@url_id) IN {_DOOMED_IDS}")
            for table in ("url_history", "page_history")
        )
        past += total("SELECT count(*) FROM doomed d JOIN link_history l ON (@l.source) = (@d.id)")
        return DeletionPlan(
            urls, int(pages), urls - staying + orphans, orphans, staying, total("SELECT count(*) FROM doomed_visit"),
            total("SELECT count(*) FROM doomed d JOIN link l ON (@l.source) = (@d.id)"),
            total("SELECT count(*) FROM inlink i CROSS JOIN link l"
                  " ON (@l.source) = (@i.source) AND l.target = i.target"),
            bodies, int(texts or 0), int(marks or 0), total(f"{read} AND {HAS_PAGE}"), past, size,
            self.last_batch + 1 if urls or self.deletion.run else 0,
        )  # fmt: skip


def fill(reader: CollectionReader, tables: Iterable[str]) -> None:
    """Sets `leaves` of each row of doomed: its own batch, or the last batch of a page that links to it, since a link
    must not lead to a missing URL in between.

    Stores other link targets of those pages in cited, with the last of their batches. tables: tables of links.
    """
    expand_keys, change_rows = reader.statements.dialect.expand_keys, reader.statements.change_rows
    find = "SELECT id, batch FROM doomed ORDER BY id"
    doomed = np.concatenate([np.zeros((0, 2), np.int64), *reader.numbers(find, 2)])
    ids, leaves = doomed[:, 0].copy(), doomed[:, 1].copy()
    outside = [np.zeros((0, 2), np.int64)]
    for table in tables if len(ids) else ():
        links = f"SELECT l.target, d.batch FROM doomed d CROSS JOIN {table} l ON (@l.source) = (@d.id)"
        for block in reader.numbers(expand_keys(links), 2):
            target, batch = block[:, 0], block[:, 1]
            place = np.minimum(np.searchsorted(ids, target), len(ids) - 1)
            goes = ids[place] == target
            np.maximum.at(leaves, place[goes], batch[goes])
            outside.append(_latest(block[~goes]))
    late = leaves > doomed[:, 1]
    later = zip(leaves[late].tolist(), ids[late].tolist(), strict=True)
    change_rows("UPDATE doomed SET leaves = ? WHERE id = ?", later)
    change_rows("INSERT INTO cited VALUES (?, ?)", _latest(np.concatenate(outside)).tolist())


def _latest(rows: Ints) -> Ints:
    """Distinct targets, each with its greatest batch."""
    ordered = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    last = np.ones(len(ordered), bool)
    last[:-1] = ordered[1:, 0] != ordered[:-1, 0]
    return ordered[last]


def plan_deletion(reader: CollectionReader, deletion: Deletion) -> DeletionPlan:
    """Plan of a deletion, without changes. Call it once for a reader, outside a snapshot. Raises UsageError."""
    selection = _Selection(reader, deletion)
    with reader.snapshot():
        return selection.plan()


def count_deletion(reader: CollectionReader, deletion: Deletion) -> int:
    """Number of URLs selected by a deletion; fast. Call it as `plan_deletion`. Raises UsageError."""
    selection = _Selection(reader, deletion)
    with reader.snapshot():
        selection.choose_urls()
        return selection.total("SELECT count(*) FROM doomed")


# Each transaction deletes some thousand URLs with all their rows and keeps all totals correct, so that a crash loses
# nothing but time. Deleted rows are overwritten in a folder's file. Depths are not recomputed, as after a refresh. The
# counts of new and changed pages of runs stay too, since they describe the past.


def delete(writer: CollectionWriter, deletion: Deletion, watch: Watch) -> DeletionPlan:
    """Deletes until watch returns True. No crawl may be running. Returns the plan. Raises as `plan_deletion`."""
    selection = _Selection(writer.reader, deletion)
    with writer.transaction():  # otherwise each row would be a transaction of the temporary file
        plan = selection.plan()
    last = selection.last_batch
    for batch in range(plan.batches):
        with writer.transaction():
            newest = selection.total("SELECT max(id) FROM visit")
            _delete_batch(selection, batch)
            if batch == last:
                _end(selection)
            _renumber_last_visit(selection, newest + 1)
            count_change(selection.statements)
        if watch(min((batch + 1) * BATCH, plan.urls), plan.urls) and batch < last:
            break
    return plan


def _renumber_last_visit(selection: _Selection, number: int) -> None:
    """Changes the id of the last visit to `number`, which is greater than all ids used before.

    Computed results are valid as long as the last visit has the same id, so this invalidates them.
    """
    last = selection.rows("SELECT max(id) FROM visit")[0][0]
    if selection.dialect.has_sequences:
        number = selection.total("SELECT nextval(pg_get_serial_sequence('visit', 'id'))")
    for table, column in (("visit", "id"), ("look", "visit_id"), ("doomed_visit", "id")):
        where = f"{selection.dialect.anywhere(table)}{column} = ?"
        selection.change(f"UPDATE {table} SET {column} = ? WHERE {where}", number, last)


def _delete_batch(selection: _Selection, batch: int) -> None:
    change = selection.change
    _reduce_totals(selection, batch)
    _delete_queue_entries(selection, batch)
    used = f"SELECT DISTINCT dictionary_id FROM body WHERE (@id) IN {_BODIES} AND dictionary_id IS NOT NULL"
    dictionaries = selection.rows(used, batch=batch)
    for table in stored_tables():
        if table.url:
            of_pages = f"{table.url} IN (SELECT text FROM url WHERE (@id) IN {_BATCH})"
            change(f"DELETE FROM {table.name} WHERE {of_pages}", batch=batch)
    if selection.dialect.has_shards:
        _note_segments(selection, batch)
    for statement in _OWN:
        change(statement, batch=batch)
    _delete_links_to(selection, batch)
    for (dictionary,) in dictionaries:
        if not selection.rows("SELECT 1 FROM body WHERE dictionary_id = ? LIMIT 1", dictionary):
            change("UPDATE site SET dictionary_id = NULL WHERE dictionary_id = ?", dictionary)
            change("DELETE FROM dictionary WHERE id = ?", dictionary)
    _restate(selection, batch)


def _note_segments(selection: _Selection, batch: int) -> None:
    """Notes the segments that hold bytes of deleted bodies, which are removed after the last transaction."""
    find = f"SELECT DISTINCT segment FROM body WHERE (@id) IN {_BODIES} AND segment IS NOT NULL"
    if names := {str(name) for (name,) in selection.rows(find, batch=batch)}:
        change_note(selection.statements, HOLES, lambda text: "\n".join(sorted(names.union(text.split()))))


def _delete_links_to(selection: _Selection, batch: int) -> None:
    shard = "shard" if selection.dialect.has_shards else "0"
    find = f"SELECT {shard}, source, target FROM inlink WHERE batch = :batch ORDER BY 1, 2"
    listed = groupby(selection.rows(find, batch=batch), itemgetter(0, 1))
    pages = [(place, frozenset(target for *_, target in rows)) for place, rows in listed]
    for start in range(0, len(pages), PAGES_AT_ONCE):
        drop_targets(selection.statements, dict(pages[start : start + PAGES_AT_ONCE]))


def _reduce_totals(selection: _Selection, batch: int) -> None:
    dialect, change_rows = selection.dialect, selection.change_rows
    counts = [(*row[:-1], int(row[-1] or 0)) for row in selection.rows(_REQUEST_COUNTS, batch=batch)]
    of_host = [(count, *host) for *host, _, count, _ in counts]
    less = f"fetched = {dialect.greatest}(0, fetched - ?)"
    change_rows(f"UPDATE host SET {less} WHERE {dialect.here}id = ?", of_host)
    of_run = [(run_id, count, wire) for *_, run_id, count, wire in counts]
    if dialect.has_shards:  # counters of runs have a row per writer
        add = (
            "INSERT INTO run_count (run_id, name, value) VALUES (?, ?, ?)"
            " ON CONFLICT (run_id, part, name) DO UPDATE SET value = run_count.value + excluded.value"
        )
        change_rows(add, [(run_id, "fetched", -count) for run_id, count, _ in of_run])
        change_rows(add, [(run_id, "wire_bytes", -wire) for run_id, _, wire in of_run])
    else:
        change_rows(f"UPDATE site SET {less} WHERE id = (SELECT site_id FROM host WHERE id = ?)", of_host)
        update = f"UPDATE run SET {less}, wire_bytes = max(0, wire_bytes - ?) WHERE id = ?"
        change_rows(update, [(count, wire, run_id) for run_id, count, wire in of_run])


def _delete_queue_entries(selection: _Selection, batch: int) -> None:
    entries = "SELECT count(*), @host_id FROM doomed_entry WHERE batch = :batch GROUP BY @host_id"
    update = f"UPDATE host SET pending = pending - ? WHERE {selection.dialect.here}id = ?"
    selection.change_rows(update, selection.rows(entries, batch=batch))
    listed = "SELECT @host_id, priority, seq FROM doomed_entry WHERE batch = :batch"
    selection.change(f"DELETE FROM queue WHERE (@host_id, priority, seq) IN ({listed})", batch=batch)


def _restate(selection: _Selection, batch: int) -> None:
    """Sets the reason of URLs that stay and deletes those that leave; URLs that leave later get DELETED until then."""
    reason = Reason.WAITING if selection.deletion.again else Reason.DELETED
    tallies: Counter[str] = Counter()
    for group in (_STAYING, _LATER, _LEAVING):
        find = f"SELECT reason, count(*) FROM url WHERE (@id) IN {group} GROUP BY reason"
        for name, count in selection.rows(find, batch=batch):
            tallies[f"reason:{name}"] -= count
    gone = f"SELECT DISTINCT @host_id FROM url WHERE (@id) IN {_LEAVING} ON CONFLICT DO NOTHING"
    selection.change(f"INSERT INTO gone_host {gone}", batch=batch)
    tallies["known"] -= selection.change(f"DELETE FROM url WHERE (@id) IN {_LEAVING}", batch=batch)
    for group, becomes in ((_STAYING, reason), (_LATER, Reason.DELETED)):
        names = (becomes.value, STATE_OF[becomes].value)
        selection.change("INSERT INTO reason VALUES (?, ?) ON CONFLICT DO NOTHING", *names)
        update = f"UPDATE url SET reason = ?, rule = '', status = NULL, visited = NULL WHERE (@id) IN {group}"
        tallies[f"reason:{becomes.value}"] += selection.change(update, becomes.value, batch=batch)
    # after the update, since a trigger writes the previous state
    for group in (_BATCH, _LEAVING):
        selection.change(f"DELETE FROM url_history WHERE (@url_id) IN {group}", batch=batch)
    add_tallies(selection.statements, tallies)
    if reason is Reason.WAITING:
        _enqueue(selection, batch)


def _enqueue(selection: _Selection, batch: int) -> None:
    has_sequences = selection.dialect.has_sequences
    seq = 0 if has_sequences else selection.total("SELECT value FROM meta WHERE name = 'seq'")
    order = f"depth, text{selection.dialect.text_order}"
    column, number = ("", "") if has_sequences else (", seq", f", {seq} + row_number() OVER (ORDER BY {order})")
    added = selection.change(
        f"INSERT INTO queue (@host_id, priority, url_id{column}) SELECT @host_id, coalesce(depth, ?), id{number}"
        f" FROM url WHERE (@id) IN {_STAYING} ORDER BY {order}",
        PRIORITY_WITHOUT_DEPTH,
        batch=batch,
    )
    if not has_sequences:
        selection.change("UPDATE meta SET value = ? WHERE name = 'seq'", str(seq + added + 1))
    hosts = f"SELECT count(*), @host_id FROM url WHERE (@id) IN {_STAYING} GROUP BY @host_id"
    update = f"UPDATE host SET pending = pending + ? WHERE {selection.dialect.here}id = ?"
    selection.change_rows(update, selection.rows(hosts, batch=batch))


def _end(selection: _Selection) -> None:
    """Deletes hosts and sites without URLs, and the run's own rows."""
    site, change = selection.deletion.site, selection.change
    gone = "(SELECT @id FROM gone_host)"
    if site is not None:
        change(f"INSERT INTO gone_host SELECT @id FROM host WHERE (@id) IN {_OF_SITE} ON CONFLICT DO NOTHING", site)
        if not selection.dialect.has_shards:  # evidence exists only in folders
            change("DELETE FROM evidence WHERE site_id = (SELECT id FROM site WHERE key = ?)", site)
    change(f"DELETE FROM gone_host WHERE (@id) IN (SELECT @host_id FROM url WHERE (@host_id) IN {gone})")
    change("DELETE FROM gone_host WHERE (@id) IN (SELECT @id FROM host WHERE pending > 0)")
    keys = {key for (key,) in selection.rows(f"SELECT key FROM host WHERE (@id) IN {gone}")}
    origins = selection.rows("SELECT origin FROM robots") if keys else ()
    its_own = [origin for (origin,) in origins if host_key(Url(f"{origin}/")) in keys]
    change(f"DELETE FROM robots WHERE origin {selection.dialect.among}", selection.dialect.list_value(its_own))
    for table in ("family", "shown"):
        change(f"DELETE FROM {table} WHERE (@host_id) IN {gone}")
    change("DELETE FROM doubtful WHERE NOT EXISTS (SELECT 1 FROM url u WHERE (@u.id) = (@doubtful.url_id))")
    emptied = selection.rows(f"SELECT DISTINCT site_id FROM host WHERE (@id) IN {gone}")
    change(f"DELETE FROM host WHERE (@id) IN {gone}")
    for (number,) in emptied:
        if not selection.rows("SELECT 1 FROM host WHERE site_id = ? LIMIT 1", number):
            if not selection.dialect.has_shards:
                change("DELETE FROM evidence WHERE site_id = ?", number)
            change("DELETE FROM dictionary WHERE id = (SELECT dictionary_id FROM site WHERE id = ?)", number)
            change("DELETE FROM site WHERE id = ?", number)
    if selection.deletion.run:
        _end_run(selection, selection.deletion.run)


def _end_run(selection: _Selection, run_id: int) -> None:
    """Deletes a run's record.

    Its history rows are moved to the next run, so that earlier runs can still be compared.
    """
    following = selection.rows("SELECT min(id) FROM run WHERE id > ?", run_id)[0][0]
    link = "source, target, kind, position, nofollow"
    for table, key in (("url_history", "url_id"), ("page_history", "url_id"), ("link_history", link)):
        if following is not None:
            own = key.replace(", ", f", {table}.")
            same = f"(@o.{key.replace(', ', ', o.')}) = (@{table}.{own})"
            replaced = f"SELECT 1 FROM {table} o WHERE o.run_id = ? AND {same}"
            selection.change(f"DELETE FROM {table} WHERE run_id = ? AND EXISTS ({replaced})", following, run_id)
            selection.change(f"UPDATE {table} SET run_id = ? WHERE run_id = ?", following, run_id)
    for table in ("run_count", "issue"):
        selection.change(f"DELETE FROM {table} WHERE run_id = ?", run_id)
    selection.change("DELETE FROM run WHERE id = ?", run_id)
