"""The parts that this feature declares."""

from periplus.features import CommandEntry, Feature

FEATURE = Feature(
    "Offers collections to programs with a language model: MCP, Markdown, chunks, vectors, values by rules.",
    (
        CommandEntry(
            "mcp",
            "Run",
            "Offer collections to language models: search, pages, links, map, faults as tools.",
            "periplus_agents.commands:mcp",
            is_rare=True,
        ),
    ),
    subcommands={
        "export markdown": "periplus_agents.commands:markdown",
        "export llms": "periplus_agents.commands:llms",
        "export chunks": "periplus_agents.commands:chunks",
    },
    page_columns="periplus_agents.extracting:page_columns",
    file_tables=("extract",),
    services={"embedding": "periplus_agents.embedding:", "markdown": "periplus_agents.markdown:"},
)
