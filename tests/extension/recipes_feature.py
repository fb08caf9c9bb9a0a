"""The parts that the package `recipes` declares."""

from periplus.features import CommandEntry, Feature

FEATURE = Feature(
    "Reads recipes.",
    commands=(CommandEntry("cook", "Of recipes", "Says what is for dinner.", "recipes:cook"),),
    subcommands={"export menu": "recipes:menu", "export urls": "recipes:menu"},
    names={"dinner": "recipes:dinner", "crawl": "recipes:dinner"},
    rules={"fewest": "recipes:fewest"},
    presets={"cook": "recipes:preset"},
    formats={"text/x-recipe": "recipes:html_of"},
    writers={"md": "recipes:markdown"},
    findings={"title-shouts": "recipes:shouting"},
)
