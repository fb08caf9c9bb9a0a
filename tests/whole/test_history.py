"""A run is read later as it was at its end, independent of later runs."""

from __future__ import annotations

import itertools
import random

import pytest
from voyage import crawled

from periplus.api.comparison import _end, _view
from periplus.api.crawling import refresh, refresh_order
from periplus.api.homes import snapshot_of
from testweb import GraphRecipe, graph_site, serve
from testweb.site import NOT_FOUND, Page
from testweb.wire import Answer

RUNS = 5


def seen(folder, run):
    """All data of a view of a run."""
    with snapshot_of(folder) as reader:
        end = _end(reader, run)
        view = _view(end, end.starts[0])
    links = set(zip(view.links.sources.tolist(), view.links.targets.tolist(), strict=True))
    pages = {
        url: {name: column[at] for name, column in view.fields.items()}
        for at, url in enumerate(view.graph.pages)
        if view.graph.fetched[at]
    }
    parents = view.site_map and {
        view.graph.pages[page]: view.graph.pages[parent]
        for page, parent in enumerate(view.site_map.parent.tolist())
        if parent >= 0
    }
    return {
        "links": links,
        "pages": pages,
        "reasons": dict(view.reasons),
        "parents": parents,
        "issues": {issue.key for issue in view.issues},
    }


def shake(site, server, rng, turn):
    """Random changes: pages change, lose and gain links, vanish, move, return; a new page is added."""
    paths = [path for path in site.pages if path != "/"]
    for path in rng.sample(paths, 8):
        page, whim = site.pages[path], rng.randrange(6)
        if whim == 0:
            page.title = f"{page.title} {turn}"
        elif whim == 1 and page.links:
            page.links.pop(rng.randrange(len(page.links)))
        elif whim == 2:
            site.link(path, rng.choice(paths), "A further way")
        elif whim == 3:
            site.routes.exact[path] = lambda asked: NOT_FOUND
        elif whim == 4:
            moved = Answer(301, b"", "", (("Location", rng.choice(paths)),))
            site.routes.exact[path] = lambda asked, moved=moved: moved
        else:
            site.routes.exact[path] = lambda asked, page=page: site.page_answer(page, asked)
        server.bump(site.host, path)
    site.add(Page(f"/new-{turn}.html", "New", ("Lately come.",)), linked_from=rng.choice(["/", *paths]))
    server.bump(site.host, "/")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_run_is_read_later_as_at_its_end(tmp_path, seed):
    site, rng, then = (
        graph_site(GraphRecipe(seed=seed, pages=30, links_per_page=4, shape="random", page_bytes=800, host="a.test")),
        random.Random(seed),
        [],
    )
    folder = tmp_path / "c"
    with serve(site) as server:
        left, _ = crawled(folder, server, "a.test", delay_s=0.0)
        then.append(seen(folder, "last"))
        for turn in range(1, RUNS):
            shake(site, server, rng, turn)
            refresh(refresh_order(folder, {}), lambda progress: False)
            then.append(seen(folder, "last"))
    assert left.sane() == []
    assert all(one != other for one, other in itertools.pairwise(then))
    for run, was in enumerate(then, 1):
        now = seen(folder, str(run))
        for part, value in was.items():
            assert now[part] == value, (run, part)


@pytest.mark.parametrize("seed", [4])
def test_after_a_refresh_the_map_equals_that_of_a_new_crawl(tmp_path, seed):
    """Except for pages without inlinks, which a new crawl cannot know."""
    site, rng = (
        graph_site(GraphRecipe(seed=seed, pages=30, links_per_page=4, shape="random", page_bytes=800, host="a.test")),
        random.Random(seed),
    )
    with serve(site) as server:
        crawled(tmp_path / "kept", server, "a.test", delay_s=0.0)
        for turn in range(1, 4):
            shake(site, server, rng, turn)
            refresh(refresh_order(tmp_path / "kept", {}), lambda progress: False)
        crawled(tmp_path / "fresh", server, "a.test", delay_s=0.0)
    kept, fresh = seen(tmp_path / "kept", "last"), seen(tmp_path / "fresh", "last")
    assert {url: fields | {"depth": 0} for url, fields in kept["pages"].items() if url in fresh["pages"]} == {
        url: fields | {"depth": 0} for url, fields in fresh["pages"].items()
    }
    assert fresh["links"] <= kept["links"]
    assert {url: reason for url, reason in kept["reasons"].items() if url in fresh["reasons"]} == fresh["reasons"]
