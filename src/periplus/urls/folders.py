"""Local folders as hosts: URLs of files, files of URLs, and paths shown instead of URLs.

A folder `docs` is the host `docs.alt`. Names below .alt are reserved for use outside of DNS, so no server can have one
(RFC 9476). The map from host to folder is a setting of the crawl, so pages cannot link to other files.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from html import escape
from pathlib import Path
from urllib.parse import quote, unquote

from periplus.errors import UsageError
from periplus.model.web import HostKey

FOLDER_DOMAIN = ".alt"
_NO_LABEL = re.compile(r"[^a-z0-9]+")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.alt")
_ADDRESS = re.compile(r"http://([a-z0-9-]+\.alt)(/[^\s\"'<>|\\^`{}]*)?")


def folder_host(folder: Path) -> str:
    """The host of a folder, a DNS label made of its name: `docs.alt`, `q2-report.alt`; `folder.alt` if no valid
    character is left.
    """
    plain = unicodedata.normalize("NFKD", folder.name).lower()
    label = _NO_LABEL.sub("-", plain.encode("ascii", "ignore").decode()).strip("-")[:60].strip("-")
    return (label or "folder") + FOLDER_DOMAIN


def folders_of(entries: Iterable[str]) -> dict[HostKey, Path]:
    """The folder of each host, from the setting `folders`. Raises UsageError for an invalid entry."""
    folders: dict[HostKey, Path] = {}
    for entry in entries:
        name, _, path = entry.partition("=")
        if not _NAME.fullmatch(name) or not Path(path).is_absolute():
            raise UsageError(f"folders expects NAME{FOLDER_DOMAIN}=/FOLDER, not {entry!r}")
        if folders.setdefault(HostKey(f"{name}:80"), Path(path)) != Path(path):
            raise UsageError(f"two folders have the name {name}: use a separate collection for each")
    return folders


def is_folder_host(host: HostKey) -> bool:
    """Whether the host is a local folder, which needs no delay."""
    return host.endswith(FOLDER_DOMAIN + ":80")


def url_of_path(host: str, parts: Iterable[str], *, is_folder: bool) -> str:
    """The URL of a file or folder. parts: its path relative to the host's folder."""
    path = "/".join(quote(os.fsencode(part), safe="!$&'()*+,;=:@~") for part in parts)
    return f"http://{host}/{path}" + ("/" if is_folder and path else "")


def parts_of(path: str) -> tuple[str, ...] | None:
    """The parts of a file's path, from a URL's path; None: no file can have this name."""
    names = []
    for segment in path.split("/"):
        name = os.fsdecode(_decode(segment))
        if name in (".", "..") or "/" in name or "\0" in name:
            return None
        if name:
            names.append(name)
    return tuple(names)


def _decode(segment: str) -> bytes:
    return unquote(segment, "utf-8", "surrogateescape").encode("utf-8", "surrogateescape")


def path_formatter(folders: Mapping[HostKey, Path], here: Path) -> Callable[[str], str]:
    """A function that replaces URLs of local files in a text by paths, such as `docs/guide/a b.html#top`.

    Paths are relative to `here`, and absolute for folders that are not below it. Without folders the text is unchanged.
    """
    roots = {host.removesuffix(":80"): _relative_prefix(folder, here) for host, folder in folders.items()}

    def path(match: re.Match[str]) -> str:
        root = roots.get(match[1])
        if root is None:
            return match[0]
        address, sign, rest = _split_suffix(match[2] or "/")
        return (root + unquote(address).removeprefix("/") or ".") + sign + rest

    return (lambda text: _ADDRESS.sub(path, text)) if roots else (lambda text: text)


def address_of_path(folders: Mapping[HostKey, Path], path: str, here: Path) -> str | None:
    """The URL of a local file or folder by its path, relative to `here`; None: it is in none of the folders."""
    full = Path(os.path.normpath(here / path))
    for host, folder in folders.items():
        if full.is_relative_to(folder):
            name = host.removesuffix(":80")
            return url_of_path(name, full.relative_to(folder).parts, is_folder=path.endswith("/") or full == folder)
    return None


def _split_suffix(address: str) -> tuple[str, str, str]:
    """(path, `?` or `#` or "", rest)."""
    match = re.search(r"[?#]", address)
    return (address[: match.start()], match[0], address[match.end() :]) if match else (address, "", "")


def _relative_prefix(folder: Path, here: Path) -> str:
    """The folder's path with a final slash; empty for `here` itself."""
    text = str(folder.relative_to(here)) if folder.is_relative_to(here) else str(folder)
    return "" if text == "." else text.rstrip("/") + "/"


def as_file_links(folders: Mapping[HostKey, Path], html: str) -> str:
    """A generated page with `file:` URLs for local files, which browsers open."""
    for host, folder in folders.items():
        name = host.removesuffix(":80")
        html = html.replace(f"http://{name}/", folder.as_uri().rstrip("/") + "/").replace(name, escape(folder.name))
    return html
