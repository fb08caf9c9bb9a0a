"""Merges several datasets into one: the result equals the export of a single collection of all sites.

A URL in several datasets is taken from the dataset that visited it last, with its page, links and texts; if none did,
from one that crawls its host or has it in scope. Depth and first_seen are the minimum of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from periplus.errors import StoreError, UsageError
from periplus.model.arrays import Ints, Ints16
from periplus.model.visit import Reason
from periplus.present.writers import arrow_schema
from periplus.settings import VERSION
from periplus_spark.dataset import TABLES, Manifest
from periplus_spark.files import (
    TableWriter,
    begin,
    blocks,
    drop,
    is_whole,
    manifest_in,
    table_note,
    write_manifest,
)

if TYPE_CHECKING:
    import pyarrow as pa

_ENDS = {"redirects": ("source", "target"), "pages": ("url",), "links": ("source", "target"), "texts": ("url",)}
ROWS = {"urls": 1 << 16, "redirects": 1 << 16, "pages": 1 << 14, "links": 1 << 17, "texts": 1 << 9}  # per block
_NEVER = np.iinfo(np.int64).max  # greater than any time or depth


def combine(datasets: Sequence[Path], folder: Path, now: float) -> Manifest:
    """Writes the merged dataset into a folder; does nothing if the folder already has it.

    Memory: 10 bytes per URL and dataset, the host names, and a block of rows per dataset. Texts are included if every
    dataset has them. Raises StoreError, and UsageError if the folder contains something else.
    """
    manifests = [manifest_in(dataset) for dataset in datasets]
    digests = [manifest.digest for manifest in manifests]
    if unsorted := [str(dataset) for dataset, its in zip(datasets, manifests, strict=True) if its.inputs.get("after")]:
        raise UsageError(f"{unsorted[0]} was exported with --after: only whole exports can be merged. Export it whole.")
    if is_whole(folder):
        if (manifest := manifest_in(folder)).inputs.get("datasets") == digests:
            return manifest
        raise UsageError(
            f"{folder} contains another dataset, or an older version of these. Choose another folder, or delete it."
        )
    begin(folder)
    has_texts = all("texts" in {note.name for note in manifest.tables} for manifest in manifests)
    try:
        numbers, owners = _urls(datasets, folder, _hosts(datasets, folder))
        for table in _ENDS:
            if table != "texts" or has_texts:
                _rows(datasets, folder, table, numbers, owners)
        names = [name for name in TABLES if name != "texts" or has_texts]
        notes = tuple(table_note(folder, name, TABLES[name].columns) for name in names)
        inputs = {
            "collection": " + ".join(str(it.inputs.get("collection", "")) for it in manifests),
            "datasets": digests,
        }
        manifest = Manifest("collection", VERSION, now, inputs, {"texts": has_texts}, notes)
        write_manifest(folder, manifest)
    except OSError as error:
        drop(folder)
        raise StoreError(f"{folder} cannot be written: {error.strerror or error}. Is the disk full?") from error
    return manifest


def _hosts(datasets: Sequence[Path], folder: Path) -> tuple[list[Ints], Ints]:
    """Writes the hosts; returns the new number of each host of each dataset, and the site of each new host."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names_only = [TABLES["hosts"].column(name) for name in ("name", "site_name")]
    schema, columns = arrow_schema(names_only).remove_metadata(), [column.name for column in names_only]
    of_each = [pa.Table.from_batches(blocks(dataset, "hosts", columns), schema) for dataset in datasets]
    every = pa.concat_tables(of_each)
    names = pc.unique(every.column("name"))
    names = names.take(pc.sort_indices(names))
    numbers = [np.asarray(pc.index_in(table.column("name"), names), np.int64) for table in of_each]
    # the first dataset with a host determines its site
    first = np.unique(np.concatenate(numbers), return_index=True)[1]
    site_names = every.column("site_name").take(first).combine_chunks()
    sites = pc.unique(site_names)
    sites = sites.take(pc.sort_indices(sites))
    site = np.asarray(pc.index_in(site_names, sites), np.int64)
    with TableWriter(folder, "hosts", TABLES["hosts"].columns) as writer:
        writer.add({"host": np.arange(len(names)), "name": names, "site": site, "site_name": site_names})
    return numbers, site


def _urls(datasets: Sequence[Path], folder: Path, hosts: tuple[list[Ints], Ints]) -> tuple[list[Ints], Ints16]:
    """Writes the URLs; returns the new number of each URL of each dataset, and the dataset that owns each new URL."""
    columns = [column.name for column in TABLES["urls"].columns]
    host_numbers, site_of = hosts
    numbers = [np.empty(manifest_in(dataset).rows("urls"), np.int64) for dataset in datasets]
    owners = []
    count = 0
    with TableWriter(folder, "urls", TABLES["urls"].columns) as writer:
        for block in _merge(
            [_with_dataset(blocks(dataset, "urls", columns, ROWS["urls"]), of) for of, dataset in enumerate(datasets)],
            "text",
        ):
            text = block.column("text").combine_chunks()
            begins = np.concatenate([[True], np.asarray(_differs(text))])
            group = np.cumsum(begins) - 1
            of, old = np.asarray(block.column("of")), np.asarray(block.column("url"))
            host = np.empty(len(of), np.int64)
            for which in range(len(datasets)):
                own = of == which
                numbers[which][old[own]] = count + group[own]
                host[own] = host_numbers[which][np.asarray(block.column("host"))[own]]
            chosen = _choose_rows(block, group, of)
            rows = block.take(chosen)
            first = np.flatnonzero(begins)
            written = {name: rows.column(name) for name in columns} | {
                "url": count + np.arange(len(first)),
                "host": host[chosen],
                "site": site_of[host[chosen]],
                "depth": _least(block, "depth", first),
                "first_seen": _least(block, "first_seen", first),
            }
            for name in ("in_sitemap", "is_start"):
                written[name] = np.logical_or.reduceat(np.asarray(block.column(name).fill_null(False), np.bool_), first)
            writer.add({name: _as_array(values) for name, values in written.items()})
            owners.append(of[chosen].astype(np.int16))
            count += len(first)
    return numbers, np.concatenate(owners) if owners else np.zeros(0, np.int16)


def _differs(text: pa.StringArray) -> pa.BooleanArray:
    """For each value but the first: whether it differs from the previous one."""
    import pyarrow.compute as pc

    return pc.not_equal(text.slice(1), text.slice(0, max(len(text) - 1, 0)))


def _choose_rows(block: pa.Table, group: Ints, of: Ints) -> Ints:
    """The row of each group to use: visited last; else on a host of its dataset; else in scope; else the first."""
    import pyarrow as pa
    import pyarrow.compute as pc

    visited = np.asarray(pc.fill_null(block.column("visited").cast(pa.int64()), -1))
    foreign, outside = (
        np.asarray(pc.equal(block.column("reason"), reason.value)) for reason in (Reason.OTHER_PART, Reason.SCOPE)
    )
    order = np.lexsort((of, outside, foreign, -visited, group))
    return order[np.unique(group[order], return_index=True)[1]]


def _least(block: pa.Table, name: str, first: Ints) -> pa.Array:
    """The minimum of each group, or null if no row has a value. first: index of each group's first row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    least = np.minimum.reduceat(np.asarray(pc.fill_null(block.column(name).cast(pa.int64()), _NEVER)), first)
    return pa.array(least, mask=least == _NEVER).cast(block.schema.field(name).type)


def _rows(datasets: Sequence[Path], folder: Path, table: str, numbers: list[Ints], owners: Ints16) -> None:
    """Writes a table whose rows belong to URLs: for each URL, the rows of the dataset that owns it."""
    columns = [column.name for column in TABLES[table].columns]
    ends = _ENDS[table]

    def own(of: int) -> Iterator[pa.Table]:
        import pyarrow as pa

        for block in blocks(datasets[of], table, columns, ROWS[table]):
            given = pa.Table.from_batches([block])
            for end in ends:
                place = given.schema.get_field_index(end)
                given = given.set_column(place, end, pa.array(numbers[of][np.asarray(given.column(end))]))
            yield given.filter(pa.array(owners[np.asarray(given.column(ends[0]))] == of))

    with TableWriter(folder, table, TABLES[table].columns) as writer:
        for block in _merge([own(of) for of in range(len(datasets))], ends[0]):
            writer.add({name: _as_array(block.column(name)) for name in columns})


def _with_dataset(batches: Iterable[pa.RecordBatch], of: int) -> Iterator[pa.Table]:
    """Adds a column with the index of the dataset."""
    import pyarrow as pa

    for batch in batches:
        yield pa.Table.from_batches([batch]).append_column("of", pa.array(np.full(batch.num_rows, of, np.int64)))


def _as_array(values: pa.ChunkedArray | pa.Array | Ints) -> pa.Array | Ints:
    return values.combine_chunks() if hasattr(values, "combine_chunks") else values


def _merge(streams: Sequence[Iterator[pa.Table]], key: str) -> Iterator[pa.Table]:
    """Merges streams that are sorted by key; all rows with the same key are in one block.

    Rows with equal keys keep the order of the streams.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    waiting: dict[int, pa.Table] = {}
    unread = dict(enumerate(streams))

    def read(which: int) -> None:
        block = next(unread[which], None)
        if block is None:
            del unread[which]
        else:
            waiting[which] = pa.concat_tables([waiting[which], block]) if which in waiting else block

    while True:
        for which in list(unread):
            while which in unread and not (which in waiting and len(waiting[which])):
                read(which)
        lasts = {which: waiting[which].column(key)[-1] for which in unread}
        bound = min(lasts.values(), key=lambda last: last.as_py(), default=None)
        cuts = {
            which: len(rows) if bound is None else int(pc.sum(pc.less(rows.column(key), bound)).as_py() or 0)
            for which, rows in sorted(waiting.items())
        }
        if any(cuts.values()):
            rows = pa.concat_tables([waiting[which].slice(0, cut) for which, cut in cuts.items()])
            yield rows.take(pc.sort_indices(rows, sort_keys=[(key, "ascending")]))
            waiting = {which: waiting[which].slice(cut) for which, cut in cuts.items()}
        if bound is None:
            return
        for which in [which for which, last in lasts.items() if last == bound and not cuts[which]]:
            read(which)  # all rows read so far have the same key
