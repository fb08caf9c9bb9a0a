"""DOCX, ODT and EPUB files, built from the specifications of their formats."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data, zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def docx(body: str, *, styles: str = "", relations: str = "", core: str = "") -> bytes:
    """body, styles: the content of w:body and w:styles."""
    return zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "word/document.xml": (
                f'<w:document xmlns:w="{WORD}" xmlns:r="{RELATIONS}"><w:body>{body}</w:body></w:document>'
            ),
            "word/styles.xml": f'<w:styles xmlns:w="{WORD}">{styles}</w:styles>',
            "word/_rels/document.xml.rels": f"<Relationships>{relations}</Relationships>",
            "docProps/core.xml": (
                f'<c:core xmlns:c="urn:c" xmlns:dc="http://purl.org/dc/elements/1.1/">{core}</c:core>'
            ),
        }
    )


def odt(body: str, meta: str = "") -> bytes:
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "text", "table", "draw", "svg-compatible", "meta")
    )
    names = (
        f'{spaces} xmlns:svg="urn:svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"'
    )
    content = (
        "<office:document-content "
        f"{names}><office:body><office:text>{body}</office:text></office:body></office:document-content>"
    )
    meta_xml = f"<office:document-meta {names}><office:meta>{meta}</office:meta></office:document-meta>"
    return zipped({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content, "meta.xml": meta_xml})


def epub(chapters: Mapping[str, str], title: str) -> bytes:
    """chapters: XHTML bodies by file name, in reading order."""
    items = "".join(f'<item id="i{number}" href="{name}"/>' for number, name in enumerate(chapters))
    spine = "".join(f'<itemref idref="i{number}"/>' for number in range(len(chapters)))
    package = (
        f'<package xmlns:dc="urn:dc"><metadata><dc:title>{title}</dc:title><dc:language>cs</dc:language></metadata>'
        f"<manifest>{items}</manifest>"
    )
    files = {
        f"OEBPS/{name}": (
            f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>t</title></head><body>{body}</body></html>'
        )
        for name, body in chapters.items()
    }
    container = '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
    spine_xml = f"<spine>{spine}</spine></package>"
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": container,
            "OEBPS/book.opf": package + spine_xml,
            **files,
        }
    )
