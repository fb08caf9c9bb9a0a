"""A declaration whose parts fail, or take names of our own parts."""

from periplus.features import CommandEntry, Feature

FEATURE = Feature(
    "Fails.",
    commands=(
        CommandEntry("burnt", "Of broken", "Fails.", "broken:text"),
        CommandEntry("crawl", "Of broken", "Fails.", "broken:fail"),
    ),
    subcommands={"export burnt": "broken:text"},
    names={"burnt": "broken:missing"},
    rules={"burnt": "broken:fail"},
    presets={"burnt": "broken:text"},
    formats={"text/x-broken": "broken:fail", "text/html": "broken:fail"},
    writers={"csv": "broken:fail", "burnt": "broken:missing"},
    findings={"burnt": "broken:burnt", "title-long": "broken_too:check"},
)
