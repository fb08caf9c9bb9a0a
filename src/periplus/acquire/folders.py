"""Answers requests for local folders from disk, as a static file server would; passes all others to the network."""

from __future__ import annotations

import math
import mimetypes
import os
import re
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from periplus.errors import InvalidUrl, UsageError
from periplus.model.ports import Clock, Response, Transport
from periplus.model.visit import Cut, Headers, Purpose, Request
from periplus.model.web import HostKey, Url
from periplus.settings import SUFFIX
from periplus.urls.canonical import canonical, start_urls
from periplus.urls.folders import folder_host, parts_of, url_of_path
from periplus.urls.hosts import host_key, host_name, path_and_query

if TYPE_CHECKING:  # imports libcurl
    from periplus.acquire.transport import Wire

INDEX_FILES = ("index.html", "index.htm")
START_BYTES = 4_096  # of a file, from which its type is detected if its name does not show it
_READ = frozenset({Purpose.PAGE, Purpose.CHECK})
_PATH_STARTS = (".", "/", "~", "file:")
MARKDOWN = (".md", ".markdown", ".mkd")
_TYPES = dict.fromkeys(MARKDOWN, "text/markdown") | {
    ".xhtml": "application/xhtml+xml", ".rst": "text/plain", ".adoc": "text/plain",
}  # fmt: skip


class FolderTransport:
    """`model.ports.Transport` on folders.

    The URL of a folder returns its index.html or a list of its entries; without the final slash it redirects. Names are
    case-sensitive on every system. Symbolic links out of the folder are refused (403); other than files, 404.
    """

    def __init__(
        self,
        inner: Transport,
        folders: Mapping[HostKey, Path],
        wire: Wire,
        clock: Clock,
        wiki_links: bool = False,
    ) -> None:
        """wiki_links: the URL of a missing file redirects to the file of that name in any subfolder."""
        self._inner, self._wire, self._clock = inner, wire, clock
        self._files_of = cache(_files_by_name) if wiki_links else None
        self._folders = {host: Path(os.path.realpath(folder)) for host, folder in folders.items()}
        self._ready: list[Response] = []

    @property
    def in_flight(self) -> int:
        return len(self._ready) + self._inner.in_flight

    def start(self, request: Request, before: float = math.inf) -> None:
        folder = self._folders.get(host_key(request.url))
        if folder is None:
            self._inner.start(request, before)
        else:
            self._ready.append(self._answer(request, folder))

    def withdraw(self, requests: Collection[Request]) -> None:
        self._inner.withdraw(requests)

    def wait(self, timeout_s: float) -> Sequence[Response]:
        if not self._ready:
            return self._inner.wait(timeout_s)
        ready, self._ready = self._ready, []
        return [*ready, *self._inner.wait(0.0)] if self._inner.in_flight else ready

    def attend(self, fds: Sequence[int]) -> None:
        self._inner.attend(fds)

    def close(self) -> None:
        self._inner.close()

    def _answer(self, request: Request, folder: Path) -> Response:
        started, mono = self._clock.now(), self._clock.monotonic()
        try:
            status, fields, body, cut = self._read(request, folder)
        except PermissionError:
            status, fields, body, cut = 403, [], b"", Cut.NONE
        except (OSError, ValueError):  # just deleted, or a name that is too long or cannot be encoded
            status, fields, body, cut = 404, [], b"", Cut.NONE
        took_s = self._clock.monotonic() - mono
        return Response(request, started, took_s, status, Headers(tuple(fields)), body, cut, None, "", "", took_s)

    def _read(self, request: Request, folder: Path) -> tuple[int, list[tuple[str, str]], bytes, Cut]:
        """(status, header fields, body, why it is cut)."""
        address = path_and_query(request.url).partition("?")[0]
        parts = parts_of(address)
        if parts is None:
            return 404, [], b"", Cut.NONE
        path, is_exact = Path(os.path.realpath(folder.joinpath(*parts))), _is_exact(folder, parts)
        if self._files_of and not address.endswith("/") and not (is_exact and path.is_file()):
            files, name = self._files_of(folder), _wiki_name(parts[-1])
            if file := files.get(name) or files.get(name + ".md"):
                way = file.relative_to(folder).parts
                return 303, [("location", url_of_path(host_name(request.url), way, is_folder=False))], b"", Cut.NONE
        if not is_exact:
            return 404, [], b"", Cut.NONE
        if not path.is_relative_to(folder):
            return 403, [], b"", Cut.NONE
        if path.is_dir():
            if not address.endswith("/"):
                return 301, [("location", url_of_path(host_name(request.url), parts, is_folder=True))], b"", Cut.NONE
            index = next((path / name for name in INDEX_FILES if (path / name).is_file()), None)
            if index is None:
                body = b"" if request.purpose is Purpose.HEAD else _listing(path, parts or (folder.name,))
                return 200, [("content-type", "text/html; charset=utf-8")], body, Cut.NONE
            path = Path(os.path.realpath(index))
            if not path.is_relative_to(folder):
                return 403, [], b"", Cut.NONE
        elif address.endswith("/"):
            return 404, [], b"", Cut.NONE
        return self._file(request, path)

    def _file(self, request: Request, path: Path) -> tuple[int, list[tuple[str, str]], bytes, Cut]:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):  # opening a named pipe would block
            return 404, [], b"", Cut.NONE
        from email.utils import formatdate  # the import takes 5 ms, and only folders need it

        tag = f'"{facts.st_mtime_ns:x}-{facts.st_size:x}"'
        media_type = _media_type(path.name)
        fields = [
            *([("content-type", media_type)] if media_type else []),
            ("content-length", str(facts.st_size)),
            ("last-modified", formatdate(facts.st_mtime, usegmt=True)),
            ("etag", tag),
        ]
        if request.etag == tag:
            return 304, fields, b"", Cut.NONE
        if request.purpose is Purpose.HEAD:
            return 200, fields, b"", Cut.NONE
        if request.purpose in _READ and media_type and not self._wire.reads(media_type):
            return 200, fields, b"", Cut.NOT_WANTED
        limit = self._wire.limits.body_bytes
        with path.open("rb") as file:
            body = file.read(START_BYTES)
            if request.purpose in _READ and body and not self._wire.reads_start(media_type, body):
                return 200, fields, b"", Cut.NOT_WANTED
            body += file.read(limit + 1)
        return (200, fields, body, Cut.NONE) if len(body) <= limit else (200, fields, body[:limit], Cut.BODY_LIMIT)


@lru_cache(maxsize=1)
def _types() -> mimetypes.MimeTypes:
    """Python's own table without that of the system, so that types are the same on every machine."""
    types = mimetypes.MimeTypes()
    for suffix, media_type in _TYPES.items():
        types.add_type(media_type, suffix)
    return types


def _media_type(name: str) -> str:
    """The media type by the file's name, or that of its compression; empty: unknown."""
    media_type, packed = _types().guess_type(name)
    return f"application/{packed}" if packed else media_type or ""


def _is_exact(folder: Path, parts: Sequence[str]) -> bool:
    """Whether the path is spelled exactly as on disk: some systems open `About.html` for `about.html`, web servers do
    not.
    """
    for part in parts:
        if part not in _names(folder, folder.stat().st_mtime_ns):
            return False
        folder = folder / part
    return True


@lru_cache(maxsize=1_024)
def _names(folder: Path, changed_ns: int) -> frozenset[str]:
    return frozenset(path.name for path in folder.iterdir())


def _files_by_name(folder: Path) -> dict[str, Path]:
    """The files of a folder by `_wiki_name`; of several with the same name, the one in the highest folder."""
    paths = sorted(folder.rglob("*"), key=lambda path: (-len(path.parts), path))
    return {_wiki_name(path.name): path for path in paths if path.is_file()}


def _wiki_name(name: str) -> str:
    """A name as wikis compare it: case-insensitive; blanks, `-` and `_` are equal."""
    return re.sub(r"[ _-]+", " ", name).casefold()


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """The entries of a folder without hidden files, collections and node_modules."""
    return [
        entry
        for entry in os.scandir(folder)
        if not entry.name.startswith(".") and not entry.name.endswith(SUFFIX) and entry.name != "node_modules"
    ]


def _is_empty(folder: Path) -> bool:
    """Whether the folder and its subfolders list no files."""
    return all(entry.is_dir(follow_symlinks=False) and _is_empty(Path(entry.path)) for entry in _entries(folder))


def _listing(folder: Path, parts: Sequence[str]) -> bytes:
    """An HTML list of a folder's entries, folders first."""
    entries = sorted((not entry.is_dir(), entry.name) for entry in _entries(folder))
    title = escape("/".join(parts).encode("utf-8", "replace").decode())
    rows = "".join(
        f'<li><a href="{escape(_href(name, is_folder=not is_file))}">{escape(_printable(name))}</a></li>\n'
        for is_file, name in entries
    )
    head = f'<head><meta charset="utf-8"><meta name="robots" content="noindex"><title>{title}/</title></head>'
    page = f'<!DOCTYPE html>\n<html lang="en">{head}\n<body><h1>{title}/</h1>\n<ul>\n{rows}</ul></body></html>\n'
    return page.encode()


def _href(name: str, *, is_folder: bool) -> str:
    return "./" + url_of_path("x.alt", [name], is_folder=is_folder).removeprefix("http://x.alt/")


def _printable(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "replace")


# Start URLs on this machine


def is_path(text: str) -> bool:
    """Whether a start is a path on this machine: `./docs`, `../a.md`, `/srv/www`, `~/site`, `file:///srv`; also `docs`,
    `README.md` or `docs/a.html` if such a file exists, or such a folder without a dot in its first part.
    """
    if text.startswith(_PATH_STARTS):
        return True
    if "://" in text or not text or "\0" in text:
        return False
    path = Path(text)
    return path.is_file() or ("." not in path.parts[0] and path.is_dir())


def folder_start(text: str) -> tuple[Url, str]:
    """(start URL, entry of the setting `folders`) of a folder or file on this machine.

    Links are followed within the folder, or within the folder of the file. For Markdown below the working directory
    they are followed within the working directory: its `../` links are written for the whole repository. Raises
    UsageError if the path does not exist.
    """
    path = _path(text)
    if not path.exists():
        raise UsageError(f"{text}: there is no such file or folder")
    place, here, is_folder = Path(os.path.realpath(path)), Path.cwd(), path.is_dir()
    own = place if is_folder else place.parent
    root = here if own.is_relative_to(here) and _is_markdown(place) else own
    if is_folder and _is_empty(place):
        raise UsageError(f"{text}: there is no file in this folder to read")
    try:
        host = folder_host(own if is_folder else root)
        url = url_of_path(host, place.relative_to(root).parts, is_folder=is_folder)
        return canonical(url), f"{host}={root}"
    except (InvalidUrl, UnicodeError):
        raise UsageError(f"{text}: this name cannot be written as a URL") from None


def _is_markdown(place: Path) -> bool:
    """Whether it is a Markdown file, or a folder with Markdown files and without an index.html."""
    if not place.is_dir():
        return place.suffix.lower() in MARKDOWN
    return not any((place / name).is_file() for name in INDEX_FILES) and any(
        path.suffix.lower() in MARKDOWN for path in place.iterdir()
    )


def starts_of(texts: Iterable[str]) -> tuple[tuple[Url, ...], tuple[str, ...]]:
    """(start URLs without duplicates, entries of the setting `folders`). Raises InvalidUrl, UsageError."""
    starts: dict[Url, None] = {}
    entries: dict[str, None] = {}
    for text in texts:
        if is_path(text):
            url, entry = folder_start(text)
            starts[url] = entries[entry] = None
        else:
            starts |= dict.fromkeys(start_urls([text]))
    return tuple(starts), tuple(entries)


def _path(text: str) -> Path:
    if not text.startswith("file:"):
        return Path(text).expanduser()
    path = text.removeprefix("file:")
    if path.startswith("//"):
        host, slash, rest = path[2:].partition("/")
        if host not in ("", "localhost"):
            raise UsageError(f"{text}: the file is on another machine; give a local folder")
        path = slash + rest
    return Path(unquote(path.partition("#")[0].partition("?")[0], errors="surrogateescape"))
