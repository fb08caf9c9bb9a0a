"""Size and names: the ratchet of syntax nodes, few modules, one name for one thing, no import circles."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Set
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "periplus"
# Syntax nodes of `src`: the lowest number reached so far. New capability is paid for by deletion. Lower it when a
# change makes `src` smaller; raise it only in a commit of its own that names what was deleted for it.
SYNTAX_NODES = 805_835
SLACK_NODES = 40_000  # margin below the ratchet before it must be lowered
CORE_MODULES = 388
MODULES = 414  # of the core, the features and the example webs
HEADER_SHARE = 0.09  # of all lines: docstrings at the head of modules, and imports
# names for the origin of a value instead of its meaning
POOR_NAMES = frozenset({"found", "said", "told", "looked", "known", "kept", "wanted", "meant", "wish", "wished"})
POOR_NAMES_LEFT = 12  # number of bindings, which may only fall


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    """The modules of the core and of the features."""
    features = (path.parent for path in SRC.parent.glob("periplus_*/feature.py"))
    paths = (path for folder in (SRC, *features) for path in sorted(folder.rglob("*.py")))
    return {path: ast.parse(path.read_text("utf-8")) for path in paths}


def ratchet_fault(nodes: int, lowest: int) -> str:
    """Why a number of syntax nodes fails the ratchet, or an empty string."""
    if nodes > lowest:
        return f"src has {nodes - lowest} syntax nodes more than the lowest number reached ({lowest}): delete as many"
    if nodes < lowest - SLACK_NODES:
        return f"src has only {nodes} syntax nodes: lower SYNTAX_NODES to that"
    return ""


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
    """Names of variables, parameters and functions."""
    names: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] += 1
        elif isinstance(node, ast.arg):
            names[node.arg] += 1
        elif isinstance(node, ast.FunctionDef):
            names[node.name] += 1
    return names


def test_syntax_nodes_stay_at_the_lowest_number_reached():
    trees = (ast.parse(path.read_text("utf-8")) for path in SRC.parent.rglob("*.py"))
    nodes = sum(sum(1 for _ in ast.walk(tree)) for tree in trees)
    assert ratchet_fault(nodes, SYNTAX_NODES) == ""
    assert "delete as many" in ratchet_fault(1001, 1000)
    assert "lower" in ratchet_fault(499, SLACK_NODES + 500)


def test_modules_are_few_and_have_more_body_than_head(trees):
    every = sum(path.read_text("utf-8").count("\n") for path in trees)
    assert sum(1 for _ in SRC.rglob("*.py")) <= CORE_MODULES
    assert sum(1 for _ in SRC.parent.rglob("*.py")) <= MODULES
    assert sum(map(header_lines, trees.values())) < HEADER_SHARE * every
    assert header_lines(ast.parse('"""A\nhead."""\n\nimport a\nfrom b import (\n    c,\n)\n\nd = 1\n')) == 6


def test_no_two_classes_have_one_name(trees):
    assert [name for name, count in names_of_classes(trees).items() if count > 1 and not name.startswith("_")] == []
    assert names_of_classes({Path("a"): ast.parse("class A: ..."), Path("b"): ast.parse("class A: ...")})["A"] == 2


def test_names_describe_values(trees):
    names = sum(map(bound_names, trees.values()), Counter[str]())
    assert sum(names[name] for name in POOR_NAMES) <= POOR_NAMES_LEFT
    assert bound_names(ast.parse("def f(found): kept = found"))["found"] == 1


def test_there_are_no_import_cycles(trees):
    modules = {module_of(path): tree for path, tree in trees.items()}
    imports = {name: imports_of(name, tree, modules.keys()) for name, tree in modules.items()}
    assert circle(imports) == []
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


def module_of(path: Path) -> str:
    parts = path.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(name: str, tree: ast.Module, modules: Set[str]) -> set[str]:
    """Modules imported at load time or within a function, except imports for types only."""
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
    """An import cycle, or an empty list."""
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
