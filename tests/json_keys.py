"""Keys of public JSON responses, for the comparison with docs/json.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAPS = frozenset(
    {"chosen", "dated_by", "facets", "kinds", "parameters", "posts", "states", "views"}
)  # values whose keys are data


def documented(page: str = "json.md") -> set[str]:
    """The names in the first columns of a page's tables."""
    return set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / page).read_text("utf-8"), re.M))


def keys_of(value: object) -> Iterator[str]:
    """The keys of a JSON value, at any depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from () if name in MAPS else keys_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


def properties_of(schema: object) -> Iterator[str]:
    """The names of properties in a JSON Schema, at any depth."""
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from properties_of(inner)
    if isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
        yield from schema["properties"]


def undocumented(keys: Iterator[str]) -> list[str]:
    """Keys that are neither in docs/json.md nor among the columns in docs/exports.md."""
    return sorted(set(keys) - documented() - documented("exports.md"))


def keys_in_code() -> set[str]:
    """Keys of dict literals and annotated fields of classes in the core and the features."""
    keys: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Dict):
                keys |= {key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                keys.add(node.target.id)
    return keys
