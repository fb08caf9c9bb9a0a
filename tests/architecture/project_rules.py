"""Rules on documents of the project: the error tree, the glossary, no names from outside of a checkout."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

EXCEPTION_TREE_LINE = re.compile(r"^ {4}( *)([A-Z]\w*) {2,}\S")
GLOSSARY_TERM = re.compile(r"^\*\*.+?\*\* \((`[^)]+`)\)", re.MULTILINE)
# Names of a single machine: its folders, and its package index. Brackets keep these lines from matching themselves.
OUTSIDE = re.compile(
    r"(?<![\w.])/[w]ork/\w|\.\./[s]hared\b|(?<!\w)/[t]mp/brief|[p]ypi\.org|[p]ythonhosted|--(?"
    r":extra-)?[i]ndex-url|[P]IP_INDEX"
)


def drawn_errors(docstring: str) -> dict[str, str]:
    """Each error of the tree drawn at the top of errors.py with its parent; the root's parent is Exception."""
    parents: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in docstring.splitlines():
        match = EXCEPTION_TREE_LINE.match(line)
        if not match:
            continue
        depth, name = len(match[1]), match[2]
        above = [entry for entry in above if entry[0] < depth]
        parents[name] = above[-1][1] if above else "Exception"
        above.append((depth, name))
    return parents


def written_errors(tree: ast.Module) -> dict[str, str]:
    """Each class of errors.py with its base."""
    return {
        node.name: node.bases[0].id
        for node in tree.body
        if isinstance(node, ast.ClassDef) and isinstance(node.bases[0], ast.Name)
    }


def explained(glossary: str) -> set[str]:
    """Types named by the entries of the glossary: **word** (`Type`, `Type`) at the start of a line."""
    return {name for match in GLOSSARY_TERM.finditer(glossary) for name in re.findall(r"`(\w+)`", match[1])}


def outside_names(files: Iterable[tuple[str, str]]) -> list[str]:
    """Lines with names of a single machine. files: path and text of each."""
    found = []
    for path, text in files:
        for number, line in enumerate(text.splitlines() if OUTSIDE.search(text) else (), 1):
            if OUTSIDE.search(line):
                found.append(f"{path}:{number}: {line.strip()[:100]}")
    return found


def loose_pins(constraints: str) -> list[str]:
    """Lines of constraints.txt that do not pin one package to an exact version."""
    lines = [line for line in constraints.splitlines() if line.strip() and not line.startswith("#")]
    return [line for line in lines if not re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.!+]+", line)]


def named_tests(guarantees: str) -> set[str]:
    """Tests named in docs/guarantees.md, as `folder/file.py::name`."""
    return set(re.findall(r"`(\w+/test_\w+\.py::\w+)`", guarantees))


def names_for_pytest(tree: ast.Module) -> set[str]:
    """Names that pytest accepts after `::`: functions, classes, and aliases of classes."""
    named = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return named | {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def promises(text: str) -> dict[str, set[str]]:
    """Numbers of the invariants below each heading `###`, as list items or as (1), (2) in a sentence; empty if none."""
    parts = re.split(r"^#{2,3} (.+)\n", text, flags=re.MULTILINE)
    found = {}
    for heading, level, body in zip(
        parts[1::2], re.findall(r"^(#{2,3}) ", text, re.MULTILINE), parts[2::2], strict=True
    ):
        if level == "###":
            found[heading] = set(re.findall(r"^(?:\| )?(\d)\. ", body, re.MULTILINE)) | set(
                re.findall(r"\((\d)\)", body)
            )
    return found


def rows_without_a_test(guarantees: str) -> list[str]:
    """Rows that name neither a test nor the place of one, nor state that there is none."""
    rows = [line for line in guarantees.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    return [row for row in rows if "::" not in row and "no test" not in row]
