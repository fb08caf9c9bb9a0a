"""Exports collections as web archives (WARC, WACZ), and imports archives as collections."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from periplus.acquire.clock import SystemClock
from periplus.acquire.discovery import Discovery
from periplus.acquire.fetch import completion_of, visit_of
from periplus.acquire.transport import user_agent
from periplus.api.homes import home_of, snapshot_of
from periplus.document.headers import media_type
from periplus.document.media_types import may_be_kept, may_be_read
from periplus.document.understand import canonical_xml
from periplus.errors import InvalidUrl, PeriplusError, StoreError, UsageError
from periplus.model.collection import ArchiveRecord, Exchange, RunNote
from periplus.model.frontier import Candidate, Lease, Task
from periplus.model.ports import Response, RunRecord
from periplus.model.results import ImportResult
from periplus.model.visit import Cause, Cut, Failed, Fetched, Headers, Reason, Request, Unchanged, Visit
from periplus.model.web import SiteKey, Url, UrlId
from periplus.settings import VERSION, Politeness, Settings, last_settings, settings_from
from periplus.store import aliases
from periplus.store.reader import CollectionReader
from periplus.store.sqlite import runs, schema
from periplus.store.warc import (
    CHANGED_FIELDS,
    CRAWLER,
    FILE_BYTES,
    PURPOSE,
    WarcStatistics,
    WarcTarget,
    http_answer,
    original,
    write_archive,
)
from periplus.urls.canonical import canonical, url_id
from periplus.urls.hosts import host_key
from periplus.urls.scope import SiteScope, site_name, site_scope
from periplus.values import Place, frozen
from periplus_archives.exchanges import Filler, exchanges, shared_bodies
from periplus_archives.files import CUTS, ArchiveFile, ArchiveReader, Payloads, archive_files, main_page, seconds_of
from periplus_archives.wacz import WaczNote, write_wacz

BLOCK_MARGIN_BYTES = 65_536  # room for the HTTP header before the body
LOOK_RECORDS = 200  # records between two calls of `watch`
# Settings accepted from an archive. Others (limits, patterns) could be crafted to harm the importer.
ACCEPTED_SETTINGS = ("scope", "max_depth")
GAP_S = 86_400.0  # files of one crawl follow each other sooner than this; captures of other dates seldom do
_ONCE = Politeness(retries=0)  # reading an archive again gives the same result


def export_warc(
    place: Place, path: Path, *, file_bytes: int = FILE_BYTES, index: Path | None = None, with_xml: bool = False
) -> WarcStatistics:
    """Writes every stored response as WARC 1.1, in order of fetching.

    index: path of a CDXJ index to write. with_xml: adds to each parsed page a conversion record with its canonical XML.
    Raises NoCollection, StoreError.
    """
    with _target(place, path, file_bytes, with_xml=with_xml) as (archive, reader):
        return write_archive(archive, exchanges(reader), index)


def export_wacz(place: Place, path: Path, now: float) -> WarcStatistics:
    """Writes every stored response as one WACZ 1.1.1 file: WARC, index, pages with titles and texts, digests.

    now: date of the export, in seconds since the epoch. Raises NoCollection, StoreError.
    """
    with _target(place, path, FILE_BYTES, with_xml=False) as (archive, reader):
        starts = [start for note in archive.runs.values() for start in note.starts]
        title = f"{site_name(Url(starts[0]))}, as kept by Periplus" if starts else "A web archive"
        note = WaczNote(
            title, now, starts[0] if starts else "", lambda exchange: reader.title_and_text(url_id(exchange.url))
        )
        return write_wacz(archive, exchanges(reader), note)


@contextlib.contextmanager
def _target(
    place: Place, path: Path, file_bytes: int, *, with_xml: bool
) -> Iterator[tuple[WarcTarget, CollectionReader]]:
    """The archive to write and a snapshot of the collection. Raises NoCollection, StoreError."""
    with snapshot_of(place) as reader:
        notes = {record.id: _note(record) for record in reader.runs()}
        xml_of = _xml_of(reader) if with_xml else None
        try:
            yield WarcTarget(path, notes, VERSION, shared_bodies(reader), file_bytes, xml_of), reader
        except OSError as error:
            raise StoreError(
                f"{path} cannot be written: {error.strerror or error}. Is the disk full, or the folder read-only?"
            ) from error


def _xml_of(reader: CollectionReader) -> Callable[[Exchange], tuple[bytes, str] | None]:
    """Returns a function for the canonical XML of a page: the stored one, or one made from the stored body."""

    def xml_of(exchange: Exchange) -> tuple[bytes, str] | None:
        if (stored := reader.xml(url_id(exchange.url))) is not None or exchange.body is None:
            return stored
        return canonical_xml(exchange.url, Fetched(exchange.status, exchange.headers, exchange.body))

    return xml_of


def _note(record: RunRecord) -> RunNote:
    """Metadata of a run for the archive. Secrets were masked when the settings were stored."""
    settings = last_settings(record.settings)
    robots = not (settings.politeness.mine and settings.politeness.ignore_robots)
    return RunNote(
        record.id, record.started, user_agent(settings.identity), record.starts, json.dumps(record.settings), robots
    )


# Each response in an archive is processed like a fetched page; nothing is fetched.
#
# States and reasons are those of a crawl. A URL that pages link to but the archive lacks is `discovered`, reason
# not-in-archive. No crawl fetches it on its own; `periplus crawl` with a start on its site does.


@frozen
class ImportTimes:
    """gap_s: files further apart than this become separate runs, oldest first. until: responses after this time
    (seconds since the epoch) are ignored.
    """

    gap_s: float = GAP_S
    until: float = math.inf


def import_archives(
    folder: Path,
    archives: Sequence[Path],
    starts: Sequence[Url] = (),
    settings: Settings | None = None,
    watch: Callable[[int], bool] = lambda records: False,
    times: ImportTimes | None = None,
) -> ImportResult:
    """Creates a collection from WARC, ARC or WACZ files.

    starts: if empty, those named in the archive, else its first page. settings: if None, those in the archive, else the
    defaults. watch: called with the number of records read; True stops the import. An import without any page leaves no
    collection behind. Raises UsageError for a file that is not an archive or has no page, StoreError if the collection
    exists.
    """
    if not starts or settings is None:
        starts, settings = origin_of_archives(archives, starts, settings)
    times = times or ImportTimes()
    groups = _by_date([file for path in archives for file in archive_files(path)], times)
    before = runs.names_in(folder)
    schema.create(folder)
    with runs.only_crawl(folder), contextlib.closing(Payloads()) as payloads:
        done: list[ImportResult] = []
        for began, files in groups:
            done.append(_Import(folder, files, tuple(starts), settings, payloads).run(began, times.until, watch))
            if done[-1].state == "stopped":
                break
        end = _sum_results(done)
        if end.state == "failed":
            runs.discard(folder, before)
    return end


def _by_date(files: Sequence[ArchiveFile], times: ImportTimes) -> list[tuple[float | None, list[ArchiveFile]]]:
    """Groups the files into runs, oldest first; each with the time of its first response, or None without any date.

    Files that overlap in time or follow each other within the gap belong to one run. A single file is not scanned.
    """
    if len(files) == 1:
        return [(next(_times(files[0], times.until), None), list(files))]
    spans = []
    undated: list[ArchiveFile] = []  # files without responses may record failures: they join the last run
    for file in files:
        first, last = _span(file, times.until)
        if first > last:
            undated.append(file)
        else:
            spans.append((first, last, file))
    groups: list[tuple[float | None, list[ArchiveFile]]] = []
    end = 0.0
    for first, last, file in sorted(spans, key=lambda span: span[:2]):
        if not groups or first > end + times.gap_s:
            groups.append((first, []))
            end = last
        groups[-1][1].append(file)
        end = max(end, last)
    if not groups:
        return [(None, list(files))]
    groups[-1][1].extend(undated)
    return groups


def _span(file: ArchiveFile, until: float) -> tuple[float, float]:
    """Times of the first and the last response; (inf, -inf) without any."""
    first, last = math.inf, -math.inf
    for time in _times(file, until):
        first, last = min(first, time), max(last, time)
    return first, last


def _times(file: ArchiveFile, until: float) -> Iterator[float]:
    """Times of the responses in a file up to `until`, in seconds since the epoch."""
    with ArchiveReader(file, 0) as reader:
        for record in reader:
            started = _start_time(record)
            if record.kind in ("response", "revisit") and started is not None and started <= until:
                yield started


def _sum_results(done: Sequence[ImportResult]) -> ImportResult:
    """Sums the results of the runs of an import: it failed if no run read a page."""
    states = [run.state for run in done]
    state = "stopped" if "stopped" in states else "done" if "done" in states else "failed"
    names = ("runs", "records", "answers", "failures", "left_out")
    sums = {name: sum(getattr(run, name) for run in done) for name in names}
    damages = tuple(damage for run in done for damage in run.damages)
    return replace(done[-1], state=state, note="; ".join(run.note for run in done), damages=damages, **sums)


def origin_of_archives(
    archives: Sequence[Path], starts: Sequence[Url] = (), settings: Settings | None = None
) -> tuple[tuple[Url, ...], Settings]:
    """(starts, settings) of an import; those not given are read from the archives. Raises UsageError."""
    starts = tuple(starts)
    for path in archives:
        with contextlib.suppress(InvalidUrl):
            starts = starts or ((canonical(page),) if (page := main_page(path)) else ())
    for file in (file for path in archives for file in archive_files(path)):
        if starts and settings:
            break
        with ArchiveReader(file, BLOCK_MARGIN_BYTES) as reader:
            for record in reader:
                fields = _warc_fields(record.block) if record.kind == "warcinfo" else {}
                settings = settings or _settings(fields.get("periplus-settings", ""))
                starts = starts or tuple(canonical(text) for text in fields.get("periplus-starts", "").split())
                starts = starts or ((first,) if (first := _page_url(record)) else ())
                if starts:
                    break
    if not starts:
        raise UsageError(f"{', '.join(map(str, archives))}: no page with status 200 in it, so there is no start")
    return starts, settings or Settings()


def starts_of_archive(archive: str) -> tuple[Url, ...]:
    """Starts of the file in `--from-archive`; empty for a folder or a server. Raises UsageError for a file without a
    page.
    """
    path = Path(archive).expanduser()
    return origin_of_archives([path])[0] if path.is_file() else ()


def _settings(text: str) -> Settings | None:
    """The accepted settings (BELIEVED) from a Periplus archive, or None."""
    try:
        values = json.loads(text) if text else None
        return (
            settings_from({name: values[name] for name in ACCEPTED_SETTINGS if name in values})
            if isinstance(values, dict)
            else None
        )
    except (ValueError, PeriplusError):
        return None


def _page_url(record: ArchiveRecord) -> Url | None:
    """The URL of a record that is a page, or None."""
    answer = http_answer(record.block) if record.kind == "response" and not _is_aside(record) else None
    is_page = answer and answer[0] == 200 and media_type(answer[1])[0] in ("text/html", "application/xhtml+xml")
    return _url_of(record) if is_page else None


class _Import:
    """One run of an import."""

    def __init__(
        self,
        folder: Path,
        files: Sequence[ArchiveFile],
        starts: tuple[Url, ...],
        settings: Settings,
        payloads: Payloads,
    ) -> None:
        self._folder, self._files, self._starts, self._settings = folder, files, starts, settings
        self._payloads = payloads
        self._scope: SiteScope = site_scope(starts, self._settings.scope)
        self._discovery = Discovery(self._scope, self._settings)
        self._records = self._answers = self._failures = self._left_out = self._pages = 0
        self._began = self._last = 0.0
        self._until = math.inf
        self._damages: list[str] = []

    def run(self, began: float | None, until: float, watch: Callable[[int], bool]) -> ImportResult:
        """began: time of the first response. The run gets the times of its records, not of the import."""
        self._until = until
        now = SystemClock().now()
        self._began = self._last = min(now if began is None else began, now)
        home = home_of(self._folder)
        run_id = home.begin_run("import", self._starts, self._settings, self._began)
        starts = [url_id(start) for start in self._starts]
        home.add_starts(starts, [SiteKey("")] * len(starts), self._began)  # folders do not need the sites
        state, note = "stopped", "interrupted"
        try:
            with Filler(self._folder, run_id, self._settings.storage) as filler:
                stopped = self._fill(filler, watch)
                filler.count_depths([url_id(start) for start in self._starts])
            with home.alias_ledger() as ledger:
                aliases.Reapplication(ledger, now).merge(*aliases.alias_mergers(ledger.statements))
            state, note = self._end_state(stopped)
        finally:
            home.end_run(run_id, state, note, min(self._last, now))
        counts = (1, self._records, self._answers, self._failures, self._left_out)
        return ImportResult(state, note, self._starts, *counts, tuple(self._damages))

    def _fill(self, filler: Filler, watch: Callable[[int], bool]) -> bool:
        """Returns True if `watch` stopped the import."""
        for record in self._read():
            self._records += 1
            self._take(filler, record)
            if self._records % LOOK_RECORDS == 0 and watch(self._records):
                return True
        for start in self._starts:
            filler.offer(self._candidate(start, 0), self._began)
        return False

    def _read(self) -> Iterator[ArchiveRecord]:
        for file in self._files:
            with ArchiveReader(file, self._settings.limits.body_bytes + BLOCK_MARGIN_BYTES) as reader:
                yield from reader
                if reader.damage:
                    self._damages.append(reader.damage)

    def _end_state(self, stopped: bool) -> tuple[str, str]:
        note = f"{self._answers} answers from {', '.join(dict.fromkeys(file.path.name for file in self._files))}"
        note = "; ".join([note, *self._damages])
        if not self._pages:
            return "failed", f"no page was read; {note}"
        return ("stopped", f"stopped by the user; {note}") if stopped else ("done", note)

    def _take(self, filler: Filler, record: ArchiveRecord) -> None:
        if record.kind not in ("response", "revisit", "metadata") or _is_aside(record):
            return
        started = _start_time(record)
        url = _url_of(record) if started is not None else None
        if url is None or started is None:
            self._left_out += record.kind != "metadata"
            return
        if started > self._until:
            return
        state = filler.stored_url(url_id(url))
        request = Request(url, depth=state[1] if state else 0 if url in self._starts else None)
        visit = (
            _failed_visit(record, request, started)
            if record.kind == "metadata"
            else self._visit_from_response(filler, record, request, started)
        )
        if visit is None:
            self._left_out += record.kind != "metadata"
            return
        self._last = max(self._last, started)
        self._failures += isinstance(visit.outcome, Failed)
        self._answers += not isinstance(visit.outcome, Failed)
        if state is not None and state[2] > started:
            return  # a later state is stored
        self._enter(filler, visit)

    def _visit_from_response(
        self, filler: Filler, record: ArchiveRecord, request: Request, started: float
    ) -> Visit | None:
        answer = http_answer(record.block)
        if record.kind == "revisit":
            answer = self._resolve_revisit(filler, record, request, answer)
        if answer is None:
            return None
        status, headers, body = answer
        if status == 304:  # says only that the page is unchanged
            state = filler.stored_url(request_id := url_id(request.url))
            is_there = state is not None and filler.answer(request_id) is not None
            return Visit(request, started, 0.0, Unchanged(headers)) if is_there else None
        if (digest := record.fields.get("warc-payload-digest", "")) and 200 <= status < 300:
            self._payloads.add(url_id(request.url), digest)
        cut = Cut.BODY_LIMIT if record.is_cut else CUTS.get(record.fields.get("warc-truncated", ""), Cut.NONE)
        kind = media_type(headers)[0]
        if not 200 <= status < 300:
            cut = Cut.NONE
        elif not (may_be_kept if self._settings.storage.keep_parts else may_be_read)(kind, body):
            body, cut = b"", Cut.NOT_WANTED
        address = record.fields.get("warc-ip-address", "")
        response = Response(
            request, started, 0.0, status, headers, body[: self._settings.limits.body_bytes], cut, None, "", address
        )
        return _restore_headers(visit_of(response, self._settings.limits), headers)

    def _resolve_revisit(
        self, filler: Filler, record: ArchiveRecord, request: Request, answer: tuple[int, Headers, bytes] | None
    ) -> tuple[int, Headers, bytes] | None:
        """Resolves a revisit record to the response it refers to: 304 if the page is unchanged, None if the bytes are
        not stored.

        answer: the record's own header without a body, or None. The source is found by payload digest, else by URL and
        date, so the bytes never come from another response.
        """
        if "server-not-modified" in record.fields.get("warc-profile", ""):
            return answer and (304, answer[1], b"")
        if "identical-payload-digest" not in record.fields.get("warc-profile", ""):
            return None
        reads = may_be_kept if self._settings.storage.keep_parts else may_be_read
        if answer and not (200 <= answer[0] < 300 and reads(media_type(answer[1])[0], b"")):
            return answer  # the body of such a response is not read anyway
        source = self._source(filler, record)
        earlier = None if source is None else filler.answer(source)
        if source is None or earlier is None:
            return None
        status, headers = answer[:2] if answer else earlier
        if source == url_id(request.url):
            return 304, _without_lengths(headers), b""  # the stored state is still right
        body = filler.body(source)
        return None if body is None else (status, _without_lengths(headers), body)

    def _source(self, filler: Filler, record: ArchiveRecord) -> UrlId | None:
        """The URL whose latest body is the payload of a revisit record; None if there is none or it changed since."""
        source = None
        with contextlib.suppress(InvalidUrl):
            source = url_id(canonical(record.fields.get("warc-refers-to-target-uri", "").strip("<>")))
        digest = record.fields.get("warc-payload-digest", "")
        if digest and (holder := self._payloads.holder(digest, source)) is not None:
            return holder
        date = seconds_of(record.fields.get("warc-refers-to-date", ""))
        if date is None:
            return None if digest else source
        state = None if source is None else filler.stored_url(source)
        return source if state is not None and abs(state[2] - date) < 1.0 else None

    def _enter(self, filler: Filler, visit: Visit) -> None:
        url, depth, now = visit.request.url, visit.request.depth, visit.started
        filler.offer(self._candidate(url, depth), now)
        state = filler.stored_url(url_id(url))
        assert state is not None
        is_again = 0.0 < state[2] < self._began  # fetched by an earlier run
        task = Task(state[0], 0, -1, url_id(url), visit.request, recheck=is_again)
        lease = Lease(state[0], host_key(url), self._scope.site_of(url), 0, 0.0, 0.0, 1.0, 0, True)
        read = self._discovery.of(lease, task, visit)
        candidates = tuple(_mark_absent(candidate) for candidate in read.candidates)
        completion = completion_of(replace(read, candidates=candidates), _ONCE)
        self._pages += completion.document is not None
        filler.enter(completion)

    def _candidate(self, url: Url, depth: int | None) -> Candidate:
        return Candidate(url, url_id(url), host_key(url), self._scope.site_of(url), Reason.NOT_ARCHIVED, depth)


def _mark_absent(candidate: Candidate) -> Candidate:
    """Replaces reason `waiting`: the URL comes later in the archive, or is not in it."""
    return candidate._replace(reason=Reason.NOT_ARCHIVED) if candidate.reason is Reason.WAITING else candidate


def _url_of(record: ArchiveRecord) -> Url | None:
    """None for a URL that is invalid or of another scheme. Some programs write it between < and >, following the
    grammar of WARC 1.0.
    """
    with contextlib.suppress(InvalidUrl):
        url = canonical(record.fields.get("warc-target-uri", "").strip("<>"))
        return url if url.startswith(("http://", "https://")) else None
    return None


def _start_time(record: ArchiveRecord) -> float | None:
    """WARC-Date in seconds since the epoch; None if it is invalid."""
    return seconds_of(record.fields.get("warc-date", ""))


def _is_aside(record: ArchiveRecord) -> bool:
    """Whether the record is not a page: robots.txt, or another purpose named in the record."""
    if PURPOSE.lower() in record.fields:
        return True
    path = record.fields.get("warc-target-uri", "").strip("<>").partition("?")[0]
    return path.count("/") == 3 and path.endswith("/robots.txt")


def _failed_visit(record: ArchiveRecord, request: Request, started: float) -> Visit | None:
    """The failed visit recorded in a metadata record of Periplus, or None."""
    fields = _warc_fields(record.block)
    if fields.get("outcome") != "failed":
        return None
    cause, _, detail = fields.get("detail", "").partition(": ")
    failure = Cause(cause) if cause in set(Cause) else Cause.CONNECT
    took = fields.get("fetchtimems", "")
    return Visit(
        request, started, int(took[:18]) / 1000 if took.isascii() and took.isdigit() else 0.0, Failed(failure, detail)
    )


def _without_lengths(headers: Headers) -> Headers:
    """Drops headers that describe the body as sent: the stored body is complete and decoded."""
    return Headers(tuple(item for item in headers.fields if item[0] not in CHANGED_FIELDS), headers.status_line)


def _restore_headers(visit: Visit, headers: Headers) -> Visit:
    """Restores the headers and Content-Length that the server sent, where the archive records them separately."""
    outcome, sent = visit.outcome, original(headers)
    if sent is headers or isinstance(outcome, Failed | Unchanged):
        return visit
    length = headers.get(CRAWLER + "content-length")
    wire_bytes = int(length[:18]) if length.isascii() and length.isdigit() else visit.wire_bytes
    return replace(
        visit,
        outcome=replace(outcome, headers=sent) if isinstance(outcome, Fetched) else outcome,
        wire_bytes=wire_bytes,
    )


def _warc_fields(block: bytes) -> dict[str, str]:
    """The lines of an application/warc-fields block, names in lower case."""
    lines = (line.partition(":") for line in block.decode("utf-8", "replace").splitlines())
    return {name.strip().lower(): value.strip() for name, colon, value in lines if colon}
