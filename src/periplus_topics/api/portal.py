"""Selects, stores and publishes a portal, which an editor approves."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from periplus.api.facts import run_name
from periplus.api.homes import cache_folder, home_of, open_reader, snapshot_of
from periplus.errors import StoreError, UsageError
from periplus.model.web import SiteKey, Url, UrlId
from periplus.present.wording import count_of
from periplus.store import runs
from periplus.store.reader import CollectionReader
from periplus.store.statements import Statements
from periplus.urls.canonical import url_id
from periplus.values import Place, Watch, frozen
from periplus_topics import store as portal_rows
from periplus_topics.analyse.edition import Selection, selection, without_banned_sites
from periplus_topics.api.keywords import describe_entries
from periplus_topics.api.stories import ReadingRequest, choose_sites, store_stories, stories_and_state
from periplus_topics.api.topics import judge_of, text_of_page
from periplus_topics.model import (
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
    cascades_of_stories,
)
from periplus_topics.present.portal import picture_type, portal_files
from periplus_topics.present.stories import edition_values
from periplus_topics.store import when_stored, write_file

MANIFEST = ".periplus-files.json"  # lists our files: no other file is ever replaced or deleted
JUDGE_BATCH_PAGES = 500  # pages whose texts are in memory at a time
PICTURE_BEGIN = 16  # bytes that identify the image format
PICTURE_BYTES = 2_000_000  # limit for an editor's picture
FOLDER = "portals"  # within the folder of computed data
ENTRIES_MOST = 2_000  # stored per kind: an editor reads fewer
KINDS = ("waiting", "published", "hidden")
T = TypeVar("T")


@frozen
class PublishResult:
    """Result of a publication: number of files written, unchanged and deleted."""

    folder: Path
    written: int
    unchanged: int
    removed: int


def publish(folder: Path, files: Mapping[str, bytes]) -> PublishResult:
    """Writes these files into a folder and deletes files of earlier calls that are no longer among them.

    files: relative path with slashes -> content, in an order in which link targets come before the links to them. Each
    file appears complete (by renaming) and only if its content changed; obsolete files are deleted last. Thus all links
    work at every moment, even after a kill, and the next call continues. Raises UsageError if a foreign file has one of
    the paths, or on an error of the disk.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        ours = _ours(folder)
        foreign = next((path for path in files if path not in ours and (folder / path).exists()), None)
        if foreign is not None:
            raise UsageError(
                f"{folder / foreign} exists and was not written by a portal. Choose another folder with -o, or move it "
                "away."
            )
        _note(folder, ours | set(files))
        written = sum([_write(folder / path, content) for path, content in files.items()])
        gone = sorted(ours - set(files))
        _remove(folder, gone)
        _note(folder, files)
    except OSError as error:
        raise UsageError(
            f"the portal cannot be written into {folder}: {error.strerror or error}. Choose another folder with -o."
        ) from None
    return PublishResult(folder, written, len(files) - written, len(gone))


def _ours(folder: Path) -> set[str]:
    try:
        listed = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return set()
    return {path for path in listed if isinstance(path, str) and _is_below(path)} if isinstance(listed, list) else set()


def published_files(folder: Path) -> list[str]:
    """Paths of files that `publish` wrote and that still exist, sorted."""
    return sorted(path for path in _ours(folder) if (folder / path).is_file())


def _is_below(path: str) -> bool:
    """Whether a listed path stays inside the folder, as all our paths do."""
    return bool(path) and not path.startswith("/") and ".." not in path.split("/")


def _note(folder: Path, paths: Iterable[str]) -> None:
    _write(folder / MANIFEST, (json.dumps(sorted(paths), indent=0) + "\n").encode("utf-8", "replace"))


def _write(path: Path, content: bytes) -> bool:
    """Returns whether the file changed."""
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
        with contextlib.suppress(OSError):  # its folder, if empty
            (folder / path).parent.rmdir()


def relevance_of(reader: CollectionReader, place: Place, topic: str, stories: Sequence[Story]) -> dict[Url, float]:
    """Probability that each page of the stories belongs to the topic, 0 to 1.

    Raises UsageError for an unknown topic.
    """
    judge = judge_of(place, topic)
    ids = [UrlId(url_id(page.url)) for story in stories for page in story.pages]
    pages = reader.page_blocks(ids)
    scores: dict[Url, float] = {}
    while batch := list(islice(pages, JUDGE_BATCH_PAGES)):
        scores |= zip(
            [page.url for page in batch], judge.judge([text_of_page(page) for page in batch]).tolist(), strict=True
        )
    return scores


def sites_for(
    reader: CollectionReader, portal: Portal, stories: Stories, decided: Decisions, relevance: Mapping[Url, float]
) -> tuple[tuple[PortalSite, ...], float | None]:
    """(sites: the editor's first, then those that together cover most of the other stories earliest;
    share of the stories that these sites cover).
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
            scores[page.site] += [relevance[page.url]] if page.url in relevance else []
    seen: set[int] = set()
    made = []
    for site in (*pinned, *chosen):
        home = portal_rows.home_of(reader, site)
        url, title = home if home is not None else (Url(f"https://{site}/"), "")
        gain = len(has[site] - seen) / max(len(stories.stories), 1)
        seen |= has[site]
        mean = sum(scores[site]) / len(scores[site]) if scores[site] else None
        feeds = tuple(portal_rows.feeds_of(reader, UrlId(url_id(url))))
        made.append(PortalSite(site, url, title, feeds, len(has[site]), gain, mean, site in pinned))
    return tuple(made), len(seen) / len(stories.stories) if stories.stories else None


def _influential(stories: Stories, most: int) -> list[SiteKey]:
    """Sites chosen greedily to detect the stories early."""
    if not stories.stories or not most:
        return []
    cascades = cascades_of_stories(stories)
    return [
        SiteKey(cascades.sites[choice.site])
        for choice in choose_sites(cascades, ReadingRequest(Objective.DT, most)).chosen
    ]


# Gathering reads all pages of a collection. `portal show` and `portal build` store the result in
# `portals/NAME.review.json`; this section applies later decisions to it.


@frozen
class ReviewPage:
    """A page of an entry."""

    url: Url
    site: SiteKey
    title: str
    date: str  # ISO 8601
    dated_by: str


@frozen
class ReviewEntry:
    """An entry with the editor's decision. kind: its state after the next build."""

    key: EntryKey
    kind: str
    verdict: str  # empty: no decision
    title: str
    published: str  # ISO 8601
    weight: float
    relevance: float | None
    sentence: str
    keywords: tuple[str, ...]
    pages: tuple[ReviewPage, ...]
    words: str = ""  # the editor's text
    picture: str = ""  # format of the editor's picture, from `picture_type`; empty: none
    alt: str = ""

    @property
    def sites(self) -> tuple[SiteKey, ...]:
        return tuple(dict.fromkeys(page.site for page in self.pages))


@frozen
class ReviewSite:
    """A site with stories. chosen: selected for the portal when the entries were gathered."""

    key: SiteKey
    stories: int
    gain: float
    relevance: float | None
    chosen: bool
    verdict: str


@frozen
class PortalReview:
    """All entries and sites for the editor. gathered, built: seconds since the epoch, 0.0: never. decided: whether
    decisions were made since the last build.
    """

    portal: Portal
    gathered: float
    built: float
    run: str
    covered: float | None
    lacks: tuple[str, ...]
    entries: tuple[ReviewEntry, ...]  # pinned first, then by weight
    sites: tuple[ReviewSite, ...]
    decided: bool


def portal_folder(place: Place, name: str) -> Path:
    """Folder that a portal is published into by default; for a collection in a database in the user's cache."""
    return cache_folder(place) / FOLDER / name


def review_file(place: Place, name: str) -> Path:
    return cache_folder(place) / FOLDER / f"{name}.review.json"


def keep(place: Place, edition: Edition) -> None:
    """Stores the entries for the editor, replacing earlier ones."""
    text = json.dumps(edition_values(edition, ENTRIES_MOST, waiting=False), ensure_ascii=False)
    write_file(review_file(place, edition.portal.name), text)


def review_of(place: Place, name: str) -> PortalReview:
    """Raises UsageError for an unknown portal, StoreError for a damaged file."""
    with open_reader(place) as reader:
        statements = reader.statements
        by_name = {portal.name: (portal, built) for portal, built in portal_rows.portals(statements)}
        if name not in by_name:
            raise UsageError(
                f"unknown portal {name!r}" + (f": choose among {', '.join(by_name)}" if by_name else "; there is none")
            )
        portal, built = by_name[name]
        decided, latest = portal_rows.decisions(statements, name), portal_rows.last_decision_s(statements, name)
        words = portal_rows.words_of(statements, name, PICTURE_BEGIN)
    file = review_file(place, name)
    try:
        gathered = json.loads(file.read_text("utf-8"))
        entries = [_entry(fields, portal, decided) for fields in gathered["entries"]]
        sites = _sites(gathered, entries, decided)
        changed = [fields["verdict"] or "" for fields in gathered["entries"]] != [entry.verdict for entry in entries]
        lacks, run, covered = tuple(map(str, gathered["lacks"])), str(gathered["run"]), gathered["covered"]
    except FileNotFoundError:
        entries, sites, lacks, run, covered, changed = [], (), (), "", None, False
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{file} cannot be read ({error}): run `periplus portal show {name}` to rebuild it") from None
    entries = [
        replace(entry, words=own.words, picture=picture_type(own.picture), alt=own.alt)
        if (own := words.get(entry.key))
        else entry
        for entry in entries
    ]
    entries.sort(key=lambda entry: entry.verdict != EditorVerdict.PINNED)
    return PortalReview(
        portal, when_stored(file), built, run, covered, lacks, tuple(entries), sites, changed or latest > built
    )


def _entry(fields: Mapping[str, object], portal: Portal, decided: Decisions) -> ReviewEntry:
    key = EntryKey(str(fields["key"]))
    verdict = decided.entries.get(key)
    waits = portal.approve and verdict not in (EditorVerdict.APPROVED, EditorVerdict.PINNED)
    kind = "hidden" if verdict is EditorVerdict.HIDDEN else "waiting" if waits else "published"
    pages, keywords = fields["pages"], fields["keywords"]
    assert isinstance(pages, list)
    assert isinstance(keywords, list)
    shown = tuple(
        ReviewPage(Url(page["url"]), SiteKey(page["site"]), str(page["title"]), str(page["date"]), str(page["by"]))
        for page in pages
    )
    relevance = fields["relevance"]
    return ReviewEntry(
        key, kind, verdict.value if verdict else "", str(fields["title"]), str(fields["published"]),
        float(str(fields["weight"])),
        None if relevance is None else float(str(relevance)), str(fields["sentence"]), tuple(map(str, keywords)), shown,
    )  # fmt: skip


def _sites(gathered: Mapping[str, object], entries: list[ReviewEntry], decided: Decisions) -> tuple[ReviewSite, ...]:
    """Chosen sites in order of choice, then other sites with stories by number of entries, then other decided sites."""
    chosen = gathered["sites"]
    assert isinstance(chosen, list)
    followed = {SiteKey(site["key"]): site for site in chosen}
    tell = Counter(site for entry in entries for site in entry.sites)
    others = [site for site, _ in tell.most_common() if site not in followed]
    names = dict.fromkeys((*followed, *others, *decided.sites))
    return tuple(
        ReviewSite(
            name, int(followed[name]["stories"]) if name in followed else tell[name],
            float(followed[name]["gain"]) if name in followed else 0.0,
            followed[name]["relevance"] if name in followed else None, name in followed,
            decided.sites[name].value if name in decided.sites else "",
        )
        for name in names
    )  # fmt: skip


_ENTRY, _SITE = False, True
# effect of each verb on an entry and on a site; None: removes the decision
VERBS: dict[str, dict[bool, EditorVerdict | None]] = {
    "approve": {_ENTRY: EditorVerdict.APPROVED},
    "hide": {_ENTRY: EditorVerdict.HIDDEN},
    "pin": {_ENTRY: EditorVerdict.PINNED, _SITE: EditorVerdict.PINNED},
    "unpin": {_ENTRY: EditorVerdict.APPROVED, _SITE: None},
    "ban": {_SITE: EditorVerdict.BANNED},
    "reset": {_ENTRY: None, _SITE: None},
}


def create(place: Place, portal: Portal) -> None:
    """Creates a portal. Raises UsageError for a name that is invalid or in use, NoCollection, StoreError."""
    if not portal.name or not all(sign.isalnum() or sign in "-_" for sign in portal.name):
        raise UsageError(
            f"invalid portal name {portal.name!r}: use letters, digits, - and _, since it also names a folder"
        )

    def create_new(statements: Statements) -> None:
        before = dict(portal_rows.portals(statements))
        # a transaction is repeated if the connection fails while it is committed
        if portal not in before and portal.name in [other.name for other in before]:
            raise UsageError(f"the portal {portal.name} exists already: `periplus portal change` changes it")
        portal_rows.store_portal(statements, portal)

    _change(place, create_new)


def _change(place: Place, action: Callable[[Statements], T]) -> T:
    """Changes a portal or an editor's decisions in one transaction, after those of other editors."""

    def change_here(statements: Statements) -> T:
        runs.refuse(statements)
        if statements.dialect.for_update:
            statements.change("LOCK TABLE portal IN SHARE ROW EXCLUSIVE MODE")
        return action(statements)

    return home_of(place).change(change_here)


def change(place: Place, portal: Portal) -> None:
    """Replaces the definition of a portal; decisions are kept."""
    _change(place, lambda statements: portal_rows.store_portal(statements, portal))


def remove(place: Place, name: str) -> None:
    """Deletes a portal and its decisions; published files are kept."""
    _change(place, lambda statements: portal_rows.forget_portal(statements, name))
    review_file(place, name).unlink(missing_ok=True)


def portals(place: Place) -> list[tuple[Portal, float]]:
    """Portals of the collection, each with the time of its last build (0.0: never)."""
    with open_reader(place) as reader:
        return portal_rows.portals(reader.statements)


def find_portal(place: Place, name: str = "") -> Portal:
    """The portal with this name, or the only one. Raises UsageError that lists the portals."""
    by_name = {portal.name: portal for portal, _ in portals(place)}
    if not by_name:
        raise UsageError("the collection has no portal yet: create one with `periplus portal create NAME`")
    if name in by_name:
        return by_name[name]
    if name or len(by_name) > 1:
        problem = f"unknown portal {name!r}" if name else "the collection has several portals"
        raise UsageError(f"{problem}: choose among {', '.join(by_name)}")
    return next(iter(by_name.values()))


def edition_of(place: Place, portal: Portal, now: float, watch: Watch = lambda what, done, total: None) -> Edition:
    """The portal as it would be published now.

    Stores the stories, the editor's entries and the keys of entries, so that growing stories keep their keys. Raises
    UsageError for an unknown topic, NoCollection, StoreError.
    """
    stories, state = stories_and_state(place, watch=watch)
    with snapshot_of(place) as reader:
        decided = portal_rows.decisions(reader.statements, portal.name)
        entry_keys = portal_rows.known_pages(reader.statements, portal.name)
        allowed = without_banned_sites(stories, decided)
        relevance = relevance_of(reader, place, portal.topic, allowed.stories) if portal.topic else None
        chosen = selection(portal, allowed.stories, decided, entry_keys, now, relevance)
        described = (*chosen.published, *chosen.waiting)
        entries = tuple(describe_entries(cache_folder(place), reader, described, state, watch))
        published, waiting = entries[: len(chosen.published)], entries[len(chosen.published) :]
        shown = replace(allowed, stories=tuple(entry.story for entry in published))
        sites, covered = sites_for(reader, portal, shown, decided, relevance or {})
        last = next(reversed(reader.runs()), None)
        written_words = portal_rows.words_of(reader.statements, portal.name)
    _remember(place, portal, chosen, entry_keys)
    store_stories(place, stories)
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
    keep(place, edition)
    return edition


def _with_words(entries: Iterable[Entry], words: Mapping[EntryKey, portal_rows.EntryWords]) -> tuple[Entry, ...]:
    return tuple(replace(entry, **words[entry.key]._asdict()) if entry.key in words else entry for entry in entries)


class Edit(NamedTuple):
    """An editor's changes of the text and picture of an entry. None: keep; empty: remove."""

    words: str | None = None
    picture: bytes | None = None  # PNG, JPEG, GIF or WebP of PICTURE_BYTES at most
    alt: str | None = None  # removed together with its picture


def picture_of(place: Place, portal: Portal, key: EntryKey) -> bytes:
    """The editor's picture of an entry, or empty."""
    with open_reader(place) as reader:
        words = portal_rows.words_of(reader.statements, portal.name).get(key)
    return words.picture if words else b""


def edit(place: Place, portal: Portal, subject: str, changes: Edit, now: float) -> EntryKey:
    """Stores an editor's text and picture for an entry, given by its key or a unique prefix. Returns the full key.

    Raises UsageError for an unknown entry, an invalid picture, and a picture without alt.
    """

    def edit_entry(statements: Statements) -> EntryKey:
        keys = sorted(set(portal_rows.known_pages(statements, portal.name).values()))
        begins = [key for key in keys if subject.strip() and key.startswith(subject.strip().lower())]
        if len(begins) != 1:
            why = f"matches {len(begins)} entries" if begins else "is not the key of an entry"
            raise UsageError(f"{subject!r} {why}: `periplus portal show` lists their keys. Nothing was changed.")
        before = portal_rows.words_of(statements, portal.name).get(begins[0], portal_rows.EntryWords("", b"", ""))
        portal_rows.store_words(statements, portal.name, begins[0], _apply_edit(before, changes), now)
        return begins[0]

    return _change(place, edit_entry)


def _apply_edit(before: portal_rows.EntryWords, changes: Edit) -> portal_rows.EntryWords:
    picture = before.picture if changes.picture is None else changes.picture
    if picture and not (picture_type(picture) and len(picture) <= PICTURE_BYTES):
        most = f"{PICTURE_BYTES // 1_000_000} MB"
        raise UsageError(f"a picture must be PNG, JPEG, GIF or WebP of at most {most}. Nothing was changed.")
    alt = (before.alt if changes.alt is None else changes.alt.strip()) if picture else ""
    if picture and not alt:
        raise UsageError("a picture needs a description (--alt). Nothing was changed.")
    if changes.alt and not picture:
        raise UsageError("--alt needs a picture (--picture). Nothing was changed.")
    words = before.words if changes.words is None else " ".join(changes.words.split())
    return portal_rows.EntryWords(words, picture, alt)


def _remember(place: Place, portal: Portal, chosen: Selection, entry_keys: Mapping[Url, EntryKey]) -> None:
    entries = (*chosen.published, *chosen.waiting, *chosen.hidden)
    new = {
        page.url: entry.key for entry in entries for page in entry.story.pages if entry_keys.get(page.url) != entry.key
    }
    if new:
        _change(place, lambda statements: portal_rows.store_entry_keys(statements, portal.name, new))


def _lacks(stories: Stories, entries: Sequence[Entry]) -> Iterator[str]:
    """Limitations of the edition, for its readers."""
    if len(stories.posts) < 2:
        yield f"The collection has dated pages of {len(stories.posts)} site: a story needs at least two sites."
    mute = sum(not entry.sentence for entry in entries)
    if mute:
        yield (
            f"{count_of(mute, 'story has', 'stories have')} no sentence: the first page has no running text marked as "
            "content."
        )
    guessed = sum(entry.story.order is Order.FIRST_SEEN for entry in entries)
    if guessed:
        yield (
            f"In {count_of(guessed, 'story', 'stories')} neither dates nor links show which site was first: pages are "
            f"in order of crawling."
        )
    wordless = sum(not entry.keywords for entry in entries)
    if wordless:
        yield f"{count_of(wordless, 'story has', 'stories have')} no keywords."


def build(
    place: Place, name: str, out: Path | None, now: float, watch: Watch = lambda what, done, total: None
) -> tuple[Edition, PublishResult]:
    """Builds a portal and publishes it into out, by default `portal_folder`."""
    portal = find_portal(place, name)
    edition = edition_of(place, portal, now, watch)
    done = publish(out or portal_folder(place, portal.name), portal_files(edition))
    _change(place, lambda statements: portal_rows.store_build_time(statements, portal.name, now))
    return edition, done


def decide(place: Place, portal: Portal, verb: str, subjects: Sequence[str], now: float) -> list[str]:
    """Stores an editor's decision on entries (keys or unique prefixes) and sites. All or nothing.

    Returns the full names of the subjects. Raises UsageError for a subject that is unknown or not allowed for the verb.
    """

    def decide_all(statements: Statements) -> list[str]:
        keys = sorted(set(portal_rows.known_pages(statements, portal.name).values()))
        sites = {SiteKey(key) for (key,) in statements.rows("SELECT key FROM site")}
        names = [_subject(verb, subject, keys, sites) for subject in subjects]
        for name, of_site in names:
            portal_rows.decide(statements, portal.name, name, VERBS[verb][of_site], of_site, now)
        return [name for name, _ in names]

    return _change(place, decide_all)


def _subject(
    verb: str, subject: str, keys: Sequence[EntryKey], sites: Container[SiteKey]
) -> tuple[EntryKey | SiteKey, bool]:
    """(full name, whether it is a site)."""
    given = subject.strip().lower()
    site = SiteKey((given.partition("://")[2].partition("/")[0] if "://" in given else given).removeprefix("www."))
    begins = [key for key in keys if key.startswith(given)]
    if site in sites:
        return _check_verb(verb, site, _SITE)
    if len(begins) == 1:
        return _check_verb(verb, begins[0], _ENTRY)
    why = f"matches {len(begins)} entries" if begins else "is not an entry or site of the collection"
    raise UsageError(f"{subject!r} {why}: `periplus portal show` lists both. Nothing was changed.")


def _check_verb(verb: str, name: EntryKey | SiteKey, of_site: bool) -> tuple[EntryKey | SiteKey, bool]:
    if of_site not in VERBS[verb]:
        other = "ban or pin a site" if of_site else "hide or pin an entry"
        raise UsageError(
            f"{verb} does not apply to {'sites' if of_site else 'entries'} such as {name}: {other}. Nothing was "
            f"changed."
        )
    return name, of_site
