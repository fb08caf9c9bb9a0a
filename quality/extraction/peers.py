"""What do other extractors make of the same pages?

They are compared with, never used, so they live in an environment of their own: `python3 -m venv /tmp/peers-venv` (or
where PEERS_VENV says), and there `pip install trafilatura lxml[html_clean] readability-lxml resiliparse`. This file is
started by that Python with pages on its input.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

Extractor = Callable[[str], str]


def _trafilatura() -> Extractor:
    extract = import_module("trafilatura").extract
    return lambda text: extract(text, include_comments=False) or ""


def _readability() -> Extractor:
    document, plain = (
        import_module("readability").Document,
        import_module("resiliparse.extract.html2text").extract_plain_text,
    )
    return lambda text: plain(document(text).summary())


def _resiliparse() -> Extractor:
    extract = import_module("resiliparse.extract.html2text").extract_plain_text
    return lambda text: extract(text, main_content=True)


_MAKERS = {"trafilatura": _trafilatura, "readability-lxml": _readability, "resiliparse": _resiliparse}


def peer_texts(pages: Sequence[str]) -> dict[str, list[str]]:
    """What each installed peer takes for the content of each page."""
    python = Path(os.environ.get("PEERS_VENV", "/tmp/peers-venv")) / "bin/python"
    if not python.exists():
        return {}
    done = subprocess.run([python, __file__], input=json.dumps(list(pages)), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def _main() -> None:
    pages, found = json.load(sys.stdin), {}
    for name, maker in _MAKERS.items():
        try:
            extract = maker()
        except ImportError:
            continue
        found[name] = [_or_nothing(extract, page) for page in pages]
    json.dump(found, sys.stdout)


def _or_nothing(extract: Extractor, page: str) -> str:
    """A peer that fails on a page has found nothing on it."""
    try:
        return extract(page)
    except Exception:  # noqa: BLE001 any of theirs
        return ""


if __name__ == "__main__":
    _main()
