"""Runs other extractors on the same pages, for comparison.

They are installed in a separate environment: `python3 -m venv /tmp/peers-venv` (or the path in PEERS_VENV), and there
`pip install trafilatura lxml[html_clean] readability-lxml resiliparse`. That Python runs this file, with pages on its
input.
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
    """The content of each page according to each installed peer."""
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
    """The extracted text; empty if the peer fails."""
    try:
        return extract(page)
    except Exception:  # noqa: BLE001 any of theirs
        return ""


if __name__ == "__main__":
    _main()
