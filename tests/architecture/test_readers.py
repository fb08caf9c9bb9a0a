"""Modules outside `store` read every collection through `store.reader.CollectionReader`, whatever its database is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from source_rules import Source, sources_below

ROOT = Path(__file__).parents[2]
DATABASE = re.compile(r"periplus\w*\.(store\.)?(sqlite|postgres)\b")
MOST = {"core": 4, "features": 9}  # modules that still import one database: they only fall


def imports_of(source: Source) -> Iterator[str]:
    """Imported modules and names, with dots."""
    for node in source.of(ast.Import, ast.ImportFrom):
        prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        yield from (prefix + alias.name for alias in node.names)


def database_modules(root: Path) -> dict[str, list[str]]:
    """Modules outside `store` that import one database, in the core and in features."""
    modules: dict[str, list[str]] = {"core": [], "features": []}
    for source in sources_below(root, "src"):
        place = source.path.relative_to("src")
        if "store" not in place.parts and any(map(DATABASE.match, imports_of(source))):
            modules["core" if place.parts[0] == "periplus" else "features"].append(str(place))
    return modules


@pytest.mark.parametrize("part", MOST)
def test_modules_that_import_one_database_only_become_fewer(part):
    modules = database_modules(ROOT)[part]
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
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    expected = {"core": ["periplus/api/one.py", "periplus/api/two.py"], "features": ["periplus_other/api.py"]}
    assert database_modules(tmp_path) == expected
