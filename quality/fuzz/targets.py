"""Readers of untrusted input, with the properties that hold for every input.

Each target function takes any bytes and must not raise: it catches the exceptions that a reader raises on purpose, and
asserts what the reader guarantees.
"""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import seeds  # first: it adds the tests to the path
from lxml import etree

from periplus.acquire.fetch import reason_of, visit_of
from periplus.acquire.politeness import retry_after_s
from periplus.document.dates import feed_dates, written_dates
from periplus.document.decode import decode
from periplus.document.links import anchors_of, fragment_verdict, urls
from periplus.document.robots import page_directives, parse_robots
from periplus.document.sitemaps import read_sitemap
from periplus.document.tree import ATTRIBUTES, TAGS
from periplus.document.tree import parse as parse_page
from periplus.document.understand import canonical_xml, understand
from periplus.errors import InvalidUrl, StoreError, UsageError
from periplus.model.ports import Response
from periplus.model.visit import Cut, Fetched, Headers, Request
from periplus.present.markup import escape_xml
from periplus.retrieval.query import parse
from periplus.settings import FetchLimits, settings_from
from periplus.store.bodies import BodyCodec, unpack_blocks, unpack_headers, unpack_parts
from periplus.store.warc import decode_chunks, http_answer
from periplus.urls.canonical import canonical, resolve
from periplus.urls.hosts import host_key, host_name, registered_domain
from periplus.urls.mailto import mailto_problem
from periplus.urls.parameters import apply, rules_of
from periplus.urls.url_patterns import plain, url_patterns
from periplus_archives.files import ArchiveFile, ArchiveReader

PAGE = canonical("http://a.example/dir/page.html?q")
LIMITS = FetchLimits(inflated_bytes=1 << 20)


class Target(NamedTuple):
    """A reader of untrusted bytes."""

    run: Callable[[bytes], object]
    seeds: Sequence[bytes]


def text_of(data: bytes) -> str:
    """Any text, including lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def url(data: bytes) -> None:
    text = text_of(data)
    mailto_problem(text)
    for base in (None, PAGE):
        try:
            found = canonical(text, base)
        except InvalidUrl:
            continue
        assert canonical(found) == found, "canonical is idempotent"
        for part in (host_key, url_patterns, lambda found: registered_domain(host_name(found))):
            part(found)
        assert plain(plain(found).url).url == plain(found).url
    try:
        target, _ = resolve(text, PAGE)
    except InvalidUrl:
        return
    assert canonical(target) == target


def robots(data: bytes) -> None:
    body, _, path = data.rpartition(b"\0")
    rules = parse_robots(body).group_for()
    rules.decide("/" + path.decode("latin-1"))
    page_directives((text_of(path),), (("robots", text_of(path)),))


def sitemap(data: bytes) -> None:
    found = read_sitemap(data, PAGE)
    assert all(canonical(entry.url) == entry.url for entry in found.entries)
    feed_dates(data, PAGE)


def decoded(data: bytes) -> None:
    label, _, body = data.partition(b"\0")
    text, charset = decode(body, label.decode("latin-1"), "text/html", "cz")
    text.encode("utf-8", "surrogatepass")
    assert charset.name


def inflated(data: bytes) -> None:
    coding, _, body = data.partition(b"\0")
    fields = (
        ("content-encoding", coding.decode("latin-1")),
        ("location", text_of(body)),
        ("retry-after", text_of(body)),
    )
    for status in (200, 302, 429):
        visit = visit_of(
            Response(Request(PAGE), 1.0, 0.1, status, Headers(fields), body, Cut.NONE, None, "", "192.0.2.1"), LIMITS
        )
        reason_of(visit.outcome)
        assert not isinstance(visit.outcome, Fetched) or len(visit.outcome.body) <= max(
            LIMITS.inflated_bytes, len(body)
        )
    retry_after_s(text_of(body), 1e9)


def page_of(media_type: str) -> Callable[[bytes], None]:
    """Parses a document of that type and writes it as canonical XML, which must be well-formed."""

    def run(data: bytes) -> None:
        fetched = Fetched(200, Headers((("content-type", media_type),)), data)
        page = understand(PAGE, fetched)
        page.text.encode("utf-8")
        for link in page.links:
            assert canonical(link.target) == link.target
        written = canonical_xml(PAGE, fetched)
        if written is not None:
            etree.fromstring(written[0], etree.XMLParser(huge_tree=True))

    return run


def tree(data: bytes) -> None:
    """The tree of a page: each node has at most one parent, each slice is within the characters."""
    tree = parse_page(data)
    size, chars, attributes = len(tree.tags), bytes(tree.chars), len(tree.attribute_names)
    hung, nodes = set[int](), [0]
    while nodes:
        node = nodes.pop()
        child = tree.firsts[node]
        while child != -1:
            assert child not in hung and tree.parents[child] == node, "a node has one place"
            hung.add(child)
            nodes.append(child)
            child = tree.nexts[child]
    assert all(node in hung or tree.parents[node] == -1 for node in range(1, size)), (
        "nodes out of the tree have no parent"
    )
    names = len(TAGS) + len(tree.own_names)
    for node in hung:
        assert -3 <= tree.tags[node] < names
        assert 0 <= tree.starts[node] <= tree.ends[node] <= len(chars)
        chars[tree.starts[node] : tree.ends[node]].decode("utf-8", "surrogateescape")
        assert not tree.attribute_counts[node] or 0 <= tree.attributes[node] <= attributes - tree.attribute_counts[node]
    for start, end, name in zip(tree.value_starts, tree.value_ends, tree.attribute_names, strict=True):
        assert 0 <= start <= end <= len(chars)
        assert 0 <= name < len(ATTRIBUTES) + len(tree.own_attribute_names)


def headers(data: bytes) -> None:
    """A page with the header fields that are evaluated."""
    parts = [part.decode("latin-1") for part in data.split(b"\n")]
    names = ("link", "content-type", "refresh", "x-robots-tag", "last-modified", "expires", "content-language")
    understand(PAGE, Fetched(200, Headers(tuple(zip(names, parts, strict=False))), b"<p>words"))


def words(data: bytes) -> None:
    """Text of a page: dates, URLs of a style sheet, fragments."""
    text = text_of(data)
    list(written_dates(text, "cs"))
    list(urls(text))
    fragment_verdict(text, anchors_of(text), text=text)


@cache
def _file() -> Path:
    return Path(tempfile.mkdtemp(prefix="periplus-fuzz-")) / "x.warc"


def warc(data: bytes) -> None:
    _file().write_bytes(data)
    try:
        with ArchiveReader(ArchiveFile(_file()), 10_000) as reader:
            for record in reader:
                http_answer(record.block)
    except UsageError:
        pass
    http_answer(data)
    decode_chunks(data)


def settings(data: bytes) -> None:
    """A collection's periplus.toml: settings and rules."""
    text = data.decode("utf-8", "replace")
    try:
        rules = rules_of(text)
        apply(PAGE, rules)
    except UsageError:
        pass
    try:
        content = tomllib.loads(text).get("settings", {})
        settings_from(content if isinstance(content, dict) else {})
    except (UsageError, tomllib.TOMLDecodeError):
        pass


def query(data: bytes) -> None:
    parse(text_of(data))
    parse(data.decode("utf-8", "replace"))


def kept(data: bytes) -> None:
    """A page stored in a collection of unknown origin."""
    for restore in (
        lambda: unpack_headers(data),
        lambda: unpack_blocks(data, "a\nb"),
        lambda: unpack_parts(data),
        lambda: BodyCodec().unpack(data, None),
    ):
        try:
            restore()
        except StoreError:
            continue


def written_xml(data: bytes) -> None:
    text = text_of(data)
    etree.fromstring(f'<a b="{escape_xml(text)}">{escape_xml(text)}</a>'.encode("utf-8", "surrogatepass"))


TARGETS: dict[str, Target] = {
    "url": Target(url, seeds.URLS),
    "robots": Target(robots, seeds.ROBOTS),
    "sitemap": Target(sitemap, seeds.SITEMAPS),
    "tree": Target(tree, [example for kind in ("html", "xhtml") for example in seeds.DOCUMENTS[kind][1]]),
    "decode": Target(decoded, seeds.CHARSETS),
    "inflate": Target(inflated, seeds.CODINGS),
    "headers": Target(headers, seeds.HEADERS),
    "words": Target(words, seeds.WORDS),
    "warc": Target(warc, seeds.WARC),
    "settings": Target(settings, seeds.SETTINGS),
    "query": Target(query, seeds.QUERIES),
    "kept": Target(kept, seeds.KEPT),
    "xml-writing": Target(written_xml, seeds.WORDS),
    **{name: Target(page_of(media_type), examples) for name, (media_type, examples) in seeds.DOCUMENTS.items()},
}
