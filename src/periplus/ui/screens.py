"""Which screens does every collection have?"""

from __future__ import annotations

from starlette.routing import BaseRoute, Route

from periplus.ui import tables


def collection_routes() -> list[BaseRoute]:
    return [
        Route("/c/{name}/t/{table}", tables.table),
    ]
