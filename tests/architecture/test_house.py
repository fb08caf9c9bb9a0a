"""The size and the names of the house: lines of each package within its budget, one name for one thing, no circles."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Set
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "periplus"
# lines at 120 columns; a capability that needs more raises the budget of its package, and says why in its commit
BUDGETS = {
    ".": 1_250,
    "acquire": 5_650,
    "analyse": 12_800,
    "api": 16_150,
    "cli": 7_100,
    "document": 13_450,
    "jobs": 1_150,
    "mcp": 1_200,
    "model": 5_250,
    "present": 7_400,
    "schedule": 3_200,
    "search": 2_700,
    "store": 17_650,
    "ui": 5_550,
    "urls": 2_400,
}
MODULES = 403
HEADER_SHARE = 0.09  # of all lines: docstrings at the head of modules, and imports
# they name how a value came about, not what it is
POOR_NAMES = frozenset({"found", "said", "told", "looked", "known", "kept", "wanted", "meant", "wish", "wished"})
POOR_NAMES_LEFT = 12  # bindings of them: fewer with every change, never more


def package_of(path: Path) -> str:
    parts = path.relative_to(SRC).parts
    return parts[0] if len(parts) > 1 else "."


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted(SRC.rglob("*.py"))}


def over_budget(lines: Counter[str], budgets: dict[str, int]) -> dict[str, tuple[int, int]]:
    """Of each package that is over its budget, or has none, its lines and the budget."""
    return {name: (count, budgets.get(name, 0)) for name, count in lines.items() if count > budgets.get(name, 0)}


def names_of_classes(trees: dict[Path, ast.Module]) -> Counter[str]:
    return Counter(
        node.name for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef)
    )  # fmt: skip


def header_lines(tree: ast.Module) -> int:
    heads = (ast.Import, ast.ImportFrom)
    docstring = tree.body[:1] if ast.get_docstring(tree, clean=False) is not None else []
    nodes = [*docstring, *(node for node in tree.body if isinstance(node, heads))]
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


def bound_names(tree: ast.Module) -> Counter[str]:
    """What assignments, parameters and functions are called."""
    names: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] += 1
        elif isinstance(node, ast.arg):
            names[node.arg] += 1
        elif isinstance(node, ast.FunctionDef):
            names[node.name] += 1
    return names


def test_each_package_keeps_to_its_budget():
    lines = Counter[str]()
    for path in SRC.rglob("*.py"):
        lines[package_of(path)] += path.read_text("utf-8").count("\n")
    assert over_budget(lines, BUDGETS) == {}
    assert over_budget(Counter({"urls": 9_999, "new": 1}), BUDGETS) == {"urls": (9_999, BUDGETS["urls"]), "new": (1, 0)}


def test_modules_are_few_and_have_more_body_than_head(trees):
    every = sum(path.read_text("utf-8").count("\n") for path in trees)
    assert len(trees) <= MODULES
    assert sum(map(header_lines, trees.values())) < HEADER_SHARE * every
    assert header_lines(ast.parse('"""A\nhead."""\n\nimport a\nfrom b import (\n    c,\n)\n\nd = 1\n')) == 6


def test_no_two_classes_have_one_name(trees):
    assert [name for name, count in names_of_classes(trees).items() if count > 1 and not name.startswith("_")] == []
    assert names_of_classes({Path("a"): ast.parse("class A: ..."), Path("b"): ast.parse("class A: ...")})["A"] == 2


def test_names_say_what_a_value_is(trees):
    names = sum(map(bound_names, trees.values()), Counter[str]())
    assert sum(names[name] for name in POOR_NAMES) <= POOR_NAMES_LEFT
    assert bound_names(ast.parse("def f(found): kept = found"))["found"] == 1


def test_no_module_is_imported_by_what_it_imports(trees):
    modules = {module_of(path): tree for path, tree in trees.items()}
    imports = {name: imports_of(name, tree, modules.keys()) for name, tree in modules.items()}
    assert circle(imports) == []
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


def module_of(path: Path) -> str:
    parts = path.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(name: str, tree: ast.Module, modules: Set[str]) -> set[str]:
    """Modules that are loaded with this one, and where they are needed by a function; not for types alone."""
    names: set[str] = set()
    for node in runtime_nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return (names & modules) - {name}


def runtime_nodes(tree: ast.Module) -> list[ast.AST]:
    """Every node but those under `if TYPE_CHECKING:`."""
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for child in node.body
        for inner in ast.walk(child)
    }
    return [node for node in ast.walk(tree) if id(node) not in skipped]


def circle(imports: dict[str, set[str]]) -> list[str]:
    """A way from a module to itself; empty: there is none."""
    done: set[str] = set()

    def way(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for other in sorted(imports.get(name, ())):
            if back := way(other, [*path, name]):
                return back
        done.add(name)
        return []

    return next((back for name in sorted(imports) if (back := way(name, []))), [])


def test_no_two_decisions_have_one_number():
    numbers = Counter(path.name[:4] for path in (SRC.parents[1] / "docs/decisions").glob("[0-9]*.md"))
    assert numbers and max(numbers.values()) == 1, numbers.most_common(2)
