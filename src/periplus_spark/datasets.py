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
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from periplus.api.homes import name_of, place_at, results_of
from periplus.children import finish_child, send, start_child
from periplus.errors import PeriplusError, StoreError, UsageError
from periplus.model.ports import ComputedTable, ResultNote, RunRecord
from periplus.settings import VERSION
from periplus.store.sqlite.schema import WriteLock
from periplus.values import Place, fields_of, frozen
from periplus_spark.dataset import (
    TABLES,
    Block,
    CodedColumn,
    Manifest,
    Numbering,
    PartNote,
    StoredRows,
    host_block,
    numbering,
    part_blocks,
    redirect_block,
    whole_of,
)
from periplus_spark.files import (
    DRAFTS,
    blocks,
    drop,
    manifest_in,
    noted_table,
    require_free,
    write_manifest,
    write_part,
)

if TYPE_CHECKING:
    import pyarrow as pa


# An export is a list of parts: for each table, the rows of a range of URL numbers. The folder UNFINISHED has a journal:
# its first line describes the export, each later line names a finished part and is appended after the part's file was
# renamed into place. After a kill, the next export into the folder writes the missing parts. The numbering of URLs,
# which every part needs, is stored there too.

JOURNAL = "parts.jsonl"
PART_URLS = 1 << 20  # URLs per part by default; with 50 links on a fifth of them 10,000,000 links, 100 MB
BY_URL = ("links", "texts", "pages", "urls")  # tables in parts; the slowest first, so that processes end together

TableWatch = Callable[[str, int], None]  # (table, rows written so far)


def _silent(table: str, rows: int) -> None:
    """Default: no progress reports."""


@frozen
class ExportPlan:
    """What an export writes.

    first_run: start of the collection's first run, which identifies it. moments: when it was read; several if an
    interrupted export was continued.
    """

    collection: str
    first_run: float
    texts: bool
    parts: int
    inputs: Mapping[str, object]
    program: str
    moments: tuple[float, ...]

    def is_of(self, other: ExportPlan) -> bool:
        """Whether parts written for one of the plans fit the other."""
        mine = (self.collection, self.first_run, self.texts, self.program)
        return mine == (other.collection, other.first_run, other.texts, other.program) and (
            other.parts in (0, self.parts)
        )


class DatasetPart(NamedTuple):
    """A part of a table: the rows of the URLs with numbers first <= n < end."""

    table: str
    number: int
    first: int
    end: int


Ask = Callable[[object], Any]  # sends a message to a child process and returns its reply
Notes = dict[tuple[str, int], PartNote]  # finished parts by table and number


def export_dataset(
    place: Place,
    into: Path,
    now: float,
    *,
    with_texts: bool = False,
    parts: tuple[int, int] = (0, 1),
    watch: TableWatch = _silent,
) -> Manifest:
    """Writes a collection (folder or database address) as Parquet tables: docs/parquet.md.

    with_texts: include the pages' texts. parts: (files per table, processes); 0 files: one for every PART_URLS. All
    parts show one snapshot; in a continued export, each attempt has its own.

    Raises NoCollection, StoreError, UsageError for a folder that is not empty. A kill leaves no manifest.
    """
    require_free(into)
    count, workers = parts
    with contextlib.ExitStack() as stack:
        children = [stack.enter_context(_child(place, into)) for _ in range(workers if workers > 1 else 0)]
        rows = stack.enter_context(_one_moment(place, children))
        try:
            plan, done = _begin_export(_plan_export(place, rows, with_texts, count, now), into, rows)
            numbers = Numbering.load(into / DRAFTS)
            written = Counter[str]()
            for (table, _), note in done.items():
                written[table] += note.rows

            def progress(table: str, rows: int) -> None:
                written[table] += rows
                watch(table, written[table])

            adding = threading.Lock()

            def add_part(part: DatasetPart, note: PartNote) -> None:
                with adding, (into / DRAFTS / JOURNAL).open("a", encoding="utf-8") as journal:
                    journal.write(_line(part.table, part.number, note) + "\n")
                    done[part.table, part.number] = note
                    if children:
                        progress(part.table, note.rows)

            missing = deque(part for part in _parts(plan, len(numbers.ids)) if (part.table, part.number) not in done)
            alone = [lambda part: _make_part(into, rows, numbers, part, progress)]
            _make_parts(missing, [_remote(ask) for ask in children] or alone, add_part)
            names = [name for name in TABLES if with_texts or name != "texts"]
            tables = tuple(
                noted_table(name, [note for key, note in sorted(done.items()) if key[0] == name], TABLES[name].columns)
                for name in names
            )
            inputs = {**plan.inputs, "moments": list(plan.moments)}
            manifest = Manifest("collection", VERSION, now, inputs, {"texts": with_texts}, tables)
            write_manifest(into, manifest)
            shutil.rmtree(into / DRAFTS, ignore_errors=True)
        except OSError as error:
            raise _unwritable(into, error) from error
        return manifest


def _unwritable(into: Path, error: OSError) -> StoreError:
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


def _plan_export(place: Place, rows: StoredRows, texts: bool, parts: int, now: float) -> ExportPlan:
    records = rows.runs()
    last = records[-1] if records else None
    run = fields_of(last, "id kind state started ended") if last else None
    inputs = {"collection": name_of(place), "runs": len(records), "last_run": run}
    return ExportPlan(name_of(place), records[0].started if records else 0.0, texts, parts, inputs, VERSION, (now,))


def _begin_export(plan: ExportPlan, into: Path, rows: StoredRows) -> tuple[ExportPlan, Notes]:
    """Continues a matching unfinished export, or starts a new one; returns the plan and the finished parts."""
    earlier, notes = _journal(into)
    work = into / DRAFTS
    if earlier is not None and earlier.is_of(plan):
        plan = replace(earlier, moments=(*earlier.moments, *plan.moments))
    else:
        drop(into)
        work.mkdir()
        hosts = rows.hosts()
        numbers = numbering(rows, hosts)
        numbers.save(work)
        plan = replace(plan, parts=plan.parts or max(1, -(-len(numbers.ids) // PART_URLS)))
        notes = {("hosts", 0): write_part(into, "hosts", 0, [host_block(hosts)])}
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
        plan = ExportPlan(**content | {"moments": tuple(content["moments"])})
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


def _parts(plan: ExportPlan, urls: int) -> Iterator[DatasetPart]:
    for table in BY_URL:
        for number in range(plan.parts if plan.texts or table != "texts" else 0):
            yield DatasetPart(table, number, urls * number // plan.parts, urls * (number + 1) // plan.parts)
    yield DatasetPart("redirects", 0, 0, urls)


def _make_part(into: Path, rows: StoredRows, numbers: Numbering, part: DatasetPart, progress: TableWatch) -> PartNote:
    """Writes a part."""
    if part.table == "redirects":
        return write_part(into, part.table, part.number, [redirect_block(rows, numbers)])

    def report_rows(made: Iterable[Block]) -> Iterator[Block]:
        for block in made:
            yield block
            progress(part.table, len(first) if not isinstance(first := block[0], CodedColumn) else 0)

    made = part_blocks(part.table, rows, numbers, part.first, part.end)
    return write_part(into, part.table, part.number, report_rows(made))


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
def _child(place: Place, into: Path) -> Iterator[Ask]:
    """Starts a child process that reads the collection and writes parts (see `serve`); kills it at the end."""
    order = {"place": str(place), "into": str(into.absolute())}
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
    lines.get()
    _answer({})
    try:
        with whole_of(place, lines.get()) as rows:
            rows.runs()
            _answer({})
            part = DatasetPart(*lines.get())
            numbers = Numbering.load(into / DRAFTS)
            while True:
                _answer(asdict(_make_part(into, rows, numbers, part, _silent)))
                part = DatasetPart(*lines.get())
    except OSError as error:
        _answer({"error": str(_unwritable(into, error))})
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


LoadWatch = Callable[[str], None]  # called with each table's name
INTERNAL = frozenset({"sketches", "edges", "nodes"})  # intermediate tables


def load_results(
    place: Place, results: Path, dataset: Path, now: float, watch: LoadWatch = lambda table: None
) -> Mapping[str, int]:
    """Loads all finished analyses below `results` that were computed from the dataset; returns row counts by table.

    place: a folder or a database address. All results are loaded in one transaction and replace earlier results of
    the same name; results of another dataset are deleted.

    Raises UsageError if no analysis is finished or the dataset is from another collection, NoCollection, StoreError.
    """
    numbers = manifest_in(dataset)
    manifests = {path: manifest_in(path) for path in sorted(results.glob("*/")) if (path / "manifest.json").is_file()}
    finished = {
        path: manifest for path, manifest in manifests.items() if manifest.inputs.get("dataset") == numbers.digest
    }
    if not finished:
        others = f": {len(manifests)} were computed from another dataset" if manifests else ""
        raise UsageError(f"{results} has no finished results of {dataset}{others}. Run `periplus analyse {dataset}`.")
    rows: dict[str, int] = {}
    with results_of(place, now) as store:
        _refuse_other(numbers, dataset, store.runs(), name_of(place))
        if store.dataset() != numbers.digest:
            store.clear()
        for table in _numbers(dataset):
            watch(table.name)
            rows[table.name] = store.replace(table)
        for path, manifest in finished.items():
            for table in _tables(path, manifest):
                watch(table.name)
                rows[table.name] = store.replace(table)
            store.note(_note(manifest, numbers.digest))
    return rows


def _refuse_other(numbers: Manifest, dataset: Path, runs: Sequence[RunRecord], name: str) -> None:
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


def _numbers(dataset: Path) -> Iterator[ComputedTable]:
    """Tables that map the numbers in results to the collection's own ids."""
    yield ComputedTable("result_url", (("url", "INTEGER"), ("id", "INTEGER")), _rows(dataset, "urls", ["url", "id"]))
    sites = sorted(set(_rows(dataset, "hosts", ["site", "site_name"])), key=str)
    yield ComputedTable("result_site", (("site", "INTEGER"), ("name", "TEXT")), sites)


def _tables(place: Path, manifest: Manifest) -> Iterator[ComputedTable]:
    for table in manifest.tables:
        if table.name not in INTERNAL:
            name = f"result_{manifest.kind}" + ("" if table.name == manifest.kind else f"_{table.name}")
            yield ComputedTable(
                name, _columns(place, table.name, list(table.columns)), _rows(place, table.name, list(table.columns))
            )


def _columns(place: Path, table: str, names: Sequence[str]) -> list[tuple[str, str]]:
    import pyarrow.parquet as pq

    types = {field.name: str(field.type) for field in pq.read_schema(place / table / "part-00000.parquet")}
    return [(name, _kind(types[name])) for name in names]


def _kind(type: str) -> str:
    return {"double": "REAL", "float": "REAL", "string": "TEXT", "large_string": "TEXT", "binary": "BLOB"}.get(
        type, "INTEGER"
    )


def _rows(place: Path, table: str, columns: Sequence[str]) -> Iterator[tuple[object, ...]]:
    for block in blocks(place, table, columns):
        yield from zip(*(_values(block.column(name)) for name in columns), strict=True)


def _values(column: pa.Array) -> list[object]:
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    values: list[object] = column.to_pylist()
    return values


def _note(manifest: Manifest, dataset: str) -> ResultNote:
    return ResultNote(
        manifest.kind,
        manifest.digest,
        dataset,
        json.dumps(manifest.parameters, sort_keys=True),
        manifest.program,
        manifest.made,
    )


if __name__ == "__main__":
    serve()
