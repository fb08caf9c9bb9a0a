"""Parses pages with one reader: `answers.py SOURCES READER`, a subprocess of compare.py.

Reads pages from standard input and writes answers to standard output, each prefixed by its length in four bytes. An
answer is JSON: {field: value}. SOURCES is the folder of the package, so that another version can be compared.
"""

from __future__ import annotations

import json
import struct
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

Answer = dict[str, Any]
_SPACES = ("http", "svg", "math")


def understood() -> Callable[[bytes], Answer]:
    """All fields of the result of `understand`; blocks and links by their columns."""
    from periplus.document.understand import understand
    from periplus.model.visit import Fetched, Headers
    from periplus.urls.canonical import canonical

    page, headers = canonical("http://a.example/dir/page.html?q"), Headers((("content-type", "text/html"),))

    def answer(body: bytes) -> Answer:
        document = understand(page, Fetched(200, headers, body))
        fields = {name: getattr(document, name) for name in document.__dataclass_fields__}
        fields["digests"] = {name: getattr(document.digests, name).hex() for name in ("body", "text", "folded")}
        for name in ("blocks", "links"):
            rows = list(fields.pop(name))
            fields |= {
                f"{name}.{column}": [getattr(row, column) for row in rows] for column in (rows and rows[0]._fields)
            }
        return fields

    return answer


def tree() -> Callable[[bytes], Answer]:
    """The tree of the native parser, one line per node."""
    from periplus.document.tree import ATTRIBUTES, TAGS, parse

    def answer(body: bytes) -> Answer:
        tree = parse(body.decode("utf-8", "replace").encode())
        chars = bytes(tree.chars)
        tags, names = [*TAGS, *tree.own_names], [*ATTRIBUTES, *tree.own_attribute_names]

        def text(start: int, end: int) -> str:
            return chars[start:end].decode("utf-8", "surrogatepass")

        def pieces() -> Iterator[tuple[int, str, str]]:
            stack = [(0, tree.firsts[0])]
            while stack:
                depth, node = stack.pop()
                if node < 0:
                    continue
                stack.append((depth, tree.nexts[node]))
                tag = tree.tags[node]
                if tag == -1:
                    yield depth, "text", text(tree.starts[node], tree.ends[node])
                elif tag > 0:
                    first = tree.attributes[node]
                    attributes = {
                        names[tree.attribute_names[place]]: text(tree.value_starts[place], tree.value_ends[place])
                        for place in range(first, first + tree.attribute_counts[node])
                    }
                    yield depth, "element", _element(tags[tag], tree.spaces[node], attributes)
                    stack.append((depth + 1, tree.firsts[node]))

        return {"tree": _lines(pieces())}

    return answer


def turbohtml() -> Callable[[bytes], Answer]:
    """The tree of turbohtml in the same format."""
    import turbohtml as parser

    def answer(body: bytes) -> Answer:
        def pieces() -> Iterator[tuple[int, str, str]]:
            stack: list[tuple[int, Any]] = [(0, parser.parse(body.decode("utf-8", "replace"), positions=False))]
            while stack:
                depth, node = stack.pop()
                if isinstance(node, parser.Text):
                    yield depth, "text", node.data
                    continue
                inner = depth
                if isinstance(node, parser.Element):
                    values = {name: value if value is not None else "" for name, value in node.attrs.items()}
                    attributes = {
                        name: value if isinstance(value, str) else " ".join(value) for name, value in values.items()
                    }
                    yield depth, "element", _element(node.tag, _SPACES.index(_space(node)), attributes)
                    inner += 1
                stack += [(inner, child) for child in reversed(list(getattr(node, "children", ())))]

        return {"tree": _lines(pieces())}

    def _space(node: Any) -> str:
        name = str(node.namespace).rpartition(".")[2].lower()
        return {"svg": "svg", "mathml": "math"}.get(name, "http")

    return answer


def _element(tag: str, space: int, attributes: dict[str, str]) -> str:
    """An element as a line. White space of values is folded, since one parser returns some values as lists of names."""
    written = "".join(f' {name}="{" ".join(value.split())}"' for name, value in sorted(attributes.items()))
    return f"<{('', 'svg ', 'math ')[space]}{tag}{written}>"


def _lines(pieces: Iterator[tuple[int, str, str]]) -> list[str]:
    """One line per piece; adjacent texts are merged."""
    lines, texts, last = list[str](), list[str](), 0
    for depth, kind, piece in pieces:
        if texts and (kind != "text" or depth != last):
            lines.append("  " * last + repr("".join(texts)))
            texts.clear()
        last = depth
        if kind == "text":
            texts.append(piece)
        else:
            lines.append("  " * depth + piece)
    return lines + (["  " * last + repr("".join(texts))] if texts else [])


READERS = {"understand": understood, "tree": tree, "turbohtml": turbohtml}


def frame(stream: BinaryIO) -> bytes | None:
    """The next page or answer; None at the end."""
    head = stream.read(4)
    return stream.read(struct.unpack("<I", head)[0]) if len(head) == 4 else None


def send(stream: BinaryIO, data: bytes) -> None:
    stream.write(struct.pack("<I", len(data)) + data)
    stream.flush()


def main() -> None:
    sources, name = sys.argv[1:]
    sys.path.insert(0, str(Path(sources).resolve()))
    reader = READERS[name]()
    while (body := frame(sys.stdin.buffer)) is not None:
        try:
            answer = reader(body)
        except Exception:  # noqa: BLE001 - what a reader raises is an answer too
            answer = {"raised": traceback.format_exc().splitlines()[-1]}
        send(sys.stdout.buffer, json.dumps(answer, default=str).encode())


if __name__ == "__main__":
    main()
