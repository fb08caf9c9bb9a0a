"""Parts of a web exchange URLs through their stores, in folders and in databases."""

from __future__ import annotations

import contextlib

import pytest

from contracts.conftest import ME
from contracts.crawl_values import batch, candidate, completion, get, side_request, state, take, urls
from contracts.crawl_worlds import PostgresWorld, SqliteWorld
from periplus.model.frontier import StoredRobots
from periplus.model.visit import Purpose, Reason
from periplus.store import part_messages
from periplus.urls.hosts import WebPart, parse_part, part_of
from periplus_postgres.address import address_of
from postgres_server import empty_collection

OWN = [f"http://s{number}.test/" for number in range(40) if part_of(f"s{number}.test:80", 2) == 1]
THEIRS = [f"http://s{number}.test/" for number in range(40) if part_of(f"s{number}.test:80", 2) == 2]


@pytest.fixture(params=[SqliteWorld, PostgresWorld], ids=["sqlite", "postgres"])
def part(request, tmp_path):
    """Opens parts of one web, each with a worker: `part(1)`, `part(2)`."""
    with contextlib.ExitStack() as stack:

        def part(number):
            place = tmp_path / f"{number}"
            if request.param is PostgresWorld:
                place = address_of(stack.enter_context(empty_collection()))
            world = request.param(place, {ME})
            stack.callback(world.close)
            insert = "INSERT INTO meta VALUES ('part', '{}/2'), ('exchange-id', 'part {}') RETURNING 1"
            if request.param is PostgresWorld:
                world.ask(insert.format(number, number))
            else:
                from periplus.store.sqlite import schema

                with schema.writing(place) as connection:
                    connection.execute(insert.format(number, number)).fetchall()
            return world.open()

        yield part


def brought(store, *candidates, **more):
    """Stores a page with its links."""
    store.offer([candidate(OWN[0])], (), 0.0)
    worker = store.join(ME, 0.0)
    leases = get(store, worker)
    lease = leases[OWN[0].split("/")[2]]
    done = [completion(lease, task, candidates=tuple(candidates)) for task in take(store, lease)]
    store.commit(worker, batch(*done, hosts=[state(lease)], **more), 1.0)
    for other in leases.values():
        if other is not lease:
            store.commit(worker, batch(hosts=[state(other)]), 1.0)
    store.ready(10, 0.0, 1.0)  # merges the inbox of a database


def handed(store):
    """The messages for part 2, as read there."""
    batch = store.next_batch(2)
    return part_messages.messages_read(batch.messages) if batch else part_messages.Messages((), (), ())


def reasons(store):
    return {
        text: (reason, rule)
        for text, reason, rule in store.read(lambda it: it.rows("SELECT text, reason, rule FROM url"))
    }


def test_a_url_of_another_part_is_sent_once(part):
    store = part(1)
    brought(store, candidate(THEIRS[0], 1), candidate(OWN[1], 1), candidate(THEIRS[0], 1))
    assert reasons(store)[THEIRS[0]] == (Reason.OTHER_PART, "waiting")
    assert reasons(store)[OWN[1]] == (Reason.WAITING, "")
    assert handed(store).candidates == (candidate(THEIRS[0], 1),)
    assert THEIRS[0].split("/")[2] not in get(store, store.join(ME, 2.0))


def test_a_url_is_sent_again_only_with_new_information(part):
    store = part(1)
    links = [
        candidate(THEIRS[0], 3, Reason.NOFOLLOW),  # news
        candidate(THEIRS[0], 4, Reason.NOFOLLOW),
        candidate(THEIRS[0], 4),  # a link that is followed
        candidate(THEIRS[0], 4),
        candidate(THEIRS[0], 2),  # nearer
        candidate(THEIRS[0], None, in_sitemap=True),  # in a sitemap
        candidate(THEIRS[0], 5),
    ]
    brought(store, *links)
    assert handed(store).candidates == (links[0], links[2], links[4], links[5])


@pytest.mark.parametrize("reason", [Reason.SCOPE, Reason.RESOURCE])
def test_urls_that_no_part_fetches_are_not_sent(part, reason):
    store = part(1)
    brought(store, candidate(THEIRS[0], None, reason))
    assert reasons(store)[THEIRS[0]][0] == reason
    assert store.next_batch(2) is None
    store.offer([candidate(THEIRS[0], 1)], (), 3.0, reopen=True)  # a later run includes it
    assert handed(store).candidates == (candidate(THEIRS[0], 1),)


def test_sitemaps_and_rules_are_sent_to_their_part(part):
    store = part(1)
    ask = side_request(THEIRS[0] + "sitemap.xml", Purpose.SITEMAP, about="s.test")
    answers = tuple(
        StoredRobots(f"http://{url.split('/')[2]}:80", 200, "", b"\0\xff", 1.0, 2.0) for url in (OWN[1], THEIRS[1])
    )
    brought(store, side_requests=(ask,), robots=answers)
    assert handed(store) == ((), (ask,), answers[1:])
    assert store.robots(answers[0].origin) == answers[0]
    assert store.robots(answers[1].origin) is None


def test_a_batch_keeps_its_number_and_rows_until_it_is_written(part):
    store = part(1)
    brought(store, candidate(THEIRS[0], 1))
    first = store.next_batch(2)
    store.offer([candidate(THEIRS[1], 1)], (), 3.0)
    assert store.receivers(1) == [2]
    assert store.next_batch(2) == first
    assert not store.part_state(3.0).is_idle
    store.delete_batch(first)
    second = store.next_batch(2)
    assert (first.number, second.number) == (1, 2)
    assert part_messages.messages_read(second.messages).candidates == (candidate(THEIRS[1], 1),)
    store.delete_batch(second)
    assert store.next_batch(2) is None and store.receivers(1) == []


def test_the_owner_reads_each_batch_once_in_order(part):
    sender, owner = part(1), part(2)
    brought(sender, candidate(THEIRS[0], 1))
    first = sender.next_batch(2)
    sender.delete_batch(first)
    sender.offer([candidate(THEIRS[1], 2)], (), 3.0)
    second = sender.next_batch(2)
    assert not owner.apply_batch(1, 2, second.messages, 0.0)
    assert owner.apply_batch(1, 1, first.messages, 0.0)
    assert not owner.apply_batch(1, 1, first.messages, 0.0)
    assert owner.apply_batch(1, 2, second.messages, 0.0)
    leases = get(owner, owner.join(ME, 1.0))
    assert sorted(url for lease in leases.values() for url in urls(take(owner, lease, 1.0))) == sorted(THEIRS[:2])
    assert {text: reason for text, (reason, _) in reasons(owner).items()} == dict.fromkeys(THEIRS[:2], Reason.WAITING)
    assert owner.part_state(0.0).taken == {1: 2} and not owner.part_state(0.0).is_idle


def test_rules_requested_by_a_part_are_returned(part):
    asking, owner = part(1), part(2)
    answer = StoredRobots(f"http://{OWN[0].split('/')[2]}:80", 200, "", b"User-agent: *\nDisallow: /x", 1.0, 9.0)
    owner.offer([candidate(THEIRS[0])], (), 0.0)
    worker = owner.join(ME, 0.0)
    owner.commit(worker, batch(robots=(answer,)), 1.0)
    back = owner.next_batch(1)
    assert asking.apply_batch(2, back.number, back.messages, 2.0)
    assert asking.robots(answer.origin) == answer


def test_a_part_keeps_its_first_identity(part):
    store = part(1)
    assert store.peer(2, "one") == "one"
    assert store.peer(2, "another") == "one"


@pytest.mark.parametrize("text", ["0/4", "5/4", "4", "a/b", "1/", "1/100000", "-1/4", "1/4/2"])
def test_invalid_parts_are_refused(text):
    from periplus.errors import UsageError

    with pytest.raises(UsageError):
        parse_part(text)


def test_the_part_of_a_host_is_stored():
    """The partition is stored: divided collections must find their hosts again."""
    hosts = (
        "example.org:443",
        "www.example.org:80",
        "a.b.example.co.uk:80",
        "ann.github.io:443",
        "[::1]:8080",
        "localhost:80",
    )
    assert [part_of(host, 4) for host in hosts] == [2, 2, 4, 4, 4, 1]
    assert parse_part("2/4") == WebPart(2, 4)
    for host in hosts:  # twice as many parts halve each range
        assert (part_of(host, 8) + 1) // 2 == part_of(host, 4)
