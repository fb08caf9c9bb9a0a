"""Generates texts on a few topics, in several languages and from sources with different styles.

A topic has its own nouns and verbs; a source has a frame (how its pages begin and end), a length, particles, and a half
of the topic's words. So the common features of a source are not the topic, as in real archives.
"""

from __future__ import annotations

import random
from typing import NamedTuple

TOPICS = {
    "en": {
        "film": "film movie director actor actress scene plot screenplay camera cast "
        "thriller comedy drama sequel studio "
        "audience cinema role character ending"
        " dialogue footage trailer premiere editing villain hero script genre remake",
        "sea": "ship harbour sailor captain voyage port deck anchor sail storm crew cargo "
        "lighthouse tide fleet vessel mast "
        "dock island current navigator"
        " compass rope hull pilot coast reef bay ferry wreck",
        "food": "recipe oven butter flour salt sugar pan onion garlic sauce dough bake boil dish "
        "taste pepper soup cake bread "
        "cook cheese tomato egg spoon"
        " kitchen simmer roast fry herb dessert",
        "law": "court judge law contract clause appeal verdict statute lawyer witness "
        "trial evidence plaintiff damages "
        "liability rights act crime sentence"
        " prosecutor jury ruling hearing claim breach tribunal petition custody defence fine",
    },
    "cs": {
        "film": "film režisér herec herečka scéna zápletka scénář kamera obsazení thriller "
        "komedie drama pokračování studio "
        "divák kino role postava závěr"
        " dialog záběr upoutávka premiéra střih padouch hrdina námět žánr plátno natáčení",
        "sea": "loď přístav námořník kapitán plavba paluba kotva plachta bouře posádka náklad maják příliv flotila "
        "plavidlo stěžeň dok ostrov proud"
        " navigátor kompas lano trup lodivod pobřeží útes záliv trajekt vrak vlna",
        "food": "recept trouba máslo mouka sůl cukr pánev cibule česnek omáčka těsto pečení "
        "vaření jídlo chuť pepř polévka "
        "koláč chléb kuchař sýr rajče vejce"
        " lžíce kuchyně dušení smažení bylinka dezert plech",
        "law": "soud soudce zákon smlouva doložka odvolání rozsudek předpis advokát svědek proces důkaz žalobce "
        "škoda odpovědnost právo čin trest"
        " prokurátor porota nález jednání nárok porušení tribunál návrh vazba obhajoba pokuta paragraf",
    },
    "ru": {
        "film": "фильм режиссёр актёр актриса сцена сюжет сценарий камера состав триллер "
        "комедия драма продолжение студия "
        "зритель кино роль персонаж финал"
        " диалог кадр трейлер премьера монтаж злодей герой замысел жанр экран съёмка",
        "sea": "корабль гавань моряк капитан плавание порт палуба якорь парус шторм экипаж груз маяк прилив флот "
        "судно мачта док остров течение"
        " штурман компас канат корпус лоцман берег риф залив паром волна",
        "food": "рецепт печь масло мука соль сахар сковорода лук чеснок соус тесто "
        "выпечка варка блюдо вкус перец суп "
        "пирог хлеб повар сыр помидор яйцо"
        " ложка кухня тушение жарка трава десерт противень",
        "law": "суд судья закон договор пункт апелляция приговор устав адвокат свидетель "
        "процесс доказательство истец ущерб "
        "ответственность право деяние"
        " наказание прокурор присяжные решение слушание иск нарушение трибунал ходатайство арест защита штраф статья",
    },
}
COMMON = {
    "en": "the of and to in that it was with for on as by at from this which had not be are "
    "or have an they one all their "
    "when more said there time year"
    " people day man new first long great little own old right place work life part house world",
    "cs": "a se na je v že s z do o jako za ale který pro byl po tak by i při už nebo podle "
    "jeho také až před ten rok den "
    "člověk nový první dlouhý velký"
    " malý vlastní starý místo práce život část dům svět",
    "ru": "и в не на я что он с как это по но они к у из за от так же для вы мы был его "
    "бы все год день человек новый "
    "первый долгий большой малый свой"
    " старый место работа жизнь часть дом мир",
}
ENDINGS = {"en": ("", "", "s"), "cs": ("", "u", "y", "em"), "ru": ("", "а", "у", "ом")}
# name: (how a page begins, how it ends, words in a sentence, sentences, share of the topic's words among all)
SOURCES = {
    "archive": (
        "From: reader Subject: re: Path: news",
        "wrote in message follow-up posting group reply",
        (12, 22),
        (15, 40),
        0.10,
    ),
    "blog": ("Posted by me today", "share subscribe comments older newer", (6, 14), (6, 20), 0.08),
    "paper": ("By our correspondent", "all rights reserved edition page column", (10, 18), (8, 25), 0.06),
    "guide": ("Chapter overview", "see also index contents next previous", (8, 16), (10, 30), 0.07),
}


OTHERS = 0.03  # words of other topics, which every page has


class Made(NamedTuple):
    """A text and its topic."""

    text: str
    topic: str
    language: str
    source: str


def made_texts(
    seed: int, number: int, sources: tuple[str, ...], languages: tuple[str, ...] = ("en", "cs", "ru")
) -> list[Made]:
    """A number of texts of each topic, language and source, determined by the seed."""
    rng = random.Random(seed)
    return [
        Made(_text(rng, topic, language, source), topic, language, source)
        for language in languages
        for topic in TOPICS[language]
        for source in sources
        for _ in range(number)
    ]


def _text(rng: random.Random, topic: str, language: str, source: str) -> str:
    begin, end, words, sentences, share = SOURCES[source]
    own = _own_words(topic, language, source)
    others = [word for other in TOPICS[language] if other != topic for word in _own_words(other, language, source)]
    common = _ordered(COMMON[language].split(), source)

    def word() -> str:
        chance = rng.random()
        if chance < share:
            return _early(rng, own, 3.0) + rng.choice(ENDINGS[language])
        return rng.choice(others) if chance < share + OTHERS else _early(rng, common, 4.0)

    said = [
        " ".join(word() for _ in range(rng.randint(*words))).capitalize() + "." for _ in range(rng.randint(*sentences))
    ]
    return f"{begin}\n{' '.join(said)}\n{end}"


def _early(rng: random.Random, words: list[str], steepness: float) -> str:
    """A random word; earlier words are more likely."""
    return words[min(int(rng.expovariate(steepness / len(words))), len(words) - 1)]


def _own_words(topic: str, language: str, source: str) -> list[str]:
    """Two thirds of the topic's words, ordered by their frequency in the source."""
    words = _ordered(TOPICS[language][topic].split(), source + topic)
    return words[: 2 * len(words) // 3]


def _ordered(words: list[str], source: str) -> list[str]:
    return random.Random(source).sample(words, len(words))
