"""Which stages lead from a collection's tables to each analysis, and what does each leave behind?

A stage is named by a hash of what it is computed from: the dataset's digest, the stages before it, its parameters, its version. So one that
is finished, which its manifest says, is never computed again for the same question, by whatever engine; and a change of a parameter
computes anew only what depends on it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from periplus.analyse.engines.tables import Field, TableWriter

_URL = Field("url", "int64", "the number of the URL")
_SOURCE = Field("source", "int64", "the number of the page with the link")
_TARGET = Field("target", "int64", "the number of the URL that it leads to")
_SITE = Field("site", "int64", "the number of its site")
_GROUP = Field("group", "int64", "the number of the page that stands for the group; it is of the group, too")
_RANKS = (_URL, Field("rank", "double", "share of a random surfer's time"))
_SKETCH = (_URL, Field("shingles", "int64", "how many distinct ones"), Field("bins", "binary", "128 MinHash values, 8 bytes each, little-endian"))
_ALIKE = (_URL, _GROUP, Field("similarity", "double", "the share of MinHash values that it has in common with the page that stands for it"))


@dataclass(frozen=True, slots=True)
class Order:
    """What the stages are asked. near, template: shares of MinHash values from which pages are of one group."""

    damping: float = 0.85
    tolerance: float = 1e-10
    max_rounds: int = 200
    near: float = 0.8
    template: float = 0.8


@dataclass(frozen=True, slots=True)
class Stage:
    """A step that is computed as a whole. needs: the stages before it; parameters: the fields of Order that it depends on."""

    name: str
    sentence: str
    needs: tuple[str, ...]
    parameters: tuple[str, ...]
    tables: Mapping[str, tuple[Field, ...]]
    version: int = 1


@dataclass(frozen=True, slots=True)
class Task:
    """One stage to be computed. folders: of the stages that it needs, whole; out: where its tables go; scratch: a folder that goes afterwards."""

    stage: Stage
    dataset: Path
    folders: Mapping[str, Path]
    order: Order
    out: Path
    scratch: Path

    def writer(self, table: str) -> TableWriter:
        return TableWriter(self.out, table, self.stage.tables[table])

    def write(self, table: str, columns: Mapping[str, object]) -> None:
        """A whole table at once."""
        with self.writer(table) as writer:
            writer.add(columns)


Engine = Mapping[str, Callable[[Task], None]]
"""What computes each stage, by its name."""

_ALL = (
    Stage(
        "ends", "Where chains of redirects end", (), (),
        {
            "ends": (
                Field("source", "int64", "the number of a URL that redirects; ascending"),
                Field("end", "int64", "where the redirects end; -1: in a circle"),
            )
        },
    ),
    Stage(
        "graph", "The pages, and the distinct links between them", ("ends",), (),
        {
            "nodes": (
                Field("url", "int64", "the number of the page's URL; ascending"), _SITE,
                Field("indexed", "bool", "fetched and analysed"), Field("home", "bool", "the map of its site begins here"),
            ),
            "edges": (
                Field("source", "int64", "the number of the page with the link; ascending, then by target"), _TARGET,
                Field("inside", "bool", "both are of one site"),
            ),
        },
    ),
    Stage("ranks", "PageRank within each site", ("graph",), ("damping", "tolerance", "max_rounds"), {"ranks": _RANKS}),
    Stage("web_ranks", "PageRank over all sites together", ("graph",), ("damping", "tolerance", "max_rounds"), {"ranks": _RANKS}),
    Stage(
        "map", "The hierarchical map of each site", ("graph", "ranks"), (),
        {
            "map": (
                _URL, Field("layer", "int64", "clicks from the home page"),
                Field("parent", "int64", "the page of the layer before that it hangs from; -1: the home page"),
                Field("below", "int64", "pages under it, at any depth"), Field("place", "int64", "its place in its site's map, depth first, from 0"),
            )
        },
    ),
    Stage(
        "broken", "Links that lead nowhere", ("ends",), (),
        {
            "broken": (
                _SOURCE, _TARGET, Field("kind", "string", "a, image, ..."), Field("position", "string", "nav, header, main, ..."),
                Field("end", "int64", "where redirects lead from there: the URL that is not to be had"),
            )
        },
    ),
    Stage(
        "external", "Links to other sites", ("ends",), (),
        {
            "sites": (
                Field("site", "int64", "the number of a site that others link to; ascending"), Field("links", "int64", "links that lead there"),
                Field("pages", "int64", "pages that have some"), Field("targets", "int64", "distinct URLs of it where they lead"),
            )
        },
    ),
    Stage(
        "duplicates", "Pages that say the same", (), (),
        {"duplicates": (_URL, _GROUP, Field("like", "string", "what it has in common with the page that stands for it: bytes, words or folded"))},
    ),
    Stage("sketches", "MinHash of each page's content", (), (), {"sketches": _SKETCH}),
    Stage("near", "Pages that say nearly the same", ("duplicates", "sketches"), ("near",), {"near": _ALIKE}),
    Stage("outlines", "MinHash of what of each page is no content", (), (), {"sketches": _SKETCH}),
    Stage("templates", "Pages that share their navigation", ("outlines",), ("template",), {"templates": _ALIKE}),
    Stage(
        "interlinking", "How often each site links to each", ("graph",), (),
        {
            "links": (
                Field("model", "string", "what counts as a document: page, directory or site"), Field("source", "int64", "the number of the linking site"),
                Field("target", "int64", "the number of the site linked to; its own where documents of one site are linked"),
                Field("count", "int64", "distinct pairs of documents"),
            )
        },
    ),
    Stage(
        "cascades", "Which site had which text when", ("duplicates", "near"), (),
        {
            "cascades": (
                Field("story", "int64", "the number of the page that stands for all pages of the text"), _SITE,
                Field("place", "int64", "how many sites had it before, by time, then by number"), Field("when", "int64", "milliseconds since the epoch"),
                Field("delay_h", "double", "hours since the first site had it"),
            )
        },
    ),
)  # fmt: skip
STAGES: Mapping[str, Stage] = {stage.name: stage for stage in _ALL}

ANALYSES: Mapping[str, tuple[str, ...]] = {
    "ranks": ("ranks",),
    "web-ranks": ("web_ranks",),
    "map": ("map",),
    "links": ("broken", "external"),
    "duplicates": ("duplicates",),
    "near": ("near",),
    "templates": ("templates",),
    "interlinking": ("interlinking",),
    "cascades": ("cascades",),
}
"""What one asks for, and the stages in which it ends."""


def needed(wanted: Sequence[str]) -> tuple[Stage, ...]:
    """The stages that lead to these, each after those that it needs."""
    found: dict[str, Stage] = {}

    def add(name: str) -> None:
        for before in STAGES[name].needs:
            add(before)
        found.setdefault(name, STAGES[name])

    for name in wanted:
        add(name)
    return tuple(found.values())


def folder_name(stage: Stage, dataset_digest: str, order: Order) -> str:
    """`ranks-1f0c...`: equal for equal questions."""
    return f"{stage.name}-{_digest(stage, dataset_digest, order)[:16]}"


def _digest(stage: Stage, dataset_digest: str, order: Order) -> str:
    before = [_digest(STAGES[name], dataset_digest, order) for name in stage.needs]
    said = [stage.name, stage.version, dataset_digest, parameters_of(stage, order), before]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def parameters_of(stage: Stage, order: Order) -> dict[str, float]:
    """What the stage itself depends on."""
    return {field.name: getattr(order, field.name) for field in fields(order) if field.name in stage.parameters}
