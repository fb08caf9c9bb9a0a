"""The parts that this feature declares."""

from periplus.features import CommandEntry, Feature

FEATURE = Feature(
    "Computes ranks, maps and duplicates of a large web, from disk or on a cluster; crawls on a cluster.",
    commands=(
        CommandEntry(
            "analyse",
            "Study",
            "Compute ranks, maps, duplicates of a large web: from disk, or on a cluster.",
            "periplus_spark.commands:analyse",
            is_rare=True,
        ),
        CommandEntry(
            "snapshot",
            "Study",
            "Write a snapshot of a large collection that its readers share.",
            "periplus_spark.commands:snapshot",
            is_rare=True,
        ),
    ),
    subcommands={"export parquet": "periplus_spark.commands:parquet"},
    engines={"spark": "periplus_spark.engine:SPARK"},
    services={
        "cluster": "periplus_spark.api:find_cluster",
        "snapshot query": "periplus_spark.commands:asked_snapshot",
        "tables of a dataset": "periplus_spark.dataset:TABLES",
    },
)
