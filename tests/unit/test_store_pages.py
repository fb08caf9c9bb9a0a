"""Pages in the store: round trips, atomicity after a kill, and errors of the store."""

import gzip
import hashlib
import random
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace

import pytest

from contracts.crawl_values import batch, candidate, completion, state
from periplus.errors import NoCollection, StoreError
from periplus.model.page import (
    BadLink,
    Block,
    BlockKind,
    Blocks,
    Charset,
    Digests,
    Document,
    Link,
    LinkKind,
    Links,
    Position,
)
from periplus.model.visit import Cut, Fetched, Headers, Reason, Redirected
from periplus.settings import Budget, Settings, Storage
from periplus.store.sqlite import schema
from periplus.store.sqlite.frontier import FolderHome, SqliteCrawlStore
from periplus.store.sqlite.listing import SqliteReader
from periplus.urls.canonical import url_id

HOME = "http://a.test/"
HTML = Headers((("content-type", "text/html"), ("etag", '"1"')))


def document(body, text="", links=(), bad=(), digest=None):
    """A document with this body. digest: instead of the true one."""
    md5 = digest or hashlib.md5(body).digest()
    digests = Digests(md5, hashlib.md5(text.encode()).digest(), b"\0" * 16)
    said = ("text/html", Charset("utf-8", "meta"), "en", "A title", "What it is about")
    return Document(
        *said, Blocks.plain(text), Links.of(links), tuple(bad), digests, False, False, HOME, 1.5, 0.0, "A heading"
    )


def link(target, anchor="", kind=LinkKind.ANCHOR):
    return Link(HOME + target, kind, Position.MAIN, anchor, fragments=("top", "end"))


class StoreWithWorker:
    """A store with a worker that has leased a host, for adding pages."""

    def __init__(self, folder, storage=Storage()):  # noqa: B008 - frozen
        if not schema.exists(folder):
            schema.create(folder)
        self.folder, self.now = folder, 10.0
        run_id = FolderHome(folder).begin_run("crawl", (), Settings(), 0.0)
        self.store = SqliteCrawlStore(folder, run_id, Budget(), storage)
        self.worker = self.store.join(1, 0.0)
        self.connection = schema.connect(folder)

    def visits(self, pages):
        """A batch of visits as a worker commits them. pages: (path, outcome, document)."""
        self.store.offer([candidate(HOME + path) for path, _, _ in pages], (), self.now)
        run = self.connection.execute  # queued again, as for a refresh
        for path, _, _ in pages:
            run(
                "UPDATE url SET reason = 'waiting', depth = NULL WHERE id = ? AND reason <> 'waiting'",
                (url_id(HOME + path),),
            )
        self.store.offer([candidate(HOME + path) for path, _, _ in pages], (), self.now)
        (lease,) = self.store.lease(self.worker, [1], self.now)
        tasks = {task.request.url: task for task in self.store.take(lease, 1000, frozenset(), self.now)[0]}
        done = [
            completion(lease, tasks[HOME + path], Reason.OK, outcome, document=document)
            for path, outcome, document in pages
        ]
        return batch(*done, hosts=[state(lease, 0.0)])

    def put(self, *pages):
        self.store.commit(self.worker, self.visits(pages), self.now)
        self.now += 10.0

    def page(self, path, body, text="", **more):
        self.put((path, Fetched(200, HTML, body), document(body, text, **more)))

    def rows(self, query, *values):
        return self.connection.execute(query, values).fetchall()

    @property
    def contents(self):
        return SqliteReader(self.connection)


@pytest.fixture
def writer(tmp_path):
    writer = StoreWithWorker(tmp_path)
    yield writer
    writer.store.close()


def some_html(seed, size=3000):
    """A random page; all have the same template."""
    words = random.Random(seed).choices(["harbour", "coast", "landmark", "shoal", "anchorage", "wind"], k=size // 8)
    return (
        "<!doctype html><title>A periplus</title><nav>"
        + "".join(f"<a href=/port/{at * at}>Port {at}</a>" for at in range(60))
        + "</nav><p>"
        + " ".join(words)
    ).encode()


# round trips


def test_body_and_text_are_read_back(writer):
    body, text = b"\x00\xff<p>na\xc3\xafve" * 50, "naïve ☃ \x00 line\nline"
    writer.page("", body, text)
    assert writer.contents.body(url_id(HOME)) == body
    assert writer.contents.text(url_id(HOME)) == text
    assert writer.contents.body(url_id(HOME + "other")) is None


def test_facts_of_a_page_are_read_back(writer):
    fetched = Fetched(200, HTML, b"<p>short", Cut.SHORT)
    writer.put(("", fetched, document(b"<p>short", "short")))
    columns = (
        "media_type, size, wire_bytes, charset, charset_source, language, title, h1, canonical, cut, etag, "
        "text_chars, body_digest, last_modified"
    )
    said = ("text/html", 8, 100, "utf-8", "meta", "en", "A title", "A heading", HOME, "shorter-than-declared", '"1"', 5)
    assert writer.rows(f"SELECT {columns} FROM page") == [(*said, hashlib.md5(b"<p>short").digest(), 1.5)]


def test_a_body_that_was_not_read_has_its_content_length(writer):
    headers = Headers((("content-type", "video/mp4"), ("content-length", "123456789")))
    writer.put(("", Fetched(200, headers, b"", Cut.NOT_WANTED), document(b"")))
    assert writer.rows("SELECT size, body_id FROM page") == [(123456789, None)]


@pytest.mark.parametrize(("bodies", "texts"), [(True, False), (False, True), (False, False)])
def test_settings_decide_what_is_stored(tmp_path, bodies, texts):
    writer = StoreWithWorker(tmp_path, Storage(keep_bodies=bodies, keep_text=texts))
    blocks = Blocks.of([Block(BlockKind.PARAGRAPH, "here", "p")])
    for path in ("", "2"):
        writer.put((path, Fetched(200, Headers(), b"<p>here"), replace(document(b"<p>here", "here"), blocks=blocks)))
    assert writer.contents.body(url_id(HOME)) == (b"<p>here" if bodies else None)
    assert [blocks is not None for (blocks,) in writer.rows("SELECT blocks FROM body")] == [texts] * (bodies or texts)
    assert writer.contents.text(url_id(HOME + "2")) == ("here" if texts else None)
    assert writer.rows("SELECT count(*) FROM body") == [(int(bodies or texts),)]
    writer.store.close()


# duplicates


def test_equal_bodies_are_stored_once(writer):
    writer.page("1", b"<p>same", "same")
    writer.page("2", b"<p>same", "same")
    assert writer.rows("SELECT count(*), count(DISTINCT body_id) FROM page") == [(2, 1)]
    assert writer.rows("SELECT count(*) FROM body") == [(1,)]


def test_a_forged_digest_does_not_return_another_page(writer):
    forged = b"\x42" * 16
    writer.page("1", b"<p>good", "good", digest=forged)
    writer.page("2", b"<p>evil", "good", digest=forged)
    assert [writer.contents.body(url_id(HOME + path)) for path in "12"] == [b"<p>good", b"<p>evil"]


def test_equal_bodies_with_different_texts_keep_their_texts(writer):
    writer.page("1", b"<p>\xe9", "\u00e9")
    writer.page("2", b"<p>\xe9", "\u0439")
    assert [writer.contents.text(url_id(HOME + path)) for path in "12"] == ["\u00e9", "\u0439"]


# a second visit


def test_a_second_visit_replaces_links_and_keeps_first_seen(writer):
    bad = BadLink("javascript:void(0)", LinkKind.ANCHOR, Position.NAV, "menu", "javascript")
    writer.page("", b"1", links=[link("stays", "old"), link("goes")], bad=[bad])
    writer.page("", b"2", links=[link("stays", "new"), link("comes")])
    found = writer.rows("SELECT target, anchor, fragments, first_seen, last_seen FROM link ORDER BY first_seen")
    stays, comes = (url_id(HOME + path) for path in ("stays", "comes"))
    assert found == [(stays, "new", "top end", 10.0, 20.0), (comes, "", "top end", 20.0, 20.0)]
    assert writer.rows("SELECT * FROM bad_link") == []
    assert writer.contents.body(url_id(HOME)) == b"2"
    writer.page("", b"3", bad=[bad, replace(bad, why="tel")])
    assert writer.rows("SELECT why FROM bad_link") == [("javascript",), ("tel",)]


@pytest.mark.parametrize("number", [0, 19, 20, 21, 45])
def test_any_number_of_links_is_stored(writer, number):
    writer.page("", b"1", links=[link(str(at), f"to {at}") for at in range(number)])
    writer.page("", b"2", links=[link(str(at), f"now {at}") for at in range(number)])
    assert sorted(writer.rows("SELECT target, anchor, first_seen, last_seen FROM link")) == sorted(
        (url_id(HOME + str(at)), f"now {at}", 10.0, 20.0) for at in range(number)
    )


def test_a_redirect_is_a_link_with_its_own_kind(writer):
    writer.put(("old", Redirected(301, HTML, HOME + "new", "part"), None))
    assert writer.rows("SELECT source, target, kind, fragments FROM link") == [
        (url_id(HOME + "old"), url_id(HOME + "new"), "redirect", "part")
    ]


def test_a_large_body_in_gzip_format_is_stored_as_sent(writer):
    for name, times, is_sent in (("large", 1000, True), ("small", 100, False)):
        body = b"<p>some words" * times
        sent = gzip.compress(body)
        writer.put((name, Fetched(200, HTML, body, sent=sent), document(body, name)))
        assert (writer.rows("SELECT data FROM body ORDER BY id DESC LIMIT 1") == [(sent,)]) == is_sent
        assert (writer.contents.body(url_id(HOME + name)), writer.contents.text(url_id(HOME + name))) == (body, name)
    writer.page("copy", b"<p>some words" * 1000, "large")
    assert writer.rows("SELECT count(*) FROM body") == [(2,)], "compared with what it was sent as"


# dictionaries


def test_a_site_with_enough_pages_gets_a_dictionary_for_all_processes(writer):
    for start in (0, 100, 200):
        pages = [some_html(seed) for seed in range(start, start + 100)]
        writer.put(*[(str(start + at), Fetched(200, HTML, body), document(body, "t")) for at, body in enumerate(pages)])
    assert writer.rows("SELECT count(*) FROM dictionary") == [(1,)]
    newest = some_html(999)
    writer.page("newest", newest)
    assert writer.rows("SELECT dictionary_id FROM body ORDER BY id DESC LIMIT 1") == [(1,)]
    plain, packed = (
        writer.rows("SELECT avg(length(data)) FROM body WHERE dictionary_id " + what)[0][0]
        for what in ("IS NULL", "= 1")
    )
    assert packed < plain * 0.85
    ask = (
        "import sys; from periplus.store.sqlite import schema; from periplus.store.sqlite.listing import "
        "SqliteReader; from pathlib import Path\n"
    )
    ask += (
        f"sys.stdout.buffer.write(SqliteReader(schema.connect(Path({str(writer.folder)!r}), "
        f"read_only=True)).body({url_id(HOME + 'newest')}))"
    )
    assert subprocess.run([sys.executable, "-c", ask], capture_output=True, check=True).stdout == newest
    assert writer.contents.body(url_id(HOME + "7")) == some_html(7), "a page from before the dictionary"


def test_a_site_whose_pages_compress_better_with_their_text_gets_no_dictionary(writer):
    words = [some_html(seed)[-2500:].decode() for seed in range(210)]
    pages = [(f"<p>{text}".encode(), f"{at} {text}") for at, text in enumerate(words)]
    writer.put(*[(str(at), Fetched(200, HTML, body), document(body, text)) for at, (body, text) in enumerate(pages)])
    writer.page("next", *pages[0])
    assert writer.rows("SELECT count(*) FROM dictionary") == [(0,)]
    assert writer.rows("SELECT sum(length(data)) * 5 < sum(length(text)) * 4 FROM body") == [(1,)]
    assert (writer.contents.body(url_id(HOME + "7")), writer.contents.text(url_id(HOME + "7"))) == pages[7]


def test_a_page_compressed_differently_is_the_same_page(writer):
    """It was compressed together with its text before the site had a dictionary, and separately since then."""
    pages = [some_html(seed) for seed in range(210)]
    writer.put(*[(str(at), Fetched(200, HTML, body), document(body, "text")) for at, body in enumerate(pages)])
    writer.page("next", b"<p>next", "other")
    before = writer.rows("SELECT count(*) FROM body")
    writer.page("again", pages[3], "text")
    assert writer.rows("SELECT count(*) FROM dictionary") == [(1,)]
    assert writer.rows("SELECT count(*) FROM body") == before


def test_a_failed_dictionary_is_not_tried_again_at_every_commit(writer, monkeypatch):
    tried = []
    monkeypatch.setattr("periplus.store.sqlite.ledger.dictionary_for", lambda pages: tried.append(len(pages)) or b"")
    writer.put(*[(f"e{at}", Fetched(200, HTML, b"x"), document(b"x")) for at in range(210)])
    for at in range(5):
        writer.page(str(at), b"y%d" % at)
    assert len(tried) == 1


# a kill


class Killed(BaseException):
    """Raised by a test instead of a kill."""


def breaking(monkeypatch, before_statement):
    """Makes connections call `before_statement` before each statement."""

    class Connection(sqlite3.Connection):
        def execute(self, *statement):
            before_statement(statement[0])
            return super().execute(*statement)

        def executemany(self, *statement):
            before_statement(statement[0])
            return super().executemany(*statement)

    plain = sqlite3.connect
    monkeypatch.setattr(schema.sqlite3, "connect", lambda *place, **more: plain(*place, factory=Connection, **more))


def everything(folder):
    """All rows of pages, read with another connection."""
    connection = schema.connect(folder)
    tables = ("page", "body", "link", "bad_link", "visit", "queue", "url", "tally", "run")
    found = {table: sorted(map(repr, connection.execute(f"SELECT * FROM {table}"))) for table in tables}
    found["host"] = connection.execute("SELECT id, pending, fetched, lease_by IS NULL FROM host").fetchall()
    connection.close()
    return found


def test_a_kill_between_any_two_statements_leaves_a_complete_batch_or_none(tmp_path, monkeypatch):
    """Checks the files at the time of the kill, and the connection after an exception."""
    state = {"at": 0, "stop": -1, "watching": False}
    folder, copies = tmp_path / "c", tmp_path / "copies"

    def before(statement):
        if state["watching"] and not statement.startswith("SELECT"):
            state["at"] += 1
            shutil.copytree(folder, copies / str(state["at"]))
            if state["at"] == state["stop"]:
                state["watching"] = False
                raise Killed

    breaking(monkeypatch, before)
    writer = StoreWithWorker(folder)
    writer.page("old", b"<p>old", "old", links=[link("a")])
    bad = BadLink("tel:1", LinkKind.ANCHOR, Position.NAV, "", "tel")
    work = writer.visits(
        [
            (path, Fetched(200, HTML, path.encode()), document(path.encode(), path, [link("a"), link("b")], [bad]))
            for path in ("old", "new")
        ]
    )
    before_all = everything(folder)
    state["watching"] = True
    state["stop"] = 7
    with pytest.raises(Killed):
        writer.store.commit(writer.worker, work, 20.0)
    assert everything(folder) == before_all, "rolled back"
    shutil.rmtree(copies)
    state.update(at=0, stop=-1, watching=True)
    writer.store.commit(writer.worker, work, 20.0)
    state["watching"] = False
    assert state["at"] > 15, "the test sees the statements"
    for copy in copies.iterdir():
        assert everything(copy) == before_all
    after = everything(folder)
    assert len(after["page"]) == 2
    assert len(after["link"]) == 4
    writer.store.close()


def test_a_kill_during_creation_leaves_no_collection(tmp_path, monkeypatch):
    at = iter(range(100))

    def before(statement):
        if next(at) == 2:
            raise Killed

    with monkeypatch.context() as patch:
        breaking(patch, before)
        with pytest.raises(Killed):
            schema.create(tmp_path)
    assert not schema.exists(tmp_path)
    schema.create(tmp_path)
    assert schema.exists(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [schema.DATABASE]


# errors of the store


@pytest.mark.parametrize("read_only", [True, False])
def test_a_collection_that_is_deleted_while_it_is_opened_is_not_created_anew(tmp_path, read_only):
    """A first crawl that fails deletes its collection; a screen may be reading it at that moment."""
    path = tmp_path / "c.periplus" / schema.DATABASE
    schema.create(path.parent)

    def delete_before_opening(event, values):
        if event == "sqlite3.connect" and str(path) in str(values[0]):
            path.unlink(missing_ok=True)

    sys.addaudithook(delete_before_opening)
    with pytest.raises(NoCollection):
        schema.connect(path.parent, read_only=read_only)
    assert list(path.parent.iterdir()) == []


def test_a_missing_collection_is_reported_with_advice(tmp_path):
    with pytest.raises(NoCollection, match=r"has no collection\. `periplus crawl URL"):
        schema.connect(tmp_path)


def test_a_newer_schema_is_refused(writer):
    writer.rows("UPDATE meta SET value = '99' WHERE name = 'schema'")
    with pytest.raises(StoreError, match=r"schema 99; this program supports \d+\. Use another"):
        schema.connect(writer.folder)


@pytest.mark.parametrize("content", [b"this is no database" * 100, b""])
def test_an_invalid_database_is_refused(tmp_path, content):
    (tmp_path / schema.DATABASE).write_bytes(content)
    with pytest.raises(StoreError, match=r"cannot be read as a collection.*Restore it"):
        schema.connect(tmp_path)


def test_a_collection_cannot_be_created_over_another(writer):
    with pytest.raises(StoreError, match="holds a collection already"):
        schema.create(writer.folder)
    schema.connect(writer.folder).close()


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StoreError, match=r"Choose another folder|Is the disk full"):
            schema.create(folder)


def test_a_full_disk_is_reported_and_the_batch_rolled_back(writer):
    writer.page("1", b"<p>1")
    before = everything(writer.folder)
    run = writer.store._connection.execute
    pages = run("PRAGMA page_count").fetchone()[0]
    run(f"PRAGMA max_page_count = {pages}")
    body = random.Random(1).randbytes(200_000)
    work = writer.visits([("2", Fetched(200, HTML, body), document(body))])
    with pytest.raises(StoreError, match=r"cannot be written: .*full\. Is the disk full"):
        writer.store.commit(writer.worker, work, 30.0)
    run("PRAGMA max_page_count = 1000000")
    assert everything(writer.folder)["page"] == before["page"]
    writer.store.commit(writer.worker, work, 31.0)
    assert writer.contents.body(url_id(HOME + "2")) == body


def test_a_read_only_disk_is_reported(writer):
    writer.store._connection.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError, match=r"cannot be written: .*readonly.*Is the disk full, or the folder read-only\?"):
        writer.store.join(1, 0.0)


def test_a_damaged_file_is_reported(writer):
    writer.page("1", random.Random(2).randbytes(300_000))
    writer.store.close()
    path = writer.folder / schema.DATABASE
    raw = bytearray(path.read_bytes())
    raw[8192:] = random.Random(3).randbytes(len(raw) - 8192)
    path.write_bytes(raw)
    with pytest.raises(StoreError, match="Restore it from a copy"):
        schema.connect(writer.folder)
    writer.store = SqliteCrawlStore.__new__(SqliteCrawlStore)
    writer.store.close = lambda: None


MOUNTS = """overlay / overlay rw 0 0
server:/export /mnt/far nfs4 rw 0 0
/dev/sdb1 /mnt/far/near ext4 rw 0 0
//box/share /mnt/with\\040space cifs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/mnt/far", "nfs4"),
        ("/mnt/far/x", "nfs4"),
        ("/mnt/farther", "overlay"),
        ("/mnt/far/near/x", "ext4"),
        ("/mnt/with space/x", "cifs"),
    ],
)
def test_the_file_system_of_a_folder_is_that_of_its_nearest_mount(folder, kind, tmp_path):
    assert schema.file_system_of(type(tmp_path)(folder), MOUNTS) == kind


def test_network_disks_are_refused(tmp_path, monkeypatch):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"x {tmp_path} nfs rw 0 0\n")
    with pytest.raises(StoreError, match=r"network file system \(nfs\).*Choose a folder on a local disk"):
        schema.refuse_network_disk(tmp_path / "c", mounts)
    schema.refuse_network_disk(tmp_path, tmp_path / "no such file")


def test_the_write_lock_excludes_another_process(tmp_path):
    """The other process gets the lock only after it was released here."""
    schema.create(tmp_path)
    other = "import sys; from pathlib import Path; from periplus.store.sqlite import schema\n"
    other += (
        f"folder = Path({str(tmp_path)!r}); c = schema.connect(folder); lock = schema.WriteLock(folder); "
        "print('waits', flush=True)\n"
    )
    other += (
        'with lock.transaction(c): print(c.execute("SELECT value FROM meta'
        " WHERE name = 'mark'\").fetchone(), flush=True)"
    )
    connection, lock = schema.connect(tmp_path), schema.WriteLock(tmp_path)
    with lock.transaction(connection):
        child = subprocess.Popen([sys.executable, "-c", other], stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "waits\n"
        connection.execute("INSERT INTO meta VALUES ('mark', 'ours')")
        assert child.poll() is None
    assert child.communicate(timeout=120)[0] == "('ours',)\n"
    lock.close()
    connection.close()
