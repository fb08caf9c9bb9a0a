"""What lies on an editor's desk: the entries and sites of a portal as they were gathered last, with what was decided since?

Gathering reads all pages of a collection; so `portal show` and `portal build` leave what they found in `portals/NAME.desk.json`, and here decisions are
laid over it.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from periplus.api.results import when_kept, written
from periplus.errors import StoreError, UsageError
from periplus.model.portal import Decisions, Edition, EntryKey, Portal, Verdict
from periplus.model.web import SiteKey, Url
from periplus.present.edition_json import edition_values
from periplus.store.sqlite import portal_rows, reading

FOLDER = "portals"  # within the collection's folder
ENTRIES_MOST = 2_000  # of each kind that lie on the desk: an editor reads fewer
KINDS = ("waiting", "published", "hidden")


@dataclass(frozen=True, slots=True)
class DeskPage:
    """A page of an entry."""

    url: Url
    site: SiteKey
    title: str
    date: str  # ISO 8601
    dated_by: str


@dataclass(frozen=True, slots=True)
class DeskEntry:
    """An entry that awaits a decision, or has one. kind: what becomes of it at the next build."""

    key: EntryKey
    kind: str
    verdict: str  # empty: nothing was decided
    title: str
    published: str  # ISO 8601
    weight: float
    relevance: float | None
    sentence: str
    keywords: tuple[str, ...]
    pages: tuple[DeskPage, ...]

    @property
    def sites(self) -> tuple[SiteKey, ...]:
        return tuple(dict.fromkeys(page.site for page in self.pages))


@dataclass(frozen=True, slots=True)
class DeskSite:
    """A site that tells stories. chosen: it was followed when the entries were gathered."""

    key: SiteKey
    stories: int
    gain: float
    relevance: float | None
    chosen: bool
    verdict: str


@dataclass(frozen=True, slots=True)
class Desk:
    """gathered, built: seconds since the epoch, 0.0: never; decided: whether anything was decided since the last build."""

    portal: Portal
    gathered: float
    built: float
    run: str
    covered: float | None
    lacks: tuple[str, ...]
    entries: tuple[DeskEntry, ...]  # pinned ones first, then by weight
    sites: tuple[DeskSite, ...]
    decided: bool


def desk_file(folder: Path, name: str) -> Path:
    return folder / FOLDER / f"{name}.desk.json"


def keep(folder: Path, edition: Edition) -> None:
    """In place of what was gathered before."""
    text = json.dumps(edition_values(edition, ENTRIES_MOST, waiting=False), ensure_ascii=False)
    written(desk_file(folder, edition.portal.name), text)


def desk_of(folder: Path, name: str) -> Desk:
    """Raises UsageError for a portal that there is not, StoreError for a damaged file."""
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
        known = {portal.name: (portal, built) for portal, built in portal_rows.portals(connection)}
        if name not in known:
            raise UsageError(f"there is no portal {name!r}" + (f": choose among {', '.join(known)}" if known else " here"))
        portal, built = known[name]
        decided, latest = portal_rows.decisions(connection, name), portal_rows.last_decided(connection, name)
    file = desk_file(folder, name)
    try:
        gathered = json.loads(file.read_text("utf-8"))
        entries = [_entry(one, portal, decided) for one in gathered["entries"]]
        sites = _sites(gathered, entries, decided)
        changed = any((one["verdict"] or "") != entry.verdict for one, entry in zip(gathered["entries"], entries, strict=True))
        lacks, run, covered = tuple(map(str, gathered["lacks"])), str(gathered["run"]), gathered["covered"]
    except FileNotFoundError:
        entries, sites, lacks, run, covered, changed = [], (), (), "", None, False
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{file} cannot be read ({error}): `periplus portal show {name}` makes it anew") from None
    entries.sort(key=lambda entry: entry.verdict != Verdict.PINNED)
    return Desk(portal, when_kept(file), built, run, covered, lacks, tuple(entries), sites, changed or latest > built)


def _entry(one: Mapping[str, object], portal: Portal, decided: Decisions) -> DeskEntry:
    key = EntryKey(str(one["key"]))
    verdict = decided.entries.get(key)
    waits = portal.approve and verdict not in (Verdict.APPROVED, Verdict.PINNED)
    kind = "hidden" if verdict is Verdict.HIDDEN else "waiting" if waits else "published"
    pages, keywords = one["pages"], one["keywords"]
    assert isinstance(pages, list)
    assert isinstance(keywords, list)
    told = tuple(DeskPage(Url(page["url"]), SiteKey(page["site"]), str(page["title"]), str(page["date"]), str(page["by"])) for page in pages)
    relevance = one["relevance"]
    return DeskEntry(
        key, kind, verdict.value if verdict else "", str(one["title"]), str(one["published"]), float(str(one["weight"])),
        None if relevance is None else float(str(relevance)), str(one["sentence"]), tuple(map(str, keywords)), told,
    )  # fmt: skip


def _sites(gathered: Mapping[str, object], entries: list[DeskEntry], decided: Decisions) -> tuple[DeskSite, ...]:
    """Those followed, in the order of choice; then the others that tell stories, the busiest first; then those that are out."""
    chosen = gathered["sites"]
    assert isinstance(chosen, list)
    followed = {SiteKey(site["key"]): site for site in chosen}
    tell = Counter(site for entry in entries for site in entry.sites)
    others = [site for site, _ in tell.most_common() if site not in followed]
    names = dict.fromkeys((*followed, *others, *decided.sites))
    return tuple(
        DeskSite(
            name, int(followed[name]["stories"]) if name in followed else tell[name], float(followed[name]["gain"]) if name in followed else 0.0,
            followed[name]["relevance"] if name in followed else None, name in followed, decided.sites[name].value if name in decided.sites else "",
        )
        for name in names
    )  # fmt: skip
