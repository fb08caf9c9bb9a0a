"""What did one exchange say about a link's target, and what is to be asked next? Pure: from its visit to completion and errands.

HEAD first, where nobody needs the page; GET when the answer to HEAD is anything but success or a redirect, for many servers answer HEAD
wrongly and none of them may be called broken for it. Redirects go on as errands: the other host's robots and delay hold for it
too. What failed is asked again later by whoever planned the check: see `api.judging`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from periplus.acquire.fetch import reason_of
from periplus.acquire.settle import NO_RETRY_WAIT, completion_of
from periplus.document import html
from periplus.document.anchors import anchors, fragment_verdict
from periplus.document.blocks import blocks_of, text_of
from periplus.document.decode import decode
from periplus.document.headers import media_type as type_of
from periplus.document.media_types import sniffed_media_type
from periplus.document.metadata import metadata
from periplus.model.audit import FragmentVerdict
from periplus.model.frontier import LAYER_CHECK, Completion, Errand, Lease, Look, Task
from periplus.model.visit import Cut, Fetched, Purpose, Redirected, Request, Skipped, Visit
from periplus.settings import Settings
from periplus.urls.hosts import host_key
from periplus.urls.scope import site_key

LOOK_CHARS = 20_000  # of a text that are kept: an error page has rarely more than 3,000
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of a check's task, and what is to be asked besides."""

    completion: Completion
    onward: tuple[Errand, ...] = ()


def check_of(lease: Lease, task: Task, visit: Visit, settings: Settings) -> Checked:
    """The end of a check's task."""
    request = task.request
    match visit.outcome:
        case Redirected(target=target) if request.hops < settings.limits.redirect_hops and target != request.url:
            return Checked(_ended(lease, task, visit), (check_errand(dataclasses.replace(request, url=target, hops=request.hops + 1, attempt=0)),))
        case Redirected():
            return Checked(_ended(lease, task, visit))
        case Fetched(status=status) as fetched if 200 <= status < 300:
            look = look_at(fetched, request.about.split()) if request.purpose is Purpose.CHECK else None
            return Checked(dataclasses.replace(_ended(lease, task, visit), look=look))
        case Fetched(status=status) if request.purpose is Purpose.CHECK and status in NO_RETRY_WAIT:
            return Checked(completion_of(lease, task, visit, settings.manners))  # the server said when to come again
    ended = _ended(lease, task, visit)
    if request.purpose is Purpose.HEAD and not isinstance(visit.outcome, Skipped):
        return Checked(ended, (check_errand(dataclasses.replace(request, purpose=Purpose.CHECK, attempt=0)),))
    return Checked(ended)


def _ended(lease: Lease, task: Task, visit: Visit) -> Completion:
    return Completion(lease, task, visit, reason_of(visit.outcome))


def check_errand(request: Request, in_s: float = 0.0) -> Errand:
    """The wish that a link's target be checked; request: of purpose HEAD or CHECK. in_s: not before so many seconds from now."""
    return Errand(host_key(request.url), site_key(request.url), request, LAYER_CHECK, in_s)


def look_at(fetched: Fetched, fragments: list[str]) -> Look:
    """What was fetched, as far as a check needs it. fragments: to be looked for, percent-encoded."""
    media_type, charset = type_of(fetched.headers)
    media_type = media_type or sniffed_media_type(fetched.body)
    if media_type not in _HTML_TYPES or fetched.cut is Cut.NOT_WANTED:
        return Look(media_type, "", "", "", tuple((fragment, FragmentVerdict.UNKNOWN) for fragment in fragments))
    text, _ = decode(fetched.body, charset, media_type)
    tree = html.parse(text)
    said, names = metadata(tree, fetched.headers), anchors(tree) if fragments else frozenset()
    shown = text_of(blocks_of(tree))
    found = tuple((fragment, fragment_verdict(fragment, names, text=shown, media_type=media_type)) for fragment in fragments)
    if fetched.cut:  # what is not in a part may be in the rest
        found = tuple((name, verdict if verdict in _THERE else FragmentVerdict.UNKNOWN) for name, verdict in found)
    return Look(media_type, said.title, said.h1, shown[:LOOK_CHARS], found)


_THERE = frozenset({FragmentVerdict.FOUND, FragmentVerdict.TOP})
