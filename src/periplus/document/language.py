"""Language detection: by script if it has a single language, else by letter n-grams; and the codes of hreflang."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from array import array
from collections.abc import Sequence
from functools import cache, lru_cache
from math import sqrt
from pathlib import Path

from isal import isal_zlib  # three times as fast as zlib, 4 ms at start-up

from periplus.document.ngrams import SPACE, Ngrams, count_units
from periplus.values import frozen

# Scripts with a single supported language
_ALONE = (
    *((first, last, "el") for first, last in ((0x386, 0x3FF), (0x1F00, 0x1FFF))),
    (0x531, 0x58F, "hy"),
    (0xA01, 0xA75, "pa"),
    (0xA81, 0xAF9, "gu"),
    (0xB01, 0xB71, "or"),
    (0xB82, 0xBD7, "ta"),
    (0xC00, 0xC63, "te"),
    (0xC80, 0xCE3, "kn"),
    (0xD00, 0xD63, "ml"),
    (0xD81, 0xDF3, "si"),
    (0xE01, 0xE4E, "th"),
    (0xE81, 0xEDF, "lo"),
    (0xF40, 0xFBC, "bo"),
    (0x1000, 0x109F, "my"),
    (0x10A0, 0x10FF, "ka"),
    (0x1200, 0x137F, "am"),
    (0x1780, 0x17D3, "km"),
    (0x3041, 0x30FF, "ja"),
    (0x3400, 0x9FFF, "zh"),
    (0xAC00, 0xD7A3, "ko"),
)
LONGEST = 5  # letters of the longest n-gram
_STEP = 0.25  # of a weight, in nats
_KANA_SHARE = 0.1  # least share of kana among the characters of a Japanese text
_UNITS = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"
# Lead of the most likely language over the next, in nats divided by the square root of the letters, as in training
_SURE = 0.05
# Prior in nats: how much more common a language is on the web than those not listed; decides short texts
_OFTENER = {
    "en": 6.0,
    **dict.fromkeys(["de", "fr", "es", "it", "pt", "nl", "pl", "ru"], 3.0),
    **dict.fromkeys(["cs", "sv", "tr", "id", "vi", "hu", "ro", "da", "nb", "uk", "ar", "fa", "hi"], 1.5),
    **dict.fromkeys(["oc", "lb", "fy", "br", "gl", "gd", "mt", "sw", "nn", "ms", "eo", "tl", "af", "ast"], -2.0),
}
# A declared language is trusted if the text is nearly as likely in it as in the best, in nats per letter ...
_CLOSE = 0.3
# ... and an unsupported one, if the text scores less than this in every other: median for texts in supported languages
# 3.6, in others 2.4
_STRANGE = 2.5
_OTHER_NAMES = {
    "nb": "no", "nn": "no", "iw": "he", "in": "id", "cz": "cs", "gr": "el", "jp": "ja", "ua": "uk", "kr": "ko",
    "cn": "zh", "dk": "da", "fil": "tl", "dz": "bo",
}  # fmt: skip
_NEAR = dict.fromkeys(("bs", "sr", "sh", "cnr"), "hr")  # a language, and the class used for it in Latin script
_TAG = re.compile(r"[a-z]{2,3}(?![a-z])")
# ISO 639-1, as the Library of Congress lists it (2025)
_ISO_LANGUAGES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee "
    "el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is "
    "it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms "
    "mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si "
    "sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh "
    "yi yo za zh zu"
)
# ISO 3166-1 alpha-2 (2025)
_ISO_REGIONS = (
    "ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bl bm bn bo bq br bs bt bv bw by "
    "bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg eh er es et fi fj fk "
    "fm fo fr ga gb gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir "
    "is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mf mg mh mk "
    "ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm "
    "pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si sj sk sl sm sn so sr ss st sv sx sy sz tc td tf "
    "tg th tj tk tl tm tn to tr tt tv tw tz ua ug um us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw"
)
# BCP 47 as far as search engines support it: language, script, region; x-default for all others
_HREFLANG = re.compile(r"([a-z]{2,3})(?:-[a-z]{4})?(?:-([a-z]{2}|[0-9]{3}))?", re.IGNORECASE)


@frozen
class Alphabet:
    """Letters shared by several languages.

    ranges: first and last code point. languages: BCP 47; the last class, unnamed, is for all other languages, ciphers
    and noise.
    """

    ranges: tuple[tuple[int, int], ...]
    languages: tuple[str, ...]


def _classes_of(tags: str) -> tuple[str, ...]:
    return (*tags.split(), "")


# The table `languages.bin` has the classes in this order. It is built by quality/charset/train_languages.py, which
# documents its sources. Bosnian, Croatian and Serbian in Latin script are one class
ALPHABETS = {
    "latin": Alphabet(
        ((0x41, 0x5A), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x24F), (0x1E00, 0x1EFF)),
        _classes_of(
            "cs sk pl hu ro hr sl sq de nl en da sv nb nn fi is et lt lv fr es it pt ca tr id vi gl eu cy af "
            "ga gd eo az uz ms tl lb br oc ku fy mt sw"
        ),
    ),
    "cyrillic": Alphabet(((0x400, 0x52F),), _classes_of("ru uk bg be sr mk kk mn tg ky tt")),
    "arabic": Alphabet(
        ((0x620, 0x65F), (0x66E, 0x6D3), (0x6D5, 0x6D5), (0x6EE, 0x6EF), (0x6FA, 0x6FF)),
        _classes_of("ar fa ur ug ckb ps"),
    ),
    "devanagari": Alphabet(((0x900, 0x963), (0x970, 0x97F)), _classes_of("hi mr ne")),
    "bengali": Alphabet(((0x980, 0x9E3), (0x9F0, 0x9F1)), _classes_of("bn as")),
    "hebrew": Alphabet(((0x5D0, 0x5EA), (0x5F0, 0x5F2)), _classes_of("he yi")),
}


# fewer are not enough: in Latin script, in others (ideographs and the like count three times)
_LEAST_LATIN, _LEAST_OTHERS = 6, 3
# samples of a long text, evenly spaced. 200 letters of prose identify 99.9 of 100 texts (quality/charset), but a page
# has code, names and quotations too: of 225 long pages of a manual four samples mistook 9, sixteen 1
_SAMPLES, _SAMPLE_CHARS = 16, 50
LANGUAGES, REGIONS = frozenset(_ISO_LANGUAGES.split()), frozenset(_ISO_REGIONS.split())


@lru_cache(maxsize=4096)  # menus of languages are on all pages of a site
def language_of(text: str) -> str:
    """The BCP 47 primary tag; '' if the text is too short, or in no supported language."""
    return _likeliest(*_scores(text))


def _likeliest(languages: Sequence[str], scores: Sequence[int], letters: int) -> str:
    if _is_short(languages, letters):
        return ""
    best = max(scores)
    is_sure = len(scores) == 1 or (best - sorted(scores)[-2]) * _STEP >= _SURE * sqrt(letters)
    return languages[scores.index(best)] if is_sure else ""


def _is_short(languages: Sequence[str], letters: int) -> bool:
    return not languages or letters < (_LEAST_LATIN if "en" in languages else _LEAST_OTHERS)


def page_language(declared: str, text: str) -> str:
    """The BCP 47 primary tag of a page with this declared language ('' if none) and text.

    Clear evidence in the text overrules the declaration, which is often copied from another page.
    """
    tag = _TAG.match(declared.strip().lower())
    tagged = _OTHER_NAMES.get(tag[0], tag[0]) if tag else ""
    languages, scores, letters = _scores(text)
    if not tagged or _is_short(languages, letters):
        return tagged or _likeliest(languages, scores, letters)
    highest = max(scores)
    best = languages[scores.index(highest)]
    read_as = tagged if tagged in languages else _NEAR.get(tagged, tagged)
    if read_as in languages:
        lead = (highest - scores[languages.index(read_as)]) * _STEP
        return tagged if lead <= _CLOSE * letters else best or tagged
    is_plain = tagged in _languages() or len(scores) == 1 or highest * _STEP > _STRANGE * letters
    return best if best and is_plain else tagged


def is_beyond_latin(language: str) -> bool:
    """Whether a language (BCP 47 primary tag) is supported and not written in Latin script."""
    return language in _languages() and language not in _languages("latin")


@cache
def _languages(script: str = "") -> frozenset[str]:
    """The supported languages of one script or of all."""
    alphabets = [ALPHABETS[script]] if script else ALPHABETS.values()
    classes = {language for alphabet in alphabets for language in alphabet.languages if language}
    alone = set() if script else {name for *_, name in _ALONE}
    return frozenset({_OTHER_NAMES.get(language, language) for language in classes} | alone)


def _scores(text: str) -> tuple[tuple[str, ...], list[int], int]:
    """(languages of the sample's main script, score of each in steps of a weight, letters in that script).

    The empty name is for all other languages.
    """
    codes = memoryview(_sample(text).encode(_UNITS, "replace")).cast("H")
    names, places = _scripts()
    counts = array("i", bytes(4 * len(names)))
    count_units(codes, places, counts)
    counts[0] = 0
    if not text.isascii():
        chinese, japanese = names.index("zh"), names.index("ja")
        together = counts[chinese] + counts[japanese]
        is_japanese = counts[japanese] > _KANA_SHARE * together
        counts[chinese], counts[japanese] = (0, 3 * together) if is_japanese else (3 * together, 0)
        counts[names.index("ko")] *= 3
    letters = max(counts)
    script = names[counts.index(letters)]
    if script not in ALPHABETS:
        return ((script,), [0], letters) if script else ((), [], letters)
    languages, oftener, twins = _classes(script)
    totals = array("i", oftener)
    ngrams_of(script).add(codes, _symbol_units(script), totals)
    scores = totals.tolist()
    if twins:
        scores.append(max([scores.pop(place) for place in twins]))
    return languages, scores, letters


@cache
def _classes(script: str) -> tuple[tuple[str, ...], array[int], list[int]]:
    """(languages of a script, prior of each class in steps of a weight, classes with another public name from last on).

    The two with another name are Bokmål and Nynorsk: the last language, Norwegian, is the likelier of both.
    """
    classes = ALPHABETS[script].languages
    twins = [place for place, name in enumerate(classes) if name in _OTHER_NAMES]
    languages = [name for name in classes if name not in _OTHER_NAMES]
    languages += dict.fromkeys(_OTHER_NAMES[classes[place]] for place in twins)
    return tuple(languages), array("i", (int(_OFTENER.get(name, 0.0) / _STEP) for name in classes)), twins[::-1]


@cache
def _symbol_units(script: str) -> memoryview[int]:
    return memoryview(symbols_of(script)).cast("H")


def _sample(text: str) -> str:
    if len(text) > _SAMPLES * _SAMPLE_CHARS:
        step = (len(text) - _SAMPLE_CHARS) // (_SAMPLES - 1)
        text = " ".join([text[start : start + _SAMPLE_CHARS] for start in range(0, step * _SAMPLES, step)])
    return f" {text} " if text.isascii() else f" {unicodedata.normalize('NFC', text)} "


@cache
def _scripts() -> tuple[list[str], bytes]:
    """(scripts, including single-language ones; for each of 65,536 characters the index of its script, 0: none)."""
    names = ["", *ALPHABETS, *dict.fromkeys(name for *_, name in _ALONE)]
    table = bytearray(65536)
    shared = [(first, last, name) for name, alphabet in ALPHABETS.items() for first, last in alphabet.ranges]
    for first, last, name in (*shared, *_ALONE):
        table[first : last + 1] = bytes([names.index(name)]) * (last + 1 - first)
    return names, bytes(table)


@cache
def symbols_of(script: str) -> bytes:
    """The symbol of each of 65,536 characters, uint16: the lower-case letter if it is in the script, else SPACE."""
    table = array("H", [SPACE]) * 65536
    for first, last in ALPHABETS[script].ranges:
        for code in range(first, last + 1):
            small = chr(code).lower()
            table[code] = ord(small) if len(small) == 1 else code
    if script == "latin":  # dotted i; old encodings of Romanian only have cedillas
        for letter, twin in ("İi", "șş", "ȘŞ", "țţ", "ȚŢ"):
            table[ord(letter)] = ord(twin.lower())
    return table.tobytes()


@cache
def _file() -> tuple[dict[str, int], bytes]:
    """(number of n-grams of each script, the tables)."""
    data = isal_zlib.decompress(Path(__file__).with_name("languages.bin").read_bytes())
    head, _, body = data.partition(b"\n")
    return json.loads(head), body


@cache
def ngrams_of(script: str) -> Ngrams:
    """The weights of a script's n-grams."""
    counts, body = _file()
    start = 0
    for name, rows in counts.items():
        classes = len(ALPHABETS[name].languages)
        end = start + rows * (3 + classes)
        if name == script:
            return Ngrams(LONGEST, classes, rows, body[start:end])
        start = end
    raise KeyError(script)


def is_language(code: str) -> bool:
    """Whether search engines accept a hreflang. All three-letter codes (ISO 639-3) and numeric regions (UN
    M.49) pass.
    """
    if code.lower() == "x-default":
        return True
    match = _HREFLANG.fullmatch(code)
    if match is None:
        return False
    language, region = match[1].lower(), (match[2] or "").lower()
    return (len(language) == 3 or language in LANGUAGES) and (not region or region.isdigit() or region in REGIONS)
