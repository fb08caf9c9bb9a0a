"""Writes a collection as a dataset for engines, in parts and by several processes; takes back what they computed."""

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

from periplus.analyse.engines.dataset_files import (
    UNFINISHED,
    blocks,
    drop,
    manifest_in,
    noted_table,
    require_free,
    write_manifest,
    write_part,
)
from periplus.api.homes import name_of, results_of, whole_of
from periplus.children import finish_child, send, start_child
from periplus.errors import PeriplusError, StoreError, UsageError
from periplus.model.dataset import TABLES, Block, Coded, ComputedTable, Manifest, PartNote, ResultNote, WholeRows
from periplus.model.ports import RunRecord
from periplus.settings import VERSION
from periplus.store.datasets import Numbering, host_block, numbering, part_blocks, redirect_block
from periplus.store.postgres.address import is_address
from periplus.store.sqlite.schema import WriteLock
from periplus.values import frozen

if TYPE_CHECKING:
    import pyarrow as pa


# An export is a list of parts: of each table the rows of so many URLs, in the order of their numbers. What is written,
# and which parts are there, stands in the folder UNFINISHED: the first line says of what and in how many parts, each
# further one names a part, noted after its file got its name. After a kill the next export of the collection into the
# folder makes the parts that are missing. The numbers of URLs, which every part needs, lie there too.

JOURNAL = "parts.jsonl"
PART_URLS = 1 << 20  # of a part, by default: with 50 links of each fifth one 10,000,000 links, 100 MB
BY_URL = ("links", "texts", "pages", "urls")  # tables in parts, the longest first: no process is left alone with one

TableWatch = Callable[[str, int], None]  # (the table that is written, its rows so far)


def _silent(table: str, rows: int) -> None:
    """Nobody watches."""


@frozen
class ExportPlan:
    """What an export writes.

    first_run: when the collection began, by which it is known again. moments: when it was read; several where an export
    that was killed went on.
    """

    collection: str
    first_run: float
    texts: bool
    parts: int
    inputs: Mapping[str, object]
    program: str
    moments: tuple[float, ...]

    def is_of(self, other: ExportPlan) -> bool:
        """Whether parts that were written by one are parts of the other."""
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


Ask = Callable[[object], Any]  # sends a message to a process and returns its answer
Notes = dict[tuple[str, int], PartNote]  # the parts that are there, by table and number


def export_dataset(
    place: Path | str,
    into: Path,
    now: float,
    *,
    with_texts: bool = False,
    parts: tuple[int, int] = (0, 1),
    watch: TableWatch = _silent,
) -> Manifest:
    """Writes the collection in a folder, or at an address, as Parquet tables: docs/parquet.md.

    with_texts: also the pages' texts. parts: of how many files a table is, 0: one for each PART_URLS; and how many
    processes write them. All is of one moment; of an export that goes on, each part is of its own one's.

    Raises NoCollection, StoreError, UsageError for a folder that is not empty. A kill leaves no manifest.
    """
    require_free(into)
    count, workers = parts
    with contextlib.ExitStack() as stack:
        children = [stack.enter_context(_child(place, into)) for _ in range(workers if workers > 1 else 0)]
        rows = stack.enter_context(_one_moment(place, children))
        try:
            plan, done = _begun(_planned(place, rows, with_texts, count, now), into, rows)
            numbers = Numbering.load(into / UNFINISHED)
            written = Counter[str]()
            for (table, _), note in done.items():
                written[table] += note.rows

            def progress(table: str, rows: int) -> None:
                written[table] += rows
                watch(table, written[table])

            adding = threading.Lock()

            def noted(part: DatasetPart, note: PartNote) -> None:
                with adding, (into / UNFINISHED / JOURNAL).open("a", encoding="utf-8") as journal:
                    journal.write(_line(part.table, part.number, note) + "\n")
                    done[part.table, part.number] = note
                    if children:
                        progress(part.table, note.rows)

            missing = deque(part for part in _parts(plan, len(numbers.ids)) if (part.table, part.number) not in done)
            alone = [lambda part: _made(into, rows, numbers, part, progress)]
            _each(missing, [_remote(ask) for ask in children] or alone, noted)
            names = [name for name in TABLES if with_texts or name != "texts"]
            tables = tuple(
                noted_table(name, [note for key, note in sorted(done.items()) if key[0] == name], TABLES[name].columns)
                for name in names
            )
            inputs = {**plan.inputs, "moments": list(plan.moments)}
            manifest = Manifest("collection", VERSION, now, inputs, {"texts": with_texts}, tables)
            write_manifest(into, manifest)
            shutil.rmtree(into / UNFINISHED, ignore_errors=True)
        except OSError as error:
            raise _unwritable(into, error) from error
        return manifest


def _unwritable(into: Path, error: OSError) -> StoreError:
    return StoreError(
        f"{into} cannot be written: {error.strerror or error}. Is the disk full? The same command continues."
    )


@contextlib.contextmanager
def _one_moment(place: Path | str, children: Sequence[Ask]) -> Iterator[WholeRows]:
    """The collection's rows as they stand, in this process and in all children.

    A database names its moment. A folder cannot: all begin to read while nobody may write.
    """
    for ask in children:
        ask("")  # until it has loaded its modules
    with contextlib.ExitStack() as stack:
        with contextlib.ExitStack() as unwritten:
            if children and isinstance(place, Path):
                with contextlib.suppress(StoreError):  # where nothing can be written nobody writes
                    unwritten.enter_context(WriteLock(place).held())
            rows = stack.enter_context(whole_of(place))
            rows.runs()  # the moment begins
            moment = rows.moment() if children else ""
            for ask in children:
                ask(moment)
        yield rows


def _planned(place: Path | str, rows: WholeRows, texts: bool, parts: int, now: float) -> ExportPlan:
    records = rows.runs()
    last = records[-1] if records else None
    run = (
        {"id": last.id, "kind": last.kind, "state": last.state, "started": last.started, "ended": last.ended}
        if last
        else None
    )
    inputs = {"collection": name_of(place), "runs": len(records), "last_run": run}
    return ExportPlan(name_of(place), records[0].started if records else 0.0, texts, parts, inputs, VERSION, (now,))


def _begun(plan: ExportPlan, into: Path, rows: WholeRows) -> tuple[ExportPlan, Notes]:
    """The plan, with which the export in the folder goes on where it may, and the parts that are there."""
    earlier, notes = _journal(into)
    work = into / UNFINISHED
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
    """The plan of an export that did not come to its end, and the parts that it wrote. None: there is none."""
    notes: Notes = {}
    try:
        first, *lines = (into / UNFINISHED / JOURNAL).read_text("utf-8").splitlines()
        content = json.loads(first)
        plan = ExportPlan(**content | {"moments": tuple(content["moments"])})
        for line in lines:
            table, number, note = json.loads(line)
            if (path := into / table / note["name"]).is_file() and path.stat().st_size == note["size_bytes"]:
                notes[table, number] = PartNote(**note)
    except FileNotFoundError:
        return None, {}
    except (ValueError, KeyError, TypeError):  # cut off where a kill met it: what stands before is whole
        return (plan, notes) if notes else (None, {})
    return plan, notes


def _line(table: str, number: int, note: PartNote) -> str:
    return json.dumps((table, number, asdict(note)))


def _parts(plan: ExportPlan, urls: int) -> Iterator[DatasetPart]:
    for table in BY_URL:
        for number in range(plan.parts if plan.texts or table != "texts" else 0):
            yield DatasetPart(table, number, urls * number // plan.parts, urls * (number + 1) // plan.parts)
    yield DatasetPart("redirects", 0, 0, urls)


def _made(into: Path, rows: WholeRows, numbers: Numbering, part: DatasetPart, progress: TableWatch) -> PartNote:
    """Writes a part."""
    if part.table == "redirects":
        return write_part(into, part.table, part.number, [redirect_block(rows, numbers)])

    def watched(made: Iterable[Block]) -> Iterator[Block]:
        for block in made:
            yield block
            progress(part.table, len(first) if not isinstance(first := block[0], Coded) else 0)

    made = part_blocks(part.table, rows, numbers, part.first, part.end)
    return write_part(into, part.table, part.number, watched(made))


def _each(
    missing: deque[DatasetPart],
    makers: Sequence[Callable[[DatasetPart], PartNote]],
    noted: Callable[[DatasetPart, PartNote], None],
) -> None:
    """Has every part made, by as many makers at once."""

    def work(make: Callable[[DatasetPart], PartNote]) -> None:
        while True:
            try:
                part = missing.popleft()
            except IndexError:  # the others have taken the last
                return
            noted(part, make(part))

    if len(makers) == 1:
        work(makers[0])
        return
    pool = ThreadPoolExecutor(len(makers))
    try:
        for future in as_completed([pool.submit(work, make) for make in makers]):
            future.result()
    finally:
        missing.clear()
        pool.shutdown(wait=False)  # what is under way ends with its process


def _remote(ask: Ask) -> Callable[[DatasetPart], PartNote]:
    return lambda part: PartNote(**ask(part))


@contextlib.contextmanager
def _child(place: Path | str, into: Path) -> Iterator[Ask]:
    """A process that reads the collection and writes parts, as `serve` does; killed at the end."""
    order = {"place": str(place), "into": str(into.absolute())}
    child = start_child("-m", "periplus.api.datasets", order=order, stdout=subprocess.PIPE)

    def ask(message: object) -> Any:
        send(child, message)
        assert child.stdout is not None
        line = child.stdout.readline()
        if not line:
            raise StoreError("a process that wrote parts has ended. The same command writes the missing parts.")
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
    """The life of that process: a moment, and parts, each answered with its note."""
    lines: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    order = lines.get()
    place, into = order["place"] if is_address(order["place"]) else Path(order["place"]), Path(order["into"])
    lines.get()
    _answer({})
    try:
        with whole_of(place, lines.get()) as rows:
            rows.runs()
            _answer({})
            part = DatasetPart(*lines.get())
            numbers = Numbering.load(into / UNFINISHED)
            while True:
                _answer(asdict(_made(into, rows, numbers, part, _silent)))
                part = DatasetPart(*lines.get())
    except OSError as error:
        _answer({"error": str(_unwritable(into, error))})
    except PeriplusError as error:
        _answer({"error": str(error)})


def _listen(lines: SimpleQueue[Any]) -> None:
    """Puts each line of standard input into the queue; at its end whoever asked is dead, and so is this process."""
    with open(0, "rb", closefd=False) as messages:
        for line in messages:
            lines.put(json.loads(line))
    os._exit(0)


def _answer(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


LoadWatch = Callable[[str], None]  # is written the table that is loaded
INTERNAL = frozenset({"sketches", "edges", "nodes"})  # tables that only further stages read


def load_results(
    place: Path | str, results: Path, dataset: Path, now: float, watch: LoadWatch = lambda table: None
) -> Mapping[str, int]:
    """Loads every finished analysis below results, computed from the dataset,
    into the collection in a folder or at an address; returns rows by table.

    All of them in one transaction, each in place of an earlier result of its name; results in the
    numbers of another dataset go.
    Raises UsageError where nothing is finished or the dataset is another collection's, NoCollection, StoreError.
    """
    numbers = manifest_in(dataset)
    manifests = {path: manifest_in(path) for path in sorted(results.glob("*/")) if (path / "manifest.json").is_file()}
    finished = {
        path: manifest for path, manifest in manifests.items() if manifest.inputs.get("dataset") == numbers.digest
    }
    if not finished:
        others = f": {len(manifests)} were computed from another dataset" if manifests else ""
        raise UsageError(
            f"{results} holds no finished results of {dataset}{others}. `periplus analyse {dataset}` makes them."
        )
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
    """A collection is known by its runs, wherever it was moved.

    The last one that the dataset knows must still be there: pages go with a deleted run.
    """
    last = numbers.inputs.get("last_run")
    if not isinstance(last, dict) or (last.get("id"), last.get("started")) not in {
        (run.id, run.started) for run in runs
    }:
        source = numbers.inputs.get("collection", "another collection")
        raise UsageError(
            f"{dataset} is no dataset of {name}, but of {source}, or of a run that was deleted: "
            "`periplus export parquet` makes one."
        )


def _numbers(dataset: Path) -> Iterator[ComputedTable]:
    """What leads from the numbers of results to the collection's own ids."""
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
