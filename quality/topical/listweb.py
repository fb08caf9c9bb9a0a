"""Three generated webs with list pages: pages have kinds, and most pages of a kind are reached through lists without a
kind.

`campus`: universities whose departments have sections (courses, people, projects, news); a section is a list, often of
several pages; addresses and anchors name the section. Items link to their list and to items of other kinds.
`archive`: trees of folders grown at random, each folder mostly of one kind, a few with hundreds of pages and most
with few; neither addresses nor anchors indicate the kind of a page. Items link to neighbours and to their folder.
`college`: departments with lists of courses, people and projects, as in collections of university pages. The exercises
of a course are judged as courses in seven of ten cases, so a crawl for courses stays within one course.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from textgraph import SEEDS, Task, reached

from periplus.model.web import Url
from periplus_topics.schedule.policy import Pointer

KINDS = ("course", "people", "project")  # topics; all other pages are news
LISTED = "list"
MISJUDGED = 0.3  # share of notes that are not judged as courses


@dataclass(slots=True)
class ListWeb:
    """Pages by number; kinds and links by page."""

    urls: list[Url] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    links: list[dict[int, str]] = field(default_factory=list)  # target: anchor

    def add(self, url: str, kind: str) -> int:
        self.urls.append(Url(url))
        self.kinds.append(kind)
        self.links.append({})
        return len(self.urls) - 1

    def link(self, source: int, target: int, anchor: str) -> None:
        if source != target:
            self.links[source].setdefault(target, anchor)

    def task(self, topic: str, seed: int) -> Task:
        """A crawl for the pages of one kind. The relevance is wrong for one page in twenty."""
        rng = random.Random(f"{topic} {seed}")
        relevance = [
            rng.betavariate(6, 1.5)
            if (kind == topic) is (rng.random() < (MISJUDGED if (topic, kind) == ("course", "note") else 0.95))
            else rng.betavariate(1, 9)
            for kind in self.kinds
        ]
        pages = [page for page, kind in enumerate(self.kinds) if kind == topic]
        seeds = tuple(rng.sample(pages, SEEDS))
        reachable = len(reached(self.links, seeds).intersection(pages))
        return Task(frozenset(pages), seeds, np.array(relevance), np.zeros(0), reachable)

    def pointers(self, page: int, topic: str) -> list[Pointer]:
        """Link targets with their promise; an anchor that names the topic promises more."""
        return [
            Pointer(self.urls[target], anchor, 0.5 if topic in anchor else 0.25)
            for target, anchor in self.links[page].items()
        ]


_TITLES = ("advanced", "applied", "basic", "central", "digital", "early", "general", "human", "modern", "public")
_SECTIONS = {
    "course": ("course list", "teaching", "study plan", "course catalogue"),
    "people": ("people", "staff", "who we are", "people by name"),
    "project": ("research", "project list", "projects", "funded work"),
    "news": ("news", "events", "archive", "press"),
}
_SIZES = {"course": (15, 60), "people": (20, 80), "project": (8, 40), "news": (60, 200)}


def campus(seed: int, universities: int = 14) -> ListWeb:
    """Generates the campus web."""
    rng, web = random.Random(f"campus {seed}"), ListWeb()
    for home, base in _linked_homes(web, rng, "uni", universities, "partner university"):
        for department in range(rng.randint(1, 3)):
            _department(web, rng, home, f"{base}/d{department}")
    return web


def _linked_homes(web: ListWeb, rng: random.Random, name: str, count: int, anchor: str) -> Iterator[tuple[int, str]]:
    """Adds the homes of sites; yields each with its address, once it links to three homes."""
    bases = [f"https://{name}{number}.test" for number in range(count)]
    homes = [web.add(f"{base}/", "home") for base in bases]
    for home, base in zip(homes, bases, strict=True):
        for other in rng.sample(homes, 3):
            web.link(home, other, anchor)
        yield home, base


def _department(web: ListWeb, rng: random.Random, home: int, base: str) -> None:
    top = web.add(f"{base}/", "home")
    web.link(home, top, f"department of {rng.choice(_TITLES)} studies")
    items: dict[str, list[int]] = {}
    first_lists = []
    for kind, names in _SECTIONS.items():
        name = rng.choice(names)
        word, size, at_once = name.split()[0], rng.randint(*_SIZES[kind]), rng.choice((15, 40, 200))
        items[kind] = [web.add(f"{base}/{word}/{rng.choice(_TITLES)}-{page}", kind) for page in range(size)]
        lists = [web.add(f"{base}/{word}/?page={page}", LISTED) for page in range(-(-size // at_once))]
        first_lists.append((lists[0], name))
        for place, one in enumerate(lists):
            for item in items[kind][place * at_once : (place + 1) * at_once]:
                web.link(one, item, f"{rng.choice(_TITLES)} {rng.choice(_TITLES)}")
                web.link(item, lists[0], name)
            if place + 1 < len(lists):
                web.link(one, lists[place + 1], "next")
            web.link(one, top, "department")
    for item in [item for own in items.values() for item in own]:
        web.link(item, home, "home")
        web.link(item, top, "department")
    for one in (top, *(one for one, _ in first_lists)):
        for target, name in first_lists:
            web.link(one, target, name)
    for kind, other, most in (("course", "people", 2), ("people", "project", 2), ("project", "people", 4)):
        for item in items[kind]:
            for _ in range(rng.randint(0, most)):
                web.link(item, rng.choice(items[other]), f"{rng.choice(_TITLES)} {rng.choice(_TITLES)}")
    for item in items["news"]:
        web.link(item, rng.choice(items[rng.choice(tuple(items))]), "read more")
        web.link(item, rng.choice(items["news"]), "older")


def archive(seed: int, hosts: int = 12) -> ListWeb:
    """Generates the archive web."""
    rng, web = random.Random(f"archive {seed}"), ListWeb()
    folders: list[tuple[int, str]] = []
    for number in range(hosts):
        _tree(web, rng, f"https://arch{number}.test", folders)
    by_kind: dict[str, list[int]] = {}
    for folder, kind in folders:
        by_kind.setdefault(kind, []).append(folder)
    for folder, kind in folders:
        if rng.random() < 0.2:
            near = by_kind[kind] if rng.random() < 0.6 else [one for one, _ in folders]
            web.link(folder, rng.choice(near), "elsewhere")
    return web


def _tree(web: ListWeb, rng: random.Random, base: str, folders: list[tuple[int, str]]) -> None:
    ids = iter(rng.sample(range(10_000, 99_999), 6_000))
    folder_key, item_key = rng.choice((("id", "id"), ("f", "id"), ("cat", "doc")))
    root = web.add(f"{base}/", "home")
    inner = [root]
    for _ in range(rng.randint(20, 35)):
        parent = rng.choice(inner)
        folder = web.add(f"{base}/show?{folder_key}={next(ids)}", LISTED)
        web.link(parent, folder, f"folder {rng.randint(1, 99)}")
        web.link(folder, parent, "up")
        if rng.random() < 0.35:
            inner.append(folder)
        kind = rng.choice((*KINDS, "news", "news"))
        folders.append((folder, kind))
        size = min(300, int(rng.paretovariate(0.9) * 4))
        items = []
        for _ in range(size):
            own = kind if rng.random() < 0.9 else rng.choice((*KINDS, "news"))
            items.append(web.add(f"{base}/show?{item_key}={next(ids)}", own))
            web.link(folder, items[-1], f"no {rng.randint(1, 999)}")
        for place, item in enumerate(items):
            web.link(item, folder, "up")
            web.link(item, root, "start")
            if rng.random() < 0.3:
                web.link(item, items[(place + 1) % size], "next")
            if rng.random() < 0.15:
                web.link(item, rng.choice(folders)[0], "see")


def college(seed: int, departments: int = 6) -> ListWeb:
    """Generates the college web."""
    rng, web = random.Random(f"college {seed}"), ListWeb()
    for home, base in _linked_homes(web, rng, "cs", departments, "other departments"):
        _members(web, rng, home, base)
    return web


def _members(web: ListWeb, rng: random.Random, home: int, base: str) -> None:
    lists = {name: web.add(f"{base}/{name}/", LISTED) for name in ("classes", "folks", "groups")}
    for name, one in lists.items():
        web.link(home, one, name)
        web.link(one, home, "department")
    people = []
    for member in range(rng.randint(60, 160)):
        people.append(web.add(f"{base}/~u{member}/", "people"))
        web.link(lists["folks"], people[-1], rng.choice(_TITLES))
        web.link(people[-1], home, "department")
        _parts(web, rng, people[-1], f"{base}/~u{member}/page", "news", 2)
    for number in range(rng.randint(30, 110)):
        folder = f"{base}/class/c{number}" if rng.random() < 0.6 else f"{base}/~u{rng.randrange(60)}/c{number}"
        course = web.add(f"{folder}/", "course")
        web.link(lists["classes"], course, rng.choice(_TITLES))
        teacher = rng.choice(people)
        web.link(course, teacher, "instructor")
        if rng.random() < 0.5:
            web.link(teacher, course, "teaching")
        if rng.random() < 0.3:
            web.link(course, lists["classes"], "all classes")
        _parts(web, rng, course, f"{folder}/homework", "note", 3)
    for number in range(rng.randint(8, 30)):
        project = web.add(f"{base}/group/{number}/", "project")
        web.link(lists["groups"], project, rng.choice(_TITLES))
        for member in rng.sample(people, rng.randint(1, 7)):
            web.link(project, member, rng.choice(_TITLES))
            web.link(member, project, "research")


def _parts(web: ListWeb, rng: random.Random, whole: int, base: str, kind: str, scale: int) -> None:
    for number in range(int(rng.paretovariate(0.9) * scale) % 40):
        part = web.add(f"{base}{number}.html", kind)
        web.link(whole, part, f"{kind} {number}")
        web.link(part, whole, "up")


MAKERS: dict[str, Callable[[int], ListWeb]] = {"campus": campus, "archive": archive, "college": college}
