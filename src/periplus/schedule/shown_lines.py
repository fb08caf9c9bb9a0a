"""Remembers the lines of a host's pages by 32-bit keys, and finds out what is new in a text.

Compiled if there is a C compiler; shown_lines.pxd has the types.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

GAP, JOINT, NEWLINE, LETTER, DIGIT = range(5)
KINDS = bytes(
    LETTER if code >= 0x80 or chr(code).isalpha() else
    DIGIT if chr(code).isdigit() else JOINT if chr(code) in ".,:" else NEWLINE if code == 10 else GAP
    for code in range(256)
)  # fmt: skip
LINE_WORDS, ADDRESS_WORDS = range(2)  # uses of the words that `_read_line` reads
END, WORD, NUMBER, DAY = range(4)  # kinds of tokens that `_next` finds; DAY: a number that may be in a calendar
NOTHING, COPY, NUMBERS, WORDS = range(4)
"""What is new in a text: nothing; a line that was seen once before; numbers; words."""

FREE = 0  # an empty slot; key 0 is stored as key 1
MASK_32, MASK_64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
# multiplier of the hash table: Python's hash differs in each process, so keys that collide cannot be prepared
FACTOR = hash("lines") & MASK_64 | 1
SMALLEST_BITS = 6
SEED, PRIME = 2166136261, 16777619  # of FNV-1a
MIX_1, MIX_2 = 0x85EBCA6B, 0xC2B2AE35  # of the finalizer of MurmurHash3
SHORT = 12  # words; longer lines are compared by pairs of words too, since they may be parts of longer texts
PAIR_MASK = 1  # half of the pairs are kept, selected by the lowest bit of their keys
MOST_PAIRS = 1024  # per line
SIEVE_MASK = 4095
LINE_END, ZERO, LAST_DAY, FIRST_YEAR, LAST_YEAR, TOO_MUCH, NEAR = 10, 48, 31, 1000, 2999, 100_000_000, 100
# added to keys that are not of lines
TWICE, LETTERS, PAIR, ADDRESS = 0x9E3779B9, 0x7F4A7C15, 0x51ED270B, 0x2545F491
CALENDAR_NAMES = """
    january february march april may june july august september october november december
    jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun
    monday tuesday wednesday thursday friday saturday sunday
    januar februar märz mai juni juli oktober dezember montag dienstag mittwoch donnerstag freitag samstag sonntag
    janvier février mars avril juin juillet août septembre octobre novembre décembre
    lundi mardi mercredi jeudi vendredi samedi dimanche
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    lunes martes miércoles jueves viernes sábado domingo
    gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre
    lunedì martedì mercoledì giovedì venerdì sabato domenica
    januari februari maart mei augustus maandag dinsdag woensdag donderdag vrijdag zaterdag zondag
    janeiro fevereiro março maio junho julho setembro outubro novembro dezembro
    января февраля марта апреля мая июня июля августа сентября октября ноября декабря
    понедельник вторник среда четверг пятница суббота воскресенье
"""


class KeySet:
    """A set of 32-bit keys: an open-addressing hash table, at most half full."""

    def __init__(self, bits: int = SMALLEST_BITS) -> None:
        """bits: of the first number of slots."""
        self.count = 0
        self.bits = bits
        self.slots = memoryview(bytearray(4 << bits)).cast("I")

    def has(self, key: int) -> bool:
        return self.slots[self._place(key or 1)] != FREE

    def add(self, key: int) -> bool:
        """Adds the key; False if it was in the set before."""
        key = key or 1
        place = self._place(key)
        if self.slots[place] != FREE:
            return False
        self.slots[place] = key
        self.count += 1
        if self.count >> (self.bits - 1):
            self._grow()
        return True

    def _place(self, key: int) -> int:
        """The slot of the key, or the free slot for it."""
        most = (1 << self.bits) - 1
        place = (key * FACTOR & MASK_64) >> (64 - self.bits)
        while self.slots[place] != FREE and self.slots[place] != key:
            place = (place + 1) & most
        return place

    def touch(self, key: int) -> int:
        """The value of the slot where the search for a key begins, which is then in the processor's cache."""
        return self.slots[(key * FACTOR & MASK_64) >> (64 - self.bits)]

    def _grow(self) -> int:
        former, self.bits = self.slots, self.bits + 1
        self.slots = memoryview(bytearray(4 << self.bits)).cast("I")
        for at in range(len(former)):
            if former[at] != FREE:
                self.slots[self._place(former[at])] = former[at]
        return 0


class LineMemory:
    """Keys of a host's lines in order; the last `generation` to 2 * `generation` of them are in memory.

    The content depends only on the sequence of keys, so it can be restored from the stored sequence.
    """

    def __init__(self, generation: int, first: int, keys: Sequence[int]) -> None:
        """keys: the stored end of the sequence, from number `first` on."""
        self.generation = generation
        self.shown = first
        self.young = KeySet()
        self.old = KeySet()
        self.new = 0  # keys added since `take_new`, which are in `new_keys`
        self.new_keys = memoryview(bytearray(4 * MOST_PAIRS)).cast("I")
        self.pairs = memoryview(bytearray(4 * MOST_PAIRS + 4)).cast("I")  # the last slot is for pairs that are not kept
        self.kind = END  # of the token that `_next` found
        self.word = 0  # its key
        self.value = 0  # if it is a number without other characters
        self.own = KeySet()  # words of the page's URL
        self.sieve = memoryview(bytearray(CALENDAR_SIEVE))
        self.touched = 0  # a use of the slots that were read ahead
        self.place = 0  # the last number of the URL; numbers close to it are links of a pager
        self.line = self.letters = self.words = self.figures = self.count = 0  # of the current line
        for at in range(len(keys)):
            self.young.add(keys[at])
            self._count_key()

    def _count_key(self) -> int:
        self.shown += 1
        if self.shown % self.generation == 0:
            self.old, self.young = self.young, KeySet(self.young.bits)
        return 0

    def _meet(self, key: int) -> bool:
        """Whether the key is in memory. Adds it, or moves it to the young generation."""
        if not self.young.add(key):
            return True
        is_known = self.old.has(key)
        self._count_key()
        if self.new == len(self.new_keys):
            self._widen()
        self.new_keys[self.new] = key
        self.new += 1
        return is_known

    def _widen(self) -> int:
        former = self.new_keys
        self.new_keys = memoryview(bytearray(8 * self.new)).cast("I")
        self.new_keys[: self.new] = former
        return 0

    def read(self, written: bytes, address: bytes, blocks: Sequence[int], counted: Sequence[int], most: int) -> int:
        """What is new in a page: NOTHING, COPY, NUMBERS or WORDS. Remembers its lines.

        written: the text in UTF-8 and lower case, of which `most` lines are read. address: the URL in lower case; its
        words are ignored. blocks: of each line; lines beyond its end are read. counted: by block, 0 to ignore it.

        Words and numbers of calendars are ignored. A line that is new only in its numbers has new numbers; a page needs
        two or more, since a single one is a counter. A long line with mostly known pairs of words is a part of another
        text and has nothing new.
        """
        chars, pairs, at, end = written, self.pairs, 0, len(written)
        self._learn_address(address, len(address))
        fresh = copies = pieces = numbers = line = 0
        while at <= end and line < most:
            line += 1
            if line <= len(blocks) and not counted[blocks[line - 1]]:
                while at < end and chars[at] != LINE_END:
                    at += 1
                at += 1
                continue
            at = self._read_line(chars, KINDS, at, end, LINE_WORDS)
            if not (self.words or self.figures):
                continue
            if self._meet(self.line):
                copies += not self._meet((self.line + TWICE) & MASK_32)
                continue
            is_new = self.words > 0 and not (self.figures and self._meet((self.letters + LETTERS) & MASK_32))
            shown, count = 0, self.count if self.words + self.figures > SHORT else 0
            for place in range(count):  # the processor waits for many slots at once
                pair = pairs[place] = (pairs[place] + PAIR) & MASK_32
                self.touched ^= self.young.touch(pair) ^ self.old.touch(pair)
            for place in range(count):
                shown += self._meet(pairs[place])
            if not is_new:
                numbers += self.figures
            elif 2 * shown <= count:
                fresh += 1
            else:
                pieces += 1
        return WORDS if fresh else NUMBERS if numbers > max(1, pieces) else COPY if copies > pieces else NOTHING

    def _learn_address(self, chars: Sequence[int], end: int) -> int:
        """Sets the words and the last number of the page's URL."""
        self.own, self.sieve, self.place = KeySet(), memoryview(bytearray(CALENDAR_SIEVE)), -NEAR
        self._read_line(chars, KINDS, 0, end, ADDRESS_WORDS)
        return 0

    def _read_line(self, chars: Sequence[int], kinds: Sequence[int], at: int, end: int, use: int) -> int:
        """Sets the keys of a line, of its words and of its pairs of words. Returns the start of the next line.

        kinds: KINDS. use: LINE_WORDS, or ADDRESS_WORDS to keep the words as those of the page's URL.
        """
        whole = undated = letters = former = SEED
        days = words = figures = count = 0
        has_calendar = False
        while True:
            at = self._next(chars, kinds, at, end)
            word, kind = self.word, self.kind
            if kind == END:
                break
            if use == ADDRESS_WORDS:
                self.own.add(word)
                self.sieve[word & SIEVE_MASK] = 1
                if kind > WORD:
                    self.place = self.value
                continue
            if self.sieve[word & SIEVE_MASK]:
                if self.own.has(word):
                    continue
                if CALENDAR.has(word):
                    has_calendar = True
                    continue
            if kind > WORD and self.value and self.place - NEAR < self.value < self.place + NEAR:
                continue
            whole = append_word(whole, word)
            if kind == DAY:
                days += 1
            else:
                undated = append_word(undated, word)
                if kind == WORD:
                    words += 1
                    letters = append_word(letters, word)
                else:
                    figures += 1
            pair = mix_bits(append_word(former, word))
            self.pairs[count] = pair  # without a branch, which would be mispredicted for every second pair
            count = min(count + 1 - (pair & PAIR_MASK), MOST_PAIRS)
            former = word
        if has_calendar or not (words or figures):
            whole = undated
        else:
            figures += days
        self.words, self.figures, self.count = words, figures, count
        self.line, self.letters = mix_bits(whole), mix_bits(letters)
        return at

    def adds(self, addresses: bytes) -> bool:
        """Whether an address is new; addresses are separated by line breaks. Remembers them."""
        is_new = False
        for address in addresses.split(b"\n"):
            key = SEED
            for at in range(len(address)):
                key = ((key ^ address[at]) * PRIME) & MASK_32
            is_new |= not self._meet((mix_bits(key) + ADDRESS) & MASK_32)
        return is_new

    def _next(self, chars: Sequence[int], kinds: Sequence[int], at: int, end: int) -> int:
        """Sets `kind`, `word` and `value` of the next token of a line. Returns its end. kinds: KINDS."""
        kind = GAP
        while at < end:
            kind = kinds[chars[at]]
            if kind > JOINT:
                break
            at += 1
        self.kind = END
        if at >= end or kind == NEWLINE:
            return at + 1
        key, value, letters, digits, joints = SEED, 0, 0, 0, 0
        while kind == LETTER:
            letters = 1
            key = ((key ^ chars[at]) * PRIME) & MASK_32
            at += 1
            kind = kinds[chars[at]] if at < end else GAP
        if kind != DIGIT:
            self.word, self.value, self.kind = key, 0, WORD
            return at
        while at < end:
            char = chars[at]
            kind = kinds[char]
            if kind == LETTER:
                letters = 1
            elif kind == DIGIT:
                digits = 1
                value = min(value * 10 + char - ZERO, TOO_MUCH)
                if not (value or letters or joints):  # a zero before other digits
                    at += 1
                    continue
            elif kind == JOINT and digits and at + 1 < end and kinds[chars[at + 1]] == DIGIT:
                joints = 1
            else:
                break
            key = ((key ^ char) * PRIME) & MASK_32
            at += 1
        self.word = key
        self.value = 0 if letters or joints else value
        is_day = not (letters or joints) and (value <= LAST_DAY or FIRST_YEAR <= value <= LAST_YEAR)
        self.kind = DAY if is_day else NUMBER
        return at

    def take_new(self) -> array[int]:
        """The keys added since the last call."""
        new = array("I", bytes(self.new_keys[: self.new]))
        self.new = 0
        return new


def append_word(key: int, word: int) -> int:
    """The key of a sequence of words (key) with another word appended."""
    return ((key << 5 | key >> 27) ^ word) * PRIME & MASK_32


def mix_bits(key: int) -> int:
    """The finalizer of MurmurHash3: each bit of the result depends on all bits of the key."""
    key = (key ^ key >> 16) * MIX_1 & MASK_32
    key = (key ^ key >> 13) * MIX_2 & MASK_32
    return key ^ key >> 16


def calendar() -> tuple[KeySet, bytes]:
    """The keys of calendar names, and a sieve (a Bloom filter) for them."""
    memory, written = LineMemory(1, 0, ()), CALENDAR_NAMES.replace("\n", " ").encode()
    memory._learn_address(written, len(written))
    return memory.own, bytes(memory.sieve)


CALENDAR_SIEVE = bytes(SIEVE_MASK + 1)
CALENDAR, CALENDAR_SIEVE = calendar()
