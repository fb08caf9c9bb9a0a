"""The parts that this feature declares."""

from periplus.features import Feature

FEATURE = Feature(
    "Reads and writes web archives: WARC, ARC, WACZ, CDX servers, Memento; copies a site to disk.",
    subcommands={
        "import warc": "periplus_archives.commands:import_warc",
        "export warc": "periplus_archives.commands:warc",
        "export wacz": "periplus_archives.commands:wacz",
        "export site": "periplus_archives.commands:site",
    },
    services={
        "archive": "periplus_archives.replay:past_transport",
        "archive place": "periplus_archives.replay:place_of",
        "archive starts": "periplus_archives.api:starts_of_archive",
        "archived copies": "periplus_archives.cdx:with_copies",
    },
)
