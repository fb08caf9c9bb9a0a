"""Values in lines for a terminal and as JSON: pages, duplicates, deletions, notices."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TextIO
from urllib.parse import quote

from periplus.model.collection import Deletion, DeletionPlan
from periplus.model.duplicates import Duplicate, DuplicateGroup, Duplicates, Ground, Likeness
from periplus.model.job import Notice, NoticeKind
from periplus.model.page import Block, BlockKind, Part
from periplus.present.markup import escaped
from periplus.present.tables import write_table
from periplus.present.wording import REASON_WORDS, count_of, fit, iso, number, size, utc, visible

if TYPE_CHECKING:
    from periplus.model.page import PageSummary
    from periplus.model.visit import Headers


@dataclass(frozen=True, slots=True)
class PlanLines:
    """Lines, each about one kind of thing of which there is some."""

    goes: tuple[str, ...]
    stays: tuple[str, ...]


def told(plan: DeletionPlan, wish: Deletion) -> PlanLines:
    """In the order of what matters to the one who deletes."""
    kinds = (
        (plan.pages, count_of(plan.pages, "page") + f", with what was read of {'it' if plan.pages == 1 else 'them'}"),
        (plan.forgotten, count_of(plan.forgotten, "address", "addresses") + " that nothing names any longer"
         + (f", {plan.orphans:,} of them known only from these pages" if plan.orphans else "")),
        (plan.visits, count_of(plan.visits, "visit")),
        (plan.links_from, count_of(plan.links_from, "link") + " on these pages"),
        (plan.links_to, count_of(plan.links_to, "link") + " of other pages to them"),
        (plan.bodies,
            count_of(plan.bodies, "body", "bodies") + f" that no other page has, {plan.texts:,} with text and blocks"),
        (plan.marks, count_of(plan.marks, "page’s marks", "pages’ marks") + " of content and navigation"),
        (plan.indexed, "up to " + count_of(plan.indexed, "entry", "entries") + " of the search index"),
        (plan.past, count_of(plan.past, "row") + " of history"),
        (wish.run, f"the record of run {wish.run}" + ("" if wish.run_pages else "; its pages stay")),
        (plan.size_bytes,
            f"{size(plan.size_bytes)} in all; the file keeps its size for what comes next, unless it is shrunk"),
    )  # fmt: skip
    after = "they wait to be fetched again" if wish.again else "they are not asked for until a crawl names them"
    stays = (
        (
            f"{count_of(plan.staying, 'address', 'addresses')} that other pages link to, or that a start "
            f"or a sitemap names: {after}",
        )
        if plan.staying
        else ()
    )
    return PlanLines(tuple(line for some, line in kinds if some), stays)


Rows = Sequence[Mapping[str, object]]  # of periplus.analyse.engines.stages.StageResult


def computed_lines(engine: str, why: str, rows: Rows) -> Iterator[str]:
    """A line a stage."""
    yield f"Engine {engine}: {why}."
    width = max((len(str(row["stage"])) for row in rows), default=0)
    for row in rows:
        took = f"there already, by {row['engine']}" if row["was_there"] else f"{row['took_s']:.1f} s"
        tables = row["rows"]
        assert isinstance(tables, Mapping)
        yield (
            f"  {row['stage']!s:<{width}}  {took:>10}  "
            f"{', '.join(f'{name} {number(rows)}' for name, rows in tables.items())}  {row['folder']}"
        )
    made = sum(not row["was_there"] for row in rows)
    yield f"{count_of(made, 'stage')} computed, {number(len(rows) - made)} there already."


def computed_json(engine: str, why: str, rows: Rows) -> str:
    return (
        json.dumps({"engine": engine, "why": why, "stages": [dict(row) for row in rows]}, ensure_ascii=False, indent=1)
        + "\n"
    )


BLOCK_COLUMNS = ("n", "kind", "level", "part", "position", "language", "text")
INLINK_COLUMNS = ("anchor", "source", "kind", "position", "nofollow", "times")
TEXT_CHARS = 160  # of a block in the table for reading
_CHARSET_WORDS = {
    "bom": "its first bytes say so", "header": "the HTTP header says so", "meta": "its meta element says so",
    "xml": "its XML declaration says so",
    "statistics": "the statistics of its letters speak for it", "default": "nothing says otherwise",
    "text": "its text speaks against what is declared",
}  # fmt: skip
_SAME_WORDS = {
    "bytes": "the same bytes",
    "words": "the same words",
    "folded": "the same words but for diacritics and case",
}


def summary_lines(said: PageSummary) -> Iterator[str]:
    """What is known of a URL, a fact a line."""
    yield visible(said.url)
    for name, value in _facts(said):
        if value:
            yield f"  {name + ':' if name else '':<14}{visible(value)}"
    if said.duplicates:
        yield f"  {'duplicates:':<14}{count_of(len(said.duplicates), 'page')}"
        for same_page in said.duplicates:
            yield f"    {_SAME_WORDS[same_page.same]}: {visible(same_page.url)}"


def _facts(said: PageSummary) -> Iterator[tuple[str, str]]:
    why = f" ({said.why})" if said.why else ""
    yield "state", f"{REASON_WORDS[said.reason]}{why}"
    yield "status", str(said.status or "")
    yield "depth", "" if said.depth is None else str(said.depth)
    page = said.page
    if page is not None:
        yield "fetched", page.fetched
        yield "type", f"{page.media_type}, {size(page.size)}{', cut: ' + page.cut if page.cut else ''}"
        yield "title", page.title
        yield "description", page.description
        yield "heading", page.h1
        yield "language", _language(page.language, page.language_found)
        yield "charset", _charset(page.charset, page.charset_source, page.other_charset)
        yield "canonical", page.canonical
        yield "robots", page.robots
        yield "text", f"{count_of(page.text_chars, 'character')}" if page.text_chars else "none"
        yield "kept", ", ".join(page.kept) or "nothing of its contents"
        yield "digests", f"bytes {page.body_digest}"
        yield "", f"words {page.text_digest}"
        yield "", f"folded {page.folded_digest}"
    yield "links", f"from {count_of(said.inlinks, 'page')}, to {count_of(said.outlinks, 'URL')}"


def _language(declared: str, found: str) -> str:
    if not declared or not found or declared.partition("-")[0] == found.partition("-")[0]:
        return declared or (f"{found} (by its words; it does not say)" if found else "")
    return f"{declared} declared, {found} by its words"


def _charset(name: str, source: str, other: str) -> str:
    if not name:
        return ""
    return f"{name}: {_CHARSET_WORDS.get(source, source)}{f'; the document says {other}' if other else ''}"


def write_blocks(
    blocks: Sequence[Block], parts: Sequence[Part] | None, inlinks: Iterable[Sequence[object]], out: TextIO
) -> None:
    """Two tables: the blocks with their marks, and the anchors of links to the page."""
    rows = [
        (*row[:-1], row[-1] if len(str(row[-1])) <= TEXT_CHARS else str(row[-1])[: TEXT_CHARS - 1] + "…")
        for row in block_rows(blocks, parts)
    ]
    write_table(
        BLOCK_COLUMNS,
        [[visible(cell) if isinstance(cell, str) else cell for cell in row] for row in rows],
        "table",
        out,
    )
    found = list(inlinks)
    if found:
        out.write("\nLinks to it:\n")
        write_table(INLINK_COLUMNS, found, "table", out)


def block_rows(blocks: Sequence[Block], parts: Sequence[Part] | None) -> Iterator[tuple[object, ...]]:
    """The values of BLOCK_COLUMNS, a block a row."""
    marks: Sequence[Part | None] = parts if parts is not None else [None] * len(blocks)
    for place, (block, part) in enumerate(zip(blocks, marks, strict=True), 1):
        level = block.level if block.kind is BlockKind.HEADING else None
        yield (
            place,
            block.kind.value,
            level,
            part.value if part else None,
            block.position.value,
            block.language or None,
            block.text,
        )


def blocks_json(
    url: str, blocks: Sequence[Block], parts: Sequence[Part] | None, inlinks: Iterable[Sequence[object]]
) -> str:
    """The same for programs, with each block's path and its characters in links."""
    rows = [
        dict(zip(BLOCK_COLUMNS, row, strict=True)) | {"path": block.path, "link_chars": block.link_chars}
        for row, block in zip(block_rows(blocks, parts), blocks, strict=True)
    ]
    links = [dict(zip(INLINK_COLUMNS, row, strict=True)) for row in inlinks]
    return json.dumps({"url": url, "blocks": rows, "inlinks": links}, ensure_ascii=False, indent=1)


def header_lines(status: int, headers: Headers) -> Iterator[str]:
    """The answer's header as HTTP writes it. An answer over HTTP/2 or 3 has no status line of its own."""
    yield headers.status_line or f"HTTP {status}"
    for name, value in headers.fields:
        yield f"{name}: {visible(value)}"


GROUND_WORDS = {
    Ground.MARKS: "it has most diacritics",
    Ground.NAMED: "pages name it as canonical",
    Ground.COPIES: "most pages have its text",
    Ground.CLICKS: "it is nearest to the start",
    Ground.LENGTH: "its URL is shortest",
    Ground.ORDER: "its URL comes first",
}
LIKE_WORDS = {
    Likeness.BYTES: "same bytes",
    Likeness.WORDS: "same text",
    Likeness.FOLDED: "same letters",
    Likeness.NEAR: "alike",
}
_IN_FULL = {
    Likeness.BYTES: "the same bytes",
    Likeness.WORDS: "the same text in another encoding or markup",
    Likeness.FOLDED: "the same but for diacritics and case",
    Likeness.NEAR: "nearly the same",
}
COLUMNS = ("group", "url", "represents", "like", "similarity", "contained", "charset", "grounds")
GROUPS_TO_PAGES = 10  # groups shown for each page shown of one
_LIKE_CELLS = 15


def grounds_of(group: DuplicateGroup) -> str:
    """Why its page stands for the group, in words."""
    return ", ".join(GROUND_WORDS[ground] for ground in group.grounds)


def like_of(page: Duplicate) -> str:
    """How like it is to the page that stands for it, in words; a percentage is rounded down, so that 100 % is all."""
    return (
        f"{int(page.similarity * 100)} % {LIKE_WORDS[page.like]}"
        if page.like is Likeness.NEAR
        else LIKE_WORDS[page.like]
    )


def duplicate_lines(found: Duplicates, *, width: int = 100, most: int = 10) -> Iterator[str]:
    """A summary, then group after group. most: pages of a group that are named, and a tenth of the groups; -1: all."""
    yield _summary(found)
    yield from (f"Note: {note}" for note in found.notes)
    groups = found.groups if most < 0 else found.groups[: most * GROUPS_TO_PAGES]
    for group in groups:
        yield ""
        yield f"{visible(group.url)}{_duplicate_charset(group.charset)}"
        yield f"  stands for {count_of(len(group.pages), 'other', 'others')}: {grounds_of(group)}"
        shown = group.pages if most < 0 else group.pages[:most]
        for page in shown:
            yield f"  {fit(like_of(page), _LIKE_CELLS)} {visible(page.url)}{_duplicate_charset(page.charset)}"
        if len(shown) < len(group.pages):
            rest = group.pages[len(shown) :]
            yield f"  and {number(len(rest))} more: {_counted(rest, LIKE_WORDS)}; --most -1 names all"
    if len(groups) < len(found.groups):
        yield ""
        yield f"And {count_of(len(found.groups) - len(groups), 'more group', 'more groups')}; --most -1 shows all."


def _summary(found: Duplicates) -> str:
    where = f" of {visible(found.site)}" if found.site else ""
    if not found.groups:
        return f"No two of {count_of(found.pages, 'page')}{where} say the same."
    pages = [page for group in found.groups for page in group.pages]
    kinds, total = _counted(pages, _IN_FULL), len(pages)
    others = count_of(len(found.groups), "other says", "others say")
    return (
        f"{number(total)} of {count_of(found.pages, 'page')}{where} "
        f"{'repeats' if total == 1 else 'repeat'} what {others}: {kinds}."
    )


def _counted(pages: Sequence[Duplicate], words: Mapping[Likeness, str]) -> str:
    """How many are how like the page that stands for them."""
    counts = Counter(page.like for page in pages)
    return ", ".join(f"{number(counts[like])} {said}" for like, said in words.items() if counts[like])


def _duplicate_charset(charset: str) -> str:
    return "" if charset in ("", "utf-8") else f"  [{visible(charset)}]"


def duplicate_rows(found: Duplicates) -> Iterator[tuple[object, ...]]:
    """A row a page, as COLUMNS; the page that stands for a group comes first."""
    for place, group in enumerate(found.groups, 1):
        yield place, group.url, True, "", 1.0, 1.0, group.charset, [ground.value for ground in group.grounds]
        for page in group.pages:
            yield (
                place,
                page.url,
                False,
                page.like.value,
                round(page.similarity, 4),
                round(page.contained, 4),
                page.charset,
                [],
            )


def write_duplicate_json(found: Duplicates, out: TextIO) -> None:
    """Everything but ids, which are the collection's own business."""
    value = asdict(found)
    for item in value["groups"]:
        for part in (item, *item["pages"]):
            del part["url_id"]
    json.dump(value, out, ensure_ascii=False, indent=1)
    out.write("\n")


NAMED_IN_TITLE = 80  # signs of the one subject that a title names
_SCREENS = {
    NoticeKind.DEAD: "t/dead", NoticeKind.VANISHED: "compare", NoticeKind.SITES: "t/sites", NoticeKind.PORTAL: "live",
    NoticeKind.SUSPICIOUS: "t/runs",
}  # fmt: skip


def title(notice: Notice) -> str:
    """One line, without a dot."""
    count, first = notice.count, visible(notice.subjects[0]) if notice.subjects else ""
    said = {
        NoticeKind.DEAD: count_of(count, "new dead address", "new dead addresses"),
        NoticeKind.VANISHED: f"{count_of(count, 'page')} vanished",
        NoticeKind.SITES: count_of(count, "new site"),
        NoticeKind.PORTAL: f"the portal has {count_of(count, 'new entry', 'new entries')}",
        NoticeKind.FAILED: "a job failed",
        NoticeKind.SUSPICIOUS: "a crawl ended suspicious",
    }[notice.kind]
    named = f": {first[:NAMED_IN_TITLE]}" if count == 1 and first else ""
    return (
        f"{visible(notice.collection).removesuffix('.periplus')}: {said}{named}"
        if notice.collection
        else f"{said}{named}"
    )


def lines(notice: Notice) -> list[str]:
    """The subjects, and how many more there are."""
    named = [visible(subject) for subject in notice.subjects]
    return [*named, f"and {notice.count - len(named):,} more"] if notice.count > len(named) else named


def screen(notice: Notice, address: str) -> str:
    """Where the interface shows it; empty where its address is not known."""
    path = _SCREENS.get(notice.kind, "jobs") if notice.collection else "jobs"
    if not address:
        return ""
    return f"{address.rstrip('/')}/" + (
        f"c/{quote(notice.collection.removesuffix('.periplus'), safe='')}/{path}" if path != "jobs" else path
    )


def letter(notices: Sequence[Notice], address: str) -> tuple[str, str]:
    """(subject, text) of a letter that tells them all."""
    subject = title(notices[0]) + (f", and {count_of(len(notices) - 1, 'other notice')}" if len(notices) > 1 else "")
    parts = []
    for notice in notices:
        more = screen(notice, address)
        parts.append(
            "\n".join(
                [
                    f"{title(notice)} ({utc(notice.made)})",
                    *(f"  {line}" for line in lines(notice)),
                    *([f"  {more}"] if more else []),
                ]
            )
        )
    return f"Periplus: {subject}", "\n\n".join(parts) + "\n"


def as_values(notice: Notice, address: str = "") -> dict[str, object]:
    """For programs. `id` is the same in each delivery: who has seen it needs not look again."""
    return {
        "id": notice.key, "kind": notice.kind.value, "collection": notice.collection, "made": iso(notice.made),
        "title": title(notice),
        "count": notice.count, "subjects": list(notice.subjects), "screen": screen(notice, address),
    }  # fmt: skip


def posted(notice: Notice, address: str) -> bytes:
    """The body of a webhook's request."""
    return json.dumps(as_values(notice, address), ensure_ascii=False).encode("utf-8", "replace")


def feed(notices: Sequence[Notice], name: str, address: str, made: float) -> str:
    """An Atom feed (RFC 4287), the newest first.

    name: of the collection, empty: of all; made: when it is empty, its date.
    """
    entries = "".join(_entry(notice, address) for notice in notices)
    here = escaped(address.rstrip("/") or "urn:periplus")
    of = f": {visible(name).removesuffix('.periplus')}" if name else ""
    return f"""<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>{_identity("feed " + name)}</id>
<title>Periplus{escaped(of)}</title>
<updated>{iso(max((notice.made for notice in notices), default=made))}</updated>
<author><name>Periplus</name></author>
<generator>Periplus</generator>
<link rel="alternate" type="text/html" href="{here}"/>
{entries}</feed>
"""


def _entry(notice: Notice, address: str) -> str:
    more = screen(notice, address)
    link = f'<link rel="alternate" type="text/html" href="{escaped(more)}"/>\n' if more else ""
    return f"""<entry>
<id>{_identity(notice.key)}</id>
<title>{escaped(title(notice))}</title>
<updated>{iso(notice.made)}</updated>
{link}<category term="{notice.kind.value}"/>
<content type="text">{escaped(chr(10).join(lines(notice)))}</content>
</entry>
"""


def _identity(key: str) -> str:
    return uuid.uuid5(uuid.NAMESPACE_URL, f"periplus notice {key}").urn
