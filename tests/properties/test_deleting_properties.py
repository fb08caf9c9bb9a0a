"""After a deletion a collection equals one that never had the pages."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from deleted import content, sound
from periplus.api import deleting
from periplus.model.collection import Deletion
from periplus.model.web import SiteKey
from periplus.store import deletion
from periplus.store.sqlite.frontier import FolderHome
from periplus.store.sqlite.listing import SqliteReader
from periplus.urls.canonical import canonical, url_id
from stored import Answer, page, stored

START = "https://a.org/"
NAMES = [START, *(f"https://{host}.org/{number}" for host in ("a", "b") for number in range(5))]
OUTSIDE = [f"https://{host}.net/{number}" for host in ("x", "y") for number in range(2)]
WEBS = st.fixed_dictionaries({
    name: st.one_of(
        st.lists(st.sampled_from(NAMES + OUTSIDE), max_size=6, unique=True).map(tuple),  # a page's links
        st.sampled_from([404, 500, 0]),
        st.sampled_from(NAMES),  # a redirect's target
    )
    for name in NAMES
})  # fmt: skip


def answers_of(web: Mapping[str, object]) -> dict[str, Answer]:
    """Pages with equal links have the same text, so that they share a body."""
    found: dict[str, Answer] = {}
    for name, said in web.items():
        found[name] = page("Same", *said) if isinstance(said, tuple) else said  # type: ignore[assignment]
    return found


@settings(max_examples=25)
@given(WEBS, st.sets(st.sampled_from(NAMES[1:])), st.sampled_from([1, 3, 1000]), st.booleans())
def test_a_deletion_equals_never_having_had_the_pages(web, chosen, batch, links_to) -> None:
    """Batches of one URL, of three, of all. Links to the pages are kept, so that their addresses wait."""
    answers = answers_of(web)
    with tempfile.TemporaryDirectory() as place:
        starts = [START, "https://b.org/0"]
        whole = stored(Path(place) / "whole", answers, starts)
        never = stored(
            Path(place) / "never", {name: answer for name, answer in answers.items() if name not in chosen}, starts
        )
        for folder in (whole, never):
            FolderHome(folder).add_starts(
                [url_id(canonical(start)) for start in starts], [SiteKey("")] * len(starts), 0.0
            )
        had = {row[0] for row in content(whole)["url"] if not row[-1]}
        kept = {row[0] for row in content(never)["url"] if not row[-1]}
        gone = sorted(had - kept)
        if not gone:
            return
        doomed_before, deletion.BATCH = deletion.BATCH, batch
        try:
            wish = Deletion(tuple(url_id(canonical(url)) for url in gone), again=True, links_to=links_to)
            plan = deleting.plan(whole, wish)
            before = content(whole)
            meanwhile: list[list[str]] = []
            done = deleting.delete(whole, wish, lambda done, total: bool(meanwhile.append(sound(whole))))
        finally:
            deletion.BATCH = doomed_before
        after = content(whole)
        assert not any(meanwhile), "each transaction leaves it whole"
        assert done == plan
        assert len(before["visit"]) - len(after["visit"]) == plan.visits
        assert len(before["body"]) - len(after["body"]) == plan.bodies
        assert len(before["page"]) - len(after["page"]) == plan.pages
        assert len(before["url"]) - len(after["url"]) == plan.forgotten
        assert len(before["link"]) - len(after["link"]) == plan.links_from + plan.links_to
        if links_to:
            assert not {row[0] for row in after["url"]} & set(gone)
            assert not {row[1] for row in after["link"]} & set(gone)
            return
        assert after == content(never)


IDS = st.integers(-3, 12)


@settings(max_examples=40)
@given(
    st.sets(IDS),
    st.lists(st.tuples(IDS, IDS), max_size=30),
    st.lists(st.tuples(IDS, IDS), max_size=10),
    st.integers(1, 4),
)
def test_addresses_are_deleted_with_the_last_page_that_links_to_them(gone, links, past, batch) -> None:
    order = {page: place // batch for place, page in enumerate(sorted(gone))}
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        reader = SqliteReader(connection)
        reader.make_tables((*deletion.TABLES, "link (source, target)", "link_history (source, target)"))
        connection.executemany("INSERT INTO doomed (id, batch, leaves) VALUES (?1, ?2, ?2)", order.items())
        connection.executemany("INSERT INTO link VALUES (?, ?)", links)
        connection.executemany("INSERT INTO link_history VALUES (?, ?)", past)
        deletion.fill(reader, ("link", "link_history"))
        leaves, outside = (
            dict(connection.execute(f"SELECT id, {column} FROM {table}"))
            for column, table in (("leaves", "doomed"), ("batch", "cited"))
        )
    cited = {
        page: max(order[source] for source, target in links + past if source in order and target == page)
        for source, page in links + past
        if source in order
    }
    assert leaves == {page: max(own, cited.get(page, 0)) for page, own in order.items()}
    assert outside == {page: last for page, last in cited.items() if page not in order}
