"""Table of the webs of `python -m testweb NAME key=value ...`."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from testweb import content, faults, graphs, identity, robots, traps
from testweb.site import Site, Web


def _graph(**values: int | str) -> Site:
    return graphs.graph_site(graphs.GraphRecipe(**values))


def _faulty() -> Web:
    other = graphs.graph_site(graphs.GraphRecipe(pages=3, host="b.test"))
    return Web([faults.faulty_site(other=other), other])


RECIPES: dict[str, Callable[..., Web | Site]] = {
    "graph": _graph,
    "linked": graphs.linked_sites,
    "robots": robots.robots_web,
    "crawl-delay": robots.crawl_delay_web,
    "page-rules": robots.page_rules_site,
    "faults": _faulty,
    "traps": traps.trap_site,
    "series": traps.series_site,
    "identity": identity.identity_site,
    "kinds": identity.kinds_site,
    "manual": content.manual_site,
    "mixed": content.mixed_site,
}


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def web_of(recipe: str) -> Web:
    """The web of a recipe such as `graph seed=1 pages=500`. Raises ValueError for an unknown name."""
    name, *parts = shlex.split(recipe)
    if name not in RECIPES:
        raise ValueError(f"no recipe {name!r}; there are {', '.join(RECIPES)}")
    values = {key: _value(value) for key, _, value in (part.partition("=") for part in parts)}
    if name == "robots":
        values = {key: str(value) for key, value in values.items()}  # case=503 is a name
    made = RECIPES[name](**values)
    return Web([made]) if isinstance(made, Site) else made
