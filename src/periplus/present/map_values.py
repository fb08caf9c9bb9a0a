"""Which values of a page and of a map are written into files, and under which names? One answer for every format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from periplus.errors import UsageError
from periplus.model.media import MediaClass
from periplus.model.results import About, PageColumns, PageFacts, SiteMap
from periplus.present.wording import iso
from periplus.present.xml_text import characters
from periplus.settings import PRODUCT_TOKEN, VERSION

LINKED = "linked"  # no single value, but bytes by class: a page's `linked_values`
_FIELDS = {
    "title": "title",
    "state": "state",
    "reason": "reason",
    "status": "status",
    "type": "media_type",
    "size": "size_bytes",
    "layer": "layer",
    "rank": "rank",
    "score": "score",
    "in": "links_in",
    "out": "links_out",
    LINKED: "linked",
}
VALUES = tuple(_FIELDS)
_NAME = re.compile("[A-Za-z][A-Za-z0-9_-]*")


def chosen(values: Iterable[str]) -> list[tuple[str, str]]:
    """(name in the file, field of PageFacts) of the values, in the order of VALUES. Raises UsageError for an unknown one."""
    wanted = set(values)
    unknown = wanted - set(VALUES)
    if unknown:
        raise UsageError(f"a map has no value {', '.join(sorted(unknown))}: choose among {', '.join(VALUES)}")
    return [(name, field) for name, field in _FIELDS.items() if name in wanted]


def page_values(page: PageFacts, wanted: list[tuple[str, str]]) -> Iterator[tuple[str, str | int | float]]:
    """url, then the wanted values that say something: no empty text, no status where no answer came."""
    yield "url", characters(page.url)
    for name, field in wanted:
        if name == LINKED:
            continue
        value = getattr(page, field)
        if isinstance(value, str):
            if value:
                yield name, characters(value)
        elif name == "rank":
            yield name, float(f"{value:.6g}")  # the scores of a million pages are known to about so many digits
        elif value or name != "status":
            yield name, value


def linked_values(page: PageFacts, wanted: list[tuple[str, str]]) -> list[tuple[str, int]]:
    """Bytes behind the page's links by class, and `unsized`, the links to what has no known size; nothing if not wanted."""
    if (LINKED, "linked") not in wanted or not page.linked:
        return []
    found = [*zip(MediaClass, page.linked, strict=True), ("unsized", page.unsized)]
    return [(str(name), value) for name, value in found if value]


def further_values(facts: PageColumns) -> list[tuple[str, Sequence[str | int | float]]]:
    """The results that enrich a map: name, one value a page. Raises UsageError for a name that XML does not take."""
    for name, _ in facts.further:
        if not _NAME.fullmatch(name):
            raise UsageError(f"a result cannot be called {name!r} in a map: take a letter, then letters, digits, - or _")
    return list(facts.further)


def about_values(about: About, site_map: SiteMap) -> dict[str, str | int | float]:
    """What stands at the head of a map. Without a run there is no time either: what is left tells only of the site."""
    known: dict[str, str | int | float] = {
        "program": f"{PRODUCT_TOKEN} {VERSION}",
        "run": characters(about.run),
        "start": characters(about.start),
        "created": iso(about.created),
        "damping": about.damping,
        "rounds": about.rounds,
        "ties": about.ties,
        "pages": len(site_map.order),
        "layers": site_map.depth + 1,
        "unreached": int(np.count_nonzero(site_map.layer < 0)),
    }
    return {name: value for name, value in known.items() if about.run or name not in ("run", "created")}


def parameters(about: About) -> list[tuple[str, str]]:
    """The run's settings, fit for a file."""
    return [(characters(name), characters(value)) for name, value in about.parameters]
