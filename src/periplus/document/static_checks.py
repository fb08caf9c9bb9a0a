"""Checks of a page's markup: headings, names of controls, frames, tables, previews, structured data.

Nothing is rendered: effects of styles, scripts and colours are not considered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from periplus.document import html
from periplus.document.structured_data import items_of, json_faults, lacks_of
from periplus.model.web import Url

VERSION = 2  # of the checks: notes of other versions are recomputed

_HEADINGS = "h1,h2,h3,h4,h5,h6,[role=heading]"
_OUTLINE_SELECTOR = f"{_HEADINGS},[role=main],[tabindex]"
_UNSEEN = "[hidden],[aria-hidden=true],template,noscript"
# the attribute that names them; submit and reset have default names
_BUTTON_INPUTS = {"button": "value", "image": "alt"}
_INPUTS_WITHOUT_LABEL = frozenset({"hidden", "submit", "reset", "button", "image"})
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z0-9]{1,8})*|[ix]-[a-z0-9-]+", re.IGNORECASE)
_DOCTYPE = re.compile(r"(?:\ufeff|\s|<!--.*?-->|<\?.*?\?>)*<!doctype", re.IGNORECASE | re.DOTALL)
_PREVIEW = ("og:title", "og:type", "og:image", "og:url")  # ogp.me: the four that every page must have
_STRUCTURED_DATA = "script[type^='application/ld+json' i],[itemscope][itemtype],[typeof]"
_ANYWHERE = Url("https://page.invalid/")  # the position of the page does not matter for the notes
_NAMELESS = frozenset({"", "presentation", "none"})
DATA_TABLE = 3  # least rows and columns of a data table, as in axe-core's td-has-header
LEAST_ZOOM = 2.0  # WCAG 2.2, 1.4.4: text can be enlarged to 200 %
DAY_S = 86_400  # a refresh after 20 hours is permitted (WCAG 2.2, 2.2.1)


class StaticNote(NamedTuple):
    """One fault of a page. code: of the finding. number, words: for its sentence."""

    code: str
    number: float = 0.0
    words: str = ""


_Notes: TypeAlias = "Iterator[tuple[StaticNote, html.Element | None]]"


def noted_elements(text: str, tree: html.Tree) -> list[tuple[StaticNote, html.Element | None]]:
    """All notes on an HTML page, each with the first element concerned; None if something is missing.

    Each code occurs at most once, with the number of elements. text: decoded source.
    """
    marked = html.select(tree, _OUTLINE_SELECTOR)
    return [
        *_of_headings([element for element in marked if _level(element)]),
        *_of_names(tree),
        *_of_fields(tree),
        *_of_page(text, tree, marked),
        *_of_tables(tree),
        *_of_meta(tree),
        *_structured_data_notes(tree),
    ]


def _level(element: html.Element) -> int:
    """The level of a heading; 0 if it is not one."""
    tag = html.tag_of(element)
    role = html.attribute(element, "role")
    if len(tag) == 2 and tag[0] == "h" and tag[1] in "123456" and role in ("", "heading"):
        own = int(tag[1])
    elif role == "heading":
        own = 2  # ARIA 1.2: the default level
    else:
        return 0
    level = html.attribute(element, "aria-level")
    return int(level) if level.isascii() and level.isdigit() and 0 < int(level) < 100 else own


def _of_headings(headings: list[html.Element]) -> _Notes:
    """Skipped heading levels, and empty headings."""
    skipped: list[html.Element] = []
    empty: list[html.Element] = []
    first, before = "", 0
    for heading in headings:
        if not name_of(heading) and not _is_hidden(heading):
            empty.append(heading)
            continue
        level = _level(heading)
        if before and level > before + 1:
            skipped.append(heading)
            first = first or f"h{before} to h{level}"
        before = level
    if skipped:
        yield StaticNote("heading-skipped", len(skipped), first), skipped[0]
    if empty:
        yield StaticNote("heading-empty", len(empty)), empty[0]


def _of_names(tree: html.Tree) -> _Notes:
    """Links, buttons and frames without accessible name."""
    links = [link for link in html.elements(tree, "a") if html.attribute(link, "href")]
    areas = [area for area in html.elements(tree, "area") if html.attribute(area, "href")]
    buttons = [*html.elements(tree, "button")]
    for field in html.elements(tree, "input"):
        kind = html.attribute(field, "type").lower()
        if kind in _BUTTON_INPUTS and not html.attribute(field, _BUTTON_INPUTS[kind]).strip():
            buttons.append(field)
    frames = [
        frame
        for tag in ("iframe", "frame")
        for frame in html.elements(tree, tag)
        if not html.attribute(frame, "tabindex").startswith("-")
    ]
    for code, elements in (("link-without-name", [*links, *areas]), ("button-without-name", buttons)):
        if nameless := [element for element in elements if not name_of(element) and not _is_hidden(element)]:
            yield StaticNote(code, len(nameless)), nameless[0]
    if nameless := [frame for frame in frames if not _own_name(frame) and not _is_hidden(frame)]:
        yield StaticNote("frame-without-title", len(nameless)), nameless[0]


def _own_name(element: html.Element) -> str:
    """The name from its attributes. The target of `aria-labelledby` is not checked."""
    for name in ("aria-label", "aria-labelledby", "title"):
        if text := html.attribute(element, name).strip():
            return text
    return ""


def name_of(element: html.Element) -> str:
    """The accessible name: text, else attributes, else images inside. Source: Accessible Name 1.2, 4.3."""
    if text := element.text.strip():
        return text
    if text := _own_name(element) or html.attribute(element, "alt").strip():
        return text
    for inner in html.select(element, "[alt],[aria-label],[aria-labelledby],[title],svg title"):
        if text := html.attribute(inner, "alt").strip() or _own_name(inner) or inner.text.strip():
            return text
    return ""


def _is_hidden(element: html.Element) -> bool:
    """Whether the element is hidden, judged by markup only, or has a role without semantics."""
    return (
        html.closest(element, _UNSEEN) is not None
        or html.attribute(element, "role") in _NAMELESS - {""}
        or "display:none" in html.attribute(element, "style").replace(" ", "")
    )


def _of_fields(tree: html.Tree) -> _Notes:
    """Form fields without label."""
    fields = [
        field
        for tag in ("input", "select", "textarea")
        for field in html.elements(tree, tag)
        if html.attribute(field, "type").lower() not in _INPUTS_WITHOUT_LABEL
    ]
    if not fields:
        return
    labels = html.elements(tree, "label")
    labelled = {html.attribute(label, "for") for label in labels if label.text.strip()}
    nameless = []
    for field in fields:
        if _own_name(field) or html.attribute(field, "placeholder").strip() or _is_hidden(field):
            continue
        if (name := html.attribute(field, "id")) and name in labelled:
            continue
        around = html.closest(field, "label")
        if around is None or not around.text.strip():
            nameless.append(field)
    if nameless:
        yield StaticNote("field-without-label", len(nameless)), nameless[0]


def _of_page(text: str, tree: html.Tree, marked: list[html.Element]) -> _Notes:
    """Checks of the whole page: main landmark, language, focus order, doctype."""
    if not html.elements(tree, "main") and not any(html.attribute(element, "role") == "main" for element in marked):
        yield StaticNote("main-missing"), None
    for root in html.elements(tree, "html")[:1]:
        declared = html.attribute(root, "lang").strip()
        if declared and not _LANGUAGE.fullmatch(declared):
            yield StaticNote("language-bad", words=declared[:35]), root
    if moved := [element for element in marked if _is_above_zero(html.attribute(element, "tabindex"))]:
        yield StaticNote("focus-order", len(moved)), moved[0]
    if not _DOCTYPE.match(text[:4_096]):
        yield StaticNote("doctype-missing"), None


def _is_above_zero(text: str) -> bool:
    return re.fullmatch(r"\s*0*[1-9][0-9]*\s*", text) is not None


def _of_tables(tree: html.Tree) -> _Notes:
    """Data tables without header cells."""
    headless = []
    for table in html.elements(tree, "table"):
        if html.attribute(table, "role") in ("presentation", "none") or html.closest_above(table, "table") is not None:
            continue
        if html.first(table, "th,[scope],[headers],[role=columnheader],[role=rowheader],table") is not None:
            continue
        rows = html.select(table, "tr")[: DATA_TABLE + 1]
        full = sum(len(html.select(row, "td")) >= DATA_TABLE for row in rows)
        if full >= DATA_TABLE and not _is_hidden(table):
            headless.append(table)
    if headless:
        yield StaticNote("table-without-heads", len(headless)), headless[0]


def _of_meta(tree: html.Tree) -> _Notes:
    """Viewport, refresh and preview tags."""
    viewport, display, preview = None, None, set()
    for meta in html.elements(tree, "meta")[:500]:
        content = html.attribute(meta, "content")
        if html.attribute(meta, "name").strip().lower() == "viewport":
            viewport, display = content.lower(), meta
        elif (name := html.attribute(meta, "property").strip().lower()) in _PREVIEW and content.strip():
            preview.add(name)
        elif html.attribute(meta, "http-equiv").strip().lower() == "refresh":
            wait = re.match(r"\s*(\d{1,6})", content)
            if wait and 0 < int(wait[1]) < DAY_S:
                yield StaticNote("reloads-itself", int(wait[1])), meta
    if viewport is None:
        yield StaticNote("viewport-missing"), None
    elif _forbids_zoom(viewport):
        yield StaticNote("zoom-forbidden", words=viewport[:100]), display
    if preview and (missing := [name for name in _PREVIEW if name not in preview]):
        yield StaticNote("preview-incomplete", len(missing), ", ".join(missing)), None


def _forbids_zoom(viewport: str) -> bool:
    values = dict(part.strip().partition("=")[::2] for part in re.split("[,;]", viewport) if "=" in part)
    if values.get("user-scalable", "").strip() in ("no", "0"):
        return True
    most = re.fullmatch(r"(\d+(?:\.\d+)?).*", values.get("maximum-scale", "").strip())
    return most is not None and float(most[1]) < LEAST_ZOOM


def _structured_data_notes(tree: html.Tree) -> _Notes:
    """Structured data that is invalid, lacks properties that search engines require, or has values in a
    wrong format.
    """
    if faults := json_faults(tree):
        yield StaticNote("structured-syntax", len(faults), faults[0][1]), faults[0][0]
    if not html.elements(tree, "script") and html.first(tree, "[itemscope],[typeof]") is None:
        return
    for code, words in lacks_of(items_of(tree, _ANYWHERE)).items():
        if words:
            yield StaticNote(code, len(words), "; ".join(words)[:500]), html.first(tree, _STRUCTURED_DATA)


# (code, good up to, poor above) for Largest Contentful Paint, in seconds, and Cumulative Layout Shift; source: web.dev
VITALS = (("slow-paint", 2.5, 4.0), ("layout-shift", 0.1, 0.25))


def vitals_notes(paint_s: float | None, shift: float | None) -> list[StaticNote]:
    """Notes on browser measurements of a page; None: not measured."""
    measured = zip(VITALS, (paint_s, shift), strict=True)
    return [
        StaticNote(code, value, "poor" if value > poor else "needs improvement")
        for (code, good, poor), value in measured
        if value is not None and value > good
    ]
