"""Which fragments lead somewhere on a page?"""

from __future__ import annotations

import re
from urllib.parse import unquote

from periplus.document import html, whitespace
from periplus.model.audit import FragmentVerdict

DIRECTIVE = ":~:"  # Text Fragments, 3.3: what follows is for the browser, never for the page
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
# GitHub and GitLab write ids with this before them and leave the rest to a script: every such link would look broken.
_SCRIPTED_PREFIX = "user-content-"
_PART = re.compile(r"text=(?:([^&,]*)-,)?([^&,-][^&,]*)(?:,([^&,-][^&,]*))?(?:,-([^&,]*))?(?=&|\Z)")


def anchors_of(text: str) -> frozenset[str]:
    """`anchors` of HTML as text."""
    return anchors(html.parse(text))


def anchors(tree: html.Tree) -> frozenset[str]:
    """The names of a page's places: every `id`, and the `name` of every `a`, as they are (case matters).

    Ids within `template` count too: a script may bring them to life, and a false alarm costs more than a missed one.
    Source: HTML Living Standard, 7.4.6.4, "find a potential indicated element".
    """
    names = {*html.attributes(html.select(tree, "[id]"), "id"), *html.attributes(html.select(tree, "a[name]"), "name")}
    return frozenset(name for name in names if name)


def fragment_verdict(fragment: str, anchors: frozenset[str], *, text: str | None = None, media_type: str = "text/html") -> FragmentVerdict:
    """Whether a fragment (percent-encoded, without `#`) leads anywhere on a page.

    anchors: of the target. text: the target's visible text, to look for the words of a text fragment; None: not looked for.
    Exactly as written first, then percent-decoded; empty and `top` (any case) are always there. A fragment of another media
    type is that type's business (`#page=3`), and `#/way` or `#!way` that of a script; `#//` is no such way.
    Source: HTML Living Standard, 7.4.6.4; Text Fragments (WICG), 3.3 to 3.5.
    """
    if media_type not in _HTML_TYPES:
        return FragmentVerdict.UNKNOWN
    place, found, directive = fragment.partition(DIRECTIVE)
    verdict = _of_place(place, anchors)
    if verdict in (FragmentVerdict.FOUND, FragmentVerdict.TOP) and found and text is not None and not _has_words(directive, text):
        return FragmentVerdict.TEXT_MISSING
    return verdict


def _of_place(place: str, anchors: frozenset[str]) -> FragmentVerdict:
    if not place:
        return FragmentVerdict.TOP
    decoded = unquote(place)
    if place in anchors or decoded in anchors:
        return FragmentVerdict.FOUND
    if decoded.lower() == "top":
        return FragmentVerdict.TOP
    if decoded[0] in "/!" and not decoded.startswith("//"):
        return FragmentVerdict.UNKNOWN
    return FragmentVerdict.FOUND if _SCRIPTED_PREFIX + decoded in anchors else FragmentVerdict.MISSING


def _has_words(directive: str, text: str) -> bool:
    """Whether any of the text directives is in the text; true also where none is understood.

    The simple form: prefix, start, end and suffix follow one another, case and white space folded. Word boundaries are not
    asked for: they depend on the language, and what a browser finds is then found here as well.
    """
    wanted = [tuple(_folded(unquote(part or "")) for part in match.groups()) for match in _PART.finditer(directive)]
    if not wanted:
        return True
    folded = _folded(text)
    return any(_matches(folded, *parts) for parts in wanted)


def _folded(text: str) -> str:
    return whitespace.folded(text).casefold()


def _matches(text: str, prefix: str, start: str, end: str, suffix: str) -> bool:
    """Whether prefix start ... end suffix stands in the text; empty ones are not asked for. Linear for each occurrence of start."""
    place = text.find(start)
    while place >= 0:
        after = place + len(start)
        if not prefix or text[max(place - len(prefix) - 1, 0) : place].rstrip().endswith(prefix):
            if not end:
                if not suffix or text[after : after + len(suffix) + 1].lstrip().startswith(suffix):
                    return True
            else:
                return _ends(text, after, end, suffix)
        place = text.find(start, place + 1)
    return False


def _ends(text: str, after: int, end: str, suffix: str) -> bool:
    place = text.find(end, after)
    while place >= 0:
        behind = place + len(end)
        if not suffix or text[behind : behind + len(suffix) + 1].lstrip().startswith(suffix):
            return True
        place = text.find(end, place + 1)
    return False
