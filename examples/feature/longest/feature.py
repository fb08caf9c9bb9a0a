"""The parts that this feature declares. Places are texts, so that Periplus imports `parts` when it uses one."""

from periplus.features import CommandEntry, Feature, NavEntry

FEATURE = Feature(
    "Lists the longest pages.",
    commands=(CommandEntry("longest", "Look", "List the longest pages.", "longest.parts:longest"),),
    findings={"title-tiny": "longest.parts:TINY_TITLE"},
    page_columns="longest.parts:page_columns",
    tables="longest.parts:TABLES",
    routes="longest.parts:ROUTES",
    templates="longest",
    navigation=(NavEntry("longest", "Longest", place="Pages", starts=("longest", "t/longest")),),
)
