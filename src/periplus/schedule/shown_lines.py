"""Remembers which lines a host has shown, by 32-bit keys, and judges what a text says beside them.

Compiled where there is a C compiler; shown_lines.pxd gives the types.
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
END, WORD, NUMBER, DAY = range(4)  # what `_next` finds; DAY: a number that a calendar's grid may hold
NOTHING, COPY, NUMBERS, WORDS = range(4)
"""What a text says that its host had not shown: nothing; a line that was shown once before; numbers; words."""

FREE = 0  # a slot without a key; the one key of this value is held as the next one
MASK_32, MASK_64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
# of the slots: Python's own hash is another one in each process, so nobody can prepare keys that collide
FACTOR = hash("lines") & MASK_64 | 1
SMALLEST_BITS = 6
SEED, PRIME = 2166136261, 16777619  # of FNV-1a
MIX_1, MIX_2 = 0x85EBCA6B, 0xC2B2AE35  # of MurmurHash3's last step
SHORT = 12  # words: a longer line is compared by its pairs of words too, for it may be a piece of a longer text
PAIR_MASK = 1  # of the pairs half are kept, chosen by their keys
MOST_PAIRS = 1024  # of a line
SIEVE = 4096
ZERO, LAST_DAY, FIRST_YEAR, LAST_YEAR, TOO_MUCH, NEAR = 48, 31, 1000, 2999, 100_000_000, 100
# added to keys of other kinds than lines
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
    """Keys of 32 bits, in a table that is never more than half full."""

    def __init__(self) -> None:
        self.count = 0
        self.bits = SMALLEST_BITS
        self.slots = memoryview(bytearray(4 << self.bits)).cast("I")

    def has(self, key: int) -> bool:
        """Whether the key is in the set."""
        return self.slots[self._place(self.slots, key or 1)] != FREE

    def add(self, key: int) -> bool:
        """Adds the key. False: it was in the set."""
        key = key or 1
        place = self._place(self.slots, key)
        if self.slots[place] != FREE:
            return False
        self.slots[place] = key
        self.count += 1
        if self.count >> (self.bits - 1):
            self._grow()
        return True

    def _place(self, slots: Sequence[int], key: int) -> int:
        """Where the key stands, or would stand."""
        most = (1 << self.bits) - 1
        place = (key * FACTOR & MASK_64) >> (64 - self.bits)
        while slots[place] != FREE and slots[place] != key:
            place = (place + 1) & most
        return place

    def _grow(self) -> int:
        former, self.bits = self.slots, self.bits + 1
        slots = memoryview(bytearray(4 << self.bits)).cast("I")
        for at in range(len(former)):
            if former[at] != FREE:
                slots[self._place(slots, former[at])] = former[at]
        self.slots = slots
        return 0


class LineMemory:
    """Keys of lines that a host has shown, in order; those of the last `generation` to twice as many are in memory.

    Which these are follows from the sequence of keys alone, so whoever is given it again has the same.
    """

    def __init__(self, generation: int, first: int, keys: Sequence[int]) -> None:
        """keys: the latest of the sequence, those of number `first` and on."""
        self.generation = generation
        self.shown = first
        self.young = KeySet()
        self.old = KeySet()
        self.new = array("I")
        self.pairs = memoryview(bytearray(4 * MOST_PAIRS)).cast("I")
        self.kind = END  # of the word that `_next` found
        self.word = 0  # its key
        self.value = 0  # where it is a number without other characters
        self.own = KeySet()  # words of the page's address
        self.sieve = memoryview(bytearray(SIEVE))
        self.place = 0  # the last number of the address: those near to it say where in a list the page stands
        self.line = self.letters = self.words = self.figures = self.count = 0  # of the line that was read
        for at in range(len(keys)):
            self._add(keys[at])

    def _add(self, key: int) -> int:
        self.young.add(key)
        self.shown += 1
        if self.shown % self.generation == 0:
            self.old, self.young = self.young, KeySet()
        return 0

    def _meet(self, key: int) -> bool:
        """Whether the key is in memory; it is afterwards, and as one of the latest."""
        if self.young.has(key):
            return True
        is_known = self.old.has(key)
        self._add(key)
        self.new.append(key)
        return is_known

    def read(self, written: bytes, address: bytes, counted: bytes, most: int) -> int:
        """What a page says that its host had not shown: NOTHING, COPY, NUMBERS or WORDS. Remembers its lines.

        written: the text in UTF-8, in lower case, of which `most` lines are read. address: of the page, in lower case;
        its words do not count. counted: for each line whether it counts at all; lines beyond its end do.

        Words and numbers that a calendar's grid is made of do not count. A line that is new but for its numbers brings
        numbers; a page brings them when it has two or more, for one alone is a counter. A long line of which most
        pairs of words were shown brings nothing: it is a piece of another text.
        """
        chars, flags, at, end = written, counted, 0, len(written)
        self._learn_address(address, len(address))
        fresh = copies = pieces = numbers = line = 0
        while at <= end and line < most:
            line += 1
            if line <= len(flags) and not flags[line - 1]:
                at = written.find(b"\n", at) + 1 or end + 1
                continue
            at = self._read_line(chars, at, end)
            if not (self.words or self.figures):
                continue
            if self._meet(self.line):
                copies += not self._meet((self.line + TWICE) & MASK_32)
                continue
            is_new = self.words > 0 and not (self.figures and self._meet((self.letters + LETTERS) & MASK_32))
            shown, count = 0, self.count if self.words + self.figures > SHORT else 0
            for place in range(count):
                shown += self._meet((self.pairs[place] + PAIR) & MASK_32)
            if not is_new:
                numbers += self.figures
            elif 2 * shown <= count:
                fresh += 1
            else:
                pieces += 1
        return WORDS if fresh else NUMBERS if numbers > max(1, pieces) else COPY if copies > pieces else NOTHING

    def _learn_address(self, chars: Sequence[int], end: int) -> int:
        """Sets which words are the page's own."""
        self.own, self.sieve, self.place, at = KeySet(), memoryview(bytearray(CALENDAR_SIEVE)), -NEAR, 0
        while True:
            at = self._next(chars, at, end)
            if self.kind == END:
                return 0
            self.own.add(self.word)
            self.sieve[self.word % SIEVE] = 1
            if self.kind > WORD:
                self.place = self.value

    def _read_line(self, chars: Sequence[int], at: int, end: int) -> int:
        """Sets the keys of a line, of its letters and of its pairs of words. Returns where the next begins."""
        whole = undated = letters = former = SEED
        days, has_calendar = 0, False
        self.words = self.figures = self.count = 0
        while True:
            at = self._next(chars, at, end)
            word, kind = self.word, self.kind
            if kind == END:
                break
            if self.sieve[word % SIEVE]:
                if self.own.has(word):
                    continue
                if CALENDAR.has(word):
                    has_calendar = True
                    continue
            if kind > WORD and self.value and self.place - NEAR < self.value < self.place + NEAR:
                continue
            whole = joined(whole, word)
            if kind == DAY:
                days += 1
            else:
                undated = joined(undated, word)
                if kind == WORD:
                    self.words += 1
                    letters = joined(letters, word)
                else:
                    self.figures += 1
            pair = mixed(joined(former, word))
            if not pair & PAIR_MASK and self.count < MOST_PAIRS:
                self.pairs[self.count] = pair
                self.count += 1
            former = word
        if has_calendar or not (self.words or self.figures):
            whole = undated
        else:
            self.figures += days
        self.line, self.letters = mixed(whole), mixed(letters)
        return at

    def adds(self, addresses: bytes) -> bool:
        """Whether one of some addresses, a line each, was not shown before."""
        is_new = False
        for address in addresses.split(b"\n"):
            key = SEED
            for at in range(len(address)):
                key = ((key ^ address[at]) * PRIME) & MASK_32
            is_new |= not self._meet((mixed(key) + ADDRESS) & MASK_32)
        return is_new

    def _next(self, chars: Sequence[int], at: int, end: int) -> int:
        """Goes to the next word of a line, and says its `kind` and key. Returns where it ends."""
        kind = GAP
        while at < end:
            kind = KINDS[chars[at]]
            if kind > JOINT:
                break
            at += 1
        self.kind = END
        if at >= end or kind == NEWLINE:
            return at + 1
        key, value, letters, digits, joints = SEED, 0, 0, 0, 0
        while at < end:
            char = chars[at]
            kind = KINDS[char]
            if kind == LETTER:
                letters = 1
            elif kind == DIGIT:
                digits = 1
                value = min(value * 10 + char - ZERO, TOO_MUCH)
                if not (value or letters or joints):  # a zero before other digits
                    at += 1
                    continue
            elif kind == JOINT and digits and at + 1 < end and KINDS[chars[at + 1]] == DIGIT:
                joints = 1
            else:
                break
            key = ((key ^ char) * PRIME) & MASK_32
            at += 1
        self.word = key
        self.value = 0 if letters or joints else value
        if not digits:
            self.kind = WORD
        elif letters or joints or not (value <= LAST_DAY or FIRST_YEAR <= value <= LAST_YEAR):
            self.kind = NUMBER
        else:
            self.kind = DAY
        return at

    def take_new(self) -> array[int]:
        """The keys added since last asked."""
        new, self.new = self.new, array("I")
        return new


def joined(key: int, word: int) -> int:
    """The key of some words and one more."""
    return ((key << 5 | key >> 27) ^ word) * PRIME & MASK_32


def mixed(key: int) -> int:
    """A key of which each bit depends on all."""
    key = (key ^ key >> 16) * MIX_1 & MASK_32
    key = (key ^ key >> 13) * MIX_2 & MASK_32
    return key ^ key >> 16


def calendar() -> tuple[KeySet, bytes]:
    """The keys of names in calendars, and a sieve for them."""
    names, sieve, memory = KeySet(), bytearray(SIEVE), LineMemory(1, 0, ())
    written, at = CALENDAR_NAMES.replace("\n", " ").encode(), 0
    while True:
        at = memory._next(written, at, len(written))
        if memory.kind == END:
            return names, bytes(sieve)
        names.add(memory.word)
        sieve[memory.word % SIEVE] = 1


CALENDAR, CALENDAR_SIEVE = calendar()
