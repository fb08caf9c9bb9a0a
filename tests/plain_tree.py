"""The tree of a page in the arrays of `document.tree`, filled from turbohtml's: its slow twin."""

from __future__ import annotations

from array import array

import turbohtml

from periplus.document.tags import ATTRIBUTE_NUMBERS, ATTRIBUTES, TAG_NUMBERS, TAGS

SPACES = {"html": 0, "svg": 1, "mathml": 2}


class PlainTree:
    """What `document.tree.Tree` gives."""

    def __init__(self, text: str) -> None:
        self.own_names: list[str] = []
        self.own_attribute_names: list[str] = []
        self._tags, self._names = dict(TAG_NUMBERS), dict(ATTRIBUTE_NUMBERS)
        self._chars = bytearray()
        columns = ["tags", "parents", "firsts", "nexts", "starts", "ends", "attributes", "attribute_counts"]
        self._columns = {name: array("i") for name in columns}
        self._spaces = bytearray()
        self._attributes = {name: array("i") for name in ("attribute_names", "value_starts", "value_ends")}
        self._fill(turbohtml.parse(text, positions=False))
        for name, column in (self._columns | self._attributes).items():
            setattr(self, name, memoryview(column))
        self.chars, self.spaces = memoryview(self._chars), memoryview(self._spaces)

    def _fill(self, document) -> None:
        self._add(0, -1, 0, 0, 0)
        stack = [(child, 0) for child in reversed(list(document.children))]
        last: dict[int, int] = {}
        while stack:
            node, parent = stack.pop()
            kind = type(node).__name__
            number, children = -1, []
            if kind in ("Text", "CData"):
                number = self._add(-1, parent, 0, *self._text(node.data))
            elif kind == "Element":
                tag = self._number(node.tag, self._tags, self.own_names, len(TAGS))
                number = self._add(tag, parent, SPACES[node.namespace.name.lower()], 0, 0)
                self._columns["attributes"][number] = len(self._attributes["attribute_names"])
                self._columns["attribute_counts"][number] = len(node.attrs)
                for name in node.attrs:
                    start, end = self._text(node.attr(name) or "")
                    key = self._number(name, self._names, self.own_attribute_names, len(ATTRIBUTES))
                    for column, value in zip(self._attributes.values(), (key, start, end), strict=True):
                        column.append(value)
                children = [inner for child in node.children for inner in unpacked(child)]
            if number < 0:
                continue
            if parent in last:
                self._columns["nexts"][last[parent]] = number
            else:
                self._columns["firsts"][parent] = number
            last[parent] = number
            stack.extend((child, number) for child in reversed(children))

    def _add(self, tag, parent, space, start, end) -> int:
        for name, value in zip(self._columns, (tag, parent, -1, -1, start, end, 0, 0), strict=True):
            self._columns[name].append(value)
        self._spaces.append(space)
        return len(self._spaces) - 1

    def _text(self, text: str) -> tuple[int, int]:
        start = len(self._chars)
        self._chars += text.encode("utf-8", "surrogatepass")
        return start, len(self._chars)

    def _number(self, name: str, numbers: dict[str, int], own: list[str], first: int) -> int:
        if name not in numbers:
            numbers[name] = first + len(own)
            own.append(name)
        return numbers[name]


def unpacked(node):
    """What a template holds are its children."""
    return list(node.children) if type(node).__name__ == "DocumentFragment" else [node]
