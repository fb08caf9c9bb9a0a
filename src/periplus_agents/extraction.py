"""Values that a user's rules extract from each page: the table [extract] of periplus.toml (docs/extract.md).

A rule is a CSS selector, an XPath expression, a regular expression on the source, or a JSONPath query on the JSON of a
page. Nothing is stored with pages: a changed rule takes effect at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from periplus.document import html
from periplus.document.decode import decode
from periplus.document.digest import fold_whitespace
from periplus.errors import UsageError
from periplus.extras import extra_needed
from periplus.model.page import HTML_TYPES
from periplus.model.tables import TEXT, Column
from periplus.settings import rules_table
from periplus.urls.user_patterns import user_pattern
from periplus.values import frozen, nearest

PREFIX = "x:"
MOST_RULES = 100
VALUE_CHARS = 10_000
VALUES_MOST = 1_000  # per rule and page
SOURCE_CHARS = 5_000_000  # searched by a regular expression
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_PART = re.compile(r"(.*?)::(text|html|attr\(\s*([\w:.-]+)\s*\))\s*", re.DOTALL)
_SCRIPTS = ("application/json", "application/ld+json")


@frozen
class ParsedPage:
    """A page as input of rules. tree: None if it is not HTML."""

    text: str
    tree: html.Tree | None
    is_json: bool


@frozen
class ExtractRule:
    """read: yields the values of a page, in order. all: return every value, one per line, instead of the first."""

    name: str
    kind: str
    query: str
    all: bool
    read: Callable[[ParsedPage], Iterator[str]]

    def value(self, source: ParsedPage) -> str | None:
        """The value for a page; None if there is none, or it is empty."""
        values = []
        for text in self.read(source):
            if text := text.strip()[:VALUE_CHARS]:
                values.append(text)
                if not self.all or len(values) == VALUES_MOST:
                    break
        return "\n".join(values)[:VALUE_CHARS] if values else None


def extract_rules(text: str, where: str = "periplus.toml") -> tuple[ExtractRule, ...]:
    """Parses the rules of a TOML text, in order; other tables are ignored.

    Raises UsageError, naming the rule.
    """
    table = rules_table(text, "extract", where, 'price = "span.price"', MOST_RULES)
    return tuple(_rule(name, value, f"{where}, [extract] {name}") for name, value in table.items())


def _rule(name: str, value: Any, where: str) -> ExtractRule:
    if not _NAME.fullmatch(name):
        raise UsageError(f"{where}: a name has up to 40 letters a to z, digits and _, and begins with a letter")
    fields = {"css": value} if isinstance(value, str) else value
    if not isinstance(fields, dict):
        raise UsageError(f'{where}: a rule is a CSS selector, or {{ xpath = "..." }}, not {value!r}')
    is_all = fields.get("all", False)
    kinds = [kind for kind in fields if kind != "all"]
    choice = f"choose one of {', '.join(_KINDS)}"
    if unknown := [kind for kind in kinds if kind not in _KINDS]:
        raise UsageError(f"{where}: there is no {unknown[0]!r}{nearest(unknown[0], tuple(_KINDS))}: {choice}")
    if len(kinds) != 1 or not isinstance(fields[kinds[0]], str) or not fields[kinds[0]].strip():
        raise UsageError(f"{where}: {choice}, as a text")
    if not isinstance(is_all, bool):
        raise UsageError(f"{where}: all is true or false, not {is_all!r}")
    (kind,) = kinds
    return ExtractRule(name, kind, fields[kind], is_all, _KINDS[kind](fields[kind], where))


def _css(query: str, where: str) -> Callable[[ParsedPage], Iterator[str]]:
    """A selector, optionally followed by `::` and what to take: text (the default), html, or attr(NAME)."""
    match = _PART.fullmatch(query)
    selector, part, attribute = (match[1], match[2], match[3]) if match else (query, "text", None)
    try:
        html.select(html.parse(""), selector)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None

    def read(source: ParsedPage) -> Iterator[str]:
        for element in html.select(source.tree, selector) if source.tree is not None else ():
            if attribute:
                yield html.attribute(element, attribute)
            else:
                yield html.markup_of(element) if part == "html" else html.text_of(element)

    return read


def _xpath(query: str, where: str) -> Callable[[ParsedPage], Iterator[str]]:
    try:
        html.xpath(html.parse(""), query)
    except ValueError as error:
        raise UsageError(f"{where}: {query!r} is not an XPath expression: {error}") from None

    def read(source: ParsedPage) -> Iterator[str]:
        if source.tree is None:
            return
        try:
            result = html.xpath(source.tree, query)
        except (ValueError, RecursionError):  # a function that fails on this page
            return
        for value in result if isinstance(result, list) else [result]:
            yield _text_of(value)

    return read


def _text_of(value: object) -> str:
    """A result of XPath as text, as its function string() converts it; white space folded."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else str(value)
    return fold_whitespace(value if isinstance(value, str) else getattr(value, "text", "") or "")


def _regex(query: str, where: str) -> Callable[[ParsedPage], Iterator[str]]:
    """The first group if there is one, else the whole match; for the first VALUES_MOST matches."""
    engine = user_pattern(query, where).engine
    group = min(engine.groups, 1)

    def read(source: ParsedPage) -> Iterator[str]:
        for match in islice(engine.finditer(source.text[:SOURCE_CHARS].encode("utf-8", "replace")), VALUES_MOST):
            yield (match[group] or b"").decode("utf-8", "replace")

    return read


def _jsonpath(query: str, where: str) -> Callable[[ParsedPage], Iterator[str]]:
    """RFC 9535, on a JSON document, or on each JSON script of a page."""
    with extra_needed():
        import jsonpath
    try:
        path = jsonpath.compile(query)
    except jsonpath.JSONPathError as error:
        raise UsageError(f"{where}: {query!r} is not a JSONPath query: {str(error).splitlines()[0]}") from None

    def read(source: ParsedPage) -> Iterator[str]:
        for text in _json_texts(source):
            try:
                values = path.findall(json.loads(text, strict=False))
            except (ValueError, RecursionError, jsonpath.JSONPathError):
                continue
            for value in values:
                yield value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    return read


def _json_texts(source: ParsedPage) -> Iterator[str]:
    if source.is_json:
        yield source.text
    for script in html.elements(source.tree, "script") if source.tree is not None else ():
        if html.attribute(script, "type").partition(";")[0].strip().lower() in _SCRIPTS:
            yield script.text


_KINDS = {"css": _css, "xpath": _xpath, "regex": _regex, "jsonpath": _jsonpath}


def extract_values(rules: Sequence[ExtractRule], body: bytes, charset: str, media_type: str) -> tuple[str | None, ...]:
    """The value of each rule for a page. Total."""
    text, _ = decode(body, charset, media_type)
    tree = html.parse(text) if media_type in HTML_TYPES else None
    source = ParsedPage(text, tree, media_type == "application/json" or media_type.endswith("+json"))
    return tuple(rule.value(source) for rule in rules)


def columns_of(rules: Sequence[ExtractRule]) -> tuple[Column, ...]:
    """A column `x:NAME` per rule."""
    return tuple(
        Column(PREFIX + rule.name, TEXT, f"by the rule of [extract]: {rule.kind} {rule.query}") for rule in rules
    )
