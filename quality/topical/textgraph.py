"""A real graph of texts for topical crawls, with its topics and simulated hosts."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from judge import trained

NAME = "topicgraph-wikispeedia.jsonl.gz"
TOPICS = (  # topics of 45 to 191 pages, in alphabetical order
    *(
        "Citizenship.Politics_and_government",
        "Design_and_Technology.Engineering",
        "Design_and_Technology.Railway_transport",
    ),
    *(
        "Everyday_life.Food_and_agriculture",
        "History.Ancient_History_Classical_History_and_Mythology",
        "IT",
        "Mathematics",
        "Music",
    ),
    *(
        "Science.Biology.Birds",
        "Science.Biology.Health_and_medicine",
        "Science.Chemistry",
        "Science.Physics.Space_Astronomy",
    ),
)
REPORTED, TUNED_ON = TOPICS[::2], TOPICS[1::2]  # tuning used only the second half
PORTALS, PORTAL_SHARE = 25, 0.4
POSITIVES, NEGATIVES, SEEDS = 30, 150, 3


@dataclass(frozen=True, slots=True)
class Graph:
    """Pages by number."""

    urls: tuple[str, ...]
    names: tuple[str, ...]
    texts: tuple[str, ...]
    links: tuple[tuple[int, ...], ...]
    subjects: tuple[tuple[str, ...], ...]

    def of_topic(self, topic: str) -> frozenset[int]:
        return frozenset(
            n for n, all_of in enumerate(self.subjects) if any(s == topic or s.startswith(topic + ".") for s in all_of)
        )


@dataclass(frozen=True, slots=True)
class Task:
    """A crawl task: the true relevance, and the knowledge at the start."""

    topic: frozenset[int]
    seeds: tuple[int, ...]
    relevance: NDArray[np.float64]  # of each page's text, according to the judge
    promises: NDArray[np.float64]  # of each page's name, according to the judge
    reachable: int  # relevant pages reachable from the seeds


def graph_of(path: Path, seed: int = 1) -> Graph:
    """The graph: 60 % of the pages on a host of their deepest subject, the others scattered over portals."""
    rng = random.Random(seed)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    numbers = {row["page"]: number for number, row in enumerate(rows)}
    hosts = {}
    urls = []
    for row in rows:
        deepest = max(row["subjects"], key=lambda subject: subject.count("."), default="")
        name = (
            f"portal{rng.randrange(PORTALS)}"
            if rng.random() < PORTAL_SHARE
            else f"site{hosts.setdefault(deepest, len(hosts))}"
        )
        urls.append(f"https://{name}.test/{quote(row['page'])}")
    links = tuple(
        tuple(dict.fromkeys(numbers[link] for link in row["links"] if link in numbers and link != row["page"]))
        for row in rows
    )
    names = tuple(row["page"].replace("_", " ") for row in rows)
    return Graph(
        tuple(urls), names, tuple(row["text"] for row in rows), links, tuple(tuple(row["subjects"]) for row in rows)
    )


def task_of(graph: Graph, topic: str, seed: int) -> Task:
    """A task; the seeds are among the training examples of the judge."""
    rng = random.Random(f"{topic} {seed}")
    pages = graph.of_topic(topic)
    examples = rng.sample(sorted(pages), POSITIVES)
    others = rng.sample(sorted(set(range(len(graph.urls))) - pages), NEGATIVES)
    judge = trained([graph.texts[n] for n in examples], [graph.texts[n] for n in others])
    linked = [n for n in examples if len(graph.links[n]) >= 5]
    seeds = tuple(linked[:SEEDS])
    return Task(pages, seeds, judge(graph.texts), judge(graph.names), len(pages & reached(graph.links, seeds)))


def reached(links: Sequence[Iterable[int]], seeds: Iterable[int]) -> set[int]:
    """The pages reachable from the seeds, with the seeds."""
    met, stack = set(seeds), list(seeds)
    while stack:
        new = set(links[stack.pop()]) - met
        met |= new
        stack += new
    return met


def judged_well(graph: Graph, task: Task) -> tuple[float, float]:
    """(precision, recall) of the judge at .5."""
    said = set(np.flatnonzero(task.relevance >= 0.5).tolist())
    counts = Counter(n in task.topic for n in said)
    return counts[True] / max(1, len(said)), counts[True] / len(task.topic)
