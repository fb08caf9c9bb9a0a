"""What does a site look like, at a glance, in a terminal?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from periplus.model.results import OTHERS, MapNode, PageColumns, PageFacts
from periplus.model.visit import Reason
from periplus.present.lines import cells, fit
from periplus.present.wording import REASON_WORDS, count_of, labels, number

READ_MEDIA = ("", "text/html", "application/xhtml+xml")  # what goes without saying
BAR_CELLS = 6
LEAST_LABEL = 24  # columns: deeper branches lose their outer lines before a name gets less


@dataclass(frozen=True, slots=True)
class _Signs:
    """What the tree is drawn with."""

    child: str
    last: str
    through: str
    parts: str  # of a bar's last cell, from nothing to full
    more: str


_BOXES = _Signs("├─ ", "└─ ", "│  ", " ▏▎▍▌▋▊▉█", "…")
_ASCII = _Signs("|- ", "`- ", "|  ", " #", "~")


def map_text(tree: MapNode, facts: PageColumns, *, width: int = 100, ascii_only: bool = False) -> Iterator[str]:
    """The map's lines, without colours or line ends: name and what is odd about the page, link score, pages in the branch.

    tree: folded by analyse.hierarchy.map_tree. width: columns of the terminal; under 60 the bars are left out.
    ascii_only: for outputs that cannot carry box-drawing signs; names are then written with `?` for other signs.
    """
    signs = _ASCII if ascii_only else _BOXES
    bar_cells = BAR_CELLS if width >= 60 else 0
    score_cells = bar_cells + 5
    count_cells = max(5, len(number(tree.pages)))
    left = max(width - score_cells - count_cells - 4, LEAST_LABEL)
    yield f"{fit(urlsplit(facts.url[tree.page]).netloc, left, more=signs.more)}  {'score':>{score_cells}}  {'pages':>{count_cells}}"
    stack = [(tree, labels([facts.url[tree.page]], [facts.title[tree.page]])[0], "", "")]
    while stack:
        node, name, lead, lead_below = stack.pop()
        if node.page == OTHERS:
            line = _left(lead, f"{signs.more} {count_of(node.pages, 'more page')}", _unread(node), left, signs)
        else:
            page = facts.page(node.page)
            count = number(node.pages) if node.pages > 1 else ""
            line = f"{_left(lead, name, _remark(page), left, signs)}  {_bar(page.score, bar_cells, signs)}{page.score:>5}  {count:>{count_cells}}"
            stack.extend(_rows_below(node, facts, lead_below, signs))
        yield (line.encode("ascii", "replace").decode("ascii") if ascii_only else line).rstrip()


def _rows_below(node: MapNode, facts: PageColumns, below: str, signs: _Signs) -> list[tuple[MapNode, str, str, str]]:
    """(node, name, lead of its line, lead of what is under it) of the children, the last first."""
    named = [child.page for child in node.children if child.page != OTHERS]
    names = labels([facts.url[page] for page in named], [facts.title[page] for page in named], facts.title[node.page])
    rows = []
    for place, child in enumerate(node.children):
        last = place == len(node.children) - 1
        name = names[place] if place < len(names) else ""
        rows.append((child, name, below + (signs.last if last else signs.child), below + ("   " if last else signs.through)))
    return rows[::-1]


def _left(lead: str, name: str, remark: str, width: int, signs: _Signs) -> str:
    """A line's left side in exactly width columns. What does not fit is cut from the lead's outer end, then from the name."""
    spare = width - LEAST_LABEL
    if len(lead) > spare:
        lead = f"{signs.more} {lead[len(lead) - max(spare - 2, 3) :]}"
    free = width - len(lead)
    if cells(name) + len(remark) > free and len(remark) < free - 8:
        name = fit(name, free - len(remark), more=signs.more)
    return lead + fit(name + remark, free, more=signs.more)


def _remark(page: PageFacts) -> str:
    """What sets the page apart from one that was simply fetched and read."""
    if page.reason is not Reason.OK:
        return f"  [{REASON_WORDS[page.reason]}]"
    if page.media_type not in READ_MEDIA:
        return f"  [{page.media_type.rpartition('/')[2]}]"
    return ""


def _unread(node: MapNode) -> str:
    missing = node.pages - node.indexed
    return f", {number(missing)} not fetched" if missing else ""


def _bar(score: int, width: int, signs: _Signs) -> str:
    """score of 100 as a bar; nothing where there is no room."""
    if not width:
        return ""
    steps = len(signs.parts) - 1
    filled = round(score / 100 * width * steps)
    whole, part = divmod(filled, steps)
    return (signs.parts[-1] * whole + (signs.parts[part] if part else "")).ljust(width)
