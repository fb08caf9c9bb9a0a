"""Pages and links as circles and arrows: a whole site, also for a zooming canvas, and what is near a page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, TextIO
from urllib.parse import urlsplit

import numpy as np

from periplus.model.arrays import Floats, Ints
from periplus.model.graph import LinkGraph
from periplus.model.results import PageColumns, SiteMap
from periplus.model.visit import State
from periplus.present.draw import (
    GOLDEN_ANGLE,
    Circles,
    Key,
    apart,
    caption,
    element,
    folder_hues,
    folder_of,
    legend,
    place_circles,
    short_names,
    text_px,
    write_sheet,
)
from periplus.present.wording import count_of, labels, visible, without_site_name
from periplus.values import frozen

MOST = 10_000  # circles; of a larger site folders are drawn, each of which leads to its pages
FEWEST = 60  # folders that are worth drawing: under that one more step of their paths is taken
CLOSER = 0.45  # distance of folders, as a share of the distance for circles with names
STEP = 14.0  # units between two pages of a folder
ROUNDS = 90  # after 60, branches of a manual of 5,000 pages still overlapped
NEAR = 2.2  # STEPs within which circles push one another away
LEADING = 3  # links of a page that pull, beside that to its place in the map: those to pages that few others link to
PARTS = 60  # folders with their own place; the pages of smaller folders share one
MOST_LABELS = 60  # names in a file
NAME_SIGNS = 28
LEAST_R, MOST_R = 3.0, 16.0  # of circles
OTHER_FOLDERS = "other folders"
EGO_ARROWS = 240  # more is unreadable; links of the middle are kept, then the strongest
EGO_RADII = 30.0, 6.0  # px: the largest by rank, the smallest; below 6 a finger misses them
EGO_NAME_SIGNS = 26
EGO_TOP = 92.0  # px for the legend
EGO_LEAST_WIDTH = 760.0  # px of a sheet


@frozen
class SiteGraph:
    """n circles, pages or folders: the columns of a drawing.

    x, y, r: units. part: index in `parts`; parent: its parent in the map; -1: none. pages: number of its pages.
    """

    title: str
    about: str
    of_folders: bool
    parts: tuple[str, ...]
    hues: tuple[str, ...]  # of parts
    url: tuple[str, ...]
    name: tuple[str, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    r: tuple[float, ...]
    part: tuple[int, ...]
    parent: tuple[int, ...]
    pages: tuple[int, ...]


def site_graph(facts: PageColumns, graph: LinkGraph, site_map: SiteMap, under: str = "") -> SiteGraph:
    """The site's pages that begin with `under` (all: empty), each a circle; folders where there are more than MOST.

    The same values give the same drawing.
    """
    every = np.array([page for page in range(len(facts.url)) if facts.url[page].startswith(under)], np.int64)
    if len(every) > MOST and not under:
        return _folder_graph(facts, graph, every)
    chosen = np.sort(every[np.argsort(-facts.rank[every], kind="stable")][:MOST])
    place = np.full(len(facts.url), -1, np.int64)
    place[chosen] = np.arange(len(chosen))
    parent = np.where(site_map.parent[chosen] >= 0, place[site_map.parent[chosen]], -1)
    urls = [str(facts.url[page]) for page in chosen.tolist()]
    titles = without_site_name([facts.title[page] for page in chosen.tolist()])
    about = count_of(len(chosen), "page")
    if len(chosen) < len(every):
        about += f" of {len(every):,}, those of greatest rank"
    nodes = _Nodes(
        urls, labels(urls, titles), _parts(urls), parent, [1] * len(urls), facts.rank[chosen],
    )  # fmt: skip
    return _draw(under or urls[0] if urls else under, about, nodes, _leading_links(graph, place))


class _Nodes(NamedTuple):
    """Circles before they are drawn. parts: (folders, of each circle the folder's place)."""

    urls: Sequence[str]
    names: Sequence[str]
    parts: tuple[list[str], Ints]
    parent: Ints
    pages: Sequence[int]
    weight: Floats  # the meaning of their areas


def _draw(title: str, about: str, nodes: _Nodes, links: Ints, *, of_folders: bool = False) -> SiteGraph:
    words, part = nodes.parts
    places = (*_lay_out(part, words, nodes.parent, links, nodes.weight), _radii(nodes.weight))
    sums = Counter[str]()
    for at, many in zip(part.tolist(), nodes.pages, strict=True):
        sums[words[at]] += many
    hues = folder_hues(Counter({word: many for word, many in sums.items() if word not in ("/", OTHER_FOLDERS)}))
    x, y, r = (tuple(round(value, 1) for value in column.tolist()) for column in places)
    return SiteGraph(
        urlsplit(title).netloc or title, about, of_folders, tuple(words),
        tuple(hues.get(word, "grey") for word in words), tuple(nodes.urls),
        tuple(nodes.names), x, y, r, tuple(part.tolist()), tuple(nodes.parent.tolist()), tuple(nodes.pages),
    )  # fmt: skip


def _parts(urls: Sequence[str], weights: Sequence[int] | None = None) -> tuple[list[str], Ints]:
    """(folders, the largest first; of each URL the folder's place)."""
    own = [folder_of(url) for url in urls]
    sums = Counter[str]()
    for word, many in zip(own, weights or [1] * len(own), strict=True):
        sums[word] += many
    words = sorted(sums, key=lambda word: (-sums[word], word))
    words = [*words[:PARTS], OTHER_FOLDERS] if len(words) > PARTS else words
    places = {word: at for at, word in enumerate(words)}
    return words, np.array([places.get(word, len(words) - 1) for word in own], np.int64)


def _radii(weight: Floats) -> Floats:
    """Areas by weight; one outlier does not shrink the rest, and circles of equal weight do not overlap."""
    if not len(weight):
        return weight
    high = max(float(np.quantile(weight, 0.99)), 1e-30)
    radii: Floats = LEAST_R + (MOST_R - LEAST_R) * np.sqrt(np.minimum(weight / high, 1.0))
    return np.minimum(radii, radii * STEP / 2 / float(np.median(radii)))


def _leading_links(graph: LinkGraph, place: Ints) -> Ints:
    """(m, 2): for each page its most specific links."""
    counts = np.diff(graph.offsets)
    sources = np.repeat(np.arange(len(counts)), counts)
    inlinks = np.bincount(graph.targets, minlength=len(counts))
    inside = (place[sources] >= 0) & (place[graph.targets] >= 0)
    sources, targets = sources[inside], graph.targets[inside].astype(np.int64)
    order = np.lexsort((targets, inlinks[targets], sources))
    sources, targets = sources[order], targets[order]
    first = np.searchsorted(sources, sources)
    rows = np.arange(len(sources)) - first < LEADING
    return np.stack((place[sources[rows]], place[targets[rows]]), axis=1)


def _lay_out(part: Ints, parts: Sequence[str], parent: Ints, links: Ints, weight: Floats) -> tuple[Floats, Floats]:
    """Position of each circle: linked folders side by side, and linked pages together within each folder."""
    count = len(part)
    if not count:
        return np.zeros(0), np.zeros(0)
    sizes = np.bincount(part, minlength=len(parts)).astype(np.float64)
    reach = STEP * 0.62 * np.sqrt(sizes) + STEP
    hanging = np.flatnonzero(parent >= 0)
    pairs = np.concatenate((np.stack((hanging, parent[hanging]), axis=1), links))
    between = part[pairs]
    across = between[between[:, 0] != between[:, 1]]
    ends, many = np.unique(across, axis=0, return_counts=True) if len(across) else (across, np.zeros(0))
    boxes = np.stack((reach, reach), axis=1)
    # drawn together: the room that names need between single circles is none that folders need
    centres = apart(place_circles(boxes, ends[:, 0], ends[:, 1], np.log1p(many)) * CLOSER, boxes * 0.95)
    position = centres[part] + _spirals(part, weight)
    for turn in range(ROUNDS if count > 1 else 0):
        position = position + _moves(position, pairs, centres[part], 1 - turn / ROUNDS)
    position -= position.mean(axis=0)
    return position[:, 0], position[:, 1]


def _spirals(part: Ints, weight: Floats) -> Floats:
    """Each folder's circles round its middle, the weightiest within."""
    order = np.lexsort((-weight, part))
    first = np.searchsorted(part[order], part[order])
    within = np.empty(len(part))
    within[order] = np.arange(len(part)) - first
    radius, angle = STEP * 0.6 * np.sqrt(within + 0.3), within * GOLDEN_ANGLE
    return np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1)


def _moves(position: Floats, pairs: Ints, centres: Floats, heat: float) -> Floats:
    """Movement of each circle by its links, neighbours and the folder's centre."""
    from scipy.spatial import cKDTree

    count = len(position)
    force = (centres - position) * 0.012
    way = position[pairs[:, 1]] - position[pairs[:, 0]]
    far = np.sqrt((way**2).sum(axis=1, keepdims=True)) + 1e-9
    pull = way / far * np.minimum(np.maximum(far - STEP, 0.0), 3 * STEP) * 0.08
    degree = np.bincount(pairs.ravel(), minlength=count) + 1.0
    near = cKDTree(position).query_pairs(NEAR * STEP, output_type="ndarray")
    between = position[near[:, 1]] - position[near[:, 0]]
    gap = np.sqrt((between**2).sum(axis=1, keepdims=True)) + 1e-6
    push = between / gap * (NEAR * STEP - gap) * 0.16
    for axis in (0, 1):
        for rows, values, sign in ((pairs, pull[:, axis], 1.0), (near, push[:, axis], -1.0)):
            share = degree if sign > 0 else np.ones(count)
            force[:, axis] += sign * np.bincount(rows[:, 0], values, count) / share
            force[:, axis] -= sign * np.bincount(rows[:, 1], values, count) / share
    length = np.sqrt((force**2).sum(axis=1, keepdims=True)) + 1e-9
    moves: Floats = force / length * np.minimum(length, STEP * (0.15 + heat))
    return moves


def _folder_graph(facts: PageColumns, graph: LinkGraph, every: Ints) -> SiteGraph:
    """The folders of a large site, of as many steps as are not too many."""
    urls = [str(facts.url[page]) for page in every.tolist()]
    for steps in range(1, 12):
        own = [folder_of(url, steps) for url in urls]
        if len(set(own)) >= FEWEST or all(
            folder_of(url, steps + 1) == word for url, word in zip(urls, own, strict=True)
        ):
            break
    sums, origin = Counter(own), "/".join(urls[0].split("/")[:3])
    words = sorted(sums, key=lambda word: (-sums[word], word))[:MOST]
    places = {word: at for at, word in enumerate(words)}
    node = np.full(len(facts.url), -1, np.int64)
    node[every] = [places.get(word, -1) for word in own]
    counts = np.diff(graph.offsets)
    sources = node[np.repeat(np.arange(len(counts)), counts)]
    targets = node[graph.targets]
    inside = (sources >= 0) & (targets >= 0) & (sources != targets)
    pairs, many = np.unique(np.stack((sources[inside], targets[inside]), axis=1), axis=0, return_counts=True)
    pairs = pairs[np.argsort(-many, kind="stable")][: 4 * len(words)]
    above = np.array([places.get(word.rstrip("/").rpartition("/")[0] + "/", -1) for word in words], np.int64)
    above[above == np.arange(len(words))] = -1
    pages, roots = [sums[word] for word in words], [origin + word for word in words]
    about = f"{count_of(len(words), 'folder')} of {count_of(len(every), 'page')}; a folder leads to its pages"
    nodes = _Nodes(roots, words, _parts(roots, pages), above, pages, np.array(pages, np.float64))
    return _draw(roots[0], about, nodes, pairs.reshape(-1, 2), of_folders=True)


class EgoNode(NamedTuple):
    """A page, directory or site in a neighbourhood.

    url: its page with the greatest rank; name: the title of a page, or a directory or site; part: meaning of its
    colour; fetched: number of fetched pages; links_here, linked: links to the middle, and from it; score: 0 to 100,
    logarithmic, among all nodes of its kind.
    """

    url: str
    name: str
    part: str
    state: State
    step: int
    pages: int
    fetched: int
    score: int
    links_here: int
    linked: int


def write_ego_svg(
    nodes: Sequence[EgoNode],
    ranks: Sequence[float],
    ends: Sequence[tuple[int, int, int]],
    about: str,
    out: TextIO,
    *,
    link: Callable[[str], str] | None = None,
) -> None:
    """The neighbourhood as SVG, light and dark as the reader's system; the same values give the same bytes. out: UTF-8.

    nodes: the middle first; ranks: of all pages of each; ends: (source, end, links) by place in nodes, most links
    first. link: the address that a circle leads to, by its URL, for a page that has `draw.STYLE` in its style sheet;
    None: a drawing that needs nothing else.
    """
    rank = np.maximum(ranks, 0.0)
    radius = np.maximum(EGO_RADII[0] * np.sqrt(rank / max(float(rank.max()), 1e-30)), EGO_RADII[1])
    radius[0] += 4  # its ring
    names = short_names([node.name for node in nodes], EGO_NAME_SIGNS)
    arrows = sorted(ends, key=lambda arrow: (0 not in arrow[:2], -arrow[2], arrow))[:EGO_ARROWS]
    hues = folder_hues(Counter(node.part for node in nodes))
    undrawn = len(ends) - len(arrows)
    about += f"; {count_of(undrawn, 'link')} among them not drawn" if undrawn else ""
    keys, width = _ego_legend(nodes, hues)
    circles, size = Circles.arrange(radius, names, ends, (max(width, text_px(about) + 28), EGO_TOP))
    marks = [caption(14, 22, about, "soft"), *keys]
    for source, target, links in reversed(arrows):
        kind = "own" if 0 in (source, target) else "soft"
        marks.append(circles.arrow(source, target, 0.8 + 0.5 * math.log1p(links - 1), kind))
    labels = circles.labels(sorted(range(len(names)), key=lambda at: (at > 0, -radius[at], at)), (size[0], EGO_TOP))
    for place, node in enumerate(nodes):
        kind = hues.get(node.part, "grey") + ("" if node.fetched else " cited")
        ring = circles.circle(0, "middle") if place == 0 else ""
        shown = circles.circle(place, kind, 4.0 if ring else 0.0) + ring + labels.get(place, "")
        hint = _ego_hint(node) + (", in the middle" if ring else "")
        if link is None:
            marks.append(element("g", "", shown, hint))
        else:
            marks.append(element("a", "", shown, hint, href=link(node.url), aria_label=f"{names[place]}: {hint}"))
    write_sheet(out, size, f"Links around {nodes[0].name}", marks, kind="ego", embedded=link is not None)


def _ego_hint(node: EgoNode) -> str:
    state = f"{count_of(node.fetched, 'page')} fetched" if node.pages > 1 else "fetched"
    ways = [
        f"{count_of(many, 'link')} {word}"
        for many, word in ((node.links_here, "to the middle"), (node.linked, "from the middle"))
        if many
    ]
    about = ", ".join([*ways, f"score {node.score}"])
    return visible(f"{node.name}: {state if node.fetched else 'cited, not fetched'}, {about}")


def _ego_legend(nodes: Sequence[EgoNode], hues: dict[str, str]) -> tuple[list[str], float]:
    """(colours, then outlines; the least width of a sheet that holds them)"""
    names = short_names(list(hues), EGO_NAME_SIGNS)
    keys = [Key(name, "circle", hue) for name, hue in zip(names, hues.values(), strict=True)]
    if any(node.part not in hues for node in nodes):
        keys.append(Key("others", "circle", "grey"))
    colours, end = legend(keys, 16, 50)
    keys = [Key("fetched", "circle", "grey"), Key("dashed: cited, not fetched", "circle", "grey cited")]
    return [colours, legend([*keys, Key("area: rank · width: links")], 16, 76)[0]], max(end, EGO_LEAST_WIDTH)
