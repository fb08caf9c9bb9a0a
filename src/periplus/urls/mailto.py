"""Checks mailto: links."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ATEXT = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u0080-\U0010ffff-]+"  # RFC 5322, 3.2.3, with UTF-8 as RFC 6532 adds it
_LOCAL = re.compile(rf'{_ATEXT}(?:\.{_ATEXT})*|"(?:[^"\\\x00-\x1f]|\\[^\x00-\x1f])*"')
_LABEL = r"[A-Za-z0-9\u0080-\U0010ffff](?:[A-Za-z0-9\u0080-\U0010ffff-]*[A-Za-z0-9\u0080-\U0010ffff])?"
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*|\[[^\[\]\\\s]+\]")
_HEADER_NAME = re.compile(r"[!-9;-~]+")  # RFC 5322, 2.2: printable ASCII but the colon
_ADDRESS_HEADERS = frozenset({"to", "cc", "bcc"})
LOCAL_BYTES = 64  # RFC 5321, 4.5.3.1.1
DOMAIN_BYTES = 255  # RFC 5321, 4.5.3.1.2
LABEL_BYTES = 63  # RFC 1035, 2.3.4
MAILTO_CHARS = 20_000  # mail programs accept no longer links


def mailto_problem(text: str) -> str | None:
    """What is wrong with a mailto: link, as a phrase; None: nothing. Never raises.

    Several addresses, header fields, percent-encoding and UTF-8 in both parts are valid. Beyond the standard, white
    space around an address is accepted, as in all mail programs; a link without address and header fields is not.
    Source: RFC 6068, section 2.
    """
    rest = text.strip()[len("mailto:") :] if text.strip()[:7].lower() == "mailto:" else text.strip()
    if len(rest) > MAILTO_CHARS:
        return f"longer than {MAILTO_CHARS:,} characters"
    if not _is_unicode(rest):
        return "it contains an incomplete character"
    rest = rest.partition("#")[0]  # RFC 6068, 2: a fragment has no meaning here
    if _BAD_ESCAPE.search(rest):
        return "a % is not followed by two hexadecimal digits"
    to, _, fields = rest.partition("?")
    if rest.startswith("//"):  # RFC 6068, 2: a / in an address must be encoded
        return "an address does not begin with //"
    if not rest:
        return "it has no address"
    if to.strip() and (problem := _addresses_problem(to)):
        return problem
    return _fields_problem(fields, bool(to.strip()))


def _addresses_problem(to: str) -> str | None:
    """to: addresses separated by commas, percent-encoded. A comma within an address is encoded, or in quotes."""
    for part in _split_addresses(to):
        try:
            address = unquote_to_bytes(part).decode("utf-8").strip()
        except UnicodeError:
            return "the percent-encoded bytes are not UTF-8"
        if problem := address_problem(address):
            return problem
    return None


def _split_addresses(to: str) -> list[str]:
    """Splits at commas outside of quotes."""
    parts = [""]
    for place, piece in enumerate(to.split('"')):
        if place % 2:
            parts[-1] += f'"{piece}"'
        else:
            first, *more = piece.split(",")
            parts[-1] += first
            parts += more
    return parts


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fields_problem(fields: str, addressed: bool) -> str | None:
    """fields: the text after `?`. addressed: whether there is an address before it."""
    for field in filter(None, fields.split("&")):
        name, equals, value = field.partition("=")
        if not equals:
            return f"the header field {_printable(name)} has no value"
        if not _HEADER_NAME.fullmatch(unquote_to_bytes(name).decode("latin-1")):
            return f"{_printable(name)} is not a valid name of a header field"
        if (
            name.lower() in _ADDRESS_HEADERS
            and value
            and (problem := _addresses_problem(value.replace("%2C", ",").replace("%2c", ",")))
        ):
            return problem
    return None if addressed or fields else "it has no address"


def address_problem(address: str) -> str | None:
    """What is wrong with one mail address, decoded."""
    if not address:
        return "an address is empty: there is an extra comma"
    local, at, domain = address.rpartition("@")
    if not at:
        return f"{_printable(address)} has no @"
    if not local or not domain:
        return f"{_printable(address)} has nothing {'before' if not local else 'after'} the @"
    if not _LOCAL.fullmatch(local):
        what = (
            "a semicolon instead of a comma between addresses"
            if ";" in local
            else "two @"
            if "@" in local
            else "a character that is not allowed before the @"
        )
        return f"{_printable(address)} has {what}"
    if not _DOMAIN.fullmatch(domain):
        return f"{_printable(domain)} is not a domain name"
    if len(local.encode("utf-8", "replace")) > LOCAL_BYTES or _domain_is_too_long(domain):
        return f"{_printable(address)} is too long for a mail address"
    return None


def _domain_is_too_long(domain: str) -> bool:
    """Measured in punycode, in which labels that are not ASCII are longer."""
    if len(domain) > DOMAIN_BYTES:
        return True
    labels = [
        ("xn--" + label.encode("punycode").decode()) if not label.isascii() else label for label in domain.split(".")
    ]
    return sum(map(len, labels)) + len(labels) - 1 > DOMAIN_BYTES or any(len(label) > LABEL_BYTES for label in labels)


def _printable(text: str) -> str:
    """For messages: short, safe to print."""
    return ascii(text if len(text) <= 100 else text[:100] + "...")
