"""In which part of its page does an element stand?

The innermost landmark decides: `nav`, `header`, `main`, `aside`, `footer`, or an ARIA role of the same meaning. A header or
footer of an article or section is none (HTML Accessibility API Mappings), so the headline of a post is not taken for
the site's banner.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import repeat

from periplus.document import html
from periplus.model.page import Position

TAGS = {"nav": Position.NAV, "main": Position.MAIN, "aside": Position.ASIDE, "header": Position.HEADER, "footer": Position.FOOTER}
ROLES = {
    "navigation": Position.NAV,
    "banner": Position.HEADER,
    "main": Position.MAIN,
    "complementary": Position.ASIDE,
    "contentinfo": Position.FOOTER,
}
SECTION_TAGS = frozenset({"article", "aside", "main", "nav", "section"})
_SECTIONS = ",".join(sorted(SECTION_TAGS))
_BODY = Position.BODY  # an enum's own look-up takes 0.2 us
_MOST = 64  # landmarks of one page that are heeded: real pages have 0 to 12, and more would make hostile ones dear
_FEW = 24  # elements whose ancestors are searched one by one: 0.4 us each, where each landmark costs 5

Landmarks = Sequence[tuple[html.Element, Position]]


def landmarks(tree: html.Tree, with_roles: Iterable[html.Element]) -> Landmarks:
    """The page's landmarks, outer before inner, its head among them. with_roles: all elements that have a role."""
    found: dict[html.Element, Position] = dict.fromkeys(html.elements(tree, "head")[:1], Position.HEAD)
    for tag, position in TAGS.items():
        for element in html.elements(tree, tag)[:_MOST]:
            if tag not in ("header", "footer") or html.closest(element, _SECTIONS) is None:
                found[element] = position
    for element in with_roles:
        role = ROLES.get(html.attribute(element, "role").strip().lower())
        if role is not None and len(found) < _MOST:
            found[element] = role
    return sorted(found.items(), key=lambda item: html.depth(item[0])) if len(found) > 1 else list(found.items())


def positions(found: Sequence[html.Element], tag: str, marks: Landmarks) -> Iterable[Position]:
    """The position of each element. found: all elements of that tag, or the first of them, in the document's order."""
    if not marks or (tag == "a" and marks[-1][1] is Position.HEAD):  # no anchor stands in a head
        return repeat(Position.BODY, len(found))
    if len(found) <= _FEW:
        return _by_ancestors(found, dict(marks))
    places = [Position.BODY] * len(found)
    for element, position in marks:
        first = html.first(element, tag)
        if first is not None and first in found:
            start = found.index(first)
            # What a landmark holds follows in one piece, so its end is found by halving: 5 us where a walk through it took 40.
            end = bisect_left(found, True, start, key=lambda other: not html.is_within(other, element))
            places[start:end] = [position] * (end - start)
    return places


def _by_ancestors(found: Sequence[html.Element], marks: dict[html.Element, Position]) -> list[Position]:
    selector = "head,nav,header,main,aside,footer,[role]"
    places = []
    for element in found:
        around = html.closest(element, selector)
        while around is not None and around not in marks:
            around = html.closest_above(around, selector)
        places.append(_BODY if around is None else marks[around])
    return places
