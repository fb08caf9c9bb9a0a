"""Accessibility of every screen: landmarks, headings, labels, names.

All routes are tested, including new ones. Where this collection lacks something (a portal), the error page is tested.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest
from starlette.routing import Route

from interface import COMMANDS, client
from periplus.ui.routes import application
from periplus.ui.safety import Locks
from periplus.ui.state import AppState, places
from stored import page, stored

HOME = "https://e.org/"
SITE = {
    HOME: page("Home of lanterns", "/a", "/b", "/gone", "https://other.org/x", "mailto:x@e.org"),
    "https://e.org/a": page("Alpha", "/b/c"),
    "https://e.org/b": page("Beta", "/", head="<link rel=canonical href=/a>"),
    "https://e.org/b/c": page("Gamma", "/"),
    "https://e.org/gone": 404,
}
# values of path parameters; any other is "x"
VALUES = {"name": "e", "table": "pages", "view": "figures", "what": "yield", "ending": "csv", "file": "ui.css"}
NO_PAGES = re.compile(r"/events$|\.\{ending\}$|\.svg$|^/static")  # streams and files
FURTHER = (
    "/?url=example.org&preset=check&every=week", "/?url=no%20site://", "/search?q=alpha", "/c/e/search?q=alpha",
    "/c/e/t/pages?q=a&status=200&sort=-size",
    "/c/e/t/pages?q=nothing", "/c/e/t/links?per=50", "/c/e/t/external",
    "/c/e/t/links?target_state=failed", "/c/e/t/faults",
    "/c/e/t/issues", "/c/e/t/sites", "/c/e/map?tree=folders", "/c/e/page?url=https://e.org/",
    "/c/e/page?url=https://e.org/&view=place", "/c/e/page?url=https://e.org/&view=blocks",
    "/c/e/page?url=https://e.org/&view=source", "/c/e/page?url=https://e.org/&view=xml",
    "/c/e/page?url=https://e.org/&view=visits",
    "/c/e/map?find=a&show=size", "/c/e/graph?steps=2&by=directory", "/c/e/compare?before=1&after=1", "/nowhere",
)  # fmt: skip
VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"})
NAMED_BY_TEXT = frozenset(
    {"a", "button", "summary", "th", "h1", "h2", "h3", "h4", "caption", "option", "legend", "title"}
)


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    parent: Element | None
    children: list[Element] = field(default_factory=list)
    words: str = ""

    @property
    def text(self) -> str:
        """The text for a screen reader: words and names of images."""
        own = self.attributes.get("aria-label", "") or self.attributes.get("alt", "")
        return (
            own
            + self.words
            + "".join(child.text for child in self.children if child.attributes.get("aria-hidden") != "true")
        ).strip()

    def above(self) -> Iterator[Element]:
        element = self.parent
        while element is not None:
            yield element
            element = element.parent


class Tree(HTMLParser):
    """The elements of a page, in document order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.open: list[Element] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attributes}, self.open[-1] if self.open else None)
        self.elements.append(element)
        if element.parent:
            element.parent.children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        while tag not in VOID and any(element.tag == tag for element in self.open) and self.open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self.open:
            self.open[-1].words += data

    def of(self, *tags: str) -> list[Element]:
        return [element for element in self.elements if element.tag in tags]


def faults(text: str) -> list[str]:
    """Obstacles for users of a screen reader or a keyboard."""
    tree = Tree(text)
    ids = Counter(element.attributes["id"] for element in tree.elements if "id" in element.attributes)
    return [
        *_frame(tree),
        *_headings(tree),
        *_names(tree, ids),
        *_fields(tree),
        *_tables(tree),
        *(f"id {name} stands {n} times" for name, n in ids.items() if n > 1),
    ]


def _frame(tree: Tree) -> Iterator[str]:
    (html,) = tree.of("html")
    if not html.attributes.get("lang"):
        yield "no language"
    if not [title for title in tree.of("title") if title.text]:
        yield "no title"
    if len(tree.of("main")) != 1:
        yield "no main landmark, or several"
    if not [one for one in tree.of("a") if one.attributes.get("href") == "#main"]:
        yield "no way past the navigation"
    navs = [one.attributes.get("aria-label", "") for one in tree.of("nav")]
    if len(navs) > 1 and (not all(navs) or len(set(navs)) < len(navs)):
        yield f"navigations that are not told apart: {navs}"


def _headings(tree: Tree) -> Iterator[str]:
    levels = [int(heading.tag[1]) for heading in tree.of("h1", "h2", "h3", "h4")]
    if levels.count(1) != 1 or levels[0] != 1:
        yield f"headings do not begin with the one first: {levels}"
    yield from (f"h{low} after h{high}" for high, low in itertools.pairwise(levels) if low > high + 1)


def _names(tree: Tree, ids: Counter[str]) -> Iterator[str]:
    for element in tree.elements:
        said = element.attributes
        if (
            element.tag in NAMED_BY_TEXT
            and not element.text
            and "aria-labelledby" not in said
            and element.tag != "option"
        ):
            yield f"<{element.tag}> without words: {said}"
        if element.tag == "img" and "alt" not in said:
            yield f"a picture without words: {said}"
        if element.tag == "svg" and said.get("aria-hidden") != "true" and not said.get("aria-label"):
            yield "a drawing without words"
        for name in ("aria-labelledby", "for", "aria-describedby"):
            yield from (
                f"{name} names {one}, which is not there" for one in said.get(name, "").split() if one not in ids
            )
        if said.get("tabindex", "0") not in ("0", "-1"):
            yield f"an order of its own: {said}"
        if (
            said.get("tabindex") == "0"
            and said.get("role") == "region"
            and not (said.get("aria-label") or said.get("aria-labelledby"))
        ):
            yield "a region without a name"
        if any(name.startswith("on") or name == "style" for name in said):
            yield f"what the policy forbids: {said}"


def _fields(tree: Tree) -> Iterator[str]:
    labelled = {one.attributes["for"] for one in tree.of("label") if "for" in one.attributes}
    for one in tree.of("input", "select", "textarea"):
        kind = one.attributes.get("type", "")
        label = next((above for above in one.above() if above.tag == "label"), None)
        if kind not in ("hidden", "submit") and not (
            one.attributes.get("aria-label") or one.attributes.get("id") in labelled or (label and label.text)
        ):
            yield f"a field without a label: {one.attributes}"
        if kind == "radio" and not any(above.tag == "fieldset" for above in one.above()):
            yield f"a choice without a question: {one.attributes}"


def _tables(tree: Tree) -> Iterator[str]:
    for head in tree.of("th"):
        if head.attributes.get("scope") not in ("col", "row"):
            yield f"a head of nothing: {head.text}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("accessible")
    stored(folder / "e.periplus", SITE, [HOME])
    return folder


def paths(folder: Path) -> list[str]:
    """A URL path of each route that shows a page."""
    app = application(AppState(places([folder]), Locks(), COMMANDS)).app
    routes = [route for route in app.routes if isinstance(route, Route) and "GET" in (route.methods or ())]
    found = [route.path for route in routes if not NO_PAGES.search(route.path)]
    return [re.sub(r"\{(\w+)(?::\w+)?\}", lambda name: VALUES.get(name[1], "x"), path) for path in found]


def test_all_screens_are_accessible(folder: Path) -> None:
    asking, shown, wrong = client(folder), 0, {}
    for path in [*paths(folder), *FURTHER]:
        answer = asking.get(path)
        assert answer.status_code < 500, f"{path}: {answer.text[:2000]}"
        if not answer.headers.get("content-type", "").startswith("text/html"):
            continue
        shown += answer.status_code == 200
        if found := faults(answer.text):
            wrong[path] = found
    assert not wrong
    assert shown >= 30


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        ("<main>", "no main landmark"),
        ("<img src=x>", "a picture without words"),
        ("<input name=q>", "a field without a label"),
        ("<h3>Deep</h3>", "h3 after h1"),
        ("<a href=/x></a>", "without words"),
        ("<label for=none>x</label>", "which is not there"),
        ("<th>x</th>", "a head of nothing"),
        ("<nav></nav><nav></nav>", "not told apart"),
        ("<p style='color: red'>", "forbids"),
    ],
)
def test_each_fault_is_found(spoilt: str, said: str) -> None:
    good = '<html lang="en"><title>T</title><a href="#main">Skip</a><main id="main"><h1>T</h1></main>'
    assert faults(good) == []
    assert any(said in fault for fault in faults(good + spoilt)), faults(good + spoilt)
