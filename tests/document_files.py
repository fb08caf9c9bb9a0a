"""Documents in the formats of word processors, built byte by byte from their specifications."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data, zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED)
    return held.getvalue()


def docx(body: str, *, styles: str = "", relations: str = "", core: str = "") -> bytes:
    """body, styles: what stands within w:body and w:styles."""
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
    said = f"<office:document-meta {names}><office:meta>{meta}</office:meta></office:document-meta>"
    return zipped({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content, "meta.xml": said})


def epub(chapters: Mapping[str, str], title: str) -> bytes:
    """chapters: XHTML bodies by file name, in the order of reading."""
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


def doc(pieces: list[tuple[str, bool]]) -> bytes:
    """A Word 97 file of pieces, each (text, whether it has two bytes a character),
    in a compound file with sectors of 512 bytes.
    """
    head = bytearray(0x400)
    table_of, ends, texts = b"", [0], b""
    for text, wide in pieces:
        start = len(head) + len(texts)
        table_of += struct.pack("<HIH", 0, start if wide else 0x40000000 | start * 2, 0)
        texts += text.encode("utf-16-le" if wide else "cp1252")
        ends.append(ends[-1] + len(text))
    plc = struct.pack(f"<{len(ends)}I", *ends) + table_of
    clx = b"\x01" + struct.pack("<H", 2) + b"zz" + b"\x02" + struct.pack("<I", len(plc)) + plc
    struct.pack_into("<H", head, 10, 0x0200)
    struct.pack_into("<i", head, 0x4C, ends[-1])
    struct.pack_into("<II", head, 0x01A2, 0, len(clx))
    return compound({"WordDocument": bytes(head) + texts + bytes(4096), "1Table": clx})


def compound(streams: Mapping[str, bytes]) -> bytes:
    """A compound file: short streams in the small sectors of the root's stream, others in sectors of their own."""
    small, small_table, entries = b"", list[int](), list[tuple[str, int, int]]()
    sectors, chain = list[bytes](), list[int]()

    def add(data: bytes) -> int:
        start = len(sectors)
        parts = [data[at : at + 512].ljust(512, b"\0") for at in range(0, len(data), 512)]
        sectors.extend(parts)
        chain.extend([*range(start + 1, start + len(parts)), 0xFFFFFFFE])
        return start

    for name, data in streams.items():
        if len(data) >= 4096:
            entries.append((name, add(data), len(data)))
        else:
            first = len(small) // 64
            count = -(-len(data) // 64)
            small += data.ljust(count * 64, b"\0")
            small_table += [*range(first + 1, first + count), 0xFFFFFFFE]
            entries.append((name, first, len(data)))
    root = ("Root Entry", add(small) if small else 0xFFFFFFFE, len(small))
    small_start = add(struct.pack(f"<{len(small_table)}I", *small_table)) if small else 0xFFFFFFFE
    directory = b"".join(_entry(*entry) for entry in [root, *entries])
    directory_start = add(directory)
    sectors.append(struct.pack("<128I", *(chain + [0xFFFFFFFD] + [0xFFFFFFFF] * (127 - len(chain)))))
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    head += struct.pack("<IIIIIIIII", 0, 1, directory_start, 0, 4096, small_start, 1, 0xFFFFFFFE, 0)
    return head + struct.pack("<109I", len(sectors) - 1, *[0xFFFFFFFF] * 108) + b"".join(sectors)


def _entry(name: str, start: int, size: int) -> bytes:
    encoded = name.encode("utf-16-le") + b"\0\0"
    return encoded.ljust(64, b"\0") + struct.pack("<H", len(encoded)) + bytes(50) + struct.pack("<IQ", start, size)
