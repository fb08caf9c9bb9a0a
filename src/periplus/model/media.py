"""What kind of thing is a media type, in the few kinds that a chart can tell apart?"""

from __future__ import annotations

from enum import StrEnum


class MediaClass(StrEnum):
    """Kinds of content, in the order in which charts show them."""

    PAGES = "pages"
    DOCUMENTS = "documents"  # PDF, office files, plain text, data as text
    IMAGES = "images"
    RECORDINGS = "recordings"  # audio and video
    STYLES = "styles"
    SCRIPTS = "scripts"
    OTHER = "other"  # archives, programs, and what does not say what it is


_EXACT = {
    "text/html": MediaClass.PAGES,
    "application/xhtml+xml": MediaClass.PAGES,
    "text/css": MediaClass.STYLES,
    "text/javascript": MediaClass.SCRIPTS,
    "text/ecmascript": MediaClass.SCRIPTS,
    "application/javascript": MediaClass.SCRIPTS,
    "application/x-javascript": MediaClass.SCRIPTS,
    "application/ecmascript": MediaClass.SCRIPTS,
    "application/wasm": MediaClass.SCRIPTS,
}
_BY_START = (
    ("image/", MediaClass.IMAGES),
    ("audio/", MediaClass.RECORDINGS),
    ("video/", MediaClass.RECORDINGS),
    ("text/", MediaClass.DOCUMENTS),
    ("application/pdf", MediaClass.DOCUMENTS),
    ("application/postscript", MediaClass.DOCUMENTS),
    ("application/rtf", MediaClass.DOCUMENTS),
    ("application/msword", MediaClass.DOCUMENTS),
    ("application/vnd.ms-", MediaClass.DOCUMENTS),
    ("application/vnd.openxmlformats-", MediaClass.DOCUMENTS),
    ("application/vnd.oasis.opendocument.", MediaClass.DOCUMENTS),
    ("application/epub+zip", MediaClass.DOCUMENTS),
    ("application/xml", MediaClass.DOCUMENTS),
    ("application/json", MediaClass.DOCUMENTS),
)


def media_class(media_type: str) -> MediaClass:
    """The class of a media type in lower case, without parameters; OTHER for one not known or not said."""
    exact = _EXACT.get(media_type)
    if exact is not None:
        return exact
    for start, found in _BY_START:
        if media_type.startswith(start):
            return found
    return MediaClass.DOCUMENTS if media_type.endswith(("+xml", "+json")) else MediaClass.OTHER
