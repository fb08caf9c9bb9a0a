"""How does a collection become a portal that its editor only has to approve?"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from periplus.analyse.edition import Selection, selection, without_sites
from periplus.api import desk
from periplus.api.facts import run_name
from periplus.api.portal_parts import described, relevance_of, sites_for
from periplus.api.publishing import Published, publish
from periplus.api.results import keep_stories
from periplus.api.stories import stories_of
from periplus.errors import UsageError
from periplus.model.portal import Decisions, Edition, Entry, EntryKey, Portal, Verdict
from periplus.model.story import Order, Stories
from periplus.model.web import SiteKey, Url
from periplus.present.portal.files import portal_files
from periplus.present.wording import count_of
from periplus.store.sqlite import graph_rows, portal_rows, reading, runs, schema

Watch = Callable[[str, int, int], None]  # is told (what goes on, how far, of how many)
FOLDER = desk.FOLDER  # within the collection's folder
_ENTRY, _SITE = False, True
VERBS: dict[str, dict[bool, Verdict | None]] = {  # what each does to an entry, to a site; None: nothing is decided any longer
    "approve": {_ENTRY: Verdict.APPROVED},
    "hide": {_ENTRY: Verdict.HIDDEN},
    "pin": {_ENTRY: Verdict.PINNED, _SITE: Verdict.PINNED},
    "unpin": {_ENTRY: Verdict.APPROVED, _SITE: None},
    "ban": {_SITE: Verdict.BANNED},
    "reset": {_ENTRY: None, _SITE: None},
}


def create(folder: Path, portal: Portal) -> None:
    """A new portal. Raises UsageError for a name that is taken or is none, NoCollection, StoreError."""
    if not portal.name or not all(sign.isalnum() or sign in "-_" for sign in portal.name):
        raise UsageError(f"{portal.name!r} is no name for a portal: use letters, digits, - and _, since a folder will have it too")
    with schema.writing(folder) as connection:
        if portal.name in [known.name for known, _ in portal_rows.portals(connection)]:
            raise UsageError(f"there is a portal {portal.name} already: `periplus portal change {portal.name}` changes it")
        portal_rows.store_portal(connection, portal)


def change(folder: Path, portal: Portal) -> None:
    """Puts a portal in the place of the one with its name; what was decided stays."""
    with schema.writing(folder) as connection:
        portal_rows.store_portal(connection, portal)


def remove(folder: Path, name: str) -> None:
    """Forgets a portal and its decisions; what was published stays where it is."""
    with schema.writing(folder) as connection:
        portal_rows.forget_portal(connection, name)
    desk.desk_file(folder, name).unlink(missing_ok=True)


def portals(folder: Path) -> list[tuple[Portal, float]]:
    """The collection's portals, each with the time when it was last built, 0.0: never."""
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading():
        return portal_rows.portals(connection)


def portal_named(folder: Path, name: str = "") -> Portal:
    """The portal of that name, or the only one. Raises UsageError, naming those there are."""
    known = {portal.name: portal for portal, _ in portals(folder)}
    if not known:
        raise UsageError("the collection has no portal yet: `periplus portal create NAME` makes one")
    if name in known:
        return known[name]
    if name or len(known) > 1:
        said = f"there is no portal {name!r}" if name else "the collection has several portals"
        raise UsageError(f"{said}: choose among {', '.join(known)}")
    return next(iter(known.values()))


def edition_of(folder: Path, portal: Portal, now: float, watch: Watch = lambda what, done, total: None) -> Edition:
    """The portal as it would be published now. The keys of its entries are remembered, so that stories keep them while they grow;
    so are the stories, and the entries for the editor's desk.

    Raises UsageError for a topic that there is not, NoCollection, StoreError.
    """
    stories = stories_of(folder, watch=lambda done, total: watch("reading pages", done, total))
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading(), reading.snapshot(connection):
        decided = portal_rows.decisions(connection, portal.name)
        known = portal_rows.known_pages(connection, portal.name)
        kept = _without_banned(stories, decided)
        relevance = relevance_of(connection, folder, portal.topic, kept.stories) if portal.topic else None
        chosen = selection(portal, kept.stories, decided, known, now, relevance)
        entries = _watched(described(connection, (*chosen.published, *chosen.waiting)), len(chosen.published) + len(chosen.waiting), watch)
        published, waiting = entries[: len(chosen.published)], entries[len(chosen.published) :]
        shown = replace(kept, stories=tuple(entry.story for entry in published))
        sites, covered = sites_for(connection, portal, shown, decided, relevance)
        last = next(iter(reversed(runs.run_records(connection))), None)
    _remember(folder, portal, chosen, known)
    keep_stories(folder, stories)
    edition = Edition(
        portal=portal,
        made=now,
        run=run_name(last) if last else "",
        run_ended=(last.ended or last.started) if last else 0.0,
        pages=stories.pages,
        entries=published,
        waiting=waiting,
        hidden=chosen.hidden,
        sites=sites,
        covered=covered,
        lacks=tuple(_lacks(kept, published)),
    )
    desk.keep(folder, edition)
    return edition


def _watched(entries: Iterable[Entry], total: int, watch: Watch) -> tuple[Entry, ...]:
    found = []
    for done, entry in enumerate(entries, 1):
        found.append(entry)
        watch("reading stories", done, total)
    return tuple(found)


def _without_banned(stories: Stories, decided: Decisions) -> Stories:
    """As if the banned sites had never been read."""
    banned = {site for site, verdict in decided.sites.items() if verdict is Verdict.BANNED}
    left = without_sites(stories.stories, banned)
    return replace(stories, stories=tuple(left), posts=tuple(row for row in stories.posts if row[0] not in banned))


def _remember(folder: Path, portal: Portal, chosen: Selection, known: Mapping[Url, EntryKey]) -> None:
    entries = (*chosen.published, *chosen.waiting, *chosen.hidden)
    new = {page.url: entry.key for entry in entries for page in entry.story.pages if known.get(page.url) != entry.key}
    if new:
        with schema.writing(folder) as connection:
            portal_rows.store_known(connection, portal.name, new)


def _lacks(stories: Stories, entries: Sequence[Entry]) -> Iterator[str]:
    """What whoever reads the edition should know that it had to do without."""
    if len(stories.posts) < 2:
        yield f"The collection holds dated pages of {len(stories.posts)} site: a story needs two that tell it."
    mute = sum(not entry.sentence for entry in entries)
    if mute:
        yield f"{count_of(mute, 'story has', 'stories have')} no sentence: the first page has no running text that is marked as content."
    guessed = sum(entry.story.order is Order.FIRST_SEEN for entry in entries)
    if guessed:
        yield f"In {count_of(guessed, 'story', 'stories')} neither dates nor links tell who was first; there the order is that of the crawl."
    wordless = sum(not entry.keywords for entry in entries)
    if wordless:
        yield f"{count_of(wordless, 'story has', 'stories have')} no keywords."


def build(folder: Path, name: str, out: Path | None, now: float, watch: Watch = lambda what, done, total: None) -> tuple[Edition, Published]:
    """Makes a portal anew and publishes it into out, by default portals/NAME within the collection's folder."""
    portal = portal_named(folder, name)
    edition = edition_of(folder, portal, now, watch)
    done = publish(out or folder / FOLDER / portal.name, portal_files(edition))
    with schema.writing(folder) as connection:
        portal_rows.store_built(connection, portal.name, now)
    return edition, done


def decide(folder: Path, portal: Portal, verb: str, subjects: Sequence[str], now: float) -> list[str]:
    """Notes what an editor decided of entries (keys, or how they begin) and sites. All or nothing. Returns what the subjects are called in full.

    Raises UsageError for a subject that is not known, or of the wrong kind for the verb.
    """
    with schema.writing(folder) as connection:
        keys = sorted(set(portal_rows.known_pages(connection, portal.name).values()))
        sites = set(graph_rows.site_names(connection).values())
        found = [_subject(verb, subject, keys, sites) for subject in subjects]
        for name, of_site in found:
            portal_rows.decide(connection, portal.name, name, VERBS[verb][of_site], of_site, now)
    return [name for name, _ in found]


def _subject(verb: str, subject: str, keys: Sequence[EntryKey], sites: Container[SiteKey]) -> tuple[EntryKey | SiteKey, bool]:
    """(its full name, whether it is a site)."""
    given = subject.strip().lower()
    site = SiteKey(given.partition("://")[2].partition("/")[0] if "://" in given else given).removeprefix("www.")
    begins = [key for key in keys if key.startswith(given)]
    if site in sites:
        name, of_site = SiteKey(site), _SITE
    elif len(begins) == 1:
        return _checked(verb, begins[0], _ENTRY)
    else:
        why = f"begins {len(begins)} entries" if begins else "is no entry and no site of the collection"
        raise UsageError(f"{subject!r} {why}: `periplus portal show` lists both. Nothing was noted.")
    return _checked(verb, name, of_site)


def _checked(verb: str, name: EntryKey | SiteKey, of_site: bool) -> tuple[EntryKey | SiteKey, bool]:
    if of_site not in VERBS[verb]:
        other = "ban or pin a site" if of_site else "hide or pin an entry"
        raise UsageError(f"{verb} is not for {'sites' if of_site else 'entries'}, and {name} is one: {other}. Nothing was noted.")
    return name, of_site
