"""Topics with labelled texts from several sources, in the folder CORPORA.

Encyclopedia articles with subjects; news with a category; abstracts of research on computing; manuals of programs;
pages of seven kinds from many sites. A task trains on one source, or on some subjects or sites, and tests on others.
Lines that name the subjects of an article are removed first.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_SUBJECTS = re.compile(r"^.*?\n\n2007 Schools Wikipedia Selection\. Related subjects:.*?\n\n", re.S)
SEED = 5
MOST = 600  # texts per kind: more take minutes and give the same results


class Task(NamedTuple):
    """A topic with training texts, and test texts from other sources."""

    name: str
    positive: list[str]
    negative: list[str]
    other_positive: list[str]
    other_negative: list[str]


def folder() -> Path | None:
    """Folder of labelled data."""
    named = os.environ.get("CORPORA")
    return Path(named) if named and (Path(named) / "topicgraph-wikispeedia.jsonl.gz").exists() else None


def _rows(name: str) -> Iterator[dict[str, Any]]:
    where = folder()
    assert where is not None
    with gzip.open(where / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def articles() -> list[tuple[tuple[str, ...], str]]:
    """(subjects, text), shuffled."""
    found = [(tuple(row["subjects"]), _SUBJECTS.sub("", row["text"])) for row in _rows("topicgraph-wikispeedia")]
    random.Random(SEED).shuffle(found)
    return found


def abstracts() -> list[str]:
    """Abstracts of papers on computing."""
    return [row["text"] for name in ("keywords-www", "keywords-Inspec") for row in _rows(name)]


def tasks() -> list[Task]:
    """Topics trained on one source and tested on another."""
    known = articles()
    news = [(row["id"].partition("-")[0], row["text"]) for row in _rows("keywords-500N-KPCrowd-v1.1")]
    manuals = [
        row["gold"] for row in _rows("extraction-debdocs") if row["site"] in ("python3", "postgresql", "cppreference")
    ]

    def about(*subjects: str) -> list[str]:
        return [text for own, text in known if any(one.startswith(subjects) for one in own)]

    def without(*subjects: str) -> list[str]:
        return [text for own, text in known if not any(one.startswith(subjects) for one in own)]

    def news_but(*kinds: str) -> list[str]:
        return [text for kind, text in news if kind not in kinds]

    technical = ("IT", "Mathematics", "Design_and_Technology", "Science", "People.Computing", "Everyday_life.Computer")
    plain = without(*technical)
    of_tech = [text for kind, text in news if kind == "tech"]
    rest_of_sport = without("Everyday_life", "People.Sports", "Citizenship")
    rest_of_places = without("Geography", "Countries", "History", "Citizenship")
    rest_of_people = without("People", "History", "Music.Perf")
    europe = ("Geography.European", "Geography.African", "Countries", "Geography.Geography_of_Great")
    overseas = (
        "Geography.Geography_of_Asia",
        "Geography.North_Am",
        "Geography.Central",
        "Geography.Geography_of_Oceania",
        "Geography.Geography_of_the_Middle",
    )
    rulers = ("People.Historical", "People.Political", "People.USA", "People.Monarchs", "People.Military")
    makers = (
        "People.Writers",
        "People.Artists",
        "People.Astron",
        "People.Performers",
        "People.Sports",
        "People.Actors",
        "People.Philos",
        "People.Mathem",
    )
    half = len(plain) // 2
    made = [
        Task("computing, abstracts to articles", abstracts(), plain[:half], about("IT") + of_tech + manuals,
            plain[half:] + news_but("tech", "science")),
        Task("computing, articles to abstracts", about("IT"), plain[:half], abstracts()[:300] + of_tech + manuals,
            news_but("tech", "science") + plain[half:]),
        Task("places, here to overseas", about(*europe), rest_of_places[::2], _but(about(*overseas), about(*europe)),
            rest_of_places[1::2] + news_but()),
        Task("people, rulers to makers", about(*rulers), rest_of_people[::2], _but(about(*makers), about(*rulers)),
            rest_of_people[1::2]),
        Task("sport, articles to news", about("Everyday_life.Sports", "People.Sports"), rest_of_sport[::2],
             [text for kind, text in news if kind == "sports"], rest_of_sport[1::2] + news_but("sports")),
    ]  # fmt: skip
    return [
        Task(task.name, *(random.Random(SEED).sample(texts, min(MOST, len(texts))) for texts in task[1:]))
        for task in made
    ]


SUBJECTS = (
    *("Citizenship", "Everyday_life", "Geography", "History", "IT", "Music", "People"),
    *("Science.Biology", "Science.Chemistry", "Science.Physics"),
)
FEW, AGAINST = 30, 5  # positive training texts, negatives per positive
ASKED_POSITIVE, ASKED_NEGATIVE = 250, 1_200
KINDS = ("article", "service", "documentation", "forum", "product", "collection")


def subject_tasks() -> list[Task]:
    """Trained on half of a subject's branches, tested on the others; one test article in five to thirty is relevant."""
    rows, made = articles(), []
    for subject in SUBJECTS:
        rng = random.Random(f"{SEED} {subject}")
        branches = sorted({one for own, _ in rows for one in own if one.startswith(subject + ".")})
        rng.shuffle(branches)
        here, there = set(branches[::2]), set(branches[1::2])
        known = [text for own, text in rows if here.intersection(own)]
        other = [text for own, text in rows if there.intersection(own) and not here.intersection(own)]
        rest = [text for own, text in rows if not any(one.startswith(subject) for one in own)]
        rng.shuffle(rest)
        few = rng.sample(known, min(FEW, len(known)))
        learned_from = AGAINST * len(few)
        asked = rest[learned_from : learned_from + ASKED_NEGATIVE]
        made.append(Task(subject, few, rest[:learned_from], other[:ASKED_POSITIVE], asked))
    return made


def kind_tasks() -> list[Task]:
    """Kinds of pages on 331 sites with one page each: trained on half of the sites, tested on the others."""
    rows = sorted(_rows("extraction-wcxb-dev350"), key=lambda row: (str(row["site"]), str(row["gold"])))
    rows = [row for row in rows if row["gold"].strip()]
    sites = sorted({row["site"] for row in rows})
    random.Random(SEED).shuffle(sites)
    here = set(sites[::2])
    return [
        Task(
            kind,
            *(
                [row["gold"] for row in rows if (row["site"] in here) is learned and (row["kind"] == kind) is belongs]
                for learned in (True, False)
                for belongs in (True, False)
            ),
        )
        for kind in KINDS
    ]


def _but(texts: list[str], others: list[str]) -> list[str]:
    out = set(others)
    return [text for text in texts if text not in out]
