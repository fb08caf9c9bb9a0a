"""Simulated crawls with an order of pages: of a text graph, of webs with lists, of a generated web with politeness."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from listweb import ListWeb
from madeweb import Web
from numpy.typing import NDArray
from orders import next_page, queue_of
from textgraph import Graph, Task

from periplus.model.web import HostKey, Url
from periplus.urls.hosts import host_key
from periplus_topics.schedule.policy import Pointer, TopicalQueue
from periplus_topics.schedule.queue import PageQueue

SHARE = 0.15  # of the graph that a crawl may read
FETCHES, LATELY = 8_000, 2_000
REST = 20  # least number of fetches between two requests to a host: simulated politeness


class Marks(NamedTuple):
    """Scores of a crawl of a text graph.

    recall: of the relevant pages reachable from the seeds; of_all: of all relevant pages.
    """

    harvest_100: float
    recall_5: float
    recall_10: float
    area: float  # mean recall over the first 15 % of the pages
    recall_10_of_all: float
    area_of_all: float


def crawl_graph(graph: Graph, task: Task, name: str) -> Marks:
    """name: an order, or `oracle`: takes a relevant page of those discovered, if there is one."""
    queue = queue_of("weighed" if name == "oracle" else name)
    numbers = {url: number for number, url in enumerate(graph.urls)}
    promises = task.promises
    if name == "oracle":
        assert isinstance(queue, PageQueue)
        queue.order = lambda seen, pages: (
            np.array([float(numbers[seen.urls[page]] in task.topic) for page in pages]) + 1e-3 * seen.worth_most[pages]
        )

    def pointers(page: int) -> list[Pointer]:
        return [Pointer(graph.urls[n], graph.names[n], float(promises[n])) for n in graph.links[page]]

    return marks(_harvested(queue, graph.urls, task, pointers), task, len(graph.urls))


def crawl_lists(web: ListWeb, topic: str, seed: int, name: str) -> Marks:
    """Crawls a web with lists from three relevant pages."""
    queue, task = queue_of(name), web.task(topic, seed)
    gained = _harvested(queue, web.urls, task, lambda page: web.pointers(page, topic))
    return marks(gained, task, len(web.urls))


def _harvested(
    queue: TopicalQueue, urls: Sequence[Url], task: Task, pointers: Callable[[int], list[Pointer]]
) -> NDArray[np.int64]:
    """Number of relevant pages fetched so far, after each fetch."""
    numbers = {url: number for number, url in enumerate(urls)}
    queue.start(urls[seed] for seed in task.seeds)
    hosts = list(dict.fromkeys(map(host_key, urls)))
    relevant: list[bool] = []
    whole = int(SHARE * len(urls))
    while len(relevant) < whole and (url := next_page(queue, hosts)) is not None:
        page = numbers[url]
        queue.read(url, float(task.relevance[page]), pointers(page))
        relevant.append(page in task.topic)
    return np.cumsum(relevant + [False] * (whole - len(relevant)))


def marks(found: NDArray[np.int64], task: Task, pages: int) -> Marks:
    all_of, reached = found / len(task.topic), found / task.reachable
    at = [int(share * pages) - 1 for share in (0.05, 0.1)]
    return Marks(found[99] / 100, reached[at[0]], reached[at[1]], reached.mean(), all_of[at[1]], all_of.mean())


def crawl_web(web: Web, name: str, fetches: int = FETCHES) -> NDArray[np.bool_]:
    """Whether each fetch returned a relevant page; False if no host was ready."""
    queue = queue_of(name)
    queue.start(web.seeds())
    hosts = dict.fromkeys(map(host_key, web.seeds()))
    resting: deque[tuple[int, HostKey]] = deque()
    found = np.zeros(fetches, np.bool_)
    for tick in range(fetches):
        while resting and resting[0][0] <= tick:
            resting.popleft()
        url = next_page(queue, list(hosts), {host for _, host in resting})
        if url is None:
            continue
        resting.append((tick + REST, host_key(url)))
        page = web.page(url)
        found[tick] = page.relevant
        queue.read(url, page.worth, page.pointers)
        hosts.update(dict.fromkeys(host_key(pointer.target) for pointer in page.pointers))
    return found
