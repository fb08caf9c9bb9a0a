"""How are findings about URLs written as rules, ready for periplus.toml?

Only what no pair contradicts becomes a rule. What was found in many places, or is a session or campaign, becomes a rule of the site;
the rest stays with its script or folder, and scripts in which it was not proven are kept from the folder's rule.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby

from periplus.analyse.equivalences import Proposal, Verdict
from periplus.urls.twins import ORDER, Twist, is_well_known

PLACES_FOR_SITE = 3  # scripts or folders that agree, before a parameter is said to mean nothing on the whole site
_FORMS = ("www", "scheme", "slash")


def rules_text(proposals: Iterable[Proposal]) -> str:
    """TOML tables [[site]] and [[script]] of all proposals with Verdict.SAME, each with its evidence as a comment; empty for none."""
    ordered = sorted(proposals, key=lambda proposal: (proposal.site, proposal.place, sorted(proposal.twists)))
    parts = [part for _, group in groupby(ordered, key=lambda proposal: proposal.site) for part in _of_site(list(group))]
    return "\n".join(parts)


def _of_site(found: Sequence[Proposal]) -> list[str]:
    proven = [proposal for proposal in found if proposal.verdict is Verdict.SAME]
    if not proven:
        return []
    twists = sorted({twist for proposal in proven for twist in proposal.twists})
    wide = {twist for twist in twists if _is_site_wide(twist, found)}
    parts = []
    if wide:
        parts.append(_site_table(proven, wide))
    narrow = [proposal for proposal in proven if not proposal.twists <= wide]
    places = {place: list(group) for place, group in groupby(narrow, key=lambda proposal: proposal.place)}
    guards = _guards(found, places, wide)
    for place in sorted([*places, *guards], key=lambda place: (place.endswith("/*"), -len(place), place)):  # the first that fits holds: scripts before folders
        parts.append(_script_table(places[place], wide) if place in places else _guard(guards[place]))
    return parts


def _is_site_wide(twist: Twist, found: Sequence[Proposal]) -> bool:
    if twist.kind in (*_FORMS, "index"):
        return True
    having = [proposal for proposal in found if twist in proposal.twists]
    if twist.kind == "path-parameter" or is_well_known({twist}):
        return not any(proposal.different for proposal in having)
    proven = {proposal.place for proposal in having if proposal.verdict is Verdict.SAME}
    return len(proven) >= PLACES_FOR_SITE and {proposal.place for proposal in having} <= proven


def _guards(found: Sequence[Proposal], places: dict[str, list[Proposal]], wide: set[Twist]) -> dict[str, Proposal]:
    """Scripts that a folder's rule would reach, and where its parameter is not proven."""
    folders = {twist: place for place, group in places.items() if place.endswith("/*") for proposal in group for twist in proposal.twists - wide}
    return {
        proposal.place: proposal
        for proposal in found
        if proposal.place not in places and any(twist in folders and proposal.place.startswith(folders[twist][:-1]) for twist in proposal.twists)
    }


def _site_table(proven: Sequence[Proposal], wide: set[Twist]) -> str:
    kinds = {kind: sorted(twist.name for twist in wide if twist.kind == kind) for kind in ("parameter", "path-parameter", "index")}
    lines = _evidence([proposal for proposal in proven if proposal.twists & wide])
    lines += ["[[site]]", f"site = {_text(proven[0].site)}"]
    lines += [f"{field} = {_list(kinds[kind])}" for kind, field in (("parameter", "ignored"), ("path-parameter", "path_ignored")) if kinds[kind]]
    if kinds["index"]:
        lines.append(f"index = {_list(kinds['index'])}")
    for kind in _FORMS:
        votes = [proposal.prefer for proposal in proven if Twist(kind) in proposal.twists]
        if Twist(kind) in wide and votes and votes[0]:
            lines.append(f"{kind} = {_text(votes[0])}")
    if ORDER in wide:
        lines.append("sort = true")
    return "\n".join(lines) + "\n"


def _script_table(group: Sequence[Proposal], wide: set[Twist]) -> str:
    names = sorted({twist.name for proposal in group for twist in proposal.twists - wide if twist.kind == "parameter"})
    paths = sorted({path for proposal in group for path in proposal.paths})
    is_sorted = any(ORDER in proposal.twists for proposal in group)
    lines = [*_evidence(group), "[[script]]", f"path = {_list(paths)}", f"site = {_text(group[0].site)}", f"ignored = {_list(names)}"]
    return "\n".join([*lines, f"sort = {'true' if is_sorted else 'false'}"]) + "\n"


def _guard(proposal: Proposal) -> str:
    lines = [f"# {proposal.sentence}: kept from the folder's rule below", "[[script]]", f"path = {_list(sorted(proposal.paths))}"]
    return "\n".join([*lines, f"site = {_text(proposal.site)}", "ignored = []", "sort = false"]) + "\n"


def _evidence(proposals: Iterable[Proposal]) -> list[str]:
    lines = []
    for proposal in proposals:
        lines.append(f"# {proposal.sentence}")
        lines += [f"#   {one}\n#   {other}" for one, other in proposal.examples[:1]]
    return lines


def _text(text: str) -> str:
    return json.dumps(text)  # for ASCII text without control characters TOML's and JSON's strings are alike


def _list(texts: Iterable[str]) -> str:
    return "[" + ", ".join(map(_text, texts)) + "]"
