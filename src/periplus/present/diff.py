"""Shows how two runs differ: as text, as JSON, and as one page of HTML."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TextIO
from urllib.parse import urlsplit

from periplus.model.audit import Issue
from periplus.model.comparison import ChangedPage, Comparison, PageNote, Side
from periplus.model.web import Url
from periplus.present.markup import Html, document, left_out, link, sectioned, table, text
from periplus.present.wording import count_of, number, short, utc, visible


def write_diff_json(found: Comparison, out: TextIO) -> None:
    """One object with the names of `model.comparison.Comparison`; every list complete. out: UTF-8."""
    json.dump(asdict(found), out, ensure_ascii=False, indent=1)
    out.write("\n")


def diff_lines(found: Comparison, *, most: int = 20, links: bool = False) -> Iterator[str]:
    """Lines for reading.

    most: entries of each list, -1: all; links: every link by itself, not only how many a page has.
    """
    yield f"Before: {_side(found.before)}"
    yield f"After:  {_side(found.after)}"
    if found.is_empty:
        yield f"\nNothing differs: {count_of(found.unchanged, 'page')} as before."
        return
    came, went, changed = map(number, map(len, (found.added, found.removed, found.changed)))
    yield f"\nPages: {came} added, {went} removed, {changed} changed, {number(found.unchanged)} as before"
    yield from _cut([f"  + {visible(page.url)}  {visible(page.title)}".rstrip() for page in found.added], most)
    yield from _cut([f"  - {visible(page.url)}  {visible(page.reason)}".rstrip() for page in found.removed], most)
    yield from _changed(found, most)
    yield from _links(found, most, links)
    yield from _moves(found, most)
    yield from _issues(found, most)


def _side(side: Side) -> str:
    ended = "" if side.state == "done" else f" ({side.state})"
    depth = f", depth {side.depth}" if side.depth >= 0 else ", no map"
    return (
        f"{side.name}{ended}, {utc(side.started)}: {count_of(side.pages, 'page')}, "
        f"{count_of(side.links, 'link')}{depth}"
    )


def _cut(lines: Sequence[str], most: int) -> Iterator[str]:
    shown = lines if most < 0 else lines[:most]
    yield from shown
    if len(shown) < len(lines):
        yield f"    and {number(len(lines) - len(shown))} more"


def _changed(found: Comparison, most: int) -> Iterator[str]:
    counts = Counter(change.field for page in found.changed for change in page.changes)
    if counts:
        yield "  changed: " + ", ".join(f"{field} of {number(count)}" for field, count in counts.most_common())
    shown = found.changed if most < 0 else found.changed[:most]
    for page in shown:
        yield f"  ~ {visible(page.url)}"
        for change in page.changes:
            yield f"      {change.field}: {_said(change.before)} -> {_said(change.after)}"
    if len(shown) < len(found.changed):
        yield f"    and {number(len(found.changed) - len(shown))} more"


def _said(value: str) -> str:
    text = visible(value)
    return (text if len(text) <= 80 else text[:79] + "…") or "nothing"


def _links(found: Comparison, most: int, every: bool) -> Iterator[str]:
    if not found.links_added and not found.links_removed:
        return
    yield f"\nLinks: {number(len(found.links_added))} added, {number(len(found.links_removed))} removed"
    if every:
        lines = [
            (note.source, note.target, sign)
            for sign, notes in (("+", found.links_added), ("-", found.links_removed))
            for note in notes
        ]
        yield from _cut(
            [f"  {sign} {visible(source)} -> {visible(target)}" for source, target, sign in sorted(lines)], most
        )
        return
    added = Counter(note.source for note in found.links_added)
    removed = Counter(note.source for note in found.links_removed)
    by_page = sorted(added.keys() | removed.keys(), key=lambda url: (-added[url] - removed[url], url))
    yield from _cut(
        [f"  {visible(url)}: {number(added[url])} added, {number(removed[url])} removed" for url in by_page], most
    )


def _moves(found: Comparison, most: int) -> Iterator[str]:
    if found.branches or found.moves:
        yield f"\nMap: {count_of(len(found.moves), 'page')} moved"
    for branch in found.branches if most < 0 else found.branches[:most]:
        moved = (
            f"; {number(branch.came)} came from other branches, {number(branch.left)} left for them"
            if branch.came or branch.left
            else ""
        )
        yield f"  branch {visible(branch.url)}: {number(branch.before)} -> {count_of(branch.after, 'page')}{moved}"
    lines = []
    for move in found.moves:
        deeper = f", depth {move.depth_before} -> {move.depth_after}" if move.depth_before != move.depth_after else ""
        with_it = f", with {count_of(move.pages - 1, 'page')} below" if move.pages > 1 else ""
        lines.append(
            f"  > {visible(move.url)}: from {visible(move.parent_before)} to "
            f"{visible(move.parent_after)}{deeper}{with_it}"
        )
    yield from _cut(lines, most)


def _issues(found: Comparison, most: int) -> Iterator[str]:
    issues = found.issues
    if issues.new or issues.gone or issues.still:
        yield (
            f"\nIssues: {number(len(issues.new))} new, {number(len(issues.gone))} gone, "
            f"{number(len(issues.still))} still there"
        )
    for sign, group in (("+", issues.new), ("-", issues.gone)):
        lines = [
            f"  {sign} {issue.code}  {visible(issue.url)}{f' -> {visible(issue.related)}' if issue.related else ''}"
            for issue in group
        ]
        yield from _cut(lines, most)


SHOWN = 200  # entries of a list, as in the report; whole lists are in the JSON
TARGETS_SHOWN = 50  # links of one page
FIELD_CHARS = 160  # of a value before and after


def diff_page(found: Comparison) -> str:
    """No script, nothing loaded from anywhere, light and dark, fit for paper.

    All text that came from the web is escaped.
    """
    title = f"{text(found.before.name)} and {text(found.after.name)}: what changed"
    nav, body = sectioned(_sections(found))
    return document(title, f"<h1>{_host(found)}: what changed</h1>\n{_head(found)}\n{nav}", body)


def _host(found: Comparison) -> Html:
    """Of the first page that is named anywhere: a comparison is of one site."""
    named = [
        *(page.url for page in found.changed),
        *(note.url for note in (*found.added, *found.removed)),
        *(move.url for move in found.moves),
    ]
    return text(urlsplit(named[0]).netloc) if named else "Two runs"


def _sections(found: Comparison) -> list[tuple[str, str, Html]]:
    """(id, heading, content); what has no content is left out by the caller."""
    return [
        ("added", "New pages", _notes(found.added, "known before as")),
        ("removed", "Pages that are gone", _notes(found.removed, "now")),
        ("changed", "Pages that changed", _html_changed(found.changed)),
        ("issues", "Issues", _html_issues(found)),
        ("map", "The map", _branches(found) + _html_moves(found)),
        ("links", "Links", _html_links(found)),
    ]


def _head(found: Comparison) -> Html:
    lines = [f'<p class="soft">Before: {_html_side(found.before)}.<br>After: {_html_side(found.after)}.</p>']
    for side in (found.before, found.after):
        if side.state != "done":
            lines.append(
                f'<p class="notice">{text(side.name).capitalize()} did not reach its end ({text(side.state)}): what '
                "it did not reach stands as before.</p>"
            )
    if found.is_empty:
        lines.append('<p class="notice">Nothing differs.</p>')
    figures: list[tuple[str, int | tuple[int, int], str]] = [
        ("pages as before", found.unchanged, ""),
        ("new pages", len(found.added), ""),
        ("pages gone", len(found.removed), "bad"),
        ("pages changed", len(found.changed), ""),
        ("pages moved", len(found.moves), ""),
        ("links", (len(found.links_added), len(found.links_removed)), ""),
        ("issues", (len(found.issues.new), len(found.issues.gone)), "bad" if found.issues.new else ""),
    ]
    cells = "".join(
        f'<div class="{kind if value else ""}"><dt>{name}</dt><dd>{_figure(value)}</dd></div>'
        for name, value, kind in figures
    )
    return "\n".join(lines) + f'\n<dl class="figures">{cells}</dl>'


def _figure(value: int | tuple[int, int]) -> Html:
    """A number, or how many came and went."""
    return number(value) if isinstance(value, int) else f"+{number(value[0])} −{number(value[1])}"


def _html_side(side: Side) -> Html:
    depth = f", {count_of(side.depth + 1, 'depth')}" if side.depth >= 0 else ", no map"
    return (
        f"{text(side.name)}, {text(utc(side.started))}, {count_of(side.pages, 'page')}, "
        f"{count_of(side.links, 'link')}{depth}"
    )


def _notes(notes: Sequence[PageNote], elsewhere: str) -> Html:
    rows = [
        (
            f"{link(note.url, note.title or short(note.url))}<br><small>{text(note.url)}</small>",
            f'<span class="chip">{elsewhere} {text(note.reason)}</span>' if note.reason else "",
            number(note.depth) if note.depth >= 0 else "",
        )
        for note in notes[:SHOWN]
    ]
    return table(["page", "", "clicks"], rows, ["", "w", "n"]) + left_out(len(notes), SHOWN, "page") if rows else ""


def _html_changed(pages: Sequence[ChangedPage]) -> Html:
    if not pages:
        return ""
    counts = Counter(change.field for page in pages for change in page.changes)
    note = ", ".join(f"{text(field)} of {count_of(count, 'page')}" for field, count in counts.most_common())
    rows = [
        (
            f"{link(page.url, page.title or short(page.url))}<br><small>{text(page.url)}</small>" if not at else "",
            text(change.field),
            _value(change.before),
            _value(change.after),
        )
        for page in pages[:SHOWN]
        for at, change in enumerate(page.changes)
    ]
    return (
        f'<p class="note">Changed: {note}.</p>'
        + table(["page", "what", "before", "after"], rows, ["", "w", "", ""])
        + left_out(len(pages), SHOWN, "page")
    )


def _value(value: str) -> Html:
    if not value:
        return "<small>nothing</small>"
    return text(value if len(value) <= FIELD_CHARS else value[: FIELD_CHARS - 1] + "…")


def _html_issues(found: Comparison) -> Html:
    issues = found.issues
    if not (issues.new or issues.gone or issues.still):
        return ""
    counts = f"{number(len(issues.new))} new, {number(len(issues.gone))} gone, {number(len(issues.still))} still there."
    return f'<p class="note">{counts}</p>' + _issue_table("new", issues.new) + _issue_table("gone", issues.gone)


def _issue_table(name: str, issues: Sequence[Issue]) -> Html:
    rows = [
        (
            f'<span class="chip{" dead" if name == "new" else ""}">{name}</span>',
            text(issue.code),
            link(issue.url),
            link(issue.related) if issue.related else "",
        )
        for issue in issues[:SHOWN]
    ]
    return (
        table(["", "issue", "page", "about"], rows, ["w", "w", "", ""]) + left_out(len(issues), SHOWN, "issue")
        if rows
        else ""
    )


def _branches(found: Comparison) -> Html:
    rows = [
        (
            link(branch.url, short(branch.url)),
            number(branch.before),
            number(branch.after),
            number(branch.came),
            number(branch.left),
        )
        for branch in found.branches[:SHOWN]
    ]
    if not rows:
        return ""
    note = '<p class="note">A branch is a page one click from the home page, with all that hangs below it.</p>'
    heads = ["branch", "pages before", "after", "came from others", "left for others"]
    return (
        note + table(heads, rows, ["", "n", "n", "n", "n"]) + left_out(len(found.branches), SHOWN, "branch", "branches")
    )


def _html_moves(found: Comparison) -> Html:
    rows = [
        (
            link(move.url, short(move.url)),
            link(move.parent_before, short(move.parent_before)),
            link(move.parent_after, short(move.parent_after)),
            f"{move.depth_before} → {move.depth_after}"
            if move.depth_before != move.depth_after
            else str(move.depth_after),
            number(move.pages),
        )
        for move in found.moves[:SHOWN]
    ]
    heads = ["page", "hung below", "hangs below", "clicks", "pages moved"]
    return (
        "<h3>Pages that moved</h3>"
        + table(heads, rows, ["", "", "", "n", "n"])
        + left_out(len(found.moves), SHOWN, "page")
        if rows
        else ""
    )


def _html_links(found: Comparison) -> Html:
    """By page, those with most first; a page's own list opens."""
    by_page: dict[Url, list[tuple[str, Url]]] = {}
    for sign, notes in (("+", found.links_added), ("−", found.links_removed)):
        for note in notes:
            by_page.setdefault(note.source, []).append((sign, note.target))
    pages = sorted(by_page, key=lambda url: (-len(by_page[url]), url))
    rows = [
        (_page_links(page, by_page[page]), _count_of_sign(by_page[page], "+"), _count_of_sign(by_page[page], "−"))
        for page in pages[:SHOWN]
    ]
    return (
        table(["page", "added", "removed"], rows, ["", "n", "n"]) + left_out(len(pages), SHOWN, "page") if rows else ""
    )


def _count_of_sign(notes: Sequence[tuple[str, Url]], wanted: str) -> Html:
    return number(sum(sign == wanted for sign, _ in notes))


def _page_links(page: Url, notes: Sequence[tuple[str, Url]]) -> Html:
    targets = "".join(f"<li>{sign} {link(target)}</li>" for sign, target in notes[:TARGETS_SHOWN]) + left_out(
        len(notes), TARGETS_SHOWN, "link"
    )
    return (
        f'<details class="holders"><summary>{text(short(page))}</summary><ul class="holders">{targets}</ul></details>'
    )
