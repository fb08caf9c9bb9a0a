"""The drawing of a whole site, laid out once and kept in the collection's folder until it changes."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from pathlib import Path
from typing import Any

from periplus.api.site import Site
from periplus.model.web import SiteKey
from periplus.present.site_graph import SiteGraph, site_graph
from periplus.store.sqlite import reading
from periplus.store.sqlite import tables as stored_tables

LAYOUT_FILE = "site.layout"
FORM = 1  # of the file; another one is laid out anew


def layout_key(folder: Path, site: SiteKey, under: str) -> tuple[object, ...]:
    """What a drawing follows from. Raises NoCollection, StoreError."""
    with reading.opened(folder) as connection:
        return FORM, str(site), under, *stored_tables.version(connection)


def stored_graph(folder: Path, site: Site, under: str) -> SiteGraph:
    """The site's drawing: as it was kept, if nothing has changed since; else laid out, and kept where it is of all.

    under: only pages that begin so. A folder that nobody may write keeps none.
    """
    key, path = list(layout_key(folder, site.key, under)), folder / LAYOUT_FILE
    if not under:
        with contextlib.suppress(OSError, ValueError, TypeError):
            stored_key, columns = json.loads(path.read_text("utf-8"))
            if stored_key == key:
                return SiteGraph(**{name: _tuple(value) for name, value in columns.items()})
    graph = site_graph(site.facts, site.graph, site.site_map, under)
    if not under:
        with contextlib.suppress(OSError):
            beside = path.with_suffix(f".{os.getpid()}")
            beside.touch(0o600)
            beside.write_text(json.dumps([key, dataclasses.asdict(graph)]), "utf-8")
            beside.replace(path)
    return graph


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
