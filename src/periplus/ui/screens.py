"""Which screens does every collection have?"""

from __future__ import annotations

from starlette.routing import BaseRoute, Route

from periplus.ui import comparing, deleting, maps, pages, searching, tables


def collection_routes() -> list[BaseRoute]:
    return [
        Route("/search", searching.in_all),
        Route("/c/{name}/t/{table}", tables.table),
        Route("/c/{name}/page", pages.page),
        Route("/c/{name}/map", maps.site_map),
        Route("/c/{name}/map.{ending}", maps.file),
        Route("/c/{name}/picture.svg", maps.picture),
        Route("/c/{name}/search", searching.in_one),
        Route("/c/{name}/compare", comparing.compare),
        Route("/c/{name}/delete", deleting.delete, methods=["GET", "POST"]),
    ]
