"""Names special parts of a page: headline, byline, date, captions, comments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from periplus.analyse.content.evidence import CAPTION, COMMENT, CONTROL, Pages
from periplus.document.dates import machine_date, written_dates
from periplus.document.digest import without_marks
from periplus.model.arrays import Mask
from periplus.model.page import (
    BLOCK_KIND_CODES,
    POSITION_CODES,
    BlockKind,
    Blocks,
    Part,
    Position,
    Publication,
)

Places = list[int]  # block indices, ascending

_OUTER = {Part.BYLINE: Part.OUTER_BYLINE, Part.DATE: Part.OUTER_DATE, Part.CAPTIONS: Part.OUTER_CAPTIONS}

_WORD = re.compile(r"\w+")
_BETWEEN = re.compile(r"\s+[|\-–—·•:»«/]+\s+|\s*[|»«•·]\s*|:\s+")  # separators between the pieces of a title
_TITLE, _HEADING, _CAPTION, _LINK = (
    BLOCK_KIND_CODES[kind] for kind in (BlockKind.TITLE, BlockKind.HEADING, BlockKind.CAPTION, BlockKind.LINK)
)
_NAV, _ASIDE = POSITION_CODES[Position.NAV], POSITION_CODES[Position.ASIDE]
HEADINGS_MOST = 60
LINE_CHARS, LOWEST = 12, 7  # least length of a non-heading that may be the headline; its level
BLOCKS_BEFORE, BLOCKS_AFTER = 5, 15  # blocks around the headline in which byline and date are searched
BYLINE_CHARS, DATE_CHARS = 120, 60  # a longer block is more than a byline, or more than a date
SENTENCE_WORDS = 6  # of a sentence about the author; `By Lisa Sanders, M.D.` has five
NAME_CHARS = 4  # shorter names are parts of other words
BUTTON_CHARS = 15  # of a link within comments: a longer one is part of a comment
BOILERPLATE_SHARE = 0.3  # share of the site's pages: a block on more of them is neither headline nor comment
TIMES_MOST = 2  # occurrences of a comment on a page: `Reply` is below each


class LateTexts:
    """The texts of a page's blocks, cut from the whole text when they are used."""

    def __init__(self, blocks: Blocks, begins: Places, ends: Places) -> None:
        """begins, ends: of each block in `Blocks.text`, a line feed and `Blocks.apart`."""
        self._whole = f"{blocks.text}\n{blocks.apart}"
        self._begins, self._ends = begins, ends

    def __len__(self) -> int:
        return len(self._begins)

    def __getitem__(self, place: int) -> str:
        return self._whole[self._begins[place] : self._ends[place]]

    def chars(self, place: int) -> int:
        """Length of a text."""
        return self._ends[place] - self._begins[place]


def name_parts(
    pages: Pages, is_content: Mask, are_repeated: Mask, described: Iterable[tuple[Blocks, Publication]]
) -> Iterator[tuple[Part, ...]]:
    """One part per block for each page.

    is_content: verdict on each block. are_repeated: whether many pages of the site have it. described: each page, with
    its author and dates.
    """
    is_text, is_heading = ~pages.is_apart, pages.kind == _HEADING
    is_aside = (pages.positions == _NAV) | (pages.positions == _ASIDE)
    roles = np.where(pages.kind == _CAPTION, pages.roles | CAPTION, pages.roles) * (is_text & ~is_aside)
    may_be = is_text & ~(are_repeated | is_aside)
    masks = np.array((
        is_content & is_text,
        (roles & (CAPTION | COMMENT) == CAPTION) & ~is_heading,
        roles & COMMENT > 0,
        (roles & CONTROL > 0) | are_repeated | ((pages.kind == _LINK) & (pages.chars <= BUTTON_CHARS)),
        may_be & is_heading,
        may_be & ~is_heading,
        is_text & ~is_heading,
    ))  # fmt: skip
    verdicts, begins, ends = is_content.tolist(), *map(np.ndarray.tolist, pages.text_places(is_text))
    for (blocks, publication), begin, end in zip(described, pages.begins.tolist(), pages.ends.tolist(), strict=True):
        parts = list(map((Part.NAVIGATION, Part.CONTENT).__getitem__, verdicts[begin:end]))
        texts = LateTexts(blocks, begins[begin:end], ends[begin:end])
        _name_page(parts, blocks, texts, masks[:, begin:end], publication)
        yield tuple(parts)


def _name_page(
    parts: list[Part],
    blocks: Blocks,
    texts: LateTexts,
    masks: Mask,
    publication: Publication,
) -> None:
    """masks: rows as in `name_parts`."""
    is_content, are_captions, are_comments, are_controls, are_headings, may_be_lines, are_lines = masks
    content = _places(is_content)
    _name_captions(parts, _places(are_captions), texts, content)
    _name_comments(parts, _places(are_comments), texts, content, are_controls)
    headline = _headline(blocks, _places(are_headings), may_be_lines, texts, parts, content)
    if headline is not None:
        _name_headline(parts, headline, texts)
    if publication.author or publication.date_published or publication.date_modified:
        _name_byline(parts, headline, texts, are_lines, publication)


def _places(flags: Mask) -> Places:
    places: Places = flags.nonzero()[0].tolist()
    return places


def _is_most(places: Iterable[int], of: Places, texts: LateTexts) -> bool:
    """Whether more than half of the characters of the blocks `of` are in `places`."""
    among = frozenset(of)
    return 2 * sum(texts.chars(place) for place in places if place in among) > sum(map(texts.chars, of))


def _name_captions(parts: list[Part], captions: Places, texts: LateTexts, content: Places) -> None:
    """Names captions between the first and the last content block: later ones belong to recommended pages.

    If most of the content is in captions, as in a gallery, it is the page's text.
    """
    if captions and content and not _is_most(captions, content, texts):
        for place in captions:
            if content[0] <= place <= content[-1]:
                parts[place] = _with_verdict(Part.CAPTIONS, parts[place])


def _name_comments(parts: list[Part], comments: Places, texts: LateTexts, content: Places, are_controls: Mask) -> None:
    """Names comments. If most of the content is in comments, as in a forum, it is the page's text."""
    if not comments or _is_most(comments, content, texts):
        return
    times = Counter([texts[place] for place in comments])
    for place, is_control in zip(comments, are_controls[comments].tolist(), strict=True):
        is_comment = not is_control and times[texts[place]] <= TIMES_MOST
        parts[place] = Part.COMMENTS if is_comment else Part.NAVIGATION


def _name_headline(parts: list[Part], headline: int, texts: LateTexts) -> None:
    """Names the headline. Blocks above with the same text (breadcrumbs, bars) become navigation."""
    parts[headline] = Part.HEADLINE
    for place in range(headline):
        if parts[place] is Part.CONTENT and texts[place] == texts[headline]:
            parts[place] = Part.NAVIGATION


def _headline(
    blocks: Blocks, headings: Places, lines: Mask, texts: LateTexts, parts: Sequence[Part], content: Places
) -> int | None:
    """The heading with most of the page's title; else another block that is a part of it; else the first h1 in the
    content, or a heading that begins the content.

    headings, lines: blocks that few other pages have; the rest are the site's name. On labelled pages, 108 single h1
    that are in the title and unique to the page were judged navigation although people labelled them content.
    """
    title = texts[blocks.kinds.index(_TITLE)] if _TITLE in blocks.kinds else ""
    levels = {place: blocks.levels[place] if blocks.levels else 0 for place in headings}
    titled = _title_block(levels, title, texts, parts)
    if titled is None and len(title) >= LINE_CHARS:
        lengths = range(LINE_CHARS, len(title) + 1)
        within = [place for place in _places(lines) if texts.chars(place) in lengths and texts[place] in title]
        titled = _title_block(dict.fromkeys(within, LOWEST), title, texts, parts)
    if titled is not None:
        return titled
    first = next((place for place in headings if parts[place] is Part.CONTENT and levels[place] == 1), None)
    if first is None and content and content[0] in levels and parts[content[0]] is Part.CONTENT:
        return content[0]
    return first


def _title_block(levels: Mapping[int, int], title: str, texts: LateTexts, parts: Sequence[Part]) -> int | None:
    """Among blocks with their levels, the block with most of the page's title; None if there is none."""
    words, pieces = _words(title), [_words(piece) for piece in _BETWEEN.split(title)]
    ranks = [
        ((len(own), own == pieces[0], parts[place] is Part.CONTENT, -level, -place), place)
        for place, level in islice(levels.items(), HEADINGS_MOST)
        if (own := _words(texts[place])) and f" {own} " in f" {words} "
        if parts[place] is Part.CONTENT or _may_be_headline(own, level, words, pieces)
    ]
    return max(ranks)[1] if ranks else None


def _may_be_headline(words: str, level: int, title: str, pieces: Sequence[str]) -> bool:
    """Whether a heading judged navigation may be the headline: the last piece of a title is mostly the site's name."""
    if words == pieces[0]:
        return True
    return words != pieces[-1] and (level == 1 or 2 * len(words) >= len(title))


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


def _name_byline(
    parts: list[Part],
    headline: int | None,
    texts: LateTexts,
    are_lines: Mask,
    publication: Publication,
) -> None:
    """Names blocks near the headline that contain the author or a date; above it only if none below does."""
    names = [name for name in publication.author.casefold().split("; ") if len(name) >= NAME_CHARS]
    days = {date[:10] for date in (publication.date_published, publication.date_modified) if date}
    after = range(0 if headline is None else headline + 1, len(texts))[: BLOCKS_AFTER * (4 if headline is None else 1)]
    before = range(max((headline or 0) - BLOCKS_BEFORE, 0), headline or 0)
    for part, is_such in ((Part.BYLINE, _is_byline), (Part.DATE, _is_date)):
        for places in (after, before):
            chosen = [
                place
                for place in places
                if parts[place] in (Part.CONTENT, Part.NAVIGATION)
                if are_lines[place] and is_such(texts[place], names, days)
            ]
            for place in chosen:
                parts[place] = _with_verdict(part, parts[place])
            if chosen:
                break


def _with_verdict(part: Part, verdict: Part) -> Part:
    return part if verdict is Part.CONTENT else _OUTER[part]


def _is_byline(text: str, names: Sequence[str], _days: set[str]) -> bool:
    is_sentence = text.endswith((".", "!", "?")) and len(_WORD.findall(text)) >= SENTENCE_WORDS
    return len(text) <= BYLINE_CHARS and not is_sentence and any(name in text.casefold() for name in names)


def _is_date(text: str, _names: Sequence[str], days: set[str]) -> bool:
    if len(text) > DATE_CHARS or not days or not any(map(str.isdigit, text)):
        return False
    machine = machine_date(text) if text[:4].isdigit() else None
    folded = without_marks(text)
    # 3/4/2024 is in April, in the United States in March
    written = (date for language in ("", "en-us") for date in written_dates(folded, language, short=True))
    return any(date.iso()[:10] in days for date in ([machine] if machine else written))
