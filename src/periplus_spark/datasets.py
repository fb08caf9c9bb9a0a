"""Exports a collection as a Parquet dataset, in parts and with several processes; imports the engines' results."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, replace
from itertools import accumulate, pairwise
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from periplus.api.homes import name_of, place_at
from periplus.children import finish_child, send, start_child
from periplus.errors import PeriplusError, StoreError, UsageError
from periplus.model.ports import RunRecord
from periplus.present.writers import parquet_module
from periplus.settings import VERSION
from periplus.store.sqlite.schema import WriteLock
from periplus.values import Place, fields_of, frozen
from periplus_spark import files
from periplus_spark.dataset import (
    TABLES,
    Block,
    CodedColumn,
    EarlierNumbers,
    Manifest,
    Numbering,
    PartNote,
    StoredRows,
    host_block,
    numbering,
    order_hosts,
    part_blocks,
    part_digest,
    redirect_block,
    whole_of,
)
from periplus_spark.files import (
    DRAFTS,
    blocks,
    drop,
    is_whole,
    keep_part,
    manifest_in,
    noted_table,
    require_free,
    write_manifest,
    write_part,
)

if TYPE_CHECKING:
    pass


# An export is a list of parts: for each table, the rows of a range of URL numbers. The folder UNFINISHED has a journal:
# its first line describes the export, each later line names a finished part and is appended after the part's file was
# renamed into place. After a kill, the next export into the folder writes the missing parts. The numbering of URLs,
# which every part needs, is stored there too.

JOURNAL = "parts.jsonl"
PART_URLS = 1 << 20  # URLs per part by default; with 50 links on a fifth of them 10,000,000 links, 100 MB
INTERNAL = frozenset({"sketches", "edges", "nodes"})  # intermediate tables of results
BY_URL = ("links", "texts", "pages", "urls")  # tables in parts; the slowest first, so that processes end together

TableWatch = Callable[[str, int], None]  # (table, rows written so far)


def no_watch(table: str, rows: int) -> None:
    """Default: no progress reports."""


@frozen
class ExportPlan:
    """What an export writes.

    first_run: start of the collection's first run, which identifies it. moments: when it was read; several if an
    interrupted export was continued. bounds: numbers of the first URL of each part, and of the URLs. after: digest of
    the earlier export whose unchanged parts are kept.
    """

    collection: str
    first_run: float
    texts: bool
    parts: int
    inputs: Mapping[str, object]
    program: str
    moments: tuple[float, ...]
    after: str
    bounds: tuple[int, ...] = ()

    def is_of(self, other: ExportPlan) -> bool:
        """Whether parts written for one of the plans fit the other."""
        mine = (self.collection, self.first_run, self.texts, self.program, self.after)
        return mine == (other.collection, other.first_run, other.texts, other.program, other.after) and (
            other.parts in (0, self.parts)
        )


class DatasetPart(NamedTuple):
    """A part of a table: the rows of the URLs with numbers first <= n < end."""

    table: str
    number: int
    first: int
    end: int


Notes = dict[tuple[str, int], PartNote]  # finished parts by table and number


@frozen
class Earlier:
    """The earlier export whose unchanged parts are kept, if any."""

    folder: Path
    manifest: Manifest | None
    notes: Notes

    @classmethod
    def of(cls, folder: Path | None) -> Earlier:
        """Raises StoreError if the folder has no complete dataset."""
        if folder is None:
            return cls(Path(), None, {})
        manifest = manifest_in(folder)
        tables = manifest.tables if manifest.program == VERSION else ()
        notes = {(table.name, number): note for table in tables for number, note in enumerate(table.parts)}
        return cls(folder, manifest, notes)

    def note(self, part: DatasetPart) -> PartNote | None:
        return self.notes.get((part.table, part.number))

    def numbers(self) -> EarlierNumbers:
        if not self.manifest:
            return EarlierNumbers(np.zeros(0, np.int64), (), ())
        hosts = [
            host for block in blocks(self.folder, "hosts", ["name", "site", "site_name"]) for host in block.to_pylist()
        ]
        sites = {host["site"]: str(host["site_name"]) for host in hosts}
        names = [str(host["name"]) for host in hosts]
        return EarlierNumbers(files.numbers(self.folder, "urls", "id"), names, [sites[n] for n in range(len(sites))])

    def bounds(self) -> Sequence[int]:
        """Numbers of the first URL of each part, and of the URLs."""
        tables = self.manifest.tables if self.manifest else ()
        rows = (part.rows for table in tables if table.name == "urls" for part in table.parts)
        return list(accumulate(rows, initial=0))


Ask = Callable[[object], Any]  # sends a message to a child process and returns its reply


class ExportParts(NamedTuple):
    """How an export is divided. files: per table, of new URLs; 0: one for every `urls`; workers: processes.

    after: an earlier export, whose URLs keep their numbers: parts without changes are hard links to its files, and new
    URLs are in further parts.
    """

    files: int = 0
    workers: int = 1
    after: Path | None = None
    urls: int = PART_URLS


def export_dataset(
    place: Place,
    into: Path,
    now: float,
    *,
    with_texts: bool = False,
    parts: ExportParts | tuple[int, int] = (0, 1),
    watch: TableWatch = no_watch,
) -> Manifest:
    """Writes a collection (folder or database address) as Parquet tables: docs/parquet.md.

    with_texts: include the pages' texts. parts: (files per table, processes); 0 files: one for every PART_URLS. All
    parts show one snapshot; in a continued export, each attempt has its own. after: an earlier export, whose URLs keep
    their numbers: parts without changes are hard links to its files, and new URLs are in further parts.

    Raises NoCollection, StoreError, UsageError for a full folder or without pyarrow. A kill leaves no manifest.
    """
    parquet_module()  # before the folder is made
    require_free(into)
    count, workers, after, part_urls = ExportParts(*parts)
    with contextlib.ExitStack() as stack:
        earlier = Earlier.of(after)
        children = [stack.enter_context(_child(place, into, after)) for _ in range(workers if workers > 1 else 0)]
        rows = stack.enter_context(_one_moment(place, children))
        try:
            records = rows.runs()
            if earlier.manifest:
                refuse_other(earlier.manifest, earlier.folder, records, name_of(place))
            plan = _plan_export(place, records, with_texts, count, now, earlier)
            plan, done = _begin_export(plan, into, rows, earlier, part_urls)
            numbers = Numbering.load(into / DRAFTS)
            written = Counter[str]()
            for (table, _), note in done.items():
                written[table] += note.rows

            def progress(table: str, rows: int) -> None:
                written[table] += rows
                watch(table, written[table])

            adding = threading.Lock()

            def add_part(part: DatasetPart, note: PartNote) -> None:
                if len(plan.moments) > 1 and earlier.note(part) != note:
                    note = replace(note, stored="")  # it may lack links to URLs that have no number here
                with adding, (into / DRAFTS / JOURNAL).open("a", encoding="utf-8") as journal:
                    journal.write(_line(part.table, part.number, note) + "\n")
                    done[part.table, part.number] = note
                    if children:
                        progress(part.table, note.rows)

            missing = deque(part for part in _parts(plan) if (part.table, part.number) not in done)
            alone = [lambda part: _make_part(into, rows, numbers, part, earlier, progress)]
            _make_parts(missing, [_remote(ask) for ask in children] or alone, add_part)
            manifest = _manifest(plan, done, now, with_texts=with_texts)
            write_manifest(into, manifest)
            shutil.rmtree(into / DRAFTS, ignore_errors=True)
        except OSError as error:
            raise unwritable_error(into, error) from error
        return manifest


def _manifest(plan: ExportPlan, notes: Notes, now: float, *, with_texts: bool) -> Manifest:
    names = [name for name in TABLES if with_texts or name != "texts"]
    tables = tuple(
        noted_table(name, [note for key, note in sorted(notes.items()) if key[0] == name], TABLES[name].columns)
        for name in names
    )
    inputs = {**plan.inputs, "moments": list(plan.moments)} | ({"after": plan.after} if plan.after else {})
    return Manifest("collection", VERSION, now, inputs, {"texts": with_texts}, tables)


def unwritable_error(into: Path, error: OSError) -> StoreError:
    return StoreError(
        f"{into} cannot be written: {error.strerror or error}. Is the disk full? The same command continues."
    )


@contextlib.contextmanager
def _one_moment(place: Place, children: Sequence[Ask]) -> Iterator[StoredRows]:
    """Opens one snapshot of the collection's rows in this process and in all children.

    PostgreSQL exports its snapshot by name. For SQLite, all processes open theirs while the write lock is held.
    """
    for ask in children:
        ask("")  # waits until its modules are imported
    with contextlib.ExitStack() as stack:
        with contextlib.ExitStack() as unwritten:
            if children and isinstance(place, Path):
                with contextlib.suppress(StoreError):  # read-only folder: nothing can change
                    unwritten.enter_context(WriteLock(place).hold())
            rows = stack.enter_context(whole_of(place))
            rows.runs()  # opens the snapshot
            moment = rows.moment() if children else ""
            for ask in children:
                ask(moment)
        yield rows


def _plan_export(
    place: Place, records: Sequence[RunRecord], texts: bool, parts: int, now: float, earlier: Earlier
) -> ExportPlan:
    inputs = inputs_of(place, records)
    first = records[0].started if records else 0.0
    after = earlier.manifest.digest if earlier.manifest else ""
    return ExportPlan(name_of(place), first, texts, parts, inputs, VERSION, (now,), after)


def inputs_of(place: Place, records: Sequence[RunRecord]) -> dict[str, object]:
    """What identifies the moment of an export. fetched: change number, the pages requested in all runs."""
    last = fields_of(records[-1], "id kind state started ended") if records else None
    fetched = sum(run.fetched for run in records)
    return {"collection": name_of(place), "runs": len(records), "last_run": last, "fetched": fetched}


def _begin_export(
    plan: ExportPlan, into: Path, rows: StoredRows, before: Earlier, part_urls: int
) -> tuple[ExportPlan, Notes]:
    """Continues a matching unfinished export, or starts a new one; returns the plan and the finished parts."""
    earlier, notes = _journal(into)
    work = into / DRAFTS
    if earlier is not None and earlier.is_of(plan):
        plan = replace(earlier, moments=(*earlier.moments, *plan.moments))
    else:
        drop(into)
        work.mkdir()
        old_numbers = before.numbers()
        hosts = order_hosts(rows.hosts(), old_numbers)
        numbers = numbering(rows, hosts, old_numbers)
        numbers.save(work)
        old, new = before.bounds(), len(numbers.ids) - len(old_numbers.ids)
        count = plan.parts or max(1, -(-new // part_urls))
        bounds = (
            old[-1] + new * number // count for number in range(1, count + 1 if new or not old_numbers.hosts else 1)
        )
        plan = replace(plan, parts=count, bounds=(*old, *bounds))
        notes = {("hosts", 0): write_part(into, "hosts", 0, [host_block(hosts, old_numbers)])}
    lines = [json.dumps(asdict(plan)), *(_line(table, number, note) for (table, number), note in notes.items())]
    draft = work / f"{JOURNAL}.part"
    draft.write_text("\n".join([*lines, ""]), "utf-8")
    draft.replace(work / JOURNAL)
    return plan, notes


def _journal(into: Path) -> tuple[ExportPlan | None, Notes]:
    """(plan, finished parts) of an unfinished export; (None, {}) without one."""
    notes: Notes = {}
    try:
        first, *lines = (into / DRAFTS / JOURNAL).read_text("utf-8").splitlines()
        content = json.loads(first)
        plan = ExportPlan(**content | {name: tuple(content[name]) for name in ("moments", "bounds")})
        for line in lines:
            table, number, note = json.loads(line)
            if (path := into / table / note["name"]).is_file() and path.stat().st_size == note["size_bytes"]:
                notes[table, number] = PartNote(**note)
    except FileNotFoundError:
        return None, {}
    except (ValueError, KeyError, TypeError):  # last line truncated by a kill; the lines before are complete
        return (plan, notes) if notes else (None, {})
    return plan, notes


def _line(table: str, number: int, note: PartNote) -> str:
    return json.dumps((table, number, asdict(note)))


def _parts(plan: ExportPlan) -> Iterator[DatasetPart]:
    for table in BY_URL:
        for number, (first, end) in enumerate(pairwise(plan.bounds) if plan.texts or table != "texts" else ()):
            yield DatasetPart(table, number, first, end)
    yield DatasetPart("redirects", 0, 0, plan.bounds[-1])


def _make_part(
    into: Path, rows: StoredRows, numbers: Numbering, part: DatasetPart, earlier: Earlier, progress: TableWatch
) -> PartNote:
    """Writes a part, or keeps that of the earlier export."""
    if part.table == "redirects":
        return write_part(into, part.table, part.number, [redirect_block(rows, numbers)])

    def report_rows(made: Iterable[Block]) -> Iterator[Block]:
        for block in made:
            yield block
            progress(part.table, len(first) if not isinstance(first := block[0], CodedColumn) else 0)

    stored = part_digest(part.table, rows, numbers, part.first, part.end)
    note = earlier.note(part)
    if note and stored and note.stored == stored and keep_part(earlier.folder, into, part.table, note):
        progress(part.table, note.rows)
        return note
    made = part_blocks(part.table, rows, numbers, part.first, part.end)
    written = replace(write_part(into, part.table, part.number, report_rows(made)), stored=stored)
    if written == note:
        keep_part(earlier.folder, into, part.table, note)
    return written


def _make_parts(
    missing: deque[DatasetPart],
    makers: Sequence[Callable[[DatasetPart], PartNote]],
    add_part: Callable[[DatasetPart, PartNote], None],
) -> None:
    """Makes all missing parts, with all makers in parallel."""

    def work(make: Callable[[DatasetPart], PartNote]) -> None:
        while True:
            try:
                part = missing.popleft()
            except IndexError:  # no part is left
                return
            add_part(part, make(part))

    if len(makers) == 1:
        work(makers[0])
        return
    pool = ThreadPoolExecutor(len(makers))
    try:
        for future in as_completed([pool.submit(work, make) for make in makers]):
            future.result()
    finally:
        missing.clear()
        pool.shutdown(wait=False)  # parts in progress end with their processes


def _remote(ask: Ask) -> Callable[[DatasetPart], PartNote]:
    return lambda part: PartNote(**ask(part))


@contextlib.contextmanager
def _child(place: Place, into: Path, after: Path | None) -> Iterator[Ask]:
    """Starts a child process that reads the collection and writes parts (see `serve`); kills it at the end."""
    order = {"place": str(place), "into": str(into.absolute()), "after": str(after.absolute()) if after else ""}
    child = start_child("-m", "periplus_spark.datasets", order=order, stdout=subprocess.PIPE)

    def ask(message: object) -> Any:
        send(child, message)
        assert child.stdout is not None
        line = child.stdout.readline()
        if not line:
            raise StoreError(
                "a child process of the export died. Run the same command again to write the missing parts."
            )
        answer = json.loads(line)
        if "error" in answer:
            raise StoreError(answer["error"])
        return answer

    try:
        yield ask
    finally:
        child.kill()
        finish_child(child)


def serve() -> None:
    """Main loop of the child process: opens a snapshot, then writes parts and replies with the note of each."""
    lines: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    order = lines.get()
    place, into = place_at(order["place"]), Path(order["into"])
    earlier = Earlier.of(Path(order["after"]) if order["after"] else None)
    lines.get()
    _answer({})
    try:
        with whole_of(place, lines.get()) as rows:
            rows.runs()
            _answer({})
            part = DatasetPart(*lines.get())
            numbers = Numbering.load(into / DRAFTS)
            while True:
                _answer(asdict(_make_part(into, rows, numbers, part, earlier, no_watch)))
                part = DatasetPart(*lines.get())
    except OSError as error:
        _answer({"error": str(unwritable_error(into, error))})
    except PeriplusError as error:
        _answer({"error": str(error)})


def _listen(lines: SimpleQueue[Any]) -> None:
    """Queues the lines of standard input; exits at its end, which means that the parent has died."""
    with open(0, "rb", closefd=False) as messages:
        for line in messages:
            lines.put(json.loads(line))
    os._exit(0)


def _answer(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def manifests_of_results(results: Path, digest: str) -> dict[Path, Manifest]:
    """Manifests of finished results, by folder. digest: of their dataset."""
    manifests = {path: manifest_in(path) for path in sorted(results.glob("*/")) if is_whole(path)}
    return {path: manifest for path, manifest in manifests.items() if manifest.inputs.get("dataset") == digest}


def result_table(manifest: Manifest, table: str) -> str:
    return f"result_{manifest.kind}" + ("" if table == manifest.kind else f"_{table}")


def refuse_other(numbers: Manifest, dataset: Path, runs: Sequence[RunRecord], name: str) -> None:
    """Raises UsageError if the dataset is from another collection, recognised by its runs even after a move.

    The dataset's last run must still exist: deleting a run deletes pages.
    """
    last = numbers.inputs.get("last_run")
    if not isinstance(last, dict) or (last.get("id"), last.get("started")) not in {
        (run.id, run.started) for run in runs
    }:
        source = numbers.inputs.get("collection", "another collection")
        raise UsageError(
            f"{dataset} is not a dataset of {name}, but of {source}, or of a deleted run: run "
            "`periplus export parquet` again."
        )


if __name__ == "__main__":
    serve()
