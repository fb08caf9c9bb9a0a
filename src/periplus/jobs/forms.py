"""Parses fields of forms and query strings. Invalid values raise UsageError with the name of the field."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from periplus.errors import UsageError

Form = Mapping[str, str]


def whole(form: Form, name: str, usual: int, least: int, most: int) -> int:
    """An integer; `usual` if the field is empty."""
    text = form.get(name, "").strip() or str(usual)
    if not (text.isascii() and text.isdigit() and len(text) < 19 and least <= int(text) <= most):
        raise UsageError(f"{_words(name)} is a number from {least:,} to {most:,}, not {text[:50]!r}")
    return int(text)


def decimal(form: Form, name: str, usual: float, least: float, most: float) -> float:
    text = form.get(name, "").strip()
    try:
        value = float(text or usual)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise UsageError(f"{_words(name)} must be between {least:g} and {most:,g}, not {text[:50]!r}")
    return value


def choice(form: Form, name: str, words: Collection[str], usual: str | None = "") -> str:
    """One of the words; `usual` if the field is empty. With usual None the field is required."""
    text = form.get(name, "").strip() or usual or ""
    if text != usual and text not in words:
        raise UsageError(f"{_words(name)} is one of {', '.join(filter(None, words))}, not {text[:50]!r}")
    return text


def _words(name: str) -> str:
    return name.replace("_", " ")
