"""The user's own vectors: imported from a file, then searched exactly, by cosine, from disk.

A collection has at most one set, in its folder `vectors`: a float16 matrix with rows of length 1, and the page of each
row. A page may have several rows (one per chunk); its score is that of the nearest. Nothing here computes embeddings:
query vectors must come from the same model.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from periplus.errors import InvalidUrl, StoreError, UsageError
from periplus.extras import extra_needed
from periplus.model.arrays import Floats32, Ints
from periplus.model.search import VectorNote
from periplus.model.web import UrlId
from periplus.urls.canonical import canonical, url_id
from periplus.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = Iterator[tuple[Sequence[str | None], NDArray[np.floating[Any]]]]  # keys, and a vector for each

FOLDER = "vectors"
BLOCK_ROWS = 4_096  # per read: a million rows of 384 take 0.59 s of CPU; 0.84 s with 65,536, which exceed the cache
WIDEST = 65_536  # dimensions; models have 256 to 4,096
ENDINGS = (".parquet", ".arrow", ".feather", ".npy")
KEYS = ("url", "chunk")  # columns that name the page, as written by `periplus export chunks`; the first present is used
COLUMNS = ("vector", "embedding", "embeddings", "vectors")
# The constant of reciprocal rank fusion. Source: Cormack, Clarke, Buettcher: Reciprocal Rank Fusion outperforms
# Condorcet and individual Rank Learning Methods, SIGIR 2009.
RRF_K = 60


@frozen
class Vectors:
    """The vectors of a collection: matrix (rows x dimensions, memory-mapped) and the page of each row."""

    note: VectorNote
    matrix: NDArray[np.float16]
    pages: Ints

    def scores(self, vector: Sequence[float]) -> Floats32:
        """Cosine of each row with the vector, in row order. Raises UsageError if the dimensions differ."""
        target = unit(vector, self.note.dimensions)
        scores = np.empty(len(self.pages), np.float32)
        block = np.empty((BLOCK_ROWS, self.note.dimensions), np.float32)
        for start in range(0, len(scores), BLOCK_ROWS):
            rows = self.matrix[start : start + BLOCK_ROWS]
            np.copyto(block[: len(rows)], rows)
            np.dot(block[: len(rows)], target, out=scores[start : start + len(rows)])
        return scores

    def nearest(
        self, vector: Sequence[float], most: int, holds: Callable[[Sequence[UrlId]], Iterable[UrlId]]
    ) -> list[tuple[UrlId, float]]:
        """The nearest pages with their cosines, best first, at most `most`.

        holds: filters pages; more rows are examined until enough pages pass.
        """
        scores, looked_at = self.scores(vector), 4 * most
        while True:
            rows = _top_indices(scores, looked_at)
            best: dict[UrlId, float] = {}
            for page, score in zip(self.pages[rows].tolist(), scores[rows].tolist(), strict=True):
                best.setdefault(UrlId(page), score)
            present = set(holds(list(best)))
            chosen = [(page, score) for page, score in best.items() if page in present]
            if len(chosen) >= most or looked_at >= len(scores):
                return chosen[:most]
            looked_at *= 8

    def of_page(self, page: UrlId) -> list[float]:
        """The mean of a page's vectors. Raises UsageError if it has none."""
        rows = np.flatnonzero(self.pages == page)
        if not len(rows):
            raise UsageError(f"the page has no vector in {self.note.source}")
        return [float(number) for number in self.matrix[rows].astype(np.float32).mean(axis=0)]


def _top_indices(scores: Floats32, most: int) -> NDArray[np.intp]:
    """Indices of the greatest scores, descending; ties in index order."""
    if most < len(scores):
        places = np.sort(np.argpartition(scores, len(scores) - most)[len(scores) - most :])
    else:
        places = np.arange(len(scores))
    return places[np.argsort(-scores[places], kind="stable")]


def unit(vector: Sequence[float], dimensions: int) -> Floats32:
    """The vector scaled to length 1. Raises UsageError if the dimensions differ or the length is 0 or not finite."""
    row = np.asarray(vector, np.float32)
    length = float(np.linalg.norm(row))
    if row.shape != (dimensions,):
        raise UsageError(f"the vector has {len(vector)} dimensions, the vectors of the collection have {dimensions}")
    if not np.isfinite(length) or not length:
        raise UsageError("the vector has no direction: its numbers are all 0, or not finite")
    return row / np.float32(length)


def fuse(lists: Sequence[Sequence[UrlId]]) -> list[tuple[UrlId, float]]:
    """Reciprocal rank fusion of several rankings: the sum of 1 / (RRF_K + rank), ranks from 1.

    Descending; ties in the order of the earlier list.
    """
    sums: dict[UrlId, float] = {}
    for pages in lists:
        for place, page in enumerate(pages, 1):
            sums[page] = sums.get(page, 0.0) + 1 / (RRF_K + place)
    return sorted(sums.items(), key=lambda item: -item[1])


def open_vectors(folder: Path) -> Vectors | None:
    """The vectors of a collection, or None. Raises StoreError if they are damaged."""
    place = folder / FOLDER
    try:
        note = VectorNote(**json.loads((place / "about.json").read_text("utf-8")))
        pages = np.fromfile(place / "pages.i64", np.int64)
        matrix = np.memmap(place / "matrix.f16", np.float16, "r", shape=(note.rows, note.dimensions))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise StoreError(f"the vectors in {place} cannot be read ({error}): import them again") from None
    if len(pages) != note.rows:
        raise StoreError(f"the vectors in {place} are damaged: import them again")
    return Vectors(note, matrix, pages)


def stamp_of(path: Path) -> str:
    """Size and modification time of a file, to detect changes. Raises UsageError if it cannot be read."""
    try:
        facts = path.stat()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    return f"{facts.st_size} {facts.st_mtime_ns}"


def take_in(
    folder: Path, path: Path, present: Callable[[Sequence[UrlId]], int], watch: Callable[[int], None]
) -> VectorNote:
    """Imports the vectors of a file, replacing those of the collection.

    present: counts the given pages that the collection has. watch: called with the number of rows read so far. Rows
    without key or vector, of length 0, or whose key names no page are skipped and counted. Raises UsageError,
    StoreError.
    """
    draft, stamp = folder / f"{FOLDER}.part", stamp_of(path)
    shutil.rmtree(draft, ignore_errors=True)
    dimensions = rows = skipped = 0
    try:
        draft.mkdir(0o700)
        with (draft / "matrix.f16").open("wb") as matrix, (draft / "pages.i64").open("wb") as pages:
            for keys, block in _rows(path):
                ids, lines = _with_pages(keys, block)
                dimensions = dimensions or block.shape[1]
                if block.shape[1] != dimensions or not 0 < dimensions <= WIDEST:
                    raise UsageError(f"{path}: its vectors must all have the same dimensions, at most {WIDEST:,}")
                lines.astype(np.float16).tofile(matrix)
                ids.tofile(pages)
                rows, skipped = rows + len(ids), skipped + len(keys) - len(ids)
                watch(rows)
        named = [UrlId(page) for page in np.unique(np.fromfile(draft / "pages.i64", np.int64)).tolist()]
        if not (pages_here := present(named)):
            raise UsageError(f"{path} names no page of {folder}: its column `url` or `chunk` must name them")
        note = VectorNote(str(path.absolute()), stamp, rows, dimensions, len(named), pages_here, skipped)
        (draft / "about.json").write_text(json.dumps(asdict(note)), "utf-8")
        shutil.rmtree(folder / FOLDER, ignore_errors=True)
        draft.rename(folder / FOLDER)
    except OSError as error:
        raise StoreError(f"the vectors cannot be written below {folder}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return note


def _with_pages(keys: Sequence[str | None], block: NDArray[np.floating[Any]]) -> tuple[Ints, Floats32]:
    """(pages, unit vectors) of the rows that have both. Raises UsageError for numbers that are not finite."""
    if not np.isfinite(block).all():
        raise UsageError("the file has vectors with numbers that are not finite")
    lines = block.astype(np.float32)
    lengths = np.linalg.norm(lines, axis=1)
    ids = [page_of(key) for key in keys]
    usable = np.array([page is not None for page in ids], bool) & (lengths > 0)
    chosen = np.array([page for page, use in zip(ids, usable.tolist(), strict=True) if use], np.int64)
    return chosen, lines[usable] / lengths[usable, None]


def page_of(key: str | None) -> UrlId | None:
    """The page that a URL or a chunk id names, or None."""
    if not key:
        return None
    head, _, number = key.partition("-")
    if len(head) == 16 and number.isdecimal():
        try:
            value = int(head, 16)
        except ValueError:
            return None
        return UrlId(value - (1 << 64) if value >= 1 << 63 else value)
    try:
        return url_id(canonical(key))
    except InvalidUrl:
        return None


def _rows(path: Path) -> Rows:
    """Blocks of keys and vectors from a file of one of ENDINGS.

    The keys of .npy are in a .txt of the same name, one a line.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise UsageError(f"{path}: vectors are read from {', '.join(ENDINGS)}")
    yield from _rows_of_numpy(path) if ending == ".npy" else _rows_of_table(path)


def _rows_of_numpy(path: Path) -> Rows:
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
        keys = path.with_suffix(".txt").read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be read with its keys, {path.with_suffix('.txt').name}, a URL or chunk a line: {error}"
        ) from None
    if matrix.ndim != 2 or matrix.shape[0] != len(keys) or not np.issubdtype(matrix.dtype, np.floating):
        raise UsageError(f"{path} has the shape {matrix.shape} of {matrix.dtype}, but there are {len(keys)} keys")
    for start in range(0, len(keys), BLOCK_ROWS):
        yield keys[start : start + BLOCK_ROWS], matrix[start : start + BLOCK_ROWS]


def _rows_of_table(path: Path) -> Rows:
    with extra_needed():
        import pyarrow as arrow
    try:
        for batch in _batches(path):
            key = next((name for name in KEYS if name in batch.schema.names), "")
            column = next((name for name in COLUMNS if name in batch.schema.names), "")
            if not key or not column:
                raise UsageError(
                    f"{path} has the columns {', '.join(batch.schema.names)}: one must be called "
                    f"{' or '.join(KEYS)}, and one {' or '.join(COLUMNS)}"
                )
            table = arrow.Table.from_batches([batch])
            vectors = table.column(column).combine_chunks()
            table, vectors = table.filter(vectors.is_valid()), vectors.drop_null()
            keys = table.column(key).to_pylist()
            flat = vectors.flatten().to_numpy(zero_copy_only=False)
            if keys and len(flat) % len(keys):
                raise UsageError(f"{path}: its vectors must all have the same dimensions")
            if keys:
                yield keys, _check_block(path, vectors, flat.reshape(len(keys), -1))
    except (arrow.ArrowException, OSError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None


def _check_block(path: Path, vectors: Any, block: NDArray[Any]) -> NDArray[Any]:
    """The block, if all vectors have the same number of floating-point dimensions. Raises UsageError."""
    from pyarrow import compute

    if len(compute.unique(compute.list_value_length(vectors))) > 1 or not np.issubdtype(block.dtype, np.floating):
        raise UsageError(f"{path}: its vectors must all have the same dimensions, as floating-point numbers")
    return block


def _batches(path: Path) -> Iterator[Any]:
    if path.suffix.lower() == ".parquet":
        from pyarrow import parquet

        with parquet.ParquetFile(path, memory_map=True) as file:
            names = [name for name in file.schema_arrow.names if name in (*KEYS, *COLUMNS)] or file.schema_arrow.names
            yield from file.iter_batches(BLOCK_ROWS, columns=names)
        return
    import pyarrow as arrow

    with arrow.memory_map(str(path)) as source:
        try:
            file = arrow.ipc.open_file(source)
        except arrow.ArrowInvalid:  # a stream of batches, which may lack an end marker
            source.seek(0)
            batches: Iterable[Any] = arrow.ipc.open_stream(source)
        else:
            batches = map(file.get_batch, range(file.num_record_batches))
        for batch in batches:
            for start in range(0, batch.num_rows, BLOCK_ROWS):
                yield batch.slice(start, BLOCK_ROWS)


def parse_vector(text: str) -> list[float]:
    """Parses a vector as programs print it: a JSON array, or numbers separated by blanks, commas or line breaks.

    Raises UsageError.
    """
    try:
        numbers = json.loads(text) if text.lstrip().startswith("[") else text.replace(",", " ").split()
        vector = [float(number) for number in numbers]
    except (ValueError, TypeError, RecursionError):
        raise UsageError("not a vector: give a JSON array of numbers, or numbers separated by blanks") from None
    if not 0 < len(vector) <= WIDEST:
        raise UsageError(f"a vector has 1 to {WIDEST:,} dimensions, this one has {len(vector):,}")
    return vector
