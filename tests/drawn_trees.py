"""Trees of our parser and of turbohtml in the notation of html5lib-tests, and the cases of html5lib-tests."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import turbohtml

from periplus.document.tree import ATTRIBUTES, TAGS, PageTree

FOLDER = os.environ.get("PERIPLUS_HTML5LIB_TESTS", "")  # a checkout of html5lib-tests: tokenizer, tree-construction
SPACES = ("", "svg ", "math ")
PREFIXED = {f"{prefix}:{name}" for prefix, names in (
    ("xlink", "actuate arcrole href role show title type"), ("xml", "lang space"), ("xmlns", "xlink"),
) for name in names.split()}  # fmt: skip


class Case(NamedTuple):
    """A case of html5lib-tests."""

    name: str
    page: str
    fragment_of: str
    scripting: bool | None
    drawing: str


def drawn(tree: PageTree, root: int = 0) -> str:
    """The tree below a node, one line per node and attribute."""
    return "\n".join(_merged(_lines(tree, root)))


def _merged(rows: Iterable[tuple[int, str, str]]) -> Iterator[str]:
    """Formats (level, kind, text) as lines. Adjacent texts are joined."""
    before = None
    for level, kind, text in rows:
        if before and before[1] == kind == "text" and before[0] == level:
            before = (level, kind, before[2] + text)
            continue
        if before:
            yield _line(*before)
        before = (level, kind, text)
    if before:
        yield _line(*before)


def _line(level: int, kind: str, text: str) -> str:
    return "| " + "  " * level + (f'"{text}"' if kind == "text" else text)


def _lines(tree: PageTree, root: int) -> Iterator[tuple[int, str, str]]:
    chars = bytes(tree.chars)

    def text(start: int, end: int) -> str:
        return chars[start:end].decode("utf-8", "surrogatepass")

    stack = [(child, 0) for child in reversed(_children(tree, root))]
    while stack:
        node, level = stack.pop()
        tag = tree.tags[node]
        attributes = _attributes(tree, node, text)
        if tag == -1:
            yield level, "text", text(tree.starts[node], tree.ends[node])
        elif tag == -2:
            yield level, "comment", f"<!-- {text(tree.starts[node], tree.ends[node])} -->"
        elif tag == -3:
            yield level, "doctype", _doctype(text(tree.starts[node], tree.ends[node]), dict(attributes))
        else:
            space = tree.spaces[node]
            name = TAGS[tag] if tag < len(TAGS) else tree.own_names[tag - len(TAGS)]
            yield level, "element", f"<{SPACES[space]}{name}>"
            for key, value in sorted(
                (key.replace(":", " ") if space and key in PREFIXED else key, value) for key, value in attributes
            ):
                yield level + 1, "attribute", f'{key}="{value}"'
            below = level + 1
            if name == "template" and not space:
                yield level + 1, "content", "content"
                below += 1
            stack.extend((child, below) for child in reversed(_children(tree, node)))


def _children(tree: PageTree, node: int) -> list[int]:
    children = []
    child = tree.firsts[node]
    while child >= 0:
        assert tree.parents[child] == node
        children.append(child)
        child = tree.nexts[child]
    return children


def _attributes(tree: PageTree, node: int, text: object) -> list[tuple[str, str]]:
    first = tree.attributes[node]
    names = [*range(first, first + tree.attribute_counts[node])]
    return [
        (
            ATTRIBUTES[number] if number < len(ATTRIBUTES) else tree.own_attribute_names[number - len(ATTRIBUTES)],
            text(tree.value_starts[row], tree.value_ends[row]),
        )
        for row in names
        for number in (tree.attribute_names[row],)
    ]


def _doctype(name: str, identifiers: dict[str, str]) -> str:
    if not identifiers:
        return f"<!DOCTYPE {name}>"
    return f'<!DOCTYPE {name} "{identifiers.get("public", "")}" "{identifiers.get("system", "")}">'


def drawn_twin(page: str) -> str:
    """The tree of turbohtml, in the same notation."""
    return "\n".join(_merged(_twin_lines(turbohtml.parse(page, positions=False))))


def _twin_lines(document: turbohtml.Document) -> Iterator[tuple[int, str, str]]:
    spaces = {turbohtml.Namespace.HTML: "", turbohtml.Namespace.SVG: "svg ", turbohtml.Namespace.MATHML: "math "}
    stack = [(child, 0) for child in reversed(list(document.children))]
    while stack:
        node, level = stack.pop()
        if isinstance(node, turbohtml.Text):
            yield level, "text", node.data
        elif isinstance(node, turbohtml.Comment):
            yield level, "comment", f"<!-- {node.data} -->"
        elif isinstance(node, turbohtml.Doctype):
            yield level, "doctype", f"<!DOCTYPE {node.name}"
        elif isinstance(node, turbohtml.DocumentFragment):
            yield level, "content", "content"
            stack.extend((child, level + 1) for child in reversed(list(node.children)))
        else:
            yield level, "element", f"<{spaces[node.namespace]}{node.tag}>"
            for key in sorted(node.attrs):
                yield level + 1, "attribute", f'{key}="{node.attr(key) or ""}"'
            stack.extend((child, level + 1) for child in reversed(list(node.children)))


def cases(folder: Path) -> Iterator[Case]:
    """The cases of all .dat files in a folder."""
    for path in sorted(folder.glob("*.dat")):
        text = path.read_bytes().decode("utf-8", "surrogatepass")
        for number, part in enumerate(re.split(r"(?:\A|\n\n)#data\n", text)[1:]):
            page, _, rest = f"\n{part}".partition("\n#errors")
            page = page[1:]
            rest, _, drawing = rest.partition("#document\n")
            fragment = re.search(r"#document-fragment\n(.*)\n", rest)
            scripting = False if "#script-off" in rest else True if "#script-on" in rest else None
            yield Case(f"{path.stem}:{number}", page, fragment[1] if fragment else "", scripting, drawing.rstrip("\n"))
