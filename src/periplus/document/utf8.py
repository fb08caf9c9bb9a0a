"""UTF-8 without decoding: is it valid, and hashes of its words. Compiled if possible; utf8.pxd gives the types."""

from __future__ import annotations

HIGH_BITS = 0x8080808080808080
FNV_START, FNV_PRIME, ALL_BITS = 0xCBF29CE484222325, 0x100000001B3, 0xFFFFFFFFFFFFFFFF


def is_utf_8(body: bytes) -> bool:
    """Whether the bytes are well-formed UTF-8, as in Python's strict decoder (no surrogates, no overlong forms).

    Source: the Unicode Standard, table 3-7. ASCII is checked eight bytes at a time.
    """
    chars, place, size = body, 0, len(body)
    words = memoryview(body)[: size & ~7].cast("Q")
    count = size >> 3
    while place < size:
        char = chars[place]
        if char < 0x80:
            place += 1
            if place & 7 == 0:
                word = place >> 3
                while word < count and not words[word] & HIGH_BITS:
                    word += 1
                place = word << 3
            continue
        if not 0xC2 <= char <= 0xF4:
            return False
        width = 2 if char < 0xE0 else 3 if char < 0xF0 else 4
        if place + width > size:
            return False
        second = chars[place + 1]
        least = 0xA0 if char == 0xE0 else 0x90 if char == 0xF0 else 0x80
        most = 0x9F if char == 0xED else 0x8F if char == 0xF4 else 0xBF
        if not least <= second <= most:
            return False
        if width > 2 and chars[place + 2] & 0xC0 != 0x80:
            return False
        if width > 3 and chars[place + 3] & 0xC0 != 0x80:
            return False
        place += width
    return True


def hash_words(words: bytes, hashes: memoryview[int]) -> int:
    """Writes the hash of each word to hashes (uint64), and returns the number of words.

    words: separated by single spaces; without one at either end. The hash: FNV-1a (Fowler, Noll, Vo).
    """
    chars, count, digest = words, 0, FNV_START
    for place in range(len(words)):
        if chars[place] == 0x20:
            hashes[count] = digest
            count, digest = count + 1, FNV_START
        else:
            digest = ((digest ^ chars[place]) * FNV_PRIME) & ALL_BITS
    hashes[count] = digest
    return count + 1
