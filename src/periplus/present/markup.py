"""How are values written as HTML, so that no crawled text can be more than text?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from periplus.present.lines import visible
from periplus.present.wording import count_of

Html = str  # made by the functions here and in report.py; everything else is escaped on its way in


def text(value: str) -> Html:
    """Any text as HTML: escaped, without control and bidi signs."""
    return escape(visible(value))


def link(url: str, name: str = "") -> Html:
    """A link to a crawled page, which learns nothing of us; the bare name where the URL is none that browsers should open."""
    if not url.startswith(("http://", "https://")):
        return text(name or url)
    return f'<a href="{text(url)}" rel="noopener noreferrer nofollow">{text(name or url)}</a>'


def table(heads: Sequence[str], rows: Iterable[Sequence[Html]], classes: Sequence[str]) -> Html:
    """classes: one a column, `n` for numbers, `w` for text that does not wrap."""
    head = "".join(f'<th class="{kind}">{text(name)}</th>' for name, kind in zip(heads, classes, strict=True))
    body = "\n".join("<tr>" + "".join(f'<td class="{kind}">{cell}</td>' for cell, kind in zip(row, classes, strict=True)) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


def bar(parts: Iterable[tuple[str, float]], whole: float, kind: str = "") -> Html:
    """Parts of a whole side by side, (class, amount), as SVG that takes any width; what is not nothing is seen."""
    rects, left = [], 0.0
    for name, amount in parts:
        width = max(100 * amount / whole, 0.4) if amount and whole else 0.0
        if width:
            rects.append(f'<rect class="{name}" x="{left:.2f}" width="{width:.2f}" height="10"/>')
        left += width
    return f'<svg class="{kind}" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{"".join(rects)}</svg>'


def left_out(total: int, shown: int, one: str, many: str = "") -> Html:
    """The sentence under a list that was cut."""
    return f'<p class="note">And {count_of(total - shown, "more " + one, "more " + many if many else "")}.</p>' if total > shown else ""
