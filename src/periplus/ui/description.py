"""The table of routes as an OpenAPI description.

For generated clients and for tests. The rows of `ui.routes` are the source: a screen is described by its handler's
first sentence, the names in its path, and the types of the row.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from periplus.settings import VERSION
from periplus.ui.rendering import PROBLEM
from periplus.ui.users import Role
from periplus.values import Pairs, frozen

Schema = dict[str, object]
Handler = Callable[[Request], Response]
TEXT: Schema = {"type": "string"}
_PART = re.compile(r"\{(\w+)(?::\w+)?\}")  # of a path
PROBLEM_SCHEMA: Schema = {  # RFC 9457
    "type": "object",
    "required": ["title", "status", "detail"],
    "properties": {
        "title": TEXT,
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "the reason and what to do"},
    },
}
_PROBLEMS = {"400": "the request is invalid", "404": "not found", "503": "the collection cannot be read now"}
_PLAIN: dict[object, Schema] = {
    str: TEXT, bool: {"type": "boolean"}, int: {"type": "integer"}, float: {"type": "number"}, bytes: TEXT, object: {},
    type(None): {"type": "null"},
}  # fmt: skip


@frozen
class Screen:
    """A row of the table of routes: a screen, as a page and as JSON.

    show: the handler of GET; take: the handler of the screen's form, by POST to the same address; answer: type by name
    of the keys beside `title`, optional if the name ends in ?; parameters: schema and sentence by name, required if the
    name ends in !.
    """

    path: str
    show: Handler
    answer: Mapping[str, object] = field(default_factory=dict)
    parameters: Mapping[str, tuple[Schema, str]] = field(default_factory=dict)
    take: Handler | None = None
    role: Role = Role.LOOK  # that it takes to see it
    take_role: Role = Role.WORK  # and to send its form


@frozen
class TableScreen:
    """A table on a screen.

    columns: shown by default; fixed: its permanent conditions; sentence: its description, if it differs from the
    table's own; home: the screen of its subject within the collection, with {} where it has several.
    """

    title: str
    table: str
    columns: tuple[str, ...]
    fixed: Pairs = ()
    sentence: str = ""
    usual: Pairs = ()  # conditions that hold unless the address names their column
    home: str = ""


class Routes(NamedTuple):
    """The routes of a feature.

    forms: by path, the role that they require and their handler; files: for all users; tables: the screens of its
    tables of results by name.
    """

    screens: tuple[Screen, ...]
    forms: Mapping[str, tuple[Role, Handler]]
    files: Mapping[str, Handler]
    tables: Mapping[str, TableScreen] = {}


def whole_number(high: int) -> Schema:
    return {"type": "integer", "minimum": 1, "maximum": high}


def enum(*words: str) -> Schema:
    return {"type": "string", "enum": list(words)}


def describe(screens: Sequence[Screen], choices: Mapping[str, Sequence[str]], *, locked: bool) -> Schema:
    """The description. choices: values of a part of a path, by its name; locked: whether a login is required."""
    schemas: dict[str, Schema] = {"Problem": PROBLEM_SCHEMA}
    paths = {screen.path: {"get": _operation(screen, choices, schemas)} for screen in screens}
    document: Schema = {
        "openapi": "3.1.0",
        "info": {"title": "Periplus", "version": VERSION,
            "description": "The values of the screens as JSON; see docs/json.md."},
        "servers": [{"url": "/"}], "paths": paths, "components": {"schemas": schemas},
    }  # fmt: skip
    if locked:
        cookie = {"type": "apiKey", "in": "cookie", "name": "periplus"}
        document["security"] = [{"login": []}]
        document["components"] = {"schemas": schemas, "securitySchemes": {"login": cookie}}
    return document


def _operation(screen: Screen, choices: Mapping[str, Sequence[str]], schemas: dict[str, Schema]) -> Schema:
    parameters: list[Schema] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": enum(*words) if (words := choices.get(name)) else TEXT,
        }
        for name in _PART.findall(screen.path)
    ]
    asks = {"format!": (enum("json"), "or the header Accept: application/json"), **screen.parameters}
    parameters += [
        {
            "name": name.rstrip("!"), "in": "query", "required": name.endswith("!"), "schema": schema,
            "description": sentence,
        }
        for name, (schema, sentence) in asks.items()
    ]  # fmt: skip
    answers: Schema = {"200": _content("the values of the screen", "application/json", _answer(screen, schemas))}
    problem: Schema = {"$ref": "#/components/schemas/Problem"}
    answers |= {status: _content(sentence, PROBLEM, problem) for status, sentence in _PROBLEMS.items()}
    return {
        "operationId": re.sub(r"\W+", "_", screen.path).strip("_") or "start",
        "summary": _sentence(screen.show),
        "parameters": parameters,
        "responses": answers,
    }


def _sentence(handler: Callable[..., object]) -> str:
    """The first of its docstring."""
    return (inspect.getdoc(handler) or handler.__name__.replace("_", " ").capitalize() + ".").partition("\n")[0]


def _content(sentence: str, media_type: str, schema: Schema) -> Schema:
    return {"description": sentence, "content": {media_type: {"schema": schema}}}


def _answer(screen: Screen, schemas: dict[str, Schema]) -> Schema:
    properties: dict[str, Schema] = {"title": TEXT} | {
        name.rstrip("?"): schema_of(kind, schemas) for name, kind in screen.answer.items()
    }
    return {
        "type": "object",
        "required": ["title", *(name for name in screen.answer if not name.endswith("?"))],
        "properties": properties,
    }


def schema_of(kind: object, schemas: dict[str, Schema]) -> Schema:
    """Schema of the JSON that `rendering.plain` makes of a value of this type. Dataclasses are added to schemas."""
    kind = getattr(kind, "__supertype__", kind)  # a NewType is what it is made of
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(part, schemas) for part in inner]}
    if origin is tuple and inner[-1:] != (Ellipsis,):
        return {
            "type": "array",
            "items": {"anyOf": [schema_of(part, schemas) for part in inner]},
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
        return _reference(kind, schemas)
    return {}  # arrays and the like: any JSON value


def _reference(kind: type, schemas: dict[str, Schema]) -> Schema:
    if kind.__name__ not in schemas:
        schemas[kind.__name__] = {}  # for types that contain themselves
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
