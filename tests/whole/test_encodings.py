"""A crawl decodes a text in every encoding of its language, with correct, missing or false declarations."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

import pytest

from periplus.document.understand import understand
from periplus.model.visit import Fetched, Headers
from periplus.model.web import Url
from testweb import serve
from testweb.site import Page, Site, Web
from testweb.tongues import ENCODINGS, TEXTS, written
from testweb.wire import Answer
from whole.voyage import crawled

DECLARED = ("header", "meta", "nothing", "false header", "false meta")
FEW_LETTERS = ("en", "nl")  # outside ASCII in these texts, so the declaration is accepted
CRAWLED = ("cs", "hu", "ru", "de", "ja")


def lie(language: str, encoding: str) -> str:
    """A typical false declaration: an encoding of another region, or UTF-8."""
    if encoding != "utf-8" and language in ("cs", "ja"):
        return "utf-8"
    return "windows-1251" if "windows-1252" in ENCODINGS[language] else "iso-8859-1"


def body_of(language: str, encoding: str, declared: str) -> bytes:
    first, *others = TEXTS[language]
    said = {"meta": encoding, "false meta": lie(language, encoding)}.get(declared, "")
    meta = f'<meta charset="{said}">' if said else ""
    rest = "".join(f"<p>{escape(paragraph, quote=False)}</p>" for paragraph in others)
    return written(
        (
            f"<!doctype html><html><head>{meta}<title>{escape(first, quote=False)}</title></head><body><h1>"
            f"Page</h1>{rest}</body></html>"
        ),
        encoding,
    )


def media_type(language: str, encoding: str, declared: str) -> str:
    said = {"header": encoding, "false header": lie(language, encoding)}.get(declared, "")
    return "text/html" + (f"; charset={said}" if said else "")


def variants(language: str) -> Iterator[tuple[str, str]]:
    for encoding in ("utf-8", *ENCODINGS[language]):
        for declared in DECLARED[: 3 if language in FEW_LETTERS else 5]:
            yield encoding, declared


@pytest.mark.parametrize("language", TEXTS)
def test_a_page_is_decoded_in_every_encoding_of_its_language_with_any_declaration(language):
    wrong = []
    for encoding, declared in variants(language):
        answer = Headers((("content-type", media_type(language, encoding, declared)),))
        page = understand(Url("http://coast.test/"), Fetched(200, answer, body_of(language, encoding, declared)))
        if [page.title, *page.text.split("\n")] != [TEXTS[language][0], "Page", *TEXTS[language][1:]]:
            wrong.append((encoding, declared, page.charset, page.title[:40]))
        elif declared.startswith("false") and page.charset.source in ("header", "meta"):
            assert page.charset.source != declared.partition(" ")[2], (
                "a false declaration was accepted, although the text is the same"
            )
    assert wrong == []


def test_a_crawl_finds_one_text_for_each_language(tmp_path: Path) -> None:
    site = Site("tongues.test")
    site.add(Page("/", "Tongues", ("One text in many encodings.",)))
    texts = {}
    for language in CRAWLED:
        for encoding, declared in variants(language):
            path = f"/{language}-{encoding}-{declared.replace(' ', '-')}.html"
            answer = Answer(
                body=body_of(language, encoding, declared), media_type=media_type(language, encoding, declared)
            )
            site.answer(path, answer)
            texts[path] = language
    with serve(Web([site])) as server:
        collection, _ = crawled(tmp_path, server, "tongues.test", delay_s=0.0)
        found = {
            url: (title, digest)
            for url, title, digest in collection.ask(
                "SELECT u.text, p.title, p.text_digest FROM page p JOIN url u ON u.id = p.url_id"
            )
        }
    by_language: dict[str, set] = {}
    for path, language in texts.items():
        by_language.setdefault(language, set()).add(found[server.url("tongues.test", path)])
    assert {language: len(distinct) for language, distinct in by_language.items()} == dict.fromkeys(CRAWLED, 1)
    assert {next(iter(distinct))[0] for distinct in by_language.values()} == {
        TEXTS[language][0] for language in CRAWLED
    }
