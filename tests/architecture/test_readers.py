"""Modules outside `store` read every collection through `store.reader.CollectionReader`, whatever its database is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
DATABASE = re.compile(r"periplus\w*\.(store\.)?(sqlite|postgres)\b")
MOST = {"core": 6, "features": 20}  # modules that still import one database: they only fall


def imports_of(text: str) -> Iterator[str]:
    """Imported modules and names, with dots."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def database_modules(root: Path) -> dict[str, list[str]]:
    """Modules outside `store` that import one database, in the core and in features."""
    found: dict[str, list[str]] = {"core": [], "features": []}
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root)
        if "store" not in place.parts and any(map(DATABASE.match, imports_of(path.read_text(encoding="utf-8")))):
            found["core" if place.parts[0] == "periplus" else "features"].append(str(place))
    return found


@pytest.mark.parametrize("part", MOST)
def test_modules_that_import_one_database_only_become_fewer(part):
    modules = database_modules(SRC)[part]
    assert len(modules) <= MOST[part], f"read through a CollectionReader instead: {modules}"
    assert len(modules) == MOST[part], f"lower MOST to {len(modules)}"


def test_imports_of_a_database_are_found(tmp_path):
    texts = {
        "periplus/api/one.py": "from periplus.store.sqlite import reading",
        "periplus/api/two.py": "def f():\n    import periplus.store.sqlite.listing",
        "periplus/api/neutral.py": "from periplus.store import site_rows",
        "periplus/store/own.py": "from periplus.store.sqlite import reading",
        "periplus_other/api.py": "from periplus.store.sqlite.schema import WriteLock",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = {"core": ["periplus/api/one.py", "periplus/api/two.py"], "features": ["periplus_other/api.py"]}
    assert database_modules(tmp_path) == found
