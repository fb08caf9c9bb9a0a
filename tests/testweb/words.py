"""Generates plain English sentences about an invented coast, from a seed."""

from __future__ import annotations

import random


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(text.split("|"))


_SYLLABLES = _phrases("bar|cor|den|el|fen|gal|hov|ist|kel|lun|mar|nor|ost|pel|ral|sen|tor|ul|ven|wick")
_SUBJECTS = _phrases(
    "the keeper|the pilot|the harbour master|a fishing boat|the old ferry|the tide|the west wind|the bell buoy|a "
    "coaster|the lamp|the chart|the survey ship"
    "|the salt works|the customs house|a crew of six|the breakwater|the signal mast|the lifeboat"
)
_VERBS = _phrases(
    "marks|passes|watches over|leaves|returns to|shelters|crosses|follows|repairs|records|warns ships of|is seen "
    "from|was built above|stands opposite"
    "|takes its name from|measures|lies two miles off|supplies"
)
_OBJECTS = _phrases(
    "the northern shoal|a narrow channel|the inner harbour|a row of white cottages|the granite pier|the sand "
    "bar|the outer roads|a ruined chapel"
    "|the herring market|the deep anchorage|the lee shore|a stone causeway|the fog signal|the rope walk|the dry "
    "dock|the river mouth|a reef of black rock"
    "|the leading lights"
)
_TAILS = _phrases(
    "at low water|before sunrise|in the winter months|since the great storm|on most charts|when the wind is in the "
    "east|twice a day|with little under the keel"
    "|for three generations|by an old custom|in clear weather|after the spring tide|without a "
    "pilot|against the current|as the almanac says"
)


def place_name(rng: random.Random) -> str:
    """A name such as 'Port Marven' or 'Kelost Head'."""
    stem = "".join(rng.choice(_SYLLABLES) for _ in range(rng.choice((2, 2, 3)))).capitalize()
    return rng.choice(("Port {}", "{} Head", "{} Light", "{} Bay", "Cape {}", "{}")).format(stem)


def sentence(rng: random.Random, place: str) -> str:
    """One sentence; every third or so names the place."""
    start = rng.choice(_SUBJECTS)
    if rng.random() < 0.35:
        start += f" of {place}"
    body = f"{start} {rng.choice(_VERBS)} {rng.choice(_OBJECTS)} {rng.choice(_TAILS)}"
    return body[0].upper() + body[1:] + "."


def paragraph(rng: random.Random, place: str) -> str:
    """Three to eight sentences."""
    return " ".join(sentence(rng, place) for _ in range(rng.randint(3, 8)))


def paragraphs(rng: random.Random, place: str, size_bytes: int) -> tuple[str, ...]:
    """Paragraphs of at least size_bytes characters together; at least one."""
    made = [paragraph(rng, place)]
    while sum(map(len, made)) < size_bytes:
        made.append(paragraph(rng, place))
    return tuple(made)
