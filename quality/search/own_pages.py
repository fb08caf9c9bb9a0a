"""A small generated site for search measurements: twelve towns, each described in four languages."""

from __future__ import annotations

from hashlib import md5

from manuals import WHEN, Manual

from periplus.model.page import Block, BlockKind, Blocks, Part, Position
from periplus.model.search import PageToIndex
from periplus.model.web import SiteKey, Url
from periplus.urls.canonical import url_id

TOWNS = (
    "Aldina",
    "Brezovec",
    "Cirkvena",
    "Dubrovka",
    "Eskeleti",
    "Fontanar",
    "Grimsta",
    "Hradec",
    "Istvánháza",
    "Jasenov",
    "Kővár",
    "Ludmilín",
)
_SHOWN = {  # language: (title, link text, heading, sentences); {t}: the town, {n}: a number, {m}: another one
    "en": (
        "Harbours of {t}", "old lighthouses near {t}", "Arrival by sea",
        (
            "The harbour of {t} has {n} berths for sailing boats.",
            "Its lighthouse was lit {m} times during the great storm.",
            "Cities along the coast trade in amber.",
        ),
    ),
    "cs": (
        "Přístavy města {t}", "staré majáky u města {t}", "Příjezd po moři",
        (
            "Přístav města {t} má {n} míst pro plachetnice.",
            "Zdejší maják se za velké bouře rozsvítil celkem {m} krát.",
            "Ve městech na pobřeží se obchoduje s jantarem.",
        ),
    ),
    "ru": (
        "Гавани города {t}", "старые маяки у города {t}", "Прибытие морем",
        (
            "Гавань города {t} вмещает {n} парусных лодок.",
            "Её маяк зажигали {m} раз во время большого шторма.",
            "Города на побережье ещё торгуют янтарём.",
        ),
    ),
    "hu": (
        "{t} városának kikötői", "régi világítótornyok {t} mellett", "Érkezés a tengeren",
        (
            "{t} kikötőjében {n} vitorlás számára van hely.",
            "A világítótornyot {m} alkalommal gyújtották meg a nagy viharban.",
            "A parti városokban borostyánnal kereskednek.",
        ),
    ),
}  # fmt: skip
_MENU = {
    "en": "Home Harbours Lighthouses Storms",
    "cs": "Domů Přístavy Majáky Bouře",
    "ru": "Главная Гавани Маяки Штормы",
    "hu": "Kezdőlap Kikötők Tornyok Viharok",
}


def own_manuals() -> list[Manual]:
    """The same towns in each language."""
    return [
        Manual(f"towns-{language}", language, tuple(_page(language, number) for number in range(len(TOWNS))))
        for language in _SHOWN
    ]


def _page(language: str, number: int) -> PageToIndex:
    title, anchor, heading, sentences = _SHOWN[language]

    def said(text: str) -> str:
        return text.format(t=TOWNS[number], n=11 + 7 * number, m=104 + 13 * number)

    blocks = (
        Block(BlockKind.LINK, _MENU[language], "nav", position=Position.NAV),
        Block(BlockKind.HEADING, f"{heading} {number + 1}", "main/h1", level=1),
        *(Block(BlockKind.PARAGRAPH, said(sentence), "main/p") for sentence in sentences),
    )
    url = Url(f"https://towns.test/{language}/{number}")
    folded = md5(said(" ".join(sentences)).encode(), usedforsecurity=False).digest()
    parts = (Part.NAVIGATION, *(Part.CONTENT for _ in blocks[1:]))
    return PageToIndex(
        url_id(url),
        url,
        SiteKey("towns.test"),
        "text/html",
        language,
        said(title),
        Blocks.of(blocks),
        parts,
        (said(anchor),),
        WHEN,
        folded,
    )
