"""The parts that this feature declares."""

from periplus.features import CommandEntry, Feature, NavEntry, StoredTable

FEATURE = Feature(
    "Reads many sites with a budget of pages, and compares them by their links.",
    commands=(
        CommandEntry(
            "survey",
            "Study",
            "Read many sites with a budget of pages, for the most new external links.",
            "periplus_studies.commands:survey",
            is_job=True,
        ),
    ),
    names={"survey": "periplus_studies.api:"},
    policies={"survey": "periplus_studies.api:policy_of"},
    presets={"survey": "periplus_studies.forms:SURVEY"},
    stored_tables=(StoredTable("survey_mark", "prefix text, status text, tags text, marked real", "prefix"),),
    in_use="periplus_studies.api:campaign_here",
    routes="periplus_studies.screens:ROUTES",
    templates="periplus_studies",
    navigation=(
        NavEntry("/surveys", "Surveys"),
        NavEntry("survey", "Survey", place="Study", starts=("survey",)),
    ),
    services={
        "set of pages": "periplus_studies.results:pages_of_set",
        "survey table": "periplus_studies.results:table_of",
    },
)
