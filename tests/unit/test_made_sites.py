"""The synthetic sites of quality/worlds have the pages and traps that they declare, checked without a crawler."""

from __future__ import annotations

import html
import random
import re
import sys
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import pytest

WORLDS = Path(__file__).parents[2] / "quality" / "worlds"
NAMES = [
    "bugs",
    "buses",
    "dictionary",
    "exams",
    "forum",
    "gallery",
    "gazetteer",
    "genealogy",
    "library",
    "mails",
    "prices",
    "ships",
]
SIZE = 45


@pytest.fixture(scope="module")
def kinds():
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(WORLDS))
        from server import KINDS

        yield KINDS
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", "") and Path(sys.modules[name].__file__).parent == WORLDS:
            del sys.modules[name]


def targets(world, target, page):
    """The URLs that a page links to."""
    for reference in re.findall('href="([^"]*)"', page):
        yield urldefrag(urljoin(f"http://h{target}", html.unescape(reference)))[0].removeprefix("http://h")


def walk(world, most):
    """URLs that are reached through real pages and at most `most` traps."""
    chance, seen, left = random.Random(1), {"/"}, ["/"]
    while left:
        target = left.pop()
        page = world.answer(target, chance)
        for onward in targets(world, target, page) if isinstance(page, str) else ():
            key = onward if world.kind(onward) == "trap" else world.key(onward)
            if key not in seen and (world.kind(key) != "trap" or most > 0):
                most -= world.kind(key) == "trap"
                seen.add(key)
                left.append(key)
    return seen


def test_every_world_is_tested(kinds):
    assert sorted(kinds) == NAMES


@pytest.mark.parametrize("traps", [False, True], ids=["plain", "traps"])
@pytest.mark.parametrize("name", NAMES)
def test_every_real_page_exists_and_is_reachable_without_a_trap(kinds, name, traps):
    world = kinds[name](SIZE, traps)
    assert world.real <= walk(world, 0)
    assert all(isinstance(world.answer(target, random.Random(1)), str) for target in world.real | world.neutral)


@pytest.mark.parametrize("name", NAMES)
def test_real_pages_are_distinct_and_the_plain_site_has_no_traps(kinds, name):
    world = kinds[name](SIZE, False)
    pages = {world.answer(target, random.Random(1)) for target in world.real}
    aliases = {"/index.php"} & world.real
    assert len(pages) == len(world.real) - len(aliases)
    assert walk(world, 10_000) <= world.real | world.neutral


@pytest.mark.parametrize("name", NAMES)
def test_a_site_with_traps_has_more_traps_than_real_pages(kinds, name):
    world = kinds[name](SIZE, True)
    found = walk(world, 3 * len(world.real))
    assert sum(world.kind(target) == "trap" for target in found) > 2 * len(world.real)
