"""An audit as workflow commands of GitHub, which shows them beside a change: one cause a line, printed by the step that runs us."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from periplus.model.audit import CausedBy, Fault, Grade, IssueKind
from periplus.present.lines import visible
from periplus.present.wording import count_of

MOST = 10  # annotations of one grade that GitHub shows of one step; it drops further ones without a word
_COMMAND = {Grade.ERROR: "error", Grade.WARNING: "warning", Grade.NOTICE: "notice"}


def github(faults: Iterable[Fault], kinds: Mapping[str, IssueKind], *, most: int = MOST) -> Iterator[str]:
    """`::error title=...::message`, in the order given; of each grade the first `most`, then a notice of how many are left out."""
    free = dict.fromkeys(Grade, most)
    free[Grade.NOTICE] -= 1  # for the last line
    left = 0
    for fault in faults:
        if free[fault.grade] > 0:
            free[fault.grade] -= 1
            yield _command(_COMMAND[fault.grade], f"{kinds[fault.code].title} ({fault.code})", _message(fault, kinds[fault.code]))
        else:
            left += 1
    if left:
        yield _command("notice", "More faults", f"{left:,} more: see the full report")


def _message(fault: Fault, kind: IssueKind) -> str:
    issue = fault.issues[0]
    words = f' "{issue.anchor}" in {issue.position}' if issue.position else ""
    place = f", on {count_of(fault.pages, 'page')}, as {issue.url}{words}" if kind.caused_by is not CausedBy.PAGE else ""
    detail = f": {fault.detail}" if fault.detail else ""
    return f"{fault.cause}{detail}{place}. {kind.remedy}"


def _command(name: str, title: str, message: str) -> str:
    return f"::{name} title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    """Crawled text may not begin another command. Source: GitHub's toolkit, core/src/command.ts, escapeData."""
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Source: the same, escapeProperty."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
