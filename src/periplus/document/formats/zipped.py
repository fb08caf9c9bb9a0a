"""What stands in a file of a zip archive, within bounds?"""

from __future__ import annotations

import contextlib
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Final

from lxml import etree

MEMBER_BYTES = 33_554_432  # inflated, of one file: as much as a body may have
TOTAL_BYTES = 67_108_864  # inflated, of one archive
NODES: Final = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True, recover=True, remove_comments=True, remove_pis=True)
_BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError, LookupError, OverflowError)


class Archive:
    """The files of an archive by name. What is damaged, encrypted, missing or too large reads as nothing, and faults tell of it."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive, self._room = archive, TOTAL_BYTES
        self.faults: list[str] = []

    def bytes_of(self, name: str) -> bytes:
        most = min(MEMBER_BYTES, self._room)
        try:
            with self._archive.open(name) as member:
                data = member.read(most + 1)
        except KeyError:
            return b""
        except _BROKEN as error:
            self.faults.append(f"damaged: {name}: {error}"[:100])
            return b""
        if len(data) > most:
            self.faults.append(f"long: {name} is larger than {most} bytes")
            data = data[:most]
        self._room -= len(data)
        return data

    def tree(self, name: str) -> etree._Element | None:
        """An XML file's root; of a damaged one as much as can be read. No entity is expanded."""
        return parsed(self.bytes_of(name))


def parsed(data: bytes) -> etree._Element | None:
    """The root of XML, as far as it is some. Deeper than 256 elements or with a text of 10 MB it is cut: libxml2's own bounds."""
    if not data:
        return None
    try:
        return etree.fromstring(data, NODES)
    except (etree.XMLSyntaxError, ValueError):
        return None


@contextlib.contextmanager
def opened(body: bytes) -> Iterator[Archive | None]:
    """The archive, for as long as it is used; None for what is none."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(body))
    except _BROKEN:
        yield None
        return
    with archive:
        yield Archive(archive)
