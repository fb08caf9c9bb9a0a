"""How does GitHub show an audit beside a change? As workflow commands, one a line, printed by the step that runs us."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from periplus.model.audit import Grade, Issue, IssueKind
from periplus.present.lines import visible

MOST = 10  # annotations of one grade that GitHub shows of one step; it drops further ones without a word
_COMMAND = {Grade.ERROR: "error", Grade.WARNING: "warning", Grade.NOTICE: "notice"}


def github(issues: Iterable[Issue], kinds: Mapping[str, IssueKind], *, most: int = MOST) -> Iterator[str]:
    """`::error title=...::message`, in the order given; of each grade the first `most`, then a notice of how many are left out."""
    free = dict.fromkeys(Grade, most)
    free[Grade.NOTICE] -= 1  # for the last line
    left = 0
    for issue in issues:
        if free[issue.grade] > 0:
            free[issue.grade] -= 1
            yield _command(_COMMAND[issue.grade], f"{kinds[issue.code].title} ({issue.code})", _message(issue, kinds[issue.code]))
        else:
            left += 1
    if left:
        yield _command("notice", "More issues", f"{left:,} more: see the full report")


def _message(issue: Issue, kind: IssueKind) -> str:
    what = issue.url + (f" -> {issue.related}" if issue.related else "")
    words = f' "{issue.anchor}" in {issue.position}' if issue.position else ""
    detail = f": {issue.detail}" if issue.detail else ""
    return f"{what}{words}{detail}. {kind.remedy}"


def _command(name: str, title: str, message: str) -> str:
    return f"::{name} title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    """Crawled text may not begin another command. Source: GitHub's toolkit, core/src/command.ts, escapeData."""
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Source: the same, escapeProperty."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
