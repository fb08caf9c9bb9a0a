"""File names for URLs that are valid on Windows, macOS and Linux, and in zip files."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote_to_bytes, urlsplit

import xxhash

from periplus.model.web import Url

# Forbidden on Windows: these characters, control characters, a final dot or blank, and device names with any extension.
# Source: Microsoft, Naming Files, Paths, and Namespaces. Names are in NFC, as links in pages are; macOS accepts both
# forms.
_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]')
_DEVICES = re.compile(r"(?i)(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9\u00b9\u00b2\u00b3])(?=$|\.)")
PLACE_BYTES = 100  # of one name, in UTF-8: file systems allow 255 bytes or characters, eCryptfs 143
PATH_CHARS = 180  # of a path: Windows allows 260 including the folder
ENDINGS = {
    "text/html": (".html", ".htm"),
    "application/xhtml+xml": (".xhtml",),
    "text/css": (".css",),
    "text/plain": (".txt", ".text", ".md"),
    "text/markdown": (".md", ".markdown", ".mkd"),
    "text/javascript": (".js", ".mjs"),
    "application/javascript": (".js", ".mjs"),
    "application/x-javascript": (".js",),
    "application/json": (".json",),
    "application/pdf": (".pdf",),
    "application/xml": (".xml",),
    "text/xml": (".xml",),
    "image/svg+xml": (".svg",),
    "image/png": (".png",),
    "image/jpeg": (".jpg", ".jpeg", ".jpe"),
    "image/gif": (".gif",),
    "image/webp": (".webp",),
    "image/avif": (".avif",),
    "image/x-icon": (".ico",),
    "image/vnd.microsoft.icon": (".ico",),
    "font/woff": (".woff",),
    "font/woff2": (".woff2",),
    "font/ttf": (".ttf",),
    "font/otf": (".otf",),
}
"""Extensions by which browsers recognise a media type; the first one is added if a name has none of them."""


_OPENED_AS_PAGES = frozenset({"html", "htm", "xhtml", "xht", "shtml", "shtm", "mht", "mhtml", "svgz", "hta"})


class FileNames:
    """Unique paths for URLs, also on case-insensitive systems. The same URLs in the same order get the same paths."""

    def __init__(self, taken: tuple[str, ...] = ()) -> None:
        """taken: paths that are not used for URLs."""
        self._files = {_fold_case(path) for path in taken}
        self._folders: set[str] = set()

    def of(self, url: Url, media_type: str) -> str:
        """A relative path with `/` as separator, at most PATH_CHARS long."""
        path = file_path(url, media_type)
        if len(path) > PATH_CHARS or self._is_taken(path):
            stem, dot, ending = path.rpartition(".")
            stem, ending = (stem, dot + ending) if dot and "/" not in ending else (path, "")
            if len(path) > PATH_CHARS:
                stem = path.split("/")[0] + "/long"
            path = f"{stem}~{_digest(url)}{ending[:20]}"
            if self._is_taken(path):  # a folder of the path has the name of a file
                path = f"{path.split('/')[0]}~/{_digest(url)}{ending[:20]}"
        folded = _fold_case(path)
        self._files.add(folded)
        while "/" in folded:
            folded = folded.rpartition("/")[0]
            self._folders.add(folded)
        return path

    def _is_taken(self, path: str) -> bool:
        folded = _fold_case(path)
        if folded in self._files or folded in self._folders:
            return True
        while "/" in folded:
            folded = folded.rpartition("/")[0]
            if folded in self._files:
                return True
        return False


def file_path(url: Url, media_type: str) -> str:
    """`example.org/a/b.html` for `https://example.org/a/b`: valid names, index.html for folders, the query in the file
    name, an extension by media type. Two URLs may get the same path.
    """
    parts = urlsplit(url)
    host = _safe(parts.netloc.replace(":", "-").strip("[]"))
    *folders, name = [_safe(_text(place)) for place in parts.path.removeprefix("/").split("/")]
    # empty segments are kept: /a//b is not /a/b
    return "/".join([host, *(folder or "_" for folder in folders), _name(name or "index", parts.query, media_type)])


def _name(name: str, query: str, media_type: str) -> str:
    """Adds the query after a tilde, and an extension of the media type; other types keep their extension."""
    endings = ENDINGS.get(media_type, ())
    stem, dot, last = name.rpartition(".")
    ending = dot + last if stem and (dot + last).lower() in endings else ""
    stem = stem if ending else name
    if query:
        text = _safe(_text(query))
        stem += "~" + (text if len(text) <= 40 and text == _text(query) else _digest(query))
    if not endings and stem.rpartition(".")[2].lower() in _OPENED_AS_PAGES:
        return _safe(stem + ".bin")  # the server did not send it as a page, but browsers would open it as one
    return _safe(stem) + (ending or (endings[0] if endings else ""))


def _text(place: str) -> str:
    data = unquote_to_bytes(place)
    try:
        return unicodedata.normalize("NFC", data.decode())
    except UnicodeDecodeError:
        return place


def _safe(name: str) -> str:
    """A name that is valid on every file system and is not taken for an option of a command; empty stays empty."""
    safe = _FORBIDDEN.sub("_", name)
    if len(safe.encode()) > PLACE_BYTES:
        safe = safe.encode()[: PLACE_BYTES - 20].decode("utf-8", "ignore") + "~" + _digest(name)
    safe = re.sub(r"[. ]+$", lambda match: "_" * len(match[0]), safe)
    return "_" + safe if _DEVICES.match(safe) or safe.startswith(("~", "-", "=")) else safe


def _fold_case(path: str) -> str:
    return unicodedata.normalize("NFC", path.casefold())


def _digest(text: str) -> str:
    return xxhash.xxh3_64_hexdigest(text.encode("utf-8", "surrogatepass"))[:12]
