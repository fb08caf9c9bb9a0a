"""Rules for single modules. Each rule takes a module and yields messages for its violations.

They complement ruff and import-linter, and cannot be switched off there.
"""

from __future__ import annotations

import ast
import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

FILE_LINES = 701
FUNCTION_LINES = 61
TEST_FUNCTION_LINES = 70
SHORT_FUNCTION_LINES = 40
SHORT_SHARE = 0.9  # share of functions shorter than SHORT_FUNCTION_LINES
PARAMETERS = 6
VAGUE_NAMES = frozenset({"utils", "util", "helpers", "helper", "common", "manager", "core", "misc"})
BANNED_CALLS = frozenset({"eval", "exec", "compile", "__import__"})
# packages whose results depend on their arguments alone
PURE = frozenset({"model", "urls", "document", "schedule", "retrieval", "analyse", "present"})
SURROUNDINGS = frozenset(["time.time", "time.monotonic", "time.perf_counter", "time.sleep", "datetime.now",
    "datetime.utcnow", "date.today", "uuid.uuid4"]) | {
    "os.urandom", "os.getenv", "os.environ",
}  # fmt: skip
BANNED_MODULES = ("pickle", "marshal", "shelve", "urllib.request")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """A module: path below the checkout, text, syntax tree."""

    path: Path
    text: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> dict[type[ast.AST], list[ast.AST]]:
        """Every node of the tree, by type: a walk for each rule takes ten times as long."""
        nodes = defaultdict(list)
        for node in ast.walk(self.tree):
            nodes[type(node)].append(node)
        return dict(nodes)

    def of(self, *types: type[ast.AST]) -> Iterator[Any]:
        for kind in types:
            yield from self.nodes.get(kind, ())


Rule = Callable[[Source], Iterator[str]]


def source_of(path: Path, text: str) -> Source:
    return Source(path, text, ast.parse(text))


@cache
def sources_below(root: Path, folder: str) -> list[Source]:
    """Every module below root/folder, in the order of the paths; read once a process."""
    sources = list(read_below(root, folder))
    gc.freeze()  # a million nodes without garbage, which each collection would visit
    return sources


def read_below(root: Path, folder: str) -> Iterator[Source]:
    """The same, one at a time: trees of all tests would take hundreds of megabytes."""
    gc.disable()
    try:
        for path in sorted((root / folder).rglob("*.py")):
            source = source_of(path.relative_to(root), path.read_text("utf-8"))
            assert source.nodes
            yield source
    finally:
        gc.enable()


def functions(source: Source) -> Iterator[Function]:
    yield from source.of(ast.FunctionDef, ast.AsyncFunctionDef)


def lines_of(function: Function) -> int:
    """Lines from `def` to the last one, docstring included, decorators not."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _at(source: Source, node: ast.AST, what: str) -> str:
    return f"{source.path}:{getattr(node, 'lineno', 1)}: {what}"


def _called(node: ast.AST) -> str:
    """The name of a called function, or an empty string."""
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _imported(node: ast.AST) -> list[str]:
    """Full names that an import statement may import."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def file_is_short(source: Source) -> Iterator[str]:
    count = len(source.text.splitlines())
    if count >= FILE_LINES:
        yield f"{source.path}: {count} lines; a file has fewer than {FILE_LINES}"


def functions_are_short(source: Source) -> Iterator[str]:
    most = FUNCTION_LINES if source.path.parts[0] == "src" else TEST_FUNCTION_LINES
    for function in functions(source):
        if (lines := lines_of(function)) >= most:
            yield _at(source, function, f"{function.name} has {lines} lines; a function has fewer than {most}")


# files with public functions that list options as keywords
PUBLIC = ("src/periplus/api/collection.py", "src/periplus/api/functions.py")


def parameters_are_few(source: Source) -> Iterator[str]:
    for function in functions(source):
        given = function.args
        names = [
            item.arg for item in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg) if item
        ]
        count = len([name for name in names if name not in ("self", "cls")])
        public = str(source.path) in PUBLIC and len(given.args) <= 2  # public functions, called with keywords
        if count > PARAMETERS and not public:
            yield _at(
                source,
                function,
                f"{function.name} takes {count} parameters; more than {PARAMETERS} mean that a value is missing",
            )


def no_bare_except(source: Source) -> Iterator[str]:
    for node in source.of(ast.ExceptHandler):
        if node.type is None:
            yield _at(source, node, "except without a type")


def no_global(source: Source) -> Iterator[str]:
    for node in source.of(ast.Global):
        yield _at(source, node, "global: pass the value, or return it")


def print_only_in_cli(source: Source) -> Iterator[str]:
    if "cli" in source.path.parts:
        return
    for node in source.of(ast.Call):
        if _called(node) == "print":
            yield _at(source, node, "print outside cli")


def no_code_from_text(source: Source) -> Iterator[str]:
    for node in source.of(ast.Call):
        if _called(node) in BANNED_CALLS:
            yield _at(source, node, f"{_called(node)}: text never becomes code")


def no_banned_module(source: Source) -> Iterator[str]:
    for node in source.of(ast.Import, ast.ImportFrom):
        for name in _imported(node):
            if any(name == banned or name.startswith(banned + ".") for banned in BANNED_MODULES):
                yield _at(source, node, f"imports {name}")


def no_import_of_the_root(source: Source) -> Iterator[str]:
    """The root of the package is for users; modules of the project import the defining module."""
    if source.path == Path("src/periplus/__init__.py"):
        return
    for node in source.of(ast.Import, ast.ImportFrom):
        root = isinstance(node, ast.ImportFrom) and node.module == "periplus" and not node.level
        if root or (isinstance(node, ast.Import) and any(alias.name == "periplus" for alias in node.names)):
            yield _at(source, node, "imports the package's root")


def no_relative_import(source: Source) -> Iterator[str]:
    for node in source.of(ast.ImportFrom):
        if node.level:
            yield _at(source, node, "relative import: write the whole name")


def time_chance_and_surroundings_are_arguments(source: Source) -> Iterator[str]:
    """In packages that compute results; times of analysis stages and the environment of a cluster driver are
    exempt.
    """
    if PURE.isdisjoint(source.path.parts[2:3]) or "engines" in source.path.parts:
        return
    for node in source.of(ast.Attribute):
        if isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            if name in SURROUNDINGS or (node.value.id in ("random", "secrets") and node.attr != "Random"):
                yield _at(source, node, f"{name}: take it as an argument")
    for node in source.of(ast.Call):
        unseeded = not node.args and not node.keywords
        if unseeded and getattr(node.func, "attr", getattr(node.func, "id", "")) in ("Random", "default_rng"):
            yield _at(source, node, "chance without a seed")


def urls_are_joined_in_one_place(source: Source) -> Iterator[str]:
    if "urls" in source.path.parts:
        return
    for node in source.of(ast.Import, ast.ImportFrom):
        if any(name.startswith("ada_url") or name.endswith(".urljoin") for name in _imported(node)):
            yield _at(source, node, "joins URLs: that is for urls.canonical")


def name_says_something(source: Source) -> Iterator[str]:
    for part in source.path.with_suffix("").parts:
        if part.strip("_") in VAGUE_NAMES:
            yield f"{source.path}: {part!r} says nothing about what is inside"


def module_has_docstring(source: Source) -> Iterator[str]:
    if not (ast.get_docstring(source.tree) or "").strip():
        yield f"{source.path}: no docstring; state the purpose of the module"


RULES: tuple[Rule, ...] = (
    file_is_short,
    functions_are_short,
    parameters_are_few,
    no_bare_except,
    no_global,
    print_only_in_cli,
    no_code_from_text,
    no_banned_module,
    no_import_of_the_root,
    no_relative_import,
    time_chance_and_surroundings_are_arguments,
    urls_are_joined_in_one_place,
    name_says_something,
    module_has_docstring,
)


def broad_handlers(sources: Iterable[Source]) -> list[str]:
    """Every handler of Exception or BaseException, alone or in a tuple.

    Only the guards around workers and around extensions may have one.
    """
    found = []
    for source in sources:
        for node in source.of(ast.ExceptHandler):
            if node.type is not None:
                caught = {part.id for part in ast.walk(node.type) if isinstance(part, ast.Name)}
                if caught & {"Exception", "BaseException"}:
                    found.append(_at(source, node, "catches everything"))
    return found


def short_share(sources: Iterable[Source]) -> float:
    """Share of functions under SHORT_FUNCTION_LINES; 1 without functions."""
    lengths = [lines_of(function) for source in sources for function in functions(source)]
    return sum(length < SHORT_FUNCTION_LINES for length in lengths) / len(lengths) if lengths else 1.0
