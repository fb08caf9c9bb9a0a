"""The stored lines of a page equal the lines of the page, in every database."""

from __future__ import annotations

import pytest

from contracts.crawl_values import batch, candidate, completion, get, take
from contracts.crawl_worlds import PostgresWorld, SqliteWorld
from periplus.acquire.fetch import second_look
from periplus.document.understand import understand
from periplus.model.visit import Fetched, Headers, Reason, Redirected
from periplus.urls.canonical import url_id

ME = 100
A, ELSEWHERE = "http://a.test/", "http://elsewhere.example/x?state=1"
PAGE = (
    "<html lang=cs><title>Loď 1</title><meta name=description content=Popis><meta name=robots content=nofollow>"
    f"<link rel=canonical href=/c><h1>Hlavní</h1><p>{'Příliš žluťoučký kůň 17. ' * 9}<a href=/b?sid=1234567>b</a>"
    f"<a href={ELSEWHERE}>e</a><a href=/b?sid=1234567>again</a>"
)


@pytest.fixture(params=[SqliteWorld, PostgresWorld], ids=["sqlite", "postgres"])
def store(request):
    place = request.getfixturevalue("address" if request.param is PostgresWorld else "tmp_path")
    world = request.param(place, {ME})
    yield world.open()
    world.close()


def stored(store, outcome, document):
    """The lease, and the task that ended with this outcome."""
    store.offer([candidate(A)], (), 0.0)
    worker = store.join(ME, 0.0)
    (lease,) = get(store, worker).values()
    (task,) = take(store, lease)
    targets = document.links.targets if document else (outcome.target,)
    links = [candidate(target, 1, Reason.SCOPE) for target in dict.fromkeys(targets)]
    reason = Reason.OK if document else Reason.REDIRECT
    done = completion(lease, task, reason, outcome, document=document, candidates=tuple(links))
    store.commit(worker, batch(done), 0.0)
    return done


@pytest.mark.parametrize("kind", ["page", "redirect"])
def test_an_unchanged_answer_has_no_difference(store, kind):
    fetched = Fetched(200, Headers((("content-type", "text/html; charset=utf-8"),)), PAGE.encode())
    page = understand(A, fetched) if kind == "page" else None
    read = stored(store, fetched if page else Redirected(302, Headers(), ELSEWHERE), page)
    shown = store.stored_content(read.lease, url_id(A))
    if page:
        assert shown[2] == "Loď 1"
        assert shown[8:] == sorted(set(page.links.targets))
    asked = {}
    assert second_look(read, shown, asked) is read
    assert second_look(read, [one.replace("1", "2") for one in shown], asked).retry_in_s, "nothing else differs"


def test_unparsed_pages_have_no_lines(store):
    read = stored(store, Redirected(302, Headers(), ELSEWHERE), None)
    assert store.stored_content(read.lease, url_id(ELSEWHERE)) == [""]
