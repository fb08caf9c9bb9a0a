"""Which values of a page and of a map are written into files, and under which names? One answer for every format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np

from periplus.errors import UsageError
from periplus.model.results import About, PageFacts, SiteMap
from periplus.present.wording import iso
from periplus.settings import PRODUCT_TOKEN, VERSION

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
}
VALUES = tuple(_FIELDS)

# What XML 1.0 has no place for (section 2.2), surrogates among it; JSON in UTF-8 has none for surrogates either
_NO_CHAR = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def chosen(values: Iterable[str]) -> list[tuple[str, str]]:
    """(name in the file, field of PageFacts) of the values, in the order of VALUES. Raises UsageError for an unknown one."""
    wanted = set(values)
    unknown = wanted - set(VALUES)
    if unknown:
        raise UsageError(f"a map has no value {', '.join(sorted(unknown))}: choose among {', '.join(VALUES)}")
    return [(name, field) for name, field in _FIELDS.items() if name in wanted]


def page_values(page: PageFacts, wanted: list[tuple[str, str]]) -> Iterator[tuple[str, str | int | float]]:
    """url, then the wanted values that say something: no empty text, no status where no answer came."""
    yield "url", _NO_CHAR.sub("", page.url)
    for name, field in wanted:
        value = getattr(page, field)
        if isinstance(value, str):
            if value:
                yield name, _NO_CHAR.sub("", value)
        elif name == "rank":
            yield name, float(f"{value:.6g}")  # the scores of a million pages are known to about so many digits
        elif value or name != "status":
            yield name, value


def about_values(about: About, site_map: SiteMap) -> dict[str, str | int | float]:
    """What stands at the head of a map."""
    return {
        "program": f"{PRODUCT_TOKEN} {VERSION}",
        "run": _NO_CHAR.sub("", about.run),
        "start": _NO_CHAR.sub("", about.start),
        "created": iso(about.created),
        "damping": about.damping,
        "rounds": about.rounds,
        "ties": about.ties,
        "pages": len(site_map.order),
        "layers": site_map.depth + 1,
        "unreached": int(np.count_nonzero(site_map.layer < 0)),
    }


def parameters(about: About) -> list[tuple[str, str]]:
    """The run's settings, fit for a file."""
    return [(_NO_CHAR.sub("", name), _NO_CHAR.sub("", value)) for name, value in about.parameters]
