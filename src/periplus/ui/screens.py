"""Which screens does every collection have?"""

from __future__ import annotations

from starlette.routing import BaseRoute, Route

from periplus.ui import comparing, deleting, graph, maps, pages, searching, survey_views, surveys, tables


def collection_routes() -> list[BaseRoute]:
    return [
        Route("/search", searching.in_all),
        Route("/c/{name}/t/{table}", tables.table),
        Route("/c/{name}/page", pages.page),
        Route("/c/{name}/map", maps.site_map),
        Route("/c/{name}/map.{ending}", maps.file),
        Route("/c/{name}/picture.svg", maps.picture),
        Route("/c/{name}/graph", graph.graph),
        Route("/c/{name}/graph.{ending}", graph.file),
        Route("/c/{name}/search", searching.in_one),
        Route("/c/{name}/compare", comparing.compare),
        Route("/surveys", surveys.surveys),
        Route("/surveys/new", surveys.create, methods=["POST"]),
        Route("/c/{name}/survey", surveys.survey),
        Route("/c/{name}/survey/create", surveys.create, methods=["POST"]),
        Route("/c/{name}/survey/change", surveys.change, methods=["POST"]),
        Route("/c/{name}/survey/events", surveys.events),
        Route("/c/{name}/survey/t/{table}.{ending}", survey_views.table_file),
        Route("/c/{name}/survey/picture/{what}.svg", survey_views.picture),
        Route("/c/{name}/survey/file/{what}.{ending}", survey_views.file),
        Route("/c/{name}/survey/{view}", survey_views.view),
        Route("/c/{name}/delete", deleting.delete, methods=["GET", "POST"]),
    ]
