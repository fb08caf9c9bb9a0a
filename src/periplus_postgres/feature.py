"""The parts that this feature declares."""

from periplus.features import CommandEntry, Feature

FEATURE = Feature(
    "Stores collections in PostgreSQL, for workers on several machines; moves and splits collections.",
    commands=(
        CommandEntry(
            "move",
            "Run",
            "Move a collection from a folder into PostgreSQL, or back; a crawl can continue there.",
            "periplus_postgres.commands:move",
            is_rare=True,
        ),
        CommandEntry(
            "split",
            "Run",
            "Split a collection into several that crawl one web together, by registered domain.",
            "periplus_postgres.commands:split",
            is_rare=True,
        ),
        CommandEntry(
            "segments",
            "Run",
            "Check the WARC segments of a collection on PostgreSQL; delete what no page needs.",
            "periplus_postgres.commands:segments",
            is_rare=True,
        ),
    ),
    names={"DatabaseCollection": "periplus_postgres.collection:DatabaseCollection"},
    stores=dict.fromkeys(("postgresql", "postgres"), "periplus_postgres.store:"),
    services={
        "crawl on a cluster": "periplus_postgres.joining:carried_crawl",
        "joining a crawl": "periplus_postgres.commands:help_with_crawl",
        "part of a web": "periplus_postgres.exchange:settled_part",
        "exchange of URLs": "periplus_postgres.exchange:UrlExchange",
    },
)
