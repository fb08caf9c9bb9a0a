"""The screens of topics, portals, stories and keywords: their routes, forms, files and tables."""

from __future__ import annotations

from periplus.model.job import Job
from periplus.ui.description import TEXT, Routes, Screen, TableScreen
from periplus.ui.users import Role
from periplus.values import JsonObject
from periplus_topics.model import KeywordList
from periplus_topics.screens import portals, stories, topics

_C = "/c/{name}"
_TOPIC = "/c/{name}/topic/{topic}"
_PORTAL = "/c/{name}/portal/{portal}"
_ROWS = list[JsonObject]

_SCREENS = (
    Screen(
        _C + "/topics", topics.topics,
        {"name": str, "topics": list[topics.TopicRow], "line": str, "fault": str, "jobs": list[Job]},
        take=topics.create,
    ),
    Screen(_TOPIC, topics.topic),
    Screen(_TOPIC + "/label", topics.label, take=topics.answer),
    Screen(
        _C + "/portals", portals.portals,
        {"name": str, "portals": _ROWS, "line": str, "fault": str, "topics": list[str], "periods": list[str]},
        take=portals.create,
    ),
    Screen(_PORTAL, portals.review),
    Screen(_PORTAL + "/entry", portals.entry, parameters={"key!": (TEXT, "of the entry")}, take=portals.edit),
    Screen(_C + "/stories", stories.stories, {"name": str, "computed_at": float, "jobs": list[Job], "stories": _ROWS},
        take=stories.find),
    Screen(_C + "/story", stories.story),
    Screen(
        _C + "/keywords", stories.keywords,
        {"name": str, "of": str, "query": str, "result": KeywordList | None, "fault": str},
        {"of": (TEXT, "addresses of pages, or a site"), "query": (TEXT, "a query; its results are the subject")},
    ),
)  # fmt: skip
_FORMS = {
    _TOPIC + "/do": (Role.WORK, topics.act),
    _PORTAL + "/decide": (Role.WORK, portals.decide),
    _PORTAL + "/do": (Role.WORK, portals.act),
}
_FILES = {
    _TOPIC + "/events": topics.events,
    _TOPIC + "/harvest.svg": topics.harvest,
    _PORTAL + "/files.zip": portals.download,
    _PORTAL + "/picture": portals.entry_picture,
    _PORTAL + "/site/{path:path}": portals.preview,
    _C + "/story.svg": stories.picture,
    _C + "/influence.{ending}": stories.influence_file,
}
_TABLES = {
    "stories": TableScreen(
        "Stories",
        "stories",
        ("story", "title", "sites", "pages", "first", "first_site", "told_by"),
        home="stories",
    ),
    "story-pages": TableScreen(
        "Pages of stories",
        "story-pages",
        ("story", "place", "date", "after", "site", "title", "url", "dated_by"),
        home="stories",
    ),
    "judged": TableScreen(
        "Judged pages", "judged", ("probability", "title", "url", "label", "beginning"), home="topic/{}"
    ),
    "words": TableScreen(
        "Words", "words", ("word", "speaks", "weight", "positive_share", "negative_share"), home="topic/{}"
    ),
    "entries": TableScreen(
        "Entries",
        "entries",
        ("key", "kind", "verdict", "title", "published", "sites", "weight", "keywords"),
        home="portal/{}",
    ),
    "sources": TableScreen(
        "Sources", "sources", ("site", "chosen", "verdict", "stories", "gain", "relevance"), home="portal/{}"
    ),
}
ROUTES = Routes(_SCREENS, _FORMS, _FILES, _TABLES)
