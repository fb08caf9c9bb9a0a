"""What may a check ask for while pages of its crawl still wait?"""

from __future__ import annotations

from contracts.crawl_values import candidate, side_request, urls
from contracts.crawl_worlds import SqliteWorld
from periplus.api.checking import CheckFrontier
from periplus.model.visit import Purpose

PAGE, TARGET = "http://a.test/", "http://b.test/x"


def test_a_check_that_is_paused_with_work_is_not_at_its_end(tmp_path):
    """Its own frontier offers side requests alone: in a pause it sees none, and they are there."""
    world = SqliteWorld(tmp_path, {100})
    frontier = CheckFrontier(world.open())
    frontier.offer([candidate(PAGE)], (), 0.0)
    assert frontier.idle(0.0), "pages are the crawl's business"
    frontier.offer((), [side_request(TARGET, Purpose.HEAD)], 0.0)
    world.pause(True)
    assert (list(frontier.ready(9, 0.0, 0.0)), frontier.fair_share(0.0), frontier.idle(0.0)) == ([], 0, False)
    world.pause(False)
    (host,) = frontier.ready(9, 0.0, 0.0)
    (lease,) = frontier.lease(frontier.join(100, 0.0), [host.host_id], 0.0)
    assert urls(frontier.take(lease, 9, frozenset(), 0.0)[0]) == [TARGET]
    world.close()
