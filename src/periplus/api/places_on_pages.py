"""Which links name a place that their page lacks, and which pages have nearly the same text? Both read what was kept of pages.

Places are looked for when they are asked about, and only on pages that fragments point to: reading a stored page again takes half a
millisecond, and most pages are never pointed into. So nothing is kept that could be out of date.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.audit_input import LinkFacts, Places
from periplus.analyse.nearness import NearGroup, Sketches, near_groups, shingles, sketches, template_blocks
from periplus.api.judging import Seen
from periplus.document.anchors import anchors_of, fragment_verdict
from periplus.document.decode import decode
from periplus.model.audit import FragmentVerdict
from periplus.model.page import LinkKind, Position
from periplus.model.web import SiteKey, UrlId
from periplus.store.sqlite import checks, reading, site_rows
from periplus.store.sqlite.contents import Contents
from periplus.urls.canonical import url_id

SAMPLE = 500  # pages that show what a site's pages share
_KINDS = {kind.value: place for place, kind in enumerate(LinkKind)}
_POSITIONS = {position.value: place for place, position in enumerate(Position)}


@dataclass(frozen=True, slots=True)
class FragmentOrder:
    """Whose links are meant. ids: of the URLs, by place."""

    site: SiteKey
    ids: Places
    links: LinkFacts


class Placed(Protocol):
    """Knows where a URL stands in the columns."""

    def places(self, ids: NDArray[np.int64]) -> Places: ...


def broken_fragments(connection: reading.Connection, seen: Seen, order: FragmentOrder) -> list[tuple[int, str]]:
    """(index of a link, fragment) of the links that name a place which their page lacks: own pages, and others that a check looked at."""
    rows: dict[int, list[tuple[int, int, str, str, str]]] = {}
    for row in site_rows.fragment_rows(connection, order.site):
        rows.setdefault(seen.way(row[1]).end, []).append(row)
    looks: dict[int, dict[str, FragmentVerdict]] = {url_id(url): dict(look.fragments) for url, look in checks.looks(connection).items()}
    contents = Contents(connection)
    bad: set[tuple[int, int, str, str, str]] = set()
    for target, held in rows.items():
        wanted = {fragment for row in held for fragment in row[4].split()}
        verdicts: Mapping[str, FragmentVerdict] = _on_page(contents, target, wanted) or looks.get(target, {})
        lacking = {fragment for fragment in wanted if verdicts.get(fragment) is FragmentVerdict.MISSING}
        bad |= {(*row[:4], fragment) for row in held for fragment in row[4].split() if fragment in lacking}
    return _indices(order, bad)


def _on_page(contents: Contents, target: int, wanted: set[str]) -> dict[str, FragmentVerdict]:
    """What is to be said of fragments of a page that was kept; nothing where it was not."""
    found = contents.markup(UrlId(target))
    if found is None:
        return {}
    text, _ = decode(*found, "text/html")
    names = anchors_of(text)
    return {fragment: fragment_verdict(fragment, names) for fragment in wanted}


def _indices(order: FragmentOrder, bad: set[tuple[int, int, str, str, str]]) -> list[tuple[int, str]]:
    """The links among the columns. Links that differ in nofollow only are told once."""
    if not bad:
        return []
    links = order.links
    wanted: dict[tuple[int, int, int, int], list[str]] = {}
    for source, target, kind, position, fragment in sorted(bad):
        wanted.setdefault((source, target, _KINDS[kind], _POSITIONS[position]), []).append(fragment)
    sources = np.array(sorted({key[0] for key in wanted}), np.int64)
    rows = np.flatnonzero(np.isin(order.ids[links.source], sources)).tolist()
    found = []
    for row in rows:
        key = (int(order.ids[links.source[row]]), int(order.ids[links.target[row]]), int(links.kind[row]), int(links.position[row]))
        found += [(row, fragment) for fragment in wanted.pop(key, ())]
    return found


def near_pages(connection: reading.Connection, columns: Placed, pages: Sequence[site_rows.PageTexts]) -> list[NearGroup]:
    """Groups of pages with nearly one text, by place. Of pages with one and the same text the first stands for all: `duplicate` tells of the others."""
    contents = Contents(connection)
    ids = np.array(sorted({page.folded_md5: page.url_id for page in sorted(pages, key=lambda page: -page.url_id)}.values()), np.int64)
    place = columns.places(ids)
    ids, place = ids[np.argsort(place)], np.sort(place)
    texts = [contents.text(UrlId(int(one))) or "" for one in ids[:: max(1, len(ids) // SAMPLE)][:SAMPLE]]
    template = template_blocks(texts)
    known: Sketches = sketches((contents.text(UrlId(int(one))) or "" for one in ids), template)
    groups = near_groups(known, lambda at: shingles(contents.text(UrlId(int(ids[at]))) or "", template))
    return [NearGroup(int(place[group.leader]), tuple(int(place[member]) for member in group.members), group.similarity) for group in groups]
