"""How are pages that say the same told in lines, in rows, and to programs?"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TextIO

from periplus.model.duplicates import Duplicate, DuplicateGroup, Duplicates, Ground, Likeness
from periplus.present.lines import fit, visible
from periplus.present.wording import count_of, number

GROUND_WORDS = {
    Ground.MARKS: "it has most diacritics",
    Ground.NAMED: "pages name it as canonical",
    Ground.COPIES: "most pages have its text",
    Ground.CLICKS: "it is nearest to the start",
    Ground.LENGTH: "its URL is shortest",
    Ground.ORDER: "its URL comes first",
}
LIKE_WORDS = {Likeness.BYTES: "same bytes", Likeness.WORDS: "same text", Likeness.FOLDED: "same letters", Likeness.NEAR: "alike"}
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
    return f"{int(page.similarity * 100)} % {LIKE_WORDS[page.like]}" if page.like is Likeness.NEAR else LIKE_WORDS[page.like]


def duplicate_lines(found: Duplicates, *, width: int = 100, most: int = 10) -> Iterator[str]:
    """A summary, then group after group. most: pages of a group that are named, and a tenth of the groups; -1: all."""
    yield _summary(found)
    yield from (f"Note: {note}" for note in found.notes)
    groups = found.groups if most < 0 else found.groups[: most * GROUPS_TO_PAGES]
    for group in groups:
        yield ""
        yield f"{visible(group.url)}{_charset(group.charset)}"
        yield f"  stands for {count_of(len(group.pages), 'other', 'others')}: {grounds_of(group)}"
        shown = group.pages if most < 0 else group.pages[:most]
        for page in shown:
            yield f"  {fit(like_of(page), _LIKE_CELLS)} {visible(page.url)}{_charset(page.charset)}"
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
    return f"{number(total)} of {count_of(found.pages, 'page')}{where} {'repeats' if total == 1 else 'repeat'} what {others}: {kinds}."


def _counted(pages: Sequence[Duplicate], words: Mapping[Likeness, str]) -> str:
    """How many are how like the page that stands for them."""
    counts = Counter(page.like for page in pages)
    return ", ".join(f"{number(counts[like])} {said}" for like, said in words.items() if counts[like])


def _charset(charset: str) -> str:
    return "" if charset in ("", "utf-8") else f"  [{visible(charset)}]"


def duplicate_rows(found: Duplicates) -> Iterator[tuple[object, ...]]:
    """A row a page, as COLUMNS; the page that stands for a group comes first."""
    for place, group in enumerate(found.groups, 1):
        yield place, group.url, True, "", 1.0, 1.0, group.charset, [ground.value for ground in group.grounds]
        for page in group.pages:
            yield place, page.url, False, page.like.value, round(page.similarity, 4), round(page.contained, 4), page.charset, []


def write_duplicate_json(found: Duplicates, out: TextIO) -> None:
    """Everything but ids, which are the collection's own business."""
    value = asdict(found)
    for item in value["groups"]:
        for part in (item, *item["pages"]):
            del part["url_id"]
    json.dump(value, out, ensure_ascii=False, indent=1)
    out.write("\n")
