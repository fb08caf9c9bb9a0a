"""The parts that this feature declares."""

from periplus.features import CommandEntry, Feature, NavEntry, StoredTable

_COMMANDS = (
    ("keywords", "stories", "Say what a page, a story or a site is about, in a few words.", True, False),
    ("topic", "topic", "Tell the pages of a topic from all others, by examples.", False, True),
    ("stories", "stories", "Find stories that several sites published, and how they spread.", False, True),
    ("influence", "stories", "Choose the few sites that see most of the stories.", True, True),
    ("portal", "stories", "Make a site of what matters: weightiest stories, their sources, feeds.", False, True),
)
FEATURE = Feature(
    "Tells pages of a topic from others, finds stories and keywords, follows topics and publishes portals.",
    commands=tuple(
        CommandEntry(name, "Study", sentence, f"periplus_topics.commands.{module}:{name}", is_rare, is_job)
        for name, module, sentence, is_rare, is_job in _COMMANDS
    ),
    names={
        "influence": "periplus_topics.api.stories:influence",
        "keywords": "periplus_topics.api.keywords:keywords",
        "portal": "periplus_topics.api.portal:",
        "stories": "periplus_topics.api.stories:stories_of",
        "topic": "periplus_topics.api.topics:",
    },
    policies={"topical": "periplus_topics.api.topical_run:policy_of"},
    presets={"follow": "periplus_topics.screens.topics:FOLLOW"},
    stored_tables=(
        StoredTable("portal", "name text, settings text, built real", "name"),
        StoredTable(
            "portal_verdict",
            "portal text, of_site integer, subject text, verdict text, decided real",
            "portal, of_site, subject",
        ),
        StoredTable("portal_page", "portal text, url text, entry text", "portal, url", url="url"),
        StoredTable(
            "portal_words",
            "portal text, entry text, words text, picture bytes, alt text, edited real",
            "portal, entry",
        ),
    ),
    tables="periplus_topics.api.tables:RESULTS",
    in_use="periplus_topics.api.topics:topic_names",
    routes="periplus_topics.screens:ROUTES",
    templates="periplus_topics",
    navigation=(
        NavEntry("topics", "Topics", place="Study", starts=("topic", "t/judged", "t/words")),
        NavEntry("stories", "Stories", place="Study", starts=("stor", "t/stor")),
        NavEntry("portals", "Portals", place="Study", starts=("portal", "t/entries", "t/sources")),
        NavEntry("keywords", "Keywords", place="Study", starts=("keywords",)),
    ),
    services={"keywords": "periplus_topics.api.keywords:KeywordFinder"},
)
