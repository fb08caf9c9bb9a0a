"""Results of the engines equal those of simple slow code on random datasets."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from datasets import chance_dataset, rows_of
from periplus_spark.alike import (
    CHECKED_LINKS,
    CLICKS,
    FAILED_REASONS,
    FETCHED_NAMES,
    FOLLOWED_LINKS,
    PAGE_REASONS,
    needed_values,
)
from periplus_spark.api import STAGES, compute
from periplus_spark.dataset import TABLES
from periplus_spark.files import StageParameters, blocks
from periplus_spark.streamed import ENGINE
from periplus_topics.model import cascades_of_lines

SEEDS = (1, 2, 3, 4)


class World:
    """The rows of a dataset, and the result folder of each stage."""

    def __init__(self, folder, seed):
        dataset = chance_dataset(folder / "web", seed, urls=60, sites=3, links=400)
        names = {name: list(table.names) for name, table in TABLES.items()}
        rows = {
            name: [row for block in blocks(dataset, name, columns) for row in block.to_pylist()]
            for name, columns in names.items()
        }
        self.urls, self.links, self.pages, self.texts = rows["urls"], rows["links"], rows["pages"], rows["texts"]
        self.moved = {row["source"]: row["target"] for row in rows["redirects"]}
        self.folders = {
            done.stage: done.folder
            for done in compute(
                dataset, folder / "r", list(STAGES), StageParameters(), ("stream", ENGINE), lambda *_: None
            )
        }

    def found(self, stage, table=""):
        return rows_of(self.folders[stage], table or next(iter(STAGES[stage].tables)))

    def end(self, url):
        seen = set()
        while url in self.moved and url not in seen:
            seen.add(url)
            url = self.moved[url]
        return -1 if url in seen else url

    def reason(self, url):
        return self.urls[url]["reason"]

    def site(self, url):
        return self.urls[url]["site"]

    def merit(self, url):
        row = self.urls[url]
        return (1023 if row["depth"] is None else row["depth"], len(row["text"]), url)

    def led(self, kinds):
        """(source, target, end, kind, position) of links of fetched pages whose redirects end."""
        for link in self.links:
            end = self.end(link["target"])
            if link["kind"] in kinds and end >= 0 and self.reason(link["source"]) in FETCHED_NAMES:
                yield link["source"], link["target"], end, link["kind"], link["position"]


@pytest.fixture(scope="module", params=SEEDS)
def world(request, tmp_path_factory):
    return World(tmp_path_factory.mktemp("world"), request.param)


def test_redirects_are_followed_to_their_end(world):
    assert world.found("ends") == sorted((source, world.end(source)) for source in world.moved)


def test_the_graph_has_the_pages_and_each_link_once(world):
    pages = {row["url"] for row in world.urls if row["reason"] in PAGE_REASONS}
    assert {url for url, *_ in world.found("graph", "nodes")} == pages
    edges = {
        (source, end, world.site(source) == world.site(end))
        for source, _, end, *_ in world.led(CLICKS)
        if end in pages and end != source
    }
    assert world.found("graph", "edges") == sorted(edges)


def test_each_site_has_one_fetched_home_page(world):
    homes = [(site, url) for url, site, _, home in world.found("graph", "nodes") if home]
    starts = {world.end(row["url"]) for row in world.urls if row["is_start"]}
    first = {}
    for url in sorted(url for url in starts if url >= 0 and world.reason(url) in FETCHED_NAMES):
        first.setdefault(world.site(url), url)
    assert sorted(homes) == sorted(first.items())


def test_ranks_sum_to_one_in_each_site_and_over_the_web(world):
    sums = defaultdict(float)
    for url, rank in world.found("ranks"):
        sums[world.site(url)] += rank
    assert all(abs(value - 1) < 1e-9 for value in sums.values())
    assert abs(sum(rank for _, rank in world.found("web_ranks")) - 1) < 1e-9


def test_a_link_with_a_failed_end_is_broken(world):
    expected = [
        (s, t, kind, position, end)
        for s, t, end, kind, position in world.led(CHECKED_LINKS)
        if world.reason(end) in FAILED_REASONS
    ]
    assert world.found("broken") == sorted(expected)


def test_external_links_to_valid_pages_are_counted_per_site(world):
    links, pages, targets = defaultdict(int), defaultdict(set), defaultdict(set)
    for source, _, end, *_ in world.led(FOLLOWED_LINKS):
        if world.site(source) != world.site(end) and world.reason(end) not in FAILED_REASONS:
            site = world.site(end)
            links[site] += 1
            pages[site].add(source)
            targets[site].add(end)
    assert world.found("external") == sorted(
        (site, links[site], len(pages[site]), len(targets[site])) for site in links
    )


def test_pages_with_the_same_folded_text_are_duplicates_of_the_best(world):
    groups = defaultdict(list)
    for page in world.pages:
        groups[page["folded_digest"]].append(page)
    expected = []
    for group in groups.values():
        head = min(group, key=lambda page: world.merit(page["url"]))
        for page in group if len(group) > 1 else ():
            same = [name for name in ("body", "text") if page[f"{name}_digest"] == head[f"{name}_digest"]]
            expected.append((page["url"], head["url"], "bytes" if "body" in same else "words" if same else "folded"))
    assert world.found("duplicates") == sorted(expected)


def test_each_page_joins_the_most_similar_earlier_group_or_starts_one(world):
    twins = {url for url, group, _ in world.found("duplicates") if url != group}
    assert (needed_values(0.75), needed_values(0.8)) == (96, 103)
    known = {
        url: np.frombuffer(bins, "<u8")
        for url, shingles, bins in world.found("sketches")
        if shingles >= 20 and url not in twins
    }
    leaders, expected = [], {}
    for url in sorted(known, key=world.merit):
        alike = [
            ((known[url] == known[leader]).sum(), leader)
            for leader in leaders
            if shares_a_band(known[url], known[leader])
        ]
        best = max(alike, key=lambda one: one[0], default=(0, -1))
        if best[0] >= 103:  # 0.8 of 128
            expected[url] = (best[1], best[0] / 128)
            expected[best[1]] = (best[1], 1.0)
        else:
            leaders.append(url)
    assert world.found("near") == sorted((url, *group) for url, group in expected.items())


def shares_a_band(one, other):
    return any((one[band : band + 6] == other[band : band + 6]).all() for band in range(0, 126, 6))


def test_links_between_sites_are_counted_by_page_folder_and_site(world):
    def folder(url):
        return world.urls[url]["text"].partition("?")[0].partition("://")[2].removeprefix("www.").rpartition("/")[0]

    pages, folders = defaultdict(set), defaultdict(set)
    for source, target, _ in world.found("graph", "edges"):
        sites = world.site(source), world.site(target)
        pages[sites].add((source, target))
        if folder(source) != folder(target):
            folders[sites].add((folder(source), folder(target)))
    rows = [("page", *sites, len(found)) for sites, found in pages.items()] + [("site", *sites, 1) for sites in pages]
    assert world.found("interlinking") == sorted(
        rows + [("directory", *sites, len(found)) for sites, found in folders.items()]
    )


def test_cascades_equal_those_read_from_lines(world):
    twin = {url: group for url, group, _ in world.found("duplicates")}
    near = {url: group for url, group, _ in world.found("near")}
    stories = defaultdict(list)
    for page in world.pages:
        head = twin.get(page["url"], page["url"])
        if head in near or page["url"] in twin:
            when = page["last_modified"] or world.urls[page["url"]]["first_seen"]
            stories[near.get(head, head)].append((when.timestamp() / 3600, world.site(page["url"])))
    lines = [" ".join(f"{site},{hours!r}" for hours, site in sorted(events)) for _, events in sorted(stories.items())]
    expected = cascades_of_lines(lines)
    found = defaultdict(list)
    for story, site, place, _, delay_h in world.found("cascades"):
        found[story].append((place, str(site), delay_h))
    told = []
    for begin, after in zip(expected.offsets[:-1], expected.offsets[1:], strict=True):
        if after - begin > 1:
            told.append(
                [(expected.sites[expected.members[row]], expected.delays_h[row]) for row in range(begin, after)]
            )
    mine = [
        [(site, pytest.approx(delay, abs=1e-6)) for _, site, delay in sorted(rows)] for _, rows in sorted(found.items())
    ]
    assert told == mine
