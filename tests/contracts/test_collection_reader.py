"""A reader answers every question about a collection the same in every database, and PostgreSQL by its indexes."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import psycopg
import pytest
from click.testing import CliRunner

import periplus
from periplus.analyse.ego import Grouping
from periplus.api.homes import open_reader
from periplus.api.inlink_index import InlinkIndexes, make, narrow_query
from periplus.api.tables import Browser
from periplus.cli.main import main
from periplus.errors import NoCollection, StoreError, UsageError
from periplus.model.tables import LINKS, PAGES, REDIRECTS, RUNS, SITES, VISITS
from periplus.model.visit import Reason
from periplus.model.web import SiteKey
from periplus.store import checks, crawl_reads, page_notes, past_states, site_rows, text_rows
from periplus.store.inlinks import open_index
from periplus.store.tables import BROWSABLE_TABLES, TableQuery, rows_of, sample_of
from periplus.store.views import LinkFilter, PageFilter
from periplus.ui.graph import NeighbourRequest, look
from periplus.urls.canonical import url_id
from periplus_postgres.address import address_of
from periplus_postgres.connection import connect
from periplus_postgres.moving import move
from postgres_server import empty_collection
from stored import copied, page, stored

HOME, A, OLD = "https://e.org/", "https://e.org/a", "https://e.org/old"
ELSE = "https://else.example/x"
BAD = '<a href="mailto:a@e.org">mail</a> <a href="#top" rel=nofollow>top</a>'
ANSWERS = {
    HOME: page("Home Straße", "/a", "/b", "/c?x=1", "/c?x=2", "/gone", "/old", ELSE),
    A: page("Pilots", "/", "/b", "/lost", head="<link rel=stylesheet href=/s.css>") + BAD,
    "https://e.org/b": page("Lights", "/a"),
    "https://e.org/c?x=1": page("Charts", "/a"),
    "https://e.org/c?x=2": page("Charts", "/a"),
    OLD: "/a",
    "https://e.org/gone": 404,
    ELSE: page("Else", HOME, A),
    "https://else.example/": page("Elsewhere", "/x"),
}
PAGE_FILTERS = [
    {}, {"limit": 2}, {"state": "failed"}, {"reason": "redirect"}, {"status": "4xx"}, {"media_type": "text/"},
    {"media_type": "text/html"}, {"depth": 1}, {"host": "e.org"}, {"host": "e.org:443"}, {"url": "else"},
    {"url": "c?x=1"}, {"url": r"/[ab]$"}, {"url": "(unbalanced"}, {"url": r"[ab]$", "state": "fetched", "limit": 1},
]  # fmt: skip
LINK_FILTERS = [
    {"source": HOME}, {"target": A}, {"source": HOME, "target": A}, {"source": A, "kind": "style"}, {"target": ELSE},
    {"source": HOME, "broken": True}, {"source": HOME, "external": True}, {"source": A, "nofollow": True},
    {"source": HOME, "position": "body", "limit": 3},
]  # fmt: skip
UNORDERED = [{}, {"broken": True}, {"external": True}, {"kind": "redirect"}]
URLS = (HOME, A, OLD, "https://e.org/c?x=1", "https://e.org/gone", "https://e.org/unknown")
COPIES = 2_300  # of each row, for the plans: 20,000 URLs
SCANS = {"targets @>": {"page_links"}, "o.folded_digest = p.folded_digest": {"page"}}  # by a part of the statement


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """The same collection in a folder and in a database."""
    folder = stored(tmp_path_factory.mktemp("reader") / "e.periplus", ANSWERS, [HOME, "https://else.example/"])
    with empty_collection() as address:
        move(str(copied(folder, folder.with_name("moved"))), address)
        yield folder, address


@pytest.fixture(params=["folder", "database"])
def reader(request, places):
    with open_reader(places[request.param == "database"]) as reader:
        yield reader


def answers(reader, ask):
    try:
        return ask(reader)
    except (UsageError, StoreError) as error:
        return type(error)


def of_page(reader, url):
    number = url_id(url)
    row = reader.page_row(number)
    known = [reader.leads_to(number), reader.is_shown(number), reader.answer(number), reader.body(number)]
    known += [reader.text(number), reader.blocks(number), reader.parts(number), reader.xml(number)]
    known += [reader.original_body(number), reader.screenshot(number), reader.title_and_text(number)]
    known += [
        reader.read_as(number),
        reader.first_seen_s(number),
        reader.count_inlinks(number),
        reader.count_outlinks(number),
    ]
    known += [reader.duplicates(number), reader.is_known(url), reader.briefs([number])]
    return [row, known, [list(row) for row in reader.links_between([url_id(A), url_id(HOME)], number)]]


def test_pages_are_listed_by_filter_depth_and_url(reader):
    listed = list(reader.pages(PageFilter(state="fetched"), ("depth", "url")))
    assert listed[:4] == [(0, HOME), (0, "https://else.example/"), (1, A), (1, "https://e.org/b")]
    assert [url for (url,) in reader.pages(PageFilter(url=r"/[ab]$"), ("url",))] == [A, "https://e.org/b"]
    assert [url for (url,) in reader.pages(PageFilter(host="else.example", status="200"), ("url",))] == [
        "https://else.example/",
        ELSE,
    ]
    with pytest.raises(UsageError, match="404 or 4xx"):
        reader.pages(PageFilter(status="abc"))


def test_links_lead_from_a_page_and_to_a_url(reader):
    names = ("target", "target_status", "internal")
    assert (ELSE, 200, 0) in list(reader.links(LinkFilter(source=HOME), names)), "its target is in another shard"
    assert ("https://e.org/gone", 404, 1) in list(reader.links(LinkFilter(source=HOME), names))
    assert {source for (source,) in reader.links(LinkFilter(target=HOME), ("source",))} == {A, ELSE}
    assert [text for _, text, *_ in reader.bad_links(A)] == ["mailto:a@e.org"]


def test_a_page_has_its_fields_body_and_response(reader):
    row = reader.page_row(url_id(HOME))
    assert (row.title, row.state, row.status, row.has_bytes, row.has_screenshot) == (
        "Home Straße",
        "fetched",
        200,
        1,
        0,
    )
    assert reader.body(url_id(HOME)) == ANSWERS[HOME].encode()
    assert "Home Straße" in reader.text(url_id(HOME)).splitlines()
    assert reader.answer(url_id(HOME))[0] == 200
    assert reader.leads_to(url_id(OLD)) == A
    assert [same.url for same in reader.duplicates(url_id("https://e.org/c?x=1"))] == ["https://e.org/c?x=2"]
    assert reader.page_row(url_id("https://e.org/unknown")) is None


def test_runs_and_totals_are_told(reader):
    (run,) = reader.runs()
    assert (run.kind, run.state, run.starts[0]) == ("crawl", "done", HOME)
    assert reader.count_urls() == sum(tally.urls for tally in reader.counts())
    work = reader.backlog(10, reader.activity(0.0).now)
    assert (work.hosts, work.busiest, reader.traps(), reader.is_paused()) == (2, work.busiest, [], False)
    assert reader.activity(0.0).size_bytes > 10_000


@pytest.mark.parametrize("where", PAGE_FILTERS, ids=str)
def test_both_list_the_same_pages(places, where):
    with open_reader(places[0]) as one, open_reader(places[1]) as other:
        asked = [list(reader.pages(PageFilter(**where))) for reader in (one, other)]
        assert asked[0] == asked[1]
        assert bool(asked[0]) == (where != {"url": "(unbalanced"})


@pytest.mark.parametrize("where", LINK_FILTERS + UNORDERED, ids=str)
def test_both_list_the_same_links(places, where):
    order = sorted if where in UNORDERED else list
    with open_reader(places[0]) as one, open_reader(places[1]) as other:
        asked = [order(reader.links(LinkFilter(**where))) for reader in (one, other)]
        assert asked[0] == asked[1] != []


def test_both_know_the_same_of_each_url_and_have_the_same_tables(places):
    with open_reader(places[0]) as one, open_reader(places[1]) as other:
        for url in URLS:
            assert of_page(one, url) == of_page(other, url), url
        for text in ("e.org/a", "/a", "http://e.org/q", "nowhere.example/"):
            assert one.resolve_url(text) == other.resolve_url(text), text
        for table in (PAGES, LINKS, REDIRECTS, RUNS, SITES, VISITS):
            assert sorted(map(repr, one.whole(table))) == sorted(map(repr, other.whole(table))), table.name
        ids = [url_id(url) for url in URLS]
        assert list(one.page_blocks(ids)) == [
            page._replace(site_id=next(one.page_blocks([page.url_id])).site_id) for page in other.page_blocks(ids)
        ]
        assert one.runs() == other.runs() and one.counts() == other.counts()


def test_nothing_is_copied_to_the_readers_disk(places, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def written(place, *words):
        ended = CliRunner().invoke(main, [words[0], "-c", str(place), *words[1:]])
        assert ended.exit_code == 0, ended.output
        return ended.stdout

    for words in (
        ("pages", "-f", "csv", "--columns", "all"), ("links", "--to", "e.org/a", "-f", "csv"), ("page", "/a"),
        ("links", "--bad", "-f", "csv"), ("page", A, "--as", "text"), ("page", A, "--as", "headers"),
        ("page", A, "--as", "blocks", "--json"), ("page", A, "--as", "xml"), ("page", A, "--as", "markdown"),
    ):  # fmt: skip
        assert written(places[0], *words) == written(places[1], *words), words
    status = [json.loads(written(place, "status", "-f", "json")) for place in places]
    assert status[0]["counts"] == status[1]["counts"]
    with periplus.open(places[1]) as collection:
        assert A in collection and collection.page(A).summary().inlinks == 6
        rows = collection.pages(state="fetched", columns=["url"])
        assert len(list(rows)) == len(list(rows)) == 7, "read again"
    assert not list(tmp_path.iterdir())
    with pytest.raises(UsageError, match="closed"):
        collection.runs()


def test_segments_are_named_in_a_copy(places, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("periplus.toml").write_text('[segments]\ncharts = "/c"\n', "utf-8")
    with periplus.open(places[1]) as collection:
        assert [row.url for row in collection.pages(segment="charts", columns=["url"])] == [
            "https://e.org/c?x=1", "https://e.org/c?x=2",
        ]  # fmt: skip


def test_a_reader_of_nothing_and_of_a_damaged_collection_says_so(places, tmp_path):
    with pytest.raises(NoCollection), open_reader(tmp_path):
        pass
    with pytest.raises(NoCollection), open_reader(address_of(places[1]).dsn + "&collection=nothing_here"):
        pass
    with pytest.raises(StoreError, match="could not be read"), open_reader(places[1]) as reader:
        reader.statements.rows("SELECT 1 / 0")


@pytest.fixture(scope="module")
def large(places):
    """A database with 20,000 rows in each table, whose statistics are known."""
    with empty_collection() as address:
        move(str(copied(places[0], places[0].with_name("large"))), address)
        with contextlib.closing(connect(address_of(address))) as connection:
            times = f"generate_series(1, {COPIES}) n"
            targets = "ARRAY(SELECT t + n FROM unnest(p.targets) t)"
            columns = {
                "url": "(u.shard + n) % 256, u.id + n, u.text || n, u.host_id, u.reason, u.depth, u.rule, u.status,"
                " u.in_sitemap, u.first_seen, u.visited FROM url u",
                "page_links": f"(p.shard + n) % 256, p.source + n, p.first_seen, p.last_seen, {targets}, p.kinds,"
                " p.positions, p.nofollow, p.words FROM page_links p",
            }
            for table, source in columns.items():
                connection.execute(f"INSERT INTO {table} SELECT {source}, {times}".encode())
            connection.execute("CREATE TEMP TABLE more AS SELECT p.*, n FROM page p, " + times)
            digest = "decode(md5(n::text), 'hex')"
            connection.execute(
                f"UPDATE more SET shard = (shard + n) % 256, url_id = url_id + n, folded_digest = {digest}".encode()
            )
            connection.execute("ALTER TABLE more DROP n")
            connection.execute("INSERT INTO page SELECT * FROM more")
            connection.execute("ANALYZE")
        yield address


def scanned(plan):
    """Tables that a plan reads whole."""
    own = {plan["Relation Name"]} if plan["Node Type"] == "Seq Scan" else set()
    return own.union(*map(scanned, plan.get("Plans", ())))


def explained(address, statements):
    """Yields each statement with the tables of URLs, pages and links that its plan reads whole."""
    with contextlib.closing(connect(address_of(address))) as connection:
        for find, values in statements:
            (((plan,),),) = connection.execute(b"EXPLAIN (FORMAT JSON) " + find, values).fetchall()
            yield find.decode(), scanned(plan["Plan"]) & {"url", "page", "page_links"}


def test_look_ups_scan_no_table_of_urls_pages_or_links(large, monkeypatch):
    """With the planner's settings as they are, and every statement that reaches the connection. Only links to a URL are
    found by reading the targets of all links, and pages of the same words by reading all pages: indexes take 15 bytes a
    link, half as much as the link itself, and 57 bytes a page.
    """
    asked, execute = [], psycopg.Cursor.execute

    def record(cursor, find, values=None, **options):
        text = find if isinstance(find, bytes) else str(find).encode()
        if text.lstrip().startswith((b"SELECT", b"WITH")):
            asked.append((text, values))
        return execute(cursor, find, values, **options)

    monkeypatch.setattr(psycopg.Cursor, "execute", record)
    with open_reader(large) as reader:
        for url in URLS:
            of_page(reader, url)
            list(reader.page_blocks([url_id(url)]))
        for where in LINK_FILTERS:
            list(reader.links(LinkFilter(**where)))
        reader.resolve_url("/a")
    with periplus.open(large) as collection:
        collection.status()
        collection.runs()
        collection.counts()
        assert A in collection and collection.page(A).summary()
    monkeypatch.undo()
    assert len(asked) > 150
    for find, tables in explained(large, asked):
        assert tables == next((allowed for part, allowed in SCANS.items() if part in find), set()), find


SITE = SiteKey("e.org")


def past_of(reader):
    end = past_states.RunEnd.after(reader, 1)
    past = past_states.url_past(reader, end)
    links, moved = past_states.page_links(reader, SITE, end), past_states.redirects(reader, end, past)
    return [
        past,
        past_states.site_urls(reader, SITE, end, past),
        sorted(zip(links.sources.tolist(), links.targets.tolist(), strict=True)),
        past_states.site_pages(reader, SITE, end),
        past_states.ids_at(reader, (Reason.NOT_FOUND,), past),
        list(past_states.texts_of(reader, map(url_id, URLS))),
        sorted(zip(moved.sources.tolist(), moved.targets.tolist(), strict=True)),
    ]


SITE_QUESTIONS = {
    "urls": site_rows.all_urls,
    "numbers": lambda reader: site_rows.page_numbers(reader, SITE),
    "links": lambda reader: site_rows.site_links(reader, SITE),
    "clicks": lambda reader: site_rows.clicks_of(reader, SITE),
    "subresources": lambda reader: site_rows.parts(reader, SITE),
    "anchors": lambda reader: sorted(
        (source, target, text)
        for links, texts in site_rows.anchor_blocks(reader)
        for source, target, text in zip(links.sources.tolist(), links.targets.tolist(), texts, strict=True)
    ),
    "sites read": lambda reader: sorted(site_rows.sites_read(reader)),
    "hosts": lambda reader: site_rows.tallies(reader, SITE, "host"),
    "types": lambda reader: site_rows.tallies(reader, SITE, "media_type"),
    "sizes": site_rows.any_pages,
    "texts": lambda reader: list(site_rows.page_texts(reader, SITE)),
    "copies": lambda reader: site_rows.copies(reader, SITE),
    "screenshots": lambda reader: site_rows.pages_with_screenshot(reader, SITE),
    "bad links": lambda reader: sorted(site_rows.bad_link_rows(reader, SITE)),
    "unread": lambda reader: list(site_rows.unread_pages(reader, SITE)),
    "traps": lambda reader: site_rows.trap_patterns(reader, SITE),
    "fragments": lambda reader: sorted(site_rows.fragment_rows(reader, SITE)),
    "all fragments": lambda reader: sorted(checks.fragments(reader)),
    "anchors of pairs": lambda reader: list(site_rows.anchors_of(reader, [(url_id(HOME), url_id(A)), (1, 2)])),
    "findable": lambda reader: list(site_rows.findable_pages(reader, SITE)),
    "places": lambda reader: [site_rows.type_with_places(reader, url_id(url)) for url in URLS],
    "part sizes": site_rows.part_sizes,
    "sizes requested": site_rows.are_sizes_requested,
    "redirects": site_rows.redirect_hops,
    "statuses": lambda reader: reader.statuses_of(map(url_id, URLS)),
    "version": lambda reader: reader.version()[0],
    "checks": lambda reader: list(checks.check_visits(reader)),
    "looks": checks.looks,
    "failures": lambda reader: [row for _, row in checks.failures(reader, (Reason.NOT_FOUND,))],
    "hosts down": lambda reader: list(checks.host_failures(reader)),
    "asked": lambda reader: list(checks.asked_since(reader, 0.0)),
    "issues": lambda reader: list(checks.issues_of(reader, 1, "broken-link")),
    "runs with": lambda reader: checks.runs_with(reader, "broken-link"),
    "issue pages": lambda reader: (checks.pages_with(reader, ["broken-link"]), checks.pages_by_code(reader)),
    "crawled as": checks.crawled_as,
    "visited": lambda reader: [checks.visit_time_s(reader, url_id(url)) for url in URLS],
    "moved to places": checks.redirects_to_places,
    "targets": lambda reader: checks.targets(reader, SITE),
    "contenders": lambda reader: list(text_rows.contenders(reader)),
    "equal texts": lambda reader: list(text_rows.same_texts(reader)),
    "classified": text_rows.tally,
    "pages by site": lambda reader: sorted(text_rows.sites_with_pages(reader).values()),
    "page rows": lambda reader: [row._replace(body_id=0) for _, row in text_rows.page_rows(reader)],
    "sources": lambda reader: text_rows.source_rows(reader, SITE),
    "feeds": lambda reader: list(text_rows.feeds(reader)),
    "links in content": lambda reader: sorted(text_rows.content_links(reader, SITE, [url_id(HOME)])),
    "texts of a site": lambda reader: [
        (page.url, page.blocks, page.charset, reader.bodies([page.url_id], SITE).get(page.url_id))
        for page in reader.page_blocks(map(url_id, URLS), site=SITE)
    ],
    "ends of runs": past_states.reasons_at_ends,
    "answers": past_states.answers_by_run,
    "past": past_of,
    "recent": lambda reader: [row._replace(id=0) for row in crawl_reads.newest(reader.statements, 1, 50)],
    "earlier pages": lambda reader: crawl_reads.pages_before(reader.statements, 1e12, 100),
    "certificates": page_notes.certificates,
    "paint": lambda reader: list(page_notes.rendering_measures(reader, SITE)),
    "headers": lambda reader: [row[:2] for row in page_notes.page_headers(reader, SITE, 9, ("content-type",))],
    "secure": lambda reader: page_notes.secure_pages(reader, 9),
    "part headers": lambda reader: list(page_notes.part_headers(reader)),
    "robots": lambda reader: page_notes.robots_of(reader, "https://e.org"),
}


TABLE_QUERIES = [
    ("pages", {}), ("pages", {"reason": "ok"}), ("pages", {"reason": "!ok"}), ("pages", {"status": "4xx"}),
    ("pages", {"status": "100..300"}), ("pages", {"title": "~PILOT"}), ("pages", {"title": "-"}), ("pages", {"url": A}),
    ("pages", {"first_seen": "1970-01"}), ("links", {"source": HOME}), ("links", {"internal": "no"}),
    ("links", {"target": A}), ("links", {"target_state": "failed"}), ("links", {"target_status": "404"}),
    ("links", {"nofollow": "yes"}), ("hosts", {}), ("sites", {"name": "~e.org"}), ("sites", {"pages_fetched": "1.."}),
    ("runs", {"fetched": "1.."}), ("redirects", {}), ("bad", {"why": "!-"}),
    ("visits", {"outcome": "fetched"}), ("visits", {"url": A}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "asked"), TABLE_QUERIES, ids=str)
def test_both_browse_the_same_rows_and_facets(places, name, asked):
    """Times of links and the sizes of tables differ, ids of runs do not."""
    table, pages = BROWSABLE_TABLES[name], []
    sort = ("-source", "target", "kind") if name == "links" else (f"-{table.names[0]}",)
    for place in places:
        with open_reader(place) as reader:
            query = narrow_query(place, reader, name, TableQuery(tuple(asked.items()), sort=sort), InlinkIndexes())
            sample = sample_of(reader, table, query)
            pages.append((list(rows_of(reader, table, query, (), sample)), sample.count, sample.facets))
            searched = replace(query, text="E.ORG")
            pages[-1] += (list(rows_of(reader, table, searched)), list(rows_of(reader, table, replace(query, most=-1))))
    assert pages[0] == pages[1]
    assert pages[0][0] and pages[0][-1] == pages[0][0]


def plain(value):
    """Arrays and records as lists, so that answers can be compared."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if dataclasses.is_dataclass(value):
        return [plain(getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


@pytest.mark.parametrize("question", SITE_QUESTIONS)
def test_both_answer_questions_of_analyses_alike(places, question):
    ask, (folder, address) = SITE_QUESTIONS[question], places
    with open_reader(folder) as one, open_reader(address) as other:
        assert plain(ask(one)) == plain(ask(other))


ASKED = [
    "SELECT state, reason, count(*) AS n, avg(depth) AS depth, sum(size) AS size FROM pages GROUP BY 1, 2 ORDER BY 2;",
    "SELECT url, in_sitemap, rendered, charset, body_digest, text_digest FROM pages ORDER BY id",
    "SELECT l.source, l.target, l.anchor, l.internal, u.state FROM links l JOIN urls u ON u.url = l.target"
    " ORDER BY l.source, l.target, l.kind, l.anchor",
    "WITH one AS (SELECT url, target FROM redirects) SELECT * FROM one -- a comment",
    "SELECT id, kind, state, fetched, http2 FROM runs",
    "SELECT name, home_page, pages_total, pages_failed FROM sites ORDER BY pages_total, name",
    "SELECT host, site FROM hosts ORDER BY host",
    "SELECT purpose, outcome, status, count(*) AS n FROM visits GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
    "SELECT 100 / 8 AS a, 1.5 AS b, 'caf\u00e9 100%' AS c, NULL AS d WHERE 1 = 1",
]


@pytest.mark.parametrize("question", ASKED, ids=range(len(ASKED)))
def test_a_query_in_sql_is_answered_the_same_in_both(places, question):
    of_folder, of_database = (periplus.sql(place, question) for place in places)
    assert of_folder.to_dicts() == of_database.to_dicts() != []


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM url", "CREATE TEMP TABLE t (a int)", "COMMIT", "SELECT nothing FROM urls", "SELECT (", "",
        "SELECT 1; DELETE FROM url", "SELECT 1); COMMIT; DELETE FROM url; (SELECT 1", "SELECT 1 INTO other",
        "WITH gone AS (DELETE FROM url RETURNING id) SELECT * FROM gone", "SELECT id FROM url FOR UPDATE",
        "SELECT set_config('transaction_read_only', 'off', true)", "SELECT nextval('queue_seq')", "SELECT 1 / 0",
    ],
)  # fmt: skip
def test_statements_that_do_more_than_read_are_refused_by_a_database(places, statement):
    with pytest.raises(UsageError, match=r"PostgreSQL does not understand this|only reads"):
        periplus.sql(places[1], statement)
    assert periplus.sql(places[1], "SELECT count(*) AS n FROM urls").to_dicts()[0]["n"] > 9


def test_a_query_in_a_database_has_limits(places):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 - 1 FROM n) SELECT {} FROM n"
    for what in ("count(*)", "i"):
        with pytest.raises(StoreError, match="took too long"):
            periplus.sql(places[1], endless.format(what), time_limit_s=0.05)
    assert len(periplus.sql(places[1], "SELECT url FROM urls ORDER BY url", limit=2).to_dicts()) == 2
    assert periplus.sql(places[1], "SELECT url FROM urls", limit=0).to_dicts() == []
    kinds = "SELECT '\\x00ff'::bytea AS b, true AS t, now()::date - now()::date AS d"
    assert periplus.sql(places[1], kinds).to_dicts() == [{"b": "00ff", "t": 1, "d": 0}]


RULES = """[segments]
"the A's" = "/a"
charts = { pattern = "c[?]x=[12]$", status = "2xx" }
else = [{ host = "else.example" }, "/lost"]
"""


def test_segments_are_the_same_in_both(places, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = copied(places[0], tmp_path / "e.periplus")
    for path in (folder / "periplus.toml", tmp_path / "periplus.toml"):
        path.write_text(RULES, "utf-8")
    both = []
    for place in (folder, places[1]):
        with periplus.open(place) as collection:
            lists = [
                collection.pages(columns=("url", "segment")),
                collection.pages(segment="charts"),
                collection.pages(segment="else", columns=("url", "state")),
                collection.links(source=HOME, columns=("target", "segment", "target_segment")),
                collection.links(segment="the A's", target=HOME, columns=("source", "segment")),
            ]
            rows = [listed.to_dicts() for listed in lists]
            rows.append(sorted(map(str, collection.links(segment="other", columns=("source", "target_segment")))))
            rows.append(sorted(map(str, collection.table("pages").to_dicts())))
        for name in ("pages", "links", "bad", "redirects", "visits"):
            for query in (TableQuery((("segment", "other"),)), TableQuery((("segment", "!~A"),), sort=("-segment",))):
                page = Browser().page(place, name, query)
                shown = [[row[column.name] for column in page.columns if column.name != "id"] for row in named(page)]
                rows.append((name, sorted(map(str, shown)), page.count, page.facets))
        both.append(rows)
    assert both[0] == both[1] and all(both[0])
    assert {row["segment"] for row in both[0][0]} == {"the A's", "charts", "else", "other"}


@pytest.mark.parametrize("grouping", Grouping)
def test_the_link_graph_around_a_page_is_the_same_in_both(places, grouping):
    one, other = (look(place, NeighbourRequest(A, grouping, steps=2), InlinkIndexes()) for place in places)
    assert one == other and one.nodes


def test_a_large_index_of_links_is_stored_in_the_cache_of_a_database(places, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder, address = places
    make(address)
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    make(copied(folder, tmp_path / "e.periplus"))
    of_database, of_folder = open_index(file.parent), open_index(tmp_path / "e.periplus")
    assert plain(of_database.links) == plain(of_folder.links) and plain(of_database.same) == plain(of_folder.same)


def named(page):
    return [dict(zip([column.name for column in page.columns], row, strict=True)) for row in page.rows]
