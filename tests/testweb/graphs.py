"""Random ordinary sites with shared templates and a known link graph."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from periplus.model.page import Position
from testweb.site import Page, PageLink, Site, Web
from testweb.words import paragraphs, place_name

NAV_PAGES = 5  # home and four sections
FOOTER_PAGES = 2
SHAPES = ("flat", "random", "deep")


@dataclass(frozen=True, slots=True)
class GraphRecipe:
    """A site of `pages` pages, all reachable from `/`; deterministic."""

    seed: int = 1
    pages: int = 100
    links_per_page: int = 20  # distinct targets on every page, navigation and footer included
    shape: str = "random"  # depth: flat (2 to 3 depths), random (about log n), deep (about n / 10 depths)
    page_bytes: int = 0  # approximate size of every page; 0: between 5 and 25 KB
    host: str = "a.test"

    def __post_init__(self) -> None:
        if self.shape not in SHAPES or self.pages < 1 or self.links_per_page < 1:
            raise ValueError(f"no such site: {self}")


def graph_site(recipe: GraphRecipe) -> Site:
    """The site of a recipe. With too few pages for links_per_page every page links to all."""
    rng = random.Random(f"{recipe.seed} {recipe.host}")
    site = Site(recipe.host)
    paths = ["/"] + [
        f"/{rng.choice(('ports', 'lights', 'charts', 'log'))}/{number:05d}.html" for number in range(1, recipe.pages)
    ]
    titles = [f"{place_name(rng)}, sheet {number}" for number in range(recipe.pages)]
    nav, footer = _template(recipe)
    trees = _tree(recipe, rng, nav, footer)
    for number, path in enumerate(paths):
        targets = _targets(recipe, rng, [*nav, *footer, *trees[number]])
        links = [PageLink(paths[i], titles[i], Position.NAV) for i in nav]
        links += [
            PageLink(paths[i], titles[i] if rng.random() < 0.7 else f"more on {titles[i]}")
            for i in targets[len(nav) + len(footer) :]
        ]
        links += [PageLink(paths[i], f"About {titles[i]}", Position.FOOTER) for i in footer]
        size = recipe.page_bytes or rng.randint(5_000, 25_000)
        place = titles[number].partition(",")[0]
        text = paragraphs(
            rng, place, max(200, size - 700 - sum(len(link.href) + len(link.anchor) + 24 for link in links))
        )
        site.add(Page(path, titles[number], text, links))
    return site


def _template(recipe: GraphRecipe) -> tuple[list[int], list[int]]:
    """The pages in the navigation and in the footer of every page. Empty if links_per_page is small."""
    if recipe.links_per_page < NAV_PAGES + FOOTER_PAGES + 2:
        return [], []
    nav = list(range(min(NAV_PAGES, recipe.pages)))
    return nav, list(range(len(nav), min(len(nav) + FOOTER_PAGES, recipe.pages)))


def _tree(recipe: GraphRecipe, rng: random.Random, nav: Sequence[int], footer: Sequence[int]) -> list[list[int]]:
    """Children of each page in a tree over all pages, so that each is reachable;
    limited by links_per_page.
    """
    room = recipe.links_per_page - len(nav) - len(footer)
    children: list[list[int]] = [[] for _ in range(recipe.pages)]
    known = max(1, len(nav) + len(footer))  # linked from everywhere already
    open_pages = list(range(min(known, recipe.pages)))
    for number in range(known, recipe.pages):
        if recipe.shape == "flat":
            place = 0
        elif recipe.shape == "deep":
            place = rng.randrange(max(0, len(open_pages) - 10), len(open_pages))
        else:
            place = rng.randrange(len(open_pages))
        parent = open_pages[place]
        children[parent].append(number)
        if len(children[parent]) >= room:
            open_pages.pop(place)
        open_pages.append(number)
    return children


def _targets(recipe: GraphRecipe, rng: random.Random, given: list[int]) -> list[int]:
    """The given targets and random further ones up to the number of the recipe; in a `deep` site only nearby
    pages, to keep it deep.
    """
    targets = list(given)
    seen = set(targets)
    wanted = min(recipe.links_per_page, recipe.pages)
    reach = recipe.pages if recipe.shape != "deep" else max(max(given, default=0), wanted)
    while len(targets) < wanted:
        number = rng.randrange(reach)
        if number not in seen:
            seen.add(number)
            targets.append(number)
        elif len(seen) >= reach:
            reach = recipe.pages
    return targets


def linked_sites(
    seed: int = 1, sites: int = 3, pages: int = 30, links_between: int = 10, links_per_page: int = 12
) -> Web:
    """Several sites, `a.test`, `b.test`, ...

    (then `s26.test`), each with links_between links from random pages to random pages of the others.
    """
    rng = random.Random(f"between {seed}")
    hosts = [f"{chr(97 + number)}.test" if number < 26 else f"s{number}.test" for number in range(sites)]
    web = Web(graph_site(GraphRecipe(seed, pages, links_per_page, host=host)) for host in hosts)
    for host in hosts:
        others = [web.sites[other] for other in hosts if other != host]
        for _ in range(links_between if others else 0):
            other = rng.choice(others)
            page = rng.choice(list(other.pages.values()))
            source = rng.choice(list(web.sites[host].pages))
            url = other.url(page.path)
            web.sites[host].link(source, url, f"{page.title} ({other.host})", target=url)
    return web
