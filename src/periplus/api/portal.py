"""Makes a collection a portal that its editor only has to approve, and publishes it whole."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from periplus.analyse.cascades import cascades_of_stories
from periplus.analyse.edition import Selection, selection, without_sites
from periplus.api.facts import run_name
from periplus.api.homes import editing, folder_of
from periplus.api.portal_entries import described
from periplus.api.results import store_stories, when_stored, written
from periplus.api.stories import ReadingRequest, influence, stories_and_state
from periplus.api.topics import judge_of, text_of_page
from periplus.errors import StoreError, UsageError
from periplus.model.story import (
    Decisions,
    Edition,
    EditorVerdict,
    Entry,
    EntryKey,
    Objective,
    Order,
    Portal,
    PortalSite,
    Stories,
    Story,
)
from periplus.model.web import SiteKey, Url, UrlId
from periplus.present.portal import picture_type, portal_files
from periplus.present.stories import edition_values
from periplus.present.wording import count_of
from periplus.store.sqlite import portal_rows, reading, runs, schema, site_rows, text_rows
from periplus.urls.canonical import url_id
from periplus.values import Watch, frozen

MANIFEST = ".periplus-files.json"  # what we wrote into the folder: nothing else there is ever replaced or deleted


@frozen
class Published:
    """What was done to the folder: how many files were written, left as they were, deleted."""

    folder: Path
    written: int
    unchanged: int
    removed: int


def publish(folder: Path, files: Mapping[str, bytes]) -> Published:
    """Makes folder hold these files, and none that an earlier call put there and this one does not.

    files: relative path with slashes -> content, in the order in which they appear: what leads to another file stands
    after it. Each appears whole, by renaming, and only if its content is new; what is no longer wanted goes last. So at
    any moment, after a kill too, every link leads somewhere, and the next call goes on. Raises UsageError where a file
    stands in the way that is not ours, or the disk refuses.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        ours = _ours(folder)
        foreign = next((path for path in files if path not in ours and (folder / path).exists()), None)
        if foreign is not None:
            raise UsageError(
                f"{folder / foreign} is there already, and was not written by a portal. Choose another "
                "folder with -o, or move it away."
            )
        _note(folder, ours | set(files))
        written = sum([_written(folder / path, content) for path, content in files.items()])
        gone = sorted(ours - set(files))
        _remove(folder, gone)
        _note(folder, files)
    except OSError as error:
        raise UsageError(
            f"the portal cannot be written into {folder}: {error.strerror or error}. Choose another folder with -o."
        ) from None
    return Published(folder, written, len(files) - written, len(gone))


def _ours(folder: Path) -> set[str]:
    try:
        listed = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return set()
    return {path for path in listed if isinstance(path, str) and _is_below(path)} if isinstance(listed, list) else set()


def published_files(folder: Path) -> list[str]:
    """Paths below the folder of what `publish` put there last and is there still, by name."""
    return sorted(path for path in _ours(folder) if (folder / path).is_file())


def _is_below(path: str) -> bool:
    """Whether a path of the list stays in the folder, as all that we wrote do."""
    return bool(path) and not path.startswith("/") and ".." not in path.split("/")


def _note(folder: Path, paths: Iterable[str]) -> None:
    _written(folder / MANIFEST, (json.dumps(sorted(paths), indent=0) + "\n").encode("utf-8", "replace"))


def _written(path: Path, content: bytes) -> bool:
    """False: it was so already."""
    with contextlib.suppress(FileNotFoundError):
        if path.read_bytes() == content:
            return False
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return True


def _remove(folder: Path, paths: Iterable[str]) -> None:
    for path in paths:
        (folder / path).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # the folder around it, if nothing else is in it
            (folder / path).parent.rmdir()


JUDGED_AT_ONCE = 500  # pages: their texts are held meanwhile
PICTURE_BEGIN = 16  # bytes that tell which kind a picture is
PICTURE_BYTES = 2_000_000  # of an editor's picture: more than a page of a portal should weigh


def relevance_of(
    connection: reading.Connection, folder: Path, topic: str, stories: Sequence[Story]
) -> dict[Url, float]:
    """How probably each page of the stories is of the topic, 0 to 1.

    Raises UsageError for a topic that is not known.
    """
    judge = judge_of(folder, topic)
    ids = [UrlId(url_id(page.url)) for story in stories for page in story.pages]
    pages = text_rows.pages_of(connection, ids)
    scores: dict[Url, float] = {}
    while some := list(islice(pages, JUDGED_AT_ONCE)):
        scores |= zip(
            [page.url for page in some], judge.judge([text_of_page(page) for page in some]).tolist(), strict=True
        )
    return scores


def sites_for(
    connection: reading.Connection,
    portal: Portal,
    stories: Stories,
    decided: Decisions,
    relevance: Mapping[Url, float] | None,
) -> tuple[tuple[PortalSite, ...], float | None]:
    """(the editor's sites, then those that together have most of the other stories and have them early;
    the share of the stories that all of them have).
    """
    pinned = [site for site, verdict in decided.sites.items() if verdict is EditorVerdict.PINNED]
    others = dataclasses.replace(
        stories, stories=tuple(story for story in stories.stories if not set(pinned).intersection(story.sites))
    )
    chosen = [site for site in _influential(others, portal.sites) if site not in pinned]
    has: defaultdict[SiteKey, set[int]] = defaultdict(set)
    scores: defaultdict[SiteKey, list[float]] = defaultdict(list)
    for place, story in enumerate(stories.stories):
        for page in story.pages:
            has[page.site].add(place)
            scores[page.site] += [relevance[page.url]] if relevance is not None and page.url in relevance else []
    seen: set[int] = set()
    made = []
    for site in (*pinned, *chosen):
        home = portal_rows.home_of(connection, site)
        url, title = home if home is not None else (Url(f"https://{site}/"), "")
        gain = len(has[site] - seen) / max(len(stories.stories), 1)
        seen |= has[site]
        mean = sum(scores[site]) / len(scores[site]) if scores[site] else None
        feeds = tuple(portal_rows.feeds_of(connection, UrlId(url_id(url))))
        made.append(PortalSite(site, url, title, feeds, len(has[site]), gain, mean, site in pinned))
    return tuple(made), len(seen) / len(stories.stories) if stories.stories else None


def _influential(stories: Stories, most: int) -> list[SiteKey]:
    """The sites by which one sees the stories, and sees them early, each time the one that adds most."""
    if not stories.stories or not most:
        return []
    cascades = cascades_of_stories(stories)
    return [SiteKey(cascades.sites[one.site]) for one in influence(cascades, ReadingRequest(Objective.DT, most)).chosen]


# Gathering reads all pages of a collection; so `portal show` and `portal build` leave what they found in
# `portals/NAME.desk.json`, and here decisions are laid over it.

FOLDER = "portals"  # within the collection's folder
ENTRIES_MOST = 2_000  # of each kind that lie on the desk: an editor reads fewer
KINDS = ("waiting", "published", "hidden")


@frozen
class DeskPage:
    """A page of an entry."""

    url: Url
    site: SiteKey
    title: str
    date: str  # ISO 8601
    dated_by: str


@frozen
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
    words: str = ""  # the editor's own
    picture: str = ""  # the editor's: what kind it is, as `picture_type` has it; empty: none
    alt: str = ""

    @property
    def sites(self) -> tuple[SiteKey, ...]:
        return tuple(dict.fromkeys(page.site for page in self.pages))


@frozen
class DeskSite:
    """A site that tells stories. chosen: it was followed when the entries were gathered."""

    key: SiteKey
    stories: int
    gain: float
    relevance: float | None
    chosen: bool
    verdict: str


@frozen
class Desk:
    """gathered, built: seconds since the epoch, 0.0: never; decided:
    whether anything was decided since the last build.
    """

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
    with reading.opened(folder) as connection:
        by_name = {portal.name: (portal, built) for portal, built in portal_rows.portals(connection)}
        if name not in by_name:
            raise UsageError(
                f"there is no portal {name!r}" + (f": choose among {', '.join(by_name)}" if by_name else " here")
            )
        portal, built = by_name[name]
        decided, latest = portal_rows.decisions(connection, name), portal_rows.last_decided(connection, name)
        words = portal_rows.words_of(connection, name, PICTURE_BEGIN)
    file = desk_file(folder, name)
    try:
        gathered = json.loads(file.read_text("utf-8"))
        entries = [_entry(one, portal, decided) for one in gathered["entries"]]
        sites = _sites(gathered, entries, decided)
        changed = any(
            (one["verdict"] or "") != entry.verdict for one, entry in zip(gathered["entries"], entries, strict=True)
        )
        lacks, run, covered = tuple(map(str, gathered["lacks"])), str(gathered["run"]), gathered["covered"]
    except FileNotFoundError:
        entries, sites, lacks, run, covered, changed = [], (), (), "", None, False
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{file} cannot be read ({error}): `periplus portal show {name}` makes it anew") from None
    entries = [
        replace(one, words=of.words, picture=picture_type(of.picture), alt=of.alt)
        if (of := words.get(one.key))
        else one
        for one in entries
    ]
    entries.sort(key=lambda entry: entry.verdict != EditorVerdict.PINNED)
    return Desk(portal, when_stored(file), built, run, covered, lacks, tuple(entries), sites, changed or latest > built)


def _entry(one: Mapping[str, object], portal: Portal, decided: Decisions) -> DeskEntry:
    key = EntryKey(str(one["key"]))
    verdict = decided.entries.get(key)
    waits = portal.approve and verdict not in (EditorVerdict.APPROVED, EditorVerdict.PINNED)
    kind = "hidden" if verdict is EditorVerdict.HIDDEN else "waiting" if waits else "published"
    pages, keywords = one["pages"], one["keywords"]
    assert isinstance(pages, list)
    assert isinstance(keywords, list)
    shown = tuple(
        DeskPage(Url(page["url"]), SiteKey(page["site"]), str(page["title"]), str(page["date"]), str(page["by"]))
        for page in pages
    )
    relevance = one["relevance"]
    return DeskEntry(
        key, kind, verdict.value if verdict else "", str(one["title"]), str(one["published"]),
        float(str(one["weight"])),
        None if relevance is None else float(str(relevance)), str(one["sentence"]), tuple(map(str, keywords)), shown,
    )  # fmt: skip


def _sites(gathered: Mapping[str, object], entries: list[DeskEntry], decided: Decisions) -> tuple[DeskSite, ...]:
    """Those followed, in the order of choice; then the others that tell stories, the busiest first;
    then those that are out.
    """
    chosen = gathered["sites"]
    assert isinstance(chosen, list)
    followed = {SiteKey(site["key"]): site for site in chosen}
    tell = Counter(site for entry in entries for site in entry.sites)
    others = [site for site, _ in tell.most_common() if site not in followed]
    names = dict.fromkeys((*followed, *others, *decided.sites))
    return tuple(
        DeskSite(
            name, int(followed[name]["stories"]) if name in followed else tell[name],
            float(followed[name]["gain"]) if name in followed else 0.0,
            followed[name]["relevance"] if name in followed else None, name in followed,
            decided.sites[name].value if name in decided.sites else "",
        )
        for name in names
    )  # fmt: skip


PORTAL_FOLDER = FOLDER  # within the collection's folder
_ENTRY, _SITE = False, True
# what each does to an entry, to a site; None: nothing is decided any longer
VERBS: dict[str, dict[bool, EditorVerdict | None]] = {
    "approve": {_ENTRY: EditorVerdict.APPROVED},
    "hide": {_ENTRY: EditorVerdict.HIDDEN},
    "pin": {_ENTRY: EditorVerdict.PINNED, _SITE: EditorVerdict.PINNED},
    "unpin": {_ENTRY: EditorVerdict.APPROVED, _SITE: None},
    "ban": {_SITE: EditorVerdict.BANNED},
    "reset": {_ENTRY: None, _SITE: None},
}


def create(place: Path | str, portal: Portal) -> None:
    """A new portal. Raises UsageError for a name that is taken or is none, NoCollection, StoreError."""
    if not portal.name or not all(sign.isalnum() or sign in "-_" for sign in portal.name):
        raise UsageError(
            f"{portal.name!r} is no name for a portal: use letters, digits, - and _, since a folder will have it too"
        )
    with editing(place) as folder, schema.writing(folder) as connection:
        if portal.name in [other.name for other, _ in portal_rows.portals(connection)]:
            raise UsageError(
                f"there is a portal {portal.name} already: `periplus portal change {portal.name}` changes it"
            )
        portal_rows.store_portal(connection, portal)


def change(place: Path | str, portal: Portal) -> None:
    """Replaces the portal of this name; decisions stay."""
    with editing(place) as folder, schema.writing(folder) as connection:
        portal_rows.store_portal(connection, portal)


def remove(place: Path | str, name: str) -> None:
    """Forgets a portal and its decisions; what was published stays where it is."""
    with editing(place) as folder:
        with schema.writing(folder) as connection:
            portal_rows.forget_portal(connection, name)
        desk_file(folder, name).unlink(missing_ok=True)


def portals(folder: Path) -> list[tuple[Portal, float]]:
    """The collection's portals, each with the time when it was last built, 0.0: never."""
    with reading.opened(folder) as connection:
        return portal_rows.portals(connection)


def portal_named(folder: Path, name: str = "") -> Portal:
    """The portal of that name, or the only one. Raises UsageError, naming those there are."""
    by_name = {portal.name: portal for portal, _ in portals(folder)}
    if not by_name:
        raise UsageError("the collection has no portal yet: `periplus portal create NAME` makes one")
    if name in by_name:
        return by_name[name]
    if name or len(by_name) > 1:
        problem = f"there is no portal {name!r}" if name else "the collection has several portals"
        raise UsageError(f"{problem}: choose among {', '.join(by_name)}")
    return next(iter(by_name.values()))


def edition_of(place: Path | str, portal: Portal, now: float, watch: Watch = lambda what, done, total: None) -> Edition:
    """The portal as it would be published now.

    The keys of its entries are remembered, so that stories keep them while they grow; so are the stories, and the
    entries for the editor.

    Raises UsageError for a topic that there is not, NoCollection, StoreError.
    """
    folder = folder_of(place)
    stories, state = stories_and_state(folder, watch=watch)
    with reading.moment(folder) as connection:
        decided = portal_rows.decisions(connection, portal.name)
        entry_keys = portal_rows.known_pages(connection, portal.name)
        allowed = _without_banned(stories, decided)
        relevance = relevance_of(connection, folder, portal.topic, allowed.stories) if portal.topic else None
        chosen = selection(portal, allowed.stories, decided, entry_keys, now, relevance)
        entries = _watched(
            described(folder, connection, (*chosen.published, *chosen.waiting), state),
            len(chosen.published) + len(chosen.waiting),
            watch,
        )
        published, waiting = entries[: len(chosen.published)], entries[len(chosen.published) :]
        shown = replace(allowed, stories=tuple(entry.story for entry in published))
        sites, covered = sites_for(connection, portal, shown, decided, relevance)
        last = next(iter(reversed(runs.run_records(connection))), None)
        written_words = portal_rows.words_of(connection, portal.name)
    _remember(place, portal, chosen, entry_keys)
    store_stories(folder, stories)
    edition = Edition(
        portal=portal,
        made=now,
        run=run_name(last) if last else "",
        run_ended=(last.ended or last.started) if last else 0.0,
        pages=stories.pages,
        entries=_with_words(published, written_words),
        waiting=_with_words(waiting, written_words),
        hidden=_with_words(chosen.hidden, written_words),
        sites=sites,
        covered=covered,
        lacks=tuple(_lacks(allowed, published)),
    )
    keep(folder, edition)
    return edition


def _with_words(entries: Iterable[Entry], words: Mapping[EntryKey, portal_rows.EntryWords]) -> tuple[Entry, ...]:
    return tuple(replace(one, **words[one.key]._asdict()) if one.key in words else one for one in entries)


class Edit(NamedTuple):
    """What an editor changes of an entry's words and picture. None leaves what is there; empty takes it away."""

    words: str | None = None
    picture: bytes | None = None  # PNG, JPEG, GIF or WebP of PICTURE_BYTES at most
    alt: str | None = None  # goes with its picture


def picture_of(folder: Path, portal: Portal, key: EntryKey) -> bytes:
    """The editor's picture of an entry; empty: there is none."""
    with reading.opened(folder) as connection:
        words = portal_rows.words_of(connection, portal.name).get(key)
    return words.picture if words else b""


def edit(place: Path | str, portal: Portal, subject: str, changes: Edit, now: float) -> EntryKey:
    """Stores an editor's own words and picture for an entry (its key, or how it begins). Returns the key in full.

    Raises UsageError for an entry that is not known, for a picture that is none, and for one without alt.
    """
    with editing(place) as folder, schema.writing(folder) as connection:
        keys = sorted(set(portal_rows.known_pages(connection, portal.name).values()))
        begins = [key for key in keys if subject.strip() and key.startswith(subject.strip().lower())]
        if len(begins) != 1:
            why = f"begins {len(begins)} entries" if begins else "is no entry"
            raise UsageError(f"{subject!r} {why}: `periplus portal show` lists their keys. Nothing was stored.")
        before = portal_rows.words_of(connection, portal.name).get(begins[0], portal_rows.EntryWords("", b"", ""))
        portal_rows.store_words(connection, portal.name, begins[0], _edited(before, changes), now)
    return begins[0]


def _edited(before: portal_rows.EntryWords, changes: Edit) -> portal_rows.EntryWords:
    picture = before.picture if changes.picture is None else changes.picture
    if picture and not (picture_type(picture) and len(picture) <= PICTURE_BYTES):
        most = f"{PICTURE_BYTES // 1_000_000} MB"
        raise UsageError(f"a picture is a PNG, JPEG, GIF or WebP of at most {most}. Nothing was stored.")
    alt = (before.alt if changes.alt is None else changes.alt.strip()) if picture else ""
    if picture and not alt:
        raise UsageError("a picture needs words that say what is seen on it (--alt). Nothing was stored.")
    if changes.alt and not picture:
        raise UsageError("there is no picture (--picture) of which one could say what is seen. Nothing was stored.")
    words = before.words if changes.words is None else " ".join(changes.words.split())
    return portal_rows.EntryWords(words, picture, alt)


def _watched(entries: Iterable[Entry], total: int, watch: Watch) -> tuple[Entry, ...]:
    rows = []
    for done, entry in enumerate(entries, 1):
        rows.append(entry)
        watch("reading stories", done, total)
    return tuple(rows)


def _without_banned(stories: Stories, decided: Decisions) -> Stories:
    """As if the banned sites had never been read."""
    banned = {site for site, verdict in decided.sites.items() if verdict is EditorVerdict.BANNED}
    left = without_sites(stories.stories, banned)
    return replace(stories, stories=tuple(left), posts=tuple(row for row in stories.posts if row[0] not in banned))


def _remember(place: Path | str, portal: Portal, chosen: Selection, entry_keys: Mapping[Url, EntryKey]) -> None:
    entries = (*chosen.published, *chosen.waiting, *chosen.hidden)
    new = {
        page.url: entry.key for entry in entries for page in entry.story.pages if entry_keys.get(page.url) != entry.key
    }
    if new:
        with editing(place) as folder, schema.writing(folder) as connection:
            portal_rows.store_known(connection, portal.name, new)


def _lacks(stories: Stories, entries: Sequence[Entry]) -> Iterator[str]:
    """What whoever reads the edition should know that it had to do without."""
    if len(stories.posts) < 2:
        yield f"The collection holds dated pages of {len(stories.posts)} site: a story needs two that tell it."
    mute = sum(not entry.sentence for entry in entries)
    if mute:
        yield (
            f"{count_of(mute, 'story has', 'stories have')} no sentence: the first page has no running "
            "text that is marked as content."
        )
    guessed = sum(entry.story.order is Order.FIRST_SEEN for entry in entries)
    if guessed:
        yield (
            f"In {count_of(guessed, 'story', 'stories')} neither dates nor links tell who was first; "
            "there the order is that of the crawl."
        )
    wordless = sum(not entry.keywords for entry in entries)
    if wordless:
        yield f"{count_of(wordless, 'story has', 'stories have')} no keywords."


def build(
    place: Path | str, name: str, out: Path | None, now: float, watch: Watch = lambda what, done, total: None
) -> tuple[Edition, Published]:
    """Builds a portal and publishes it into out, by default portals/NAME within the collection's folder or copy."""
    folder = folder_of(place)
    portal = portal_named(folder, name)
    edition = edition_of(place, portal, now, watch)
    done = publish(out or folder / PORTAL_FOLDER / portal.name, portal_files(edition))
    with editing(place) as folder, schema.writing(folder) as connection:
        portal_rows.store_built(connection, portal.name, now)
    return edition, done


def decide(place: Path | str, portal: Portal, verb: str, subjects: Sequence[str], now: float) -> list[str]:
    """Notes what an editor decided of entries (keys, or how they begin) and sites.

    All or nothing. Returns what the subjects are called in full.

    Raises UsageError for a subject that is not known, or of the wrong kind for the verb.
    """
    with editing(place) as folder, schema.writing(folder) as connection:
        keys = sorted(set(portal_rows.known_pages(connection, portal.name).values()))
        sites = set(site_rows.site_names(connection).values())
        names = [_subject(verb, subject, keys, sites) for subject in subjects]
        for name, of_site in names:
            portal_rows.decide(connection, portal.name, name, VERBS[verb][of_site], of_site, now)
    return [name for name, _ in names]


def _subject(
    verb: str, subject: str, keys: Sequence[EntryKey], sites: Container[SiteKey]
) -> tuple[EntryKey | SiteKey, bool]:
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
        raise UsageError(
            f"{verb} is not for {'sites' if of_site else 'entries'}, and {name} is one: {other}. Nothing was noted."
        )
    return name, of_site
