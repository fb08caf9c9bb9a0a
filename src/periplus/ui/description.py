"""What does the interface answer to programs?

Its routes as an OpenAPI description, so that clients can be made of it and tests check it.

The routes are the source: whatever is there with GET and answers JSON is described, by its handler's first sentence and
the names in its path. What its parameters and its answer are is said in SAID, by the types that the handlers answer
with; a route that is missing there is described as an object with a title. Nothing is written by hand twice.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from periplus.api.neighbours import Around, NeighbourRequest
from periplus.jobs.presets import PERIODS
from periplus.model.collection import Deletion, DeletionPlan
from periplus.model.comparison import Comparison
from periplus.model.job import Job
from periplus.model.page import PageSummary
from periplus.model.tables import Column
from periplus.model.topic import KeywordList
from periplus.settings import VERSION
from periplus.ui.pages import VIEWS, PageSearch
from periplus.ui.rendering import house_of
from periplus.ui.start import CollectionRow, JobRow
from periplus.ui.tables import ROWS, SCREENS
from periplus.ui.topics import TopicRow

Schema = dict[str, object]
ASIDE = re.compile(r"\.|\{path:path\}|/events$|^/login|^/static")  # files, streams, and what is for people alone
WHOLE = re.compile(r"\{(\w+)(?::\w+)?\}")


@dataclass(frozen=True, slots=True)
class RouteNotes:
    """What a route's types alone do not tell.

    answer: type by name, beside `title`; a name that ends in ? may be missing. asks: schema and sentence by name of a
    parameter; one that ends in ! must be there.
    """

    answer: Mapping[str, object] = dataclasses.field(default_factory=dict)
    asks: Mapping[str, tuple[Schema, str]] = dataclasses.field(default_factory=dict)


TEXT: Schema = {"type": "string"}


def _whole(low: int, high: int) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high}


def _one_of(*words: str) -> Schema:
    return {"type": "string", "enum": list(words)}


_SITE = {"site": (TEXT, "which site, where the collection has several")}
_SEARCH = {"q": (TEXT, "words, in the query language of docs/search.md")}
SAID: dict[str, RouteNotes] = {
    "/": RouteNotes(
        {"collections": list[CollectionRow], "periods": list[str], "line": str, "fault": str, "every": str,
            "works": bool, "base": str, "open_jobs": int},
        {"url": (TEXT, "starts: `line` says which command fetches them"), "every": (_one_of(*PERIODS), "how often")},
    ),
    "/jobs": RouteNotes({"jobs": list[JobRow], "schedules": list[dict[str, object]], "works": bool, "base": str,
            "collections": list[str]}),
    "/notices": RouteNotes({"subscriptions": list[dict[str, object]], "notices": list[dict[str, object]],
            "kinds": dict[str, str], "collections": list[str]}),
    "/search": RouteNotes({"query": str, "found": list[PageSearch], "at": int, "per": int}, _SEARCH),
    "/c/{name}/search": RouteNotes(
        {"name": str, "query": str, "found": list[PageSearch], "at": int, "per": int},
        _SEARCH | {"at": (_whole(1, 1000), "which page of the hits")}
    ),
    "/c/{name}/live": RouteNotes({"name": str, "missing": str, "figures": list[tuple[str, int, str]]}),
    "/c/{name}/t/{table}": RouteNotes(
        {
            "name": str, "sentence": str, "table": str, "columns": list[Column], "rows": list[list[object]],
            "count": dict[str, object],
            "facets": list[dict[str, object]], "conditions": list[list[str]],
        },
        {
            "q": (TEXT, "this text in addresses, titles or anchors"),
            "sort": (TEXT, "columns, parted by commas; - turns one round"),
            "columns": (TEXT, "those wished, parted by commas"), "at": (_whole(1, 10_000_000), "which page"),
            "per": (_whole(1, ROWS[-1]), "rows of a page"),
        },
    ),
    "/c/{name}/page": RouteNotes(
        {"name": str, "page": PageSummary, "view": str, "views": dict[str, str]},
        {"url!": (TEXT, "the page"), "view": (_one_of(*VIEWS), "what of it")},
    ),
    "/c/{name}/map": RouteNotes({"name": str}, _SITE | {"find": (TEXT, "a text in titles and addresses")}),
    "/c/{name}/graph": RouteNotes({"name": str, "wish": NeighbourRequest, "found": Around | None},
        {"node": (TEXT, "page, directory or site in the middle")}),
    "/c/{name}/compare": RouteNotes(
        {"name": str, "before": str, "after": str, "comparison": Comparison | None},
        _SITE | {"before": (TEXT, "a run’s number, last, last-1"), "after": (TEXT, "the same")},
    ),
    "/c/{name}/topics": RouteNotes({"name": str, "topics": list[TopicRow], "line": str, "fault": str,
            "methods": list[str], "jobs": list[Job]}),
    "/c/{name}/portals": RouteNotes({"name": str, "portals": list[dict[str, object]], "line": str, "fault": str,
            "topics": list[str], "periods": list[str]}),
    "/c/{name}/stories": RouteNotes({"name": str, "found": float, "jobs": list[Job],
            "stories": list[dict[str, object]]}),
    "/c/{name}/keywords": RouteNotes(
        {"name": str, "of": str, "query": str, "found": KeywordList | None, "fault": str},
        {"of": (TEXT, "addresses of pages, or a site"), "query": (TEXT, "the answers to it, instead")},
    ),
    "/c/{name}/delete": RouteNotes(
        {"name": str, "deleted": str, "plan": DeletionPlan | None, "wish?": Deletion, "goes?": list[str],
            "stays?": list[str]},
        {"site": (TEXT, "all of it"), "run": (_whole(1, 999_999_999), "its record and its pages"),
            "page": (TEXT, "a page’s number, hexadecimal")},
    ),
}  # fmt: skip
FAULT: Schema = {
    "type": "object",
    "required": ["title", "said"],
    "properties": {"title": TEXT, "said": {"type": "string", "description": "why, and what to do"}},
}
_FAULTS = {"400": "what is asked for makes no sense", "404": "it is not there", "503": "it cannot be read now"}


def description(request: Request) -> Response:
    """This description."""
    house = house_of(request)
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    return JSONResponse(described(routes, list(house.places.collections()), locked=bool(house.locks.token)))


def described(routes: Sequence[Route], collections: Sequence[str], *, locked: bool) -> Schema:
    """collections: by name, those that there are now; locked: whether one must log in."""
    schemas: dict[str, Schema] = {"Fault": FAULT}
    paths = {
        WHOLE.sub(r"{\1}", route.path): {"get": _operation(route, collections, schemas)}
        for route in routes
        if answers_json(route)
    }
    found: Schema = {
        "openapi": "3.1.0",
        "info": {"title": "Periplus", "version": VERSION,
            "description": "What the screens show, as JSON. docs/serve.md tells of them."},
        "servers": [{"url": "/"}], "paths": paths, "components": {"schemas": schemas},
    }  # fmt: skip
    if locked:
        cookie = {"type": "apiKey", "in": "cookie", "name": "periplus"}
        found |= {"security": [{"login": []}], "components": {"schemas": schemas, "securitySchemes": {"login": cookie}}}
    return found


def answers_json(route: Route) -> bool:
    return "GET" in (route.methods or ()) and not ASIDE.search(route.path)


def _operation(route: Route, collections: Sequence[str], schemas: dict[str, Schema]) -> Schema:
    said = SAID.get(route.path, RouteNotes())
    known: dict[str, Schema] = {
        "name": _one_of(*collections) if collections else TEXT,
        "table": _one_of(*SCREENS) if route.path.endswith("/t/{table}") else TEXT,
    }
    parameters: list[Schema] = [
        {"name": name, "in": "path", "required": True, "schema": known.get(name, TEXT)}
        for name in WHOLE.findall(route.path)
    ]
    parameters.append(
        {
            "name": "format",
            "in": "query",
            "required": True,
            "schema": _one_of("json"),
            "description": "or the header Accept: application/json",
        }
    )
    for name, (schema, sentence) in said.asks.items():
        must = name.endswith("!")
        parameters.append(
            {"name": name.rstrip("!"), "in": "query", "required": must, "schema": schema, "description": sentence}
        )
    answers: Schema = {"200": _json("as asked for", _answer(said, schemas))}
    answers |= {status: _json(sentence, {"$ref": "#/components/schemas/Fault"}) for status, sentence in _FAULTS.items()}
    return {
        "operationId": _identity(route),
        "summary": _sentence(route.endpoint),
        "parameters": parameters,
        "responses": answers,
    }


def _identity(route: Route) -> str:
    return re.sub(r"\W+", "_", WHOLE.sub(r"\1", route.path)).strip("_") or "start"


def _sentence(handler: Callable[..., object]) -> str:
    """The first of its docstring."""
    return (inspect.getdoc(handler) or handler.__name__.replace("_", " ").capitalize() + ".").partition("\n")[0]


def _json(sentence: str, schema: Schema) -> Schema:
    return {"description": sentence, "content": {"application/json": {"schema": schema}}}


def _answer(said: RouteNotes, schemas: dict[str, Schema]) -> Schema:
    properties: dict[str, Schema] = {"title": TEXT} | {
        name.rstrip("?"): schema_of(kind, schemas) for name, kind in said.answer.items()
    }
    return {
        "type": "object",
        "required": ["title", *(name for name in said.answer if not name.endswith("?"))],
        "properties": properties,
    }


_PLAIN: dict[object, Schema] = {
    str: TEXT, bool: {"type": "boolean"}, int: {"type": "integer"}, float: {"type": "number"}, bytes: TEXT, object: {},
    type(None): {"type": "null"},
}  # fmt: skip


def schema_of(kind: object, schemas: dict[str, Schema]) -> Schema:
    """The JSON that `rendering.plain` makes of a value of this type. Named ones enter schemas."""
    kind = getattr(kind, "__supertype__", kind)  # a NewType is what it is made of
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(one, schemas) for one in inner]}
    if origin is tuple and inner[-1:] != (Ellipsis,):
        return {
            "type": "array",
            "items": {"anyOf": [schema_of(one, schemas) for one in inner]},
            "minItems": len(inner),
            "maxItems": len(inner),
        }
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(inner[1], schemas)}
    if isinstance(origin, type) and issubclass(origin, Sequence | set | frozenset):
        return {"type": "array", "items": schema_of(inner[0], schemas)}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [member.value for member in kind]}
    if isinstance(kind, type) and (dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")):
        return _named(kind, schemas)
    return {}  # arrays and the like, of which a description would say no more than their JSON


def _named(kind: type, schemas: dict[str, Schema]) -> Schema:
    if kind.__name__ not in schemas:
        schemas[kind.__name__] = {}  # for those that hold others of their kind
        hints = typing.get_type_hints(kind)
        # a NamedTuple
        fields = (
            [item.name for item in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else list(kind._fields)  # type: ignore[attr-defined]
        )  # fmt: skip
        properties: Schema = {name: schema_of(hints[name], schemas) for name in fields}
        schemas[kind.__name__] = {
            "type": "object",
            "required": fields,
            "properties": properties,
            "description": _sentence(kind),
        }
    return {"$ref": f"#/components/schemas/{kind.__name__}"}
