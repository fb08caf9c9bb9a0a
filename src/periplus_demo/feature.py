"""The parts that this feature declares."""

from periplus.features import CommandEntry, Feature

FEATURE = Feature(
    "Serves example webs on this machine.",
    commands=(
        CommandEntry(
            "demo",
            "Run",
            "Serve small example webs on this machine, to try the commands on.",
            "periplus_demo.commands:demo",
        ),
    ),
)
