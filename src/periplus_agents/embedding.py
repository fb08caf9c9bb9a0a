"""Imports embedding vectors of pages from files, and runs the user's command that embeds queries."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from periplus.api.homes import cache_folder, home_of, open_reader, shared_index
from periplus.errors import StoreError, UsageError
from periplus.model.search import VectorNote
from periplus.model.web import UrlId
from periplus.retrieval import vectors
from periplus.retrieval.query import asked_words, parse
from periplus.retrieval.vectors import parse_vector
from periplus.values import Place

EMBED_S = 60.0  # time limit of the command: loading a model of some gigabytes takes about ten seconds
BATCH_ROWS = 10_000  # pages per lookup

Embed = Callable[[str], list[float]]


def import_vectors(place: Place, path: Path, watch: Callable[[int], None] = lambda rows: None) -> VectorNote:
    """Replaces the collection's vectors by those in a file; also publishes them for a collection in a database whose
    readers share an index. watch: called with the number of rows read.

    Raises UsageError for an invalid file or one without pages of the collection, NoCollection, StoreError.
    """
    shared = shared_index(place)
    if shared is None:
        return _import_vectors(place, path, watch)
    with shared.publishing(vectors.FOLDER) as publish:
        if publish is None:
            raise StoreError(f"another process is importing vectors of {home_of(place)}: wait for its end")
        note = _import_vectors(place, path, watch)
        publish()
    return note


def require_place(place: Place) -> None:
    """Raises UsageError for a database without shared index: vectors stored in the cache would be lost."""
    if isinstance(place, str) and shared_index(place) is None:
        raise UsageError(
            "vectors of a collection in a database are stored with its shared index, whose place is not set: add "
            "index=PLACE to the address, a folder or URL (s3://bucket/folder) that all readers reach"
        )


def _import_vectors(place: Place, path: Path, watch: Callable[[int], None]) -> VectorNote:
    with open_reader(place) as reader:

        def present(pages: Sequence[UrlId]) -> int:
            parts = (pages[start : start + BATCH_ROWS] for start in range(0, len(pages), BATCH_ROWS))
            return sum(1 for part in parts for brief in reader.briefs(part) if brief.media_type)

        return vectors.take_in(cache_folder(place), path, present, watch)


def read_vector(text: str) -> list[float]:
    """The vector in a file: `.npy`, or text with numbers. Raises UsageError."""
    path = Path(text)
    try:
        if path.suffix.lower() == ".npy":
            import numpy as np

            return [float(number) for number in np.load(path, allow_pickle=False).ravel()]
        return parse_vector(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as a vector: {error}") from None


def embedder(command: str) -> Embed:
    """A function that embeds a text with a command: it reads UTF-8 text from standard input and prints the vector.

    Runs without a shell, and the text is never part of the command line. Raises UsageError for an empty or malformed
    command; the function raises UsageError if the command fails or prints no vector.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"{command!r} is not a valid command: {error}") from None
    if not words:
        raise UsageError("--embed-with needs a command")

    def embed(text: str) -> list[float]:
        try:
            done = subprocess.run(
                words, input=text.encode("utf-8", "replace"), capture_output=True, timeout=EMBED_S, check=False
            )
        except OSError as error:
            raise UsageError(f"{words[0]} cannot be run: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise UsageError(f"{words[0]} printed no vector within {EMBED_S:g} s") from None
        if done.returncode:
            last = done.stderr.decode("utf-8", "replace").strip().rpartition(os.linesep)[2][:300]
            raise UsageError(f"{words[0]} failed with exit code {done.returncode}{f': {last}' if last else ''}")
        return parse_vector(done.stdout.decode("utf-8", "replace"))

    return embed


def text_of(query: str) -> str:
    """The words of a query without filters and operators, for embedding."""
    return " ".join(word.text for word in asked_words(parse(query).root)) or query
