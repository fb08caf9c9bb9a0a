"""Values in lines for a terminal and as JSON: pages, duplicates, deletions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TextIO

from periplus.model.collection import Deletion, DeletionPlan
from periplus.model.duplicates import Duplicate, DuplicateGroup, Duplicates, Ground, Likeness
from periplus.model.page import Block, BlockKind, Part
from periplus.present.tables import json_text, write_table
from periplus.present.wording import REASON_WORDS, count_of, fit, number, size, visible

if TYPE_CHECKING:
    from periplus.model.results import PageSummary, TrendPoint
    from periplus.model.visit import Headers

BLOCK_COLUMNS = ("n", "kind", "level", "part", "position", "language", "text")
INLINK_COLUMNS = ("anchor", "source", "kind", "position", "nofollow", "times")
TEXT_CHARS = 160  # of a block in the table for reading
_CHARSET_WORDS = {
    "bom": "byte order mark", "header": "HTTP header", "meta": "meta element",
    "xml": "XML declaration",
    "statistics": "letter statistics", "default": "default",
    "text": "its text, which contradicts the declaration",
}  # fmt: skip
_SAME_WORDS = {
    "bytes": "the same bytes",
    "words": "the same text",
    "folded": "the same text except diacritics and case",
}
GROUND_WORDS = {
    Ground.MARKS: "most diacritics",
    Ground.NAMED: "named as canonical",
    Ground.COPIES: "most frequent text",
    Ground.CLICKS: "nearest to the start",
    Ground.LENGTH: "shortest URL",
    Ground.ORDER: "first URL",
}
LIKE_WORDS = {
    Likeness.BYTES: "same bytes",
    Likeness.WORDS: "same text",
    Likeness.FOLDED: "same letters",
    Likeness.NEAR: "alike",
}
_FULL_NAMES = {
    Likeness.BYTES: "the same bytes",
    Likeness.WORDS: "the same text in another encoding or markup",
    Likeness.FOLDED: "the same except diacritics and case",
    Likeness.NEAR: "nearly the same",
}
COLUMNS = ("group", "url", "represents", "like", "similarity", "contained", "charset", "grounds")
GROUPS_PER_PAGE = 10  # groups shown for each page shown of a group
_LIKE_CELLS = 15


def plan_lines(plan: DeletionPlan, deletion: Deletion) -> tuple[list[str], list[str]]:
    """(what goes, what stays), each a line for one kind of thing, most important for the user first."""
    read = f", with {'its' if plan.pages == 1 else 'their'} contents"
    orphans = f", {number(plan.orphans)} of them known only from these pages" if plan.orphans else ""
    texts = f" that no other page has, {number(plan.texts)} with text and blocks"
    stays_large = "the file keeps its size for new pages; --shrink reduces it"
    kinds = (
        (plan.pages, count_of(plan.pages, "page") + read),
        (plan.forgotten, count_of(plan.forgotten, "address", "addresses") + f" without any reference left{orphans}"),
        (plan.visits, count_of(plan.visits, "visit")),
        (plan.links_from, count_of(plan.links_from, "link") + " on these pages"),
        (plan.links_to, count_of(plan.links_to, "link") + " of other pages to them"),
        (plan.bodies, count_of(plan.bodies, "body", "bodies") + texts),
        (plan.marks, count_of(plan.marks, "page’s marks", "pages’ marks") + " of content and navigation"),
        (plan.indexed, f"up to {count_of(plan.indexed, 'entry', 'entries')} of the search index"),
        (plan.past, count_of(plan.past, "row") + " of history"),
        (deletion.run, f"the record of run {deletion.run}" + ("" if deletion.run_pages else "; its pages stay")),
        (plan.size_bytes, f"{size(plan.size_bytes)} in all; {stays_large}"),
    )
    after = "they are queued to be fetched again" if deletion.again else "they are not fetched until a crawl lists them"
    linked = "that other pages link to, or that are start addresses or in a sitemap"
    stays = f"{count_of(plan.staying, 'address', 'addresses')} {linked}: {after}"
    return [line for count, line in kinds if count], [stays] if plan.staying else []


def summary_lines(summary: PageSummary) -> Iterator[str]:
    """What is known of a URL, a fact a line."""
    yield visible(summary.url)
    for name, value in _facts(summary):
        if value:
            yield f"  {name + ':' if name else '':<14}{visible(value)}"
    if summary.duplicates:
        yield f"  {'duplicates:':<14}{count_of(len(summary.duplicates), 'page')}"
        for same_page in summary.duplicates:
            yield f"    {_SAME_WORDS[same_page.same]}: {visible(same_page.url)}"


def _facts(page: PageSummary) -> Iterator[tuple[str, str]]:
    rule = f" ({page.rule})" if page.rule else ""
    yield "state", f"{REASON_WORDS[page.reason]}{rule}"
    yield "status", str(page.status or "")
    yield "depth", "" if page.depth is None else str(page.depth)
    if page.fetched_at is not None:
        yield "fetched", page.fetched_at
        yield "type", f"{page.media_type or ''}, {size(page.size or 0)}{', cut: ' + page.cut if page.cut else ''}"
        yield "title", page.title or ""
        yield "description", page.description or ""
        yield "heading", page.h1 or ""
        yield "describes", page.types or ""
        yield "author", _add_source(page.author, page.author_source)
        yield "published", _add_source(page.date_published, page.date_published_source)
        yield "modified", _add_source(page.date_modified, page.date_modified_source)
        yield "language", _language(page.declared_language or "", page.language or "")
        yield "charset", _charset(page.charset or "", page.charset_source or "", page.other_charset or "")
        yield "rendered", "in a browser; `--as source` gives the bytes as received" if page.rendered else ""
        measured = (page.paint_s, "largest contentful paint after {:.2f} s"), (page.shift, "layout shift {:.2f}")
        yield "measured", ", ".join(words.format(value) for value, words in measured if value is not None)
        yield "canonical", page.canonical or ""
        yield "robots", page.robots or ""
        yield "text", f"{count_of(page.text_chars, 'character')}" if page.text_chars else "none"
        yield "kept", ", ".join(page.kept) or "no contents"
        yield "digests", f"bytes {page.body_digest}"
        yield "", f"words {page.text_digest}"
        yield "", f"folded {page.folded_digest}"
    yield "links", f"from {count_of(page.inlinks, 'page')}, to {count_of(page.outlinks, 'URL')}"


def _add_source(value: str | None, source: str | None) -> str:
    return f"{value} ({source})" if value else ""


def _language(declared: str, language: str) -> str:
    """language: by its words, if known."""
    if not declared:
        return f"{language} (detected from the text, not declared)" if language else ""
    if declared.partition("-")[0] == language.partition("-")[0]:
        return declared
    return f"{declared} declared, {language} detected from the text"


def _charset(name: str, source: str, other: str) -> str:
    if not name:
        return ""
    return f"{name}: {_CHARSET_WORDS.get(source, source)}{f'; declared {other}' if other else ''}"


def write_blocks(
    blocks: Sequence[Block], parts: Sequence[Part], inlinks: Sequence[Sequence[object]], out: TextIO
) -> None:
    """Two tables: the blocks with their marks, and the anchors of links to the page."""
    rows = (
        (*row, text if len(text) <= TEXT_CHARS else f"{text[: TEXT_CHARS - 1]}…")
        for *row, text in block_rows(blocks, parts)
    )
    write_table(BLOCK_COLUMNS, rows, "table", out)
    if inlinks:
        out.write("\nLinks to it:\n")
        write_table(INLINK_COLUMNS, inlinks, "table", out)


def block_rows(blocks: Sequence[Block], parts: Sequence[Part]) -> Iterator[tuple[Any, ...]]:
    """The values of BLOCK_COLUMNS, a block a row."""
    for place, block in enumerate(blocks):
        level = block.level if block.kind is BlockKind.HEADING else None
        marks = (parts[place].value, block.position.value, block.language or None)
        yield (place + 1, block.kind.value, level, *marks, block.text)


def blocks_json(url: str, blocks: Sequence[Block], parts: Sequence[Part], inlinks: Iterable[Sequence[object]]) -> str:
    """The same for programs, with each block's path and its characters in links."""
    rows = [
        dict(zip(BLOCK_COLUMNS, row, strict=True)) | {"path": block.path, "link_chars": block.link_chars}
        for row, block in zip(block_rows(blocks, parts), blocks, strict=True)
    ]
    links = [dict(zip(INLINK_COLUMNS, row, strict=True)) for row in inlinks]
    return json_text({"url": url, "blocks": rows, "inlinks": links})


def header_lines(status: int, headers: Headers) -> Iterator[str]:
    """The answer's header as HTTP writes it. An answer over HTTP/2 or 3 has no status line of its own."""
    yield headers.status_line or f"HTTP {status}"
    for name, value in headers.fields:
        yield f"{name}: {visible(value)}"


def grounds_of(group: DuplicateGroup) -> str:
    """Why its page represents the group, in words."""
    return ", ".join(GROUND_WORDS[ground] for ground in group.grounds)


def like_of(page: Duplicate) -> str:
    """Its similarity to its representative, in words; percentages are rounded down, so that 100 % means equal."""
    share = f"{int(page.similarity * 100)} % " if page.like is Likeness.NEAR else ""
    return share + LIKE_WORDS[page.like]


def duplicate_lines(duplicates: Duplicates, *, most: int = 10) -> Iterator[str]:
    """A summary, then group after group. most: pages of a group that are named, and a tenth of the groups; -1: all."""
    yield _summary(duplicates)
    yield from (f"Note: {note}" for note in duplicates.notes)
    groups = duplicates.groups if most < 0 else duplicates.groups[: most * GROUPS_PER_PAGE]
    for group in groups:
        yield ""
        yield f"{visible(group.url)}{_duplicate_charset(group.charset)}"
        yield f"  stands for {count_of(len(group.pages), 'other', 'others')}: {grounds_of(group)}"
        shown = group.pages if most < 0 else group.pages[:most]
        for page in shown:
            yield f"  {fit(like_of(page), _LIKE_CELLS)} {visible(page.url)}{_duplicate_charset(page.charset)}"
        if rest := group.pages[len(shown) :]:
            yield f"  and {number(len(rest))} more: {_likeness_counts(rest, LIKE_WORDS)}; --most -1 names all"
    if len(groups) < len(duplicates.groups):
        yield ""
        yield f"And {count_of(len(duplicates.groups) - len(groups), 'more group')}; --most -1 shows all."


def _summary(duplicates: Duplicates) -> str:
    where = f" of {visible(duplicates.site)}" if duplicates.site else ""
    if not duplicates.groups:
        return f"No two of {count_of(duplicates.pages, 'page')}{where} have the same content."
    pages = [page for group in duplicates.groups for page in group.pages]
    kinds, total = _likeness_counts(pages, _FULL_NAMES), len(pages)
    others = count_of(len(duplicates.groups), "other page")
    return (
        f"{number(total)} of {count_of(duplicates.pages, 'page')}{where} "
        f"{'duplicates' if total == 1 else 'duplicate'} {others}: {kinds}."
    )


def _likeness_counts(pages: Sequence[Duplicate], words: Mapping[Likeness, str]) -> str:
    """Numbers of pages by similarity to their representative."""
    counts = Counter(page.like for page in pages)
    return ", ".join(f"{number(counts[like])} {like_words}" for like, like_words in words.items() if counts[like])


def _duplicate_charset(charset: str) -> str:
    return "" if charset in ("", "utf-8") else f"  [{visible(charset)}]"


def duplicate_rows(duplicates: Duplicates) -> Iterator[tuple[object, ...]]:
    """A row a page, as COLUMNS; a group's representative comes first."""
    for place, group in enumerate(duplicates.groups, 1):
        yield place, group.url, True, "", 1.0, 1.0, group.charset, [ground.value for ground in group.grounds]
        for page in group.pages:
            shares = (round(page.similarity, 4), round(page.contained, 4))
            yield (place, page.url, False, page.like.value, *shares, page.charset, [])


def write_duplicate_json(duplicates: Duplicates, out: TextIO) -> None:
    """Everything but ids, which are the collection's own business."""
    value = asdict(duplicates)
    for item in value["groups"]:
        for part in (item, *item["pages"]):
            del part["url_id"]
    out.write(json_text(value))


def health_lines(points: Sequence[TrendPoint]) -> list[str]:
    """One or two lines on a collection after its last run, with the changes since the run before."""
    if not points:
        return []
    last, before = points[-1], points[-2] if len(points) > 1 else None
    graded = next((point for point in reversed(points) if point.grades), None)
    figures = [
        _figure(last.pages, before.pages if before else None, "page read", "pages read"),
        _figure(last.failed, before.failed if before else None, "failed URL", "failed URLs"),
    ]
    if graded is not None and graded.pages_with_errors is not None:
        earlier = next(
            (point.pages_with_errors for point in reversed(points) if point.grades and point.run_id < graded.run_id),
            None,
        )
        figures.append(_figure(graded.pages_with_errors, earlier, "page with an error", "pages with an error"))
    lines = [f"run {last.run_id} ({last.kind}): {', '.join(figures)}"]
    if graded is not None:
        lines.append("grades: " + ", ".join(f"{grade.field} {grade.letter} {grade.score}" for grade in graded.grades))
    return lines


def _figure(value: int, before: int | None, singular: str, many: str) -> str:
    change = "" if before is None or before == value else f" ({value - before:+,})"
    return count_of(value, singular, many) + change
