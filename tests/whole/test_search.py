"""A collection is searchable during its crawl, and its index equals a new one, after any kills."""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
import tantivy
from voyage import PATIENCE_S

import periplus
from periplus.analyse.content.evidence import SiteEvidence
from periplus.api import marks, searching
from periplus.api import search_index as index_follower
from periplus.api.crawling import finish_indexing, start_indexing
from periplus.api.homes import index_feed, open_reader
from periplus.api.marks import EVIDENCE
from periplus.api.search_index import IndexWorker, catch_up
from periplus.api.searching import FollowedPlace, Search, standing
from periplus.children import finish_child, stop_child
from periplus.model.job import JobProgress
from periplus.retrieval import index as search_index
from periplus.retrieval.index import FOLDER, FORMS, ID, NAMES, TERM_FIELDS, Ranks, ask, open_index, read_state
from periplus.settings import Searching
from periplus.store import changes, site_rows, text_rows
from periplus.store.sqlite import reading
from periplus.store.sqlite.listing import SqliteReader
from periplus.store.sqlite.schema import SqliteStatements
from periplus.urls.canonical import canonical, url_id
from stored import page, stored
from testweb.recipes import web_of
from testweb.server import serve
from whole.voyage import crawled, environment, told, until

HOME = "https://e.org/"


def words(title, *links, text=""):
    return (
        page(title, *links).replace("</body>", f"<p>{text}</p></body>")
        if "</body>" in page(title)
        else page(title, *links) + f"<p>{text}</p>"
    )


WEB = {HOME: words("Harbour", *(f"/p{number}" for number in range(30)), text="Old lights.")} | {
    f"https://e.org/p{number}": words(
        f"Lighthouse {number}", "/", f"/p{number // 2}", text=f"Příliš bright number{number} in cities."
    )
    for number in range(30)
}


@pytest.fixture
def folder(tmp_path):
    return stored(tmp_path / "e.org.periplus", WEB, [HOME])


def contents(folder):
    """Pages by term and field."""
    index = open_index(folder)
    searcher, schema = index.searcher(), index.schema
    found = {}
    for field in (*TERM_FIELDS, FORMS, NAMES):
        for term, _ in searcher.terms_with_prefix(field, ""):
            hits = searcher.search(tantivy.Query.term_query(schema, field, term), 1000).hits
            pages = sorted(searcher.fast_field_values(ID, [place for _, place in hits]))
            if pages:
                found[field, term] = pages
    return found


def from_scratch(folder, tmp_path):
    copy = tmp_path / "copy.periplus"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(FOLDER))
    assert catch_up(copy)
    return contents(copy)


def urls(folder, query, **wish):
    with periplus.open(folder) as collection:
        return [hit.url for hit in collection.search(query, **wish).hits]


def test_the_first_search_indexes_all_pages(folder):
    assert urls(folder, "lighthouse number7")[0] == "https://e.org/p7"
    assert urls(folder, "harbour") == [HOME]
    assert standing(folder) == (0, True)
    with periplus.open(folder) as collection:
        found = collection.search("prilis city", facets=True, limit=3, page=2)
    assert found.total == 30
    assert len(found.hits) == 3
    assert [found.hits[0].snippet.text[start:end] for start, end in found.hits[0].snippet.marks] == ["Příliš", "cities"]
    assert dict(found.facets[0].values) == {"e.org": 30}


def test_the_command_prints_hits_and_json(folder, tmp_path):
    said = told("search", "-c", folder, "lighthouse", "number3", cwd=tmp_path)
    assert "https://e.org/p3" in said.stdout
    assert "\x1b" not in said.stdout
    found = json.loads(
        told("search", "-c", folder, "-f", "json", "-n", "1", "--facets", "lighthouse -number3", cwd=tmp_path).stdout
    )
    assert found["total"] == 29
    assert len(found["hits"]) == 1
    assert told("search", "-c", folder, "nothingofthekind", cwd=tmp_path).stdout.strip() == "No pages match."
    assert "up to date" in told("index", "-c", folder, cwd=tmp_path).stdout
    assert "31 pages" in told("index", "-c", folder, "--anew", cwd=tmp_path).stdout


DESCRIBED = """<script type="application/ld+json">{"@type": "Recipe", "author": {"name": "Jane Doe"}}</script>"""
CHOSEN = [
    ("segment:low", {"https://e.org/p1", "https://e.org/p2"}),
    ("lighthouse -segment:other", {"https://e.org/p1", "https://e.org/p2"}),
    ("depth:0", {HOME}),
    ("title:harbour depth:0..1", {HOME}),
    ("depth:!0 -segment:other", {"https://e.org/p1", "https://e.org/p2"}),
    ("author:doe", {"https://e.org/recipe"}),
    ("schema:recipe set:target", {"https://e.org/recipe"}),
    ("stew set:private", set()),
    ("inheading:galley", {"https://e.org/recipe"}),
    ("intext:galley", set()),
    ('intext:"a cook"', {"https://e.org/recipe"}),
    ("recipe date:1999", set()),
    ("status:404", set()),
]


def test_queries_choose_by_columns_of_pages_segments_and_sets(tmp_path):
    web = WEB | {"https://e.org/p3": words("Recipes", "/recipe")}
    web["https://e.org/recipe"] = page("Stew", head=DESCRIBED) + "<h2>In the galley</h2><p>From a cook.</p>"
    folder = stored(tmp_path / "e.org.periplus", web, [HOME])
    (folder / "periplus.toml").write_text('[segments]\nlow = { pattern = "/p[12]$" }\n')
    assert {query: set(urls(folder, query, limit=50)) for query, _ in CHOSEN} == dict(CHOSEN)
    with periplus.open(folder) as collection:
        answers = collection.search("harbour segment:lo set:near depth:deep")
    assert HOME in [hit.url for hit in answers.hits]
    for part, why in zip(answers.notes, ("no segment 'lo'", "unknown set 'near'", "depth is a number"), strict=True):
        assert why in part and "ignored" in part


class Killed(BaseException):
    """Simulates SIGKILL at a given place."""


PLACES = [
    (search_index.IndexWriter, "put"),
    (search_index.IndexWriter, "commit"),
    (search_index, "write_state"),
    (changes, "set_position"),
    (index_follower, "write_ranks"),
    (text_rows.AnchorTexts, "add"),
    (index_follower.IndexWorker, "_put_pages"),
]


@pytest.mark.parametrize("place", range(len(PLACES)))
@pytest.mark.parametrize("times", [1, 2])
def test_a_follower_that_dies_anywhere_leaves_nothing_out_and_nothing_twice(
    folder, tmp_path, monkeypatch, place, times
):
    where, name = PLACES[place]
    real = getattr(where, name)
    left = [times]

    def dying(*arguments, **more):
        left[0] -= 1
        if not left[0]:
            raise Killed
        return real(*arguments, **more)

    monkeypatch.setattr(index_follower, "BATCH_PAGES", 7)
    monkeypatch.setattr(index_follower, "LOT_BYTES", 1)
    monkeypatch.setattr(where, name, dying)
    with contextlib.suppress(Killed):
        catch_up(folder)
    monkeypatch.undo()
    assert catch_up(folder)
    assert contents(folder) == from_scratch(folder, tmp_path)


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("dies", [False, True])
def test_the_order_of_pages_and_links_to_them_does_not_matter(folder, tmp_path, monkeypatch, dies, asked):
    put = []
    put_kept = search_index.IndexWriter.put_draft
    monkeypatch.setattr(search_index.IndexWriter, "put_draft", lambda *page: put.append(put_kept(*page)) or put[-1])
    with IndexWorker(folder) as follower:
        while follower.step():
            pass
        assert follower.not_put == 31
        assert standing(folder)[0] == 31
        if asked:
            follower.flush()
            assert (follower.not_put, standing(folder)) == (0, (0, False))
        if not dies:
            assert follower.settle(lambda: False)
            assert standing(folder) == (0, True)
    assert catch_up(folder)
    # a page is indexed on request, and again when the texts of links to it are known; later indexing keeps no pages
    assert put == [True] * (31 * (asked + (not dies))) + [False] * (31 * (asked and dies))
    assert contents(folder) == from_scratch(folder, tmp_path)


def pages_learned(folder):
    with open_reader(folder) as reader:
        stored = [text_rows.evidence(reader, site, EVIDENCE) for site in reader.site_names()]
    return sum(SiteEvidence.from_bytes(evidence).pages for evidence in stored if evidence)


def test_a_lot_is_marked_with_the_evidence_of_all_its_pages(folder, monkeypatch):
    """A page that changes while its lot waits counts once."""
    seen, real = [], marks.page_context
    monkeypatch.setattr(marks, "page_context", lambda *page, **more: seen.append(page[1].pages) or real(*page, **more))
    with IndexWorker(folder) as follower, contextlib.closing(sqlite3.connect(folder / "collection.db")) as other:
        while follower.step():
            pass
        assert (seen, pages_learned(folder)) == ([], 0)
        changed = [row[0] for row in other.execute("SELECT url_id FROM page LIMIT 3")]
        with other:
            changes.note(SqliteStatements(other), changed)
        assert follower.step() == len(changed)
        follower.index_lot()
        assert seen == [31] * 31
        assert not follower.mark_again()
    assert pages_learned(folder) == 31


@pytest.mark.parametrize("room", [0, 3_000, 1 << 30])
@pytest.mark.parametrize("beside", [False, True])
def test_links_are_scanned_once_and_pages_indexed_once_for_any_number(folder, tmp_path, monkeypatch, beside, room):
    expected, put, passes = from_scratch(folder, tmp_path), [], []
    real_put, real_pass = search_index.IndexWriter._put, text_rows.anchors_to
    for place in (text_rows, index_follower):
        monkeypatch.setattr(place, "PAGES_AT_ONCE", 4)
    monkeypatch.setattr(index_follower, "BATCH_PAGES", 3)
    monkeypatch.setattr(index_follower, "LOT_BYTES", 1)
    monkeypatch.setattr(search_index, "HELD_BYTES", 0)
    monkeypatch.setattr(search_index, "MOST_BYTES", room)
    monkeypatch.setattr(
        search_index.IndexWriter, "_put", lambda *given: put.append(given[1].url_id) or real_put(*given)
    )
    monkeypatch.setattr(text_rows, "anchors_to", lambda *given: passes.append(1) or real_pass(*given))
    with IndexWorker(folder) as follower:
        while beside and follower.step():
            pass
        assert index_follower.finish(follower, lambda done, left: False, listen=not beside)
    again = 0 if beside else len(put) - 31  # pages with changed parts were indexed by then
    assert (len(put) - again, len(set(put)), len(passes)) == (31, 31, 1)
    assert contents(folder) == expected


def test_a_search_during_a_crawl_indexes_its_pages(folder, tmp_path):
    child = start_indexing(folder)
    until(lambda: read_state(folder) is not None, "the first state of the index")
    assert standing(folder)[0] == 31
    assert ask(folder, time.time())
    assert not ask(folder, time.time())
    until(lambda: standing(folder)[0] == 0, "the pages to be searchable")
    finish_indexing(child, lambda indexing: False)
    assert standing(folder) == (0, True)
    assert contents(folder) == from_scratch(folder, tmp_path)


def test_sites_that_are_only_linked_to_are_not_ranked(tmp_path):
    folder = stored(
        tmp_path / "c.periplus",
        {HOME: words("Harbour", "/p", "https://other.org/"), "https://e.org/p": words("Pier", "/")},
        [HOME],
    )
    with contextlib.closing(reading.connect(folder)) as connection:
        assert sorted(SqliteReader(connection).site_names().values()) == ["e.org", "other.org"]
        assert site_rows.sites_read(SqliteReader(connection)) == ["e.org"]
    assert catch_up(folder)
    assert all(Ranks(folder).of([url_id(canonical(url)) for url in (HOME, "https://e.org/p")]))


def test_a_killed_follower_continues(folder, tmp_path):
    expected = from_scratch(folder, tmp_path)
    for _ in range(3):
        child = start_indexing(folder)
        until(lambda: read_state(folder) is not None, "the first state of the index")
        os.kill(child.pid, signal.SIGKILL)
        finish_child(child)
    catch_up(folder)
    assert contents(folder) == expected


def test_a_follower_ends_with_the_crawl_and_with_its_parent(folder):
    child = start_indexing(folder)
    finish_indexing(child, lambda indexing: False)
    assert (child.returncode, standing(folder)) == (0, (0, True))
    orphan = subprocess.Popen(
        [sys.executable, "-m", "periplus.api.search_index"], stdin=subprocess.PIPE, env=environment()
    )
    orphan.communicate(json.dumps(str(folder)).encode() + b"\n", timeout=PATIENCE_S)
    assert orphan.returncode == 0


def test_a_crawl_reports_the_number_of_indexed_pages(folder):
    progress = []
    finish_indexing(start_indexing(folder), lambda indexing: progress.append(indexing) or False)
    assert progress[0] == JobProgress(note="indexing")
    assert {(one.total, one.note) for one in progress} == {(0, "indexing"), (31, "indexing")}
    assert all(0 <= one.done <= one.total for one in progress)


def test_interrupted_indexing_is_left_to_the_next_search(folder, tmp_path):
    child = start_indexing(folder)
    finish_indexing(child, lambda indexing: True)
    assert child.returncode == -signal.SIGTERM
    with pytest.raises(KeyboardInterrupt):  # a second Ctrl-C
        finish_indexing(child := start_indexing(folder), interrupted)
    assert child.returncode == -signal.SIGTERM
    assert catch_up(folder)
    assert contents(folder) == from_scratch(folder, tmp_path)


def interrupted(indexing):
    raise KeyboardInterrupt


@pytest.mark.parametrize("harm", ["gone", "other program", "older copy"])
def test_a_missing_or_foreign_index_is_rebuilt(folder, tmp_path, harm):
    catch_up(folder)
    expected = contents(folder)
    where = folder / FOLDER
    if harm == "gone":
        where.rename(tmp_path / "gone")  # at once: a thread of the engine may still create its lock file there
    elif harm == "other program":
        (where / "periplus.json").write_text('{"version": 0}')
    else:
        state = json.loads((where / "periplus.json").read_text())
        (where / "periplus.json").write_text(json.dumps(state | {"position": [5, 0]}))
    assert standing(folder)[0] == 31
    catch_up(folder)
    assert contents(folder) == expected


def test_pages_are_found_while_their_crawl_runs(tmp_path, monkeypatch):
    folder = tmp_path / "c.periplus"
    results = []
    monkeypatch.setattr(searching, "INDEX_WAIT_S", 600.0)

    def look(progress):
        if progress.counts.fetched > 5 and not results:
            child = start_indexing(folder)
            until(lambda: read_state(folder) is not None, "the process that indexes")
            with periplus.open(folder) as collection:
                results.append(collection.search("-nothingofthekind"))
            stop_child(child)
        return False

    with serve(web_of("graph seed=1 pages=60")) as server:
        host = next(iter(server.web.sites))
        crawled(folder, server, host, stop=look, workers=1)
    assert catch_up(folder)
    assert results[0].total > 5
    assert standing(folder) == (0, True)


def test_a_search_reports_the_number_of_unindexed_pages(folder, tmp_path):
    with open_reader(folder) as reader, index_feed(folder, reader) as feed:
        search = Search([FollowedPlace("", folder, feed)], Searching())
        IndexWorker(folder).__exit__(None, None, None)
        assert search.catch_up(0.0, lambda done, waiting: True) == (
            "0 pages are searchable, 31 more or changed ones not yet"
        )
        assert search.catch_up(0.0, lambda done, waiting: False) == ""


def test_marks_do_not_depend_on_the_batch_size(tmp_path, monkeypatch):
    """A late section has its own menu: its first page is marked once the menu is known."""
    menus = {
        "en": '<ul class="menu"><li>Harbour office<li>Tide tables<li>Ferry times<li>Contact</ul>',
        "cs": '<ul class="menu"><li>Správa přístavu<li>Tabulky přílivu<li>Jízdní řády lodí<li>Spojení</ul>',
    }

    def text(section, number):
        told = " ".join(f"The keeper of tower {number}-{part} climbed and lit the lamp." for part in range(9))
        return f"<title>{section} {number}</title>{menus[section]}<h1>Tower {number}</h1><p>{told}</p>"

    names = [f"en/{number:03}" for number in range(70)] + [f"cs/{number:03}" for number in range(9)]
    home = "<title>Towers</title>" + "".join(f'<a href="/{name}">{name}</a> ' for name in names)
    pages = {HOME: home} | {HOME + name: text(name[:2], int(name[3:])) for name in names}
    marks = []
    for batch in (200, 1):
        monkeypatch.setattr(index_follower, "BATCH_PAGES", batch)
        folder = stored(tmp_path / f"{batch}.periplus", pages, [HOME])
        assert catch_up(folder)
        with contextlib.closing(reading.connect(folder)) as connection:
            ids = [url_id(canonical(HOME + name)) for name in names]
            marks.append([(page.url, page.parts) for page in SqliteReader(connection).page_blocks(ids)])
    assert marks[0] == marks[1]
