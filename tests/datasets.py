"""Small random datasets with the cases that are hard for engines, and results read back as rows."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from periplus.model.page import LinkKind
from periplus.model.tables import ColumnKind
from periplus.model.visit import STATE_OF, Reason
from periplus.settings import VERSION
from periplus_spark.dataset import TABLES, Manifest, PartNote, TableNote
from periplus_spark.files import blocks

TYPES = {
    ColumnKind.TEXT: pa.string(),
    ColumnKind.INTEGER: pa.int64(),
    ColumnKind.REAL: pa.float64(),
    ColumnKind.BOOLEAN: pa.bool_(),
    ColumnKind.TIME: pa.timestamp("ms", "UTC"),
}
REASONS = [Reason.OK] * 12 + [
    Reason.WAITING,
    Reason.NOINDEX,
    Reason.REDIRECT,
    Reason.REDIRECT,
    Reason.NOT_FOUND,
    Reason.SCOPE,
    Reason.RESOURCE,
    Reason.TLS,
]
KINDS = [LinkKind.ANCHOR] * 6 + [LinkKind.AREA, LinkKind.IMAGE, LinkKind.CANONICAL, LinkKind.SITEMAP]
WORDS = [
    "port",
    "cape",
    "island",
    "river",
    "tower",
    "anchor",
    "harbour",
    "lighthouse",
    "reef",
    "bay",
    "strait",
    "gulf",
    "delta",
    "cliff",
    "mole",
    "quay",
]


def write_dataset(folder: Path, tables: dict[str, list[dict[str, object]]], parts: int = 1) -> Path:
    """Writes a dataset. tables: rows by table; missing columns are null. Each table is split into `parts` files."""
    notes = []
    for name, columns in ((name, table.columns) for name, table in TABLES.items()):
        if name not in tables:
            continue
        (folder / name).mkdir(parents=True)
        schema = pa.schema([(column.name, TYPES[column.kind]) for column in columns])
        rows = tables[name]
        size = -(-len(rows) // parts) or 1
        files = []
        for number in range(parts):
            part = rows[number * size : (number + 1) * size]
            path = folder / name / f"part-{number:05}.parquet"
            pq.write_table(pa.Table.from_pylist(part, schema), path)
            files.append(
                PartNote(path.name, len(part), path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
            )
        notes.append(TableNote(name, len(rows), tuple(files), {column.name: column.sentence for column in columns}))
    (folder / "manifest.json").write_text(Manifest("collection", VERSION, 0.0, {}, {}, tuple(notes)).to_json())
    return folder


def chance_dataset(
    folder: Path, seed: int, urls: int = 40, sites: int = 3, links: int = 160, *, parts: int = 2, texts: bool = True
) -> Path:
    """Writes a random dataset, the same for the same arguments."""
    rng = random.Random(seed)
    names = sorted(
        {
            f"http{rng.choice(('', 's'))}://{rng.choice(('', 'www.'))}s{rng.randrange(sites)}.example{_path(rng)}"
            for _ in range(urls)
        }
    )
    hosts = sorted({text.split("/")[2] for text in names})
    site_names = sorted({host.removeprefix("www.") for host in hosts})
    site_of = {host: site_names.index(host.removeprefix("www.")) for host in hosts}
    reasons = [rng.choice(REASONS) for _ in names]
    url_rows = []
    for number, (text, reason) in enumerate(zip(names, reasons, strict=True)):
        host = text.split("/")[2]
        depth = rng.choice((None, 0, 1, 1, 2))
        row = {
            "url": number,
            "id": number * 7,
            "text": text,
            "host": hosts.index(host),
            "site": site_of[host],
            "state": STATE_OF[reason].value,
        }
        url_rows.append(
            row
            | {
                "reason": reason.value,
                "depth": depth,
                "is_start": rng.random() < 0.15,
                "in_sitemap": False,
                "first_seen": rng.randrange(10**12),
            }
        )
    redirects = [
        {"source": number, "target": rng.randrange(len(names))}
        for number, reason in enumerate(reasons)
        if reason is Reason.REDIRECT
    ]
    read = [number for number, reason in enumerate(reasons) if reason in (Reason.OK, Reason.NOINDEX)]
    tables = {
        "hosts": [
            {"host": n, "name": f"{host}:443", "site": site_of[host], "site_name": host.removeprefix("www.")}
            for n, host in enumerate(hosts)
        ],
        "urls": url_rows,
        "redirects": redirects,
        "links": _links(rng, len(names), links),
        **_pages(rng, read),
    }
    if not texts:
        del tables["texts"]
    return write_dataset(folder, tables, parts)


def _path(rng: random.Random) -> str:
    return (
        "/"
        + "".join(rng.choice(("a/", "b/", "")) for _ in range(2))
        + rng.choice(("", f"p{rng.randrange(9)}", f"?q=x/{rng.randrange(9)}"))
    )


def _links(rng: random.Random, urls: int, links: int) -> list[dict[str, object]]:
    drawn = {
        (
            rng.randrange(urls),
            min(rng.randrange(urls), rng.randrange(urls)),
            rng.choice(KINDS).value,
            rng.choice(("nav", "main")),
        )
        for _ in range(links if urls else 0)
    }
    names = ("source", "target", "kind", "position")
    return [
        dict(zip(names, link, strict=True)) | {"nofollow": False, "times": 1, "first_seen": 0, "last_seen": 0}
        for link in sorted(drawn)
    ]


def _pages(rng: random.Random, read: list[int]) -> dict[str, list[dict[str, object]]]:
    """Pages and texts: equal ones, near duplicates, and pages of the same template."""
    origins = [[rng.choice(WORDS) + str(rng.randrange(30)) for _ in range(60)] for _ in range(4)]
    menus = [[f"menu {menu} item {item}" for item in range(25)] for menu in range(2)]
    pages, texts = [], []
    for url in read:
        words = list(rng.choice(origins))
        for _ in range(rng.choice((0, 0, 0, 1, 2, 8))):
            words[rng.randrange(len(words))] = "changed" + str(rng.randrange(3))
        text = " ".join(words)
        shown = text.title() if rng.random() < 0.3 else text
        body = shown + str(rng.randrange(2))
        page = {
            "url": url,
            "media_type": "text/html",
            "size": len(text),
            "title": "t",
            "canonical": "",
            "text_chars": len(text),
            "fetched_at": 0,
        }
        for name, words_of in (("body_digest", body), ("text_digest", shown), ("folded_digest", text)):
            page[name] = hashlib.md5(words_of.encode()).hexdigest()
        pages.append(page | {"last_modified": rng.choice((None, rng.randrange(10**12)))})
        menu = [line for line in rng.choice(menus) if rng.random() < 0.98]
        texts.append(
            {"url": url, "text": "\n".join([*menu, shown]), "content": rng.choice((None, shown, shown, shown))}
        )
    return {"pages": pages, "texts": texts}


def rows_of(folder: Path, table: str) -> list[tuple[object, ...]]:
    """The rows of a table, sorted: engines may differ in the order of rows."""
    rows = [
        tuple(row.values()) for block in blocks(folder, table, columns_of(folder, table)) for row in block.to_pylist()
    ]
    return sorted(rows)


def columns_of(folder: Path, table: str) -> list[str]:
    return next(
        list(note["columns"])
        for note in json.loads((folder / "manifest.json").read_text())["tables"]
        if note["name"] == table
    )
