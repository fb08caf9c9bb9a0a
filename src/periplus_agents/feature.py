"""The parts that this feature declares."""

from periplus.features import CommandEntry, Feature

FEATURE = Feature(
    "Offers collections to programs with a language model.",
    (
        CommandEntry(
            "mcp",
            "Run",
            "Offer collections to language models: search, pages, links, map, faults as tools.",
            "periplus_agents.commands:mcp",
            is_rare=True,
        ),
    ),
)
