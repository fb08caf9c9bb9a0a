"""The parts that this feature declares."""

from periplus.features import CommandEntry, Feature, NavEntry

FEATURE = Feature(
    "Sends notices of changes by mail, webhook or feed.",
    commands=(
        CommandEntry(
            "notices",
            "Run",
            "Send notices of changes by mail, webhook or feed: broken links, vanished pages, new sites.",
            "periplus_notices.commands:notices",
            is_rare=True,
        ),
    ),
    routes="periplus_notices.screens:ROUTES",
    templates="periplus_notices",
    navigation=(NavEntry("/notices", "Notices", is_for_administrators=True),),
    after_jobs="periplus_notices.api:Notifier",
    files=("notices.db",),
)
