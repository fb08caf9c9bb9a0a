"""A synthetic web on loopback with known ground truth. See README.md."""

from testweb.graphs import GraphRecipe, graph_site, linked_sites
from testweb.log import Entry, Log, read_log
from testweb.server import Server, serve
from testweb.site import Page, PageLink, Site, Web
from testweb.truth import Truth
from testweb.wire import Answer, Asked, Pause, Raw, Reset, raw

__all__ = [
    "Answer",
    "Asked",
    "Entry",
    "GraphRecipe",
    "Log",
    "Page",
    "PageLink",
    "Pause",
    "Raw",
    "Reset",
    "Server",
    "Site",
    "Truth",
    "Web",
    "graph_site",
    "linked_sites",
    "raw",
    "read_log",
    "serve",
]
