"""Texts with keywords assigned by authors, editors or indexers.

Available files `keywords-*.jsonl.gz` of the folder CORPORA, if it is set; the index of an office suite's help
(Debian's libreoffice-help-*), if it is installed or unpacked in a folder of MANUALS; the project's own texts always.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import os
import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from lxml import html as parser

from periplus.document.language import page_language
from periplus.document.words import forms, table

FILES = {
    "SemEval2017": ["SemEval2017"], "Inspec": ["Inspec"], "500N-KPCrowd": ["500N-KPCrowd-v1.1"], "www": ["www"],
    "Russian news": ["ru-ng_0", "ru-ng_1"],
    "pak2018": ["pak2018"], "wiki20": ["wiki20"],
    "Nguyen2007": ["Nguyen2007"], "SemEval2010": ["SemEval2010"], "citeulike180": ["citeulike180"],
    "theses100": ["theses100"], "fao30": ["fao30"],
}  # fmt: skip
HELP_LANGUAGES = ("cs", "hu", "ru", "pl", "de", "en", "fr")
HELP_PAGES = 600  # per language: ordered by a digest of their names, so that all languages have the same pages
HELP_CHARS = (200, 20_000)  # shorter pages are skipped, longer ones truncated
_ENTRY = re.compile(r'url:"([^"?#]*)[^"]*", app:"[^"]*", text:"([^"]*)"')


class Text(NamedTuple):
    """A text and its keywords as sequences of stems."""

    language: str
    text: str
    keywords: frozenset[str]
    even: bool  # half of the help pages, the same in each language


def stems(text: str, language: str) -> str:
    """Text as stems, for comparison."""
    terms = table(language)
    return " ".join(terms[form] for form in forms(text))


def _text(language: str, text: str, keywords: list[str], name: str) -> Text:
    gold = frozenset(filter(None, (stems(keyword, language) for keyword in keywords)))
    return Text(language, text, gold, hashlib.md5(name.encode(), usedforsecurity=False).digest()[-1] % 2 == 0)


def sets(help_pages: int = HELP_PAGES) -> dict[str, list[Text]]:
    """All available sets. help_pages: per language."""
    own = json.loads((Path(__file__).parent / "own_texts.json").read_text("utf-8"))
    found = {"own": [_text(row["language"], row["text"], row["keywords"], "") for row in own]}
    named = os.environ.get("CORPORA")
    for name, files in FILES.items() if named else ():
        texts = [text for file in files for text in _stored(Path(named or "") / f"keywords-{file}.jsonl.gz")]
        found |= {name: texts} if texts else {}
    roots = [*filter(None, os.environ.get("MANUALS", "").split(os.pathsep)), "/"]
    for language in HELP_LANGUAGES:
        texts = next((texts for root in roots if (texts := _help(Path(root), language, help_pages))), [])
        found |= {f"help {language}": texts} if texts else {}
    return found


def _stored(path: Path) -> list[Text]:
    if not path.exists():
        return []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [
        text
        for row in rows
        if row["text"].strip() and (text := _text(row["lang"], row["text"], row["keywords"], str(row["id"]))).keywords
    ]


def _help(root: Path, language: str, most: int) -> list[Text]:
    """Translated pages (many are not translated) with at least two index entries."""
    folders = [
        *root.glob(f"usr/share/libreoffice/help/{language}*"),
        *root.glob(f"*/usr/share/libreoffice/help/{language}*"),
    ]
    folder = next((folder for folder in folders if (folder / "bookmarks.js").exists()), None)
    if folder is None:
        return []
    entries: dict[str, dict[str, None]] = defaultdict(dict)
    for url, entry in _ENTRY.findall((folder / "bookmarks.js").read_text("utf-8")):
        plain = re.sub(r"\([^)]*\)", "", html.unescape(entry))
        entries[url] |= dict.fromkeys(part.strip() for part in re.split("--|;", plain) if part.strip())
    named = {url.split("/", 1)[1]: list(keywords) for url, keywords in entries.items() if len(keywords) > 1}
    found: list[Text] = []
    for name in sorted(named, key=lambda name: hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()):
        page = folder / name
        text = _content(page) if page.exists() else ""
        if len(text) >= HELP_CHARS[0] and page_language("", text) == language:
            found.append(_text(language, text[: HELP_CHARS[1]], named[name], name))
        if len(found) == most:
            break
    return found


def _content(page: Path) -> str:
    areas = parser.fromstring(page.read_bytes().decode("utf-8", "replace")).xpath('//*[@id="DisplayArea"]')
    if not areas:
        return ""
    for element in areas[0].xpath('.//script|.//style|.//*[contains(@class,"howtoget")]'):
        element.drop_tree()
    blocks = [
        " ".join(element.text_content().split())
        for element in areas[0].xpath(".//h1|.//h2|.//h3|.//h4|.//h5|.//h6|.//p|.//pre")
    ]
    return "\n\n".join(filter(None, blocks))
