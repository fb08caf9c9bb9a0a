"""What does an order of pages find?

Crawls without a network: of a text graph page by page, of a made web with politeness.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
from madeweb import Web
from numpy.typing import NDArray
from textgraph import Graph, Task

from periplus.schedule.topical.policy import Pointer
from periplus.schedule.topical.queue import PageQueue, SiteWaits, queue_named

SHARE = 0.15  # of the graph that a crawl may read
FETCHES, LATELY = 8_000, 2_000
REST = 20  # fetches between two of one host: politeness in the clock of the crawl


class Marks(NamedTuple):
    """Of one crawl of a text graph.

    Recall is of the pages on the topic that links lead to from the seeds; of_all, of every page on the topic.
    """

    harvest_100: float
    recall_5: float
    recall_10: float
    area: float  # mean recall over the first 15 % of the pages
    recall_10_of_all: float
    area_of_all: float


def crawl_graph(graph: Graph, task: Task, name: str) -> Marks:
    """name: of an order, or `oracle`: of all pages that were met, one that is on the topic, if there is one."""
    queue = queue_named("weighed" if name == "oracle" else name)
    assert isinstance(queue, PageQueue | SiteWaits)
    numbers = {url: number for number, url in enumerate(graph.urls)}
    promises = task.promises
    if name == "oracle":
        assert isinstance(queue, PageQueue)
        queue.order = lambda seen, pages: (
            np.array([float(numbers[seen.urls[page]] in task.topic) for page in pages]) + 1e-3 * seen.worth_most[pages]
        )
    queue.start(graph.urls[seed] for seed in task.seeds)
    found: list[bool] = []
    whole = int(SHARE * len(graph.urls))
    while len(found) < whole and (url := queue.take()) is not None:
        page = numbers[url]
        pointers = [Pointer(graph.urls[n], graph.names[n], float(promises[n])) for n in graph.links[page]]
        queue.read(url, float(task.relevance[page]), pointers)
        found.append(page in task.topic)
    return marks(np.cumsum(found + [False] * (whole - len(found))), task, len(graph.urls))


def marks(found: NDArray[np.int64], task: Task, pages: int) -> Marks:
    all_of, reached = found / len(task.topic), found / task.reachable
    at = [int(share * pages) - 1 for share in (0.05, 0.1)]
    return Marks(found[99] / 100, reached[at[0]], reached[at[1]], reached.mean(), all_of[at[1]], all_of.mean())


def crawl_web(web: Web, name: str, fetches: int = FETCHES) -> NDArray[np.bool_]:
    """Of each fetch, whether it brought a relevant page; one that found no host ready brought none."""
    queue = queue_named(name)
    assert isinstance(queue, PageQueue | SiteWaits)
    queue.start(web.seeds())
    resting: deque[tuple[int, int]] = deque()
    found = np.zeros(fetches, np.bool_)
    for tick in range(fetches):
        while resting and resting[0][0] <= tick:
            resting.popleft()
        url = queue.take(np.array([host for _, host in resting], np.int64))
        if url is None:
            continue
        resting.append((tick + REST, queue.place_of(url)))
        page = web.page(url)
        found[tick] = page.relevant
        queue.read(url, page.worth, page.pointers)
    return found
