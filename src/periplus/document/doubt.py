"""Does a text contradict the encoding that is declared for it?"""

from __future__ import annotations

from periplus.document import guess
from periplus.document.charsets import Encoding

# Nats by which another encoding must be likelier than the declared one. Measured by quality/charset: right words are doubted by
# 12 at most, wrong ones that matter (other letters are read) by more in 99.4 of 100 texts with twenty letters outside ASCII.
_DOUBT = 18.0
_WORDS = -5.0  # nats a place: what is less likely than this even in the best encoding is no text that we can judge
_PLACES = 12  # about four letters outside ASCII: fewer are no ground for doubt
_BROKEN = 0.02  # of the characters outside ASCII that a declared encoding may leave unread, or read as control characters
_COMMON = 0.3  # of the signs of a text that is declared East Asian are among the commonest, at least


def is_contradicted(declared: Encoding, body: bytes, utf_8: str | None, markup: bool, hint: str) -> bool:
    """Whether the bytes cannot be in the declared encoding, or make words in another only. Not for UTF-8.

    utf_8: the text if the bytes are UTF-8. hint: the top-level domain.
    """
    found_at_once = guess.by_structure(body)
    if is_wide(declared):  # markup holds ASCII, and ASCII in these encodings zeros
        return not is_wide(found_at_once) and markup and b"\0" not in body[:1000]
    if found_at_once and found_at_once.name != declared.name:
        return True
    if body.isascii():
        return False
    if declared.name in guess.PAIRED_NAMES:
        return not _reads_paired(declared, body) and guess.guessed(body, hint, markup=markup) is not None
    if utf_8 is not None:
        return True  # no text of single bytes comes out as UTF-8 by chance
    found = guess.guessed(body, hint, declared, markup=markup)
    if found is None or found.encoding.name == declared.name:
        return False
    if declared.name in guess.SINGLE_NAMES:
        return found.against >= _DOUBT and found.likely >= _WORDS and found.places >= _PLACES
    return found.against > 0.0 and _broken(declared.text(body)) > _BROKEN


def is_wide(encoding: Encoding | None) -> bool:
    """Whether it takes two or four bytes for a letter of ASCII."""
    return encoding is not None and encoding.name.startswith(("utf-16", "utf-32"))


def _reads_paired(declared: Encoding, body: bytes) -> bool:
    text = declared.text(body[:60_000])[:-1]
    return _broken(text) <= _BROKEN and max(guess.common_signs(text, language) for language in guess.PAIRED_NAMES[declared.name]) >= _COMMON


def _broken(text: str) -> float:
    """How many of the characters outside ASCII are none, of 1."""
    others = len(text) - len(text.encode("ascii", "ignore"))
    broken = text.count("\ufffd") + sum(map(text.count, map(chr, range(0x80, 0xA0))))
    return broken / max(1, others)
