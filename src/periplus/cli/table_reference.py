"""What do the tables say that leave a collection? Writes docs/sql.md and docs/exports.md from the descriptions of their columns."""

from __future__ import annotations

from collections.abc import Iterable

from periplus.model.table import Column

_SQL = """# Asking a collection in SQL

A collection is one SQLite file, `collection.db`. `periplus sql "SELECT ..."` asks it: it only reads, and stops after 10 s unless
`--time-limit` says otherwise. Any other program that opens SQLite files may read it too, while a crawl goes on:

```text
datasette serve example.org.periplus/collection.db
duckdb -c "ATTACH 'example.org.periplus/collection.db' AS c (TYPE sqlite); SELECT reason, count(*) FROM c.urls GROUP BY 1"
sqlite3 -readonly example.org.periplus/collection.db "SELECT url, title FROM pages WHERE status = 404"
```

The views below keep their names and columns from version to version; the tables behind them may change. Times are texts in ISO 8601,
UTC; yes and no are 1 and 0; NULL means not known, or not applicable. Indices lie on `urls.id`; a question about one URL is fast by
its id, and a question about all links reads all links.
"""
_EXPORTS = """# Exports

`periplus export TABLE -o FILE` writes a table as CSV, JSON lines, Parquet or Excel, by the ending of FILE or by `--format`; CSV and
JSON lines go to stdout as well. Tables are streamed.

- **CSV**: UTF-8, RFC 4180. A text that a spreadsheet would compute (it begins with `=`, `+`, `-`, `@`, a tab or a line end) gets a
  leading `'`.
- **JSON lines**: an object a row, UTF-8; values as they are.
- **Parquet**: zstd; times are timestamps (UTC), each field carries its sentence. Needs pyarrow: `pip install 'periplus[parquet]'`.
- **Excel**: texts are texts, none is computed or becomes a link. A sheet ends at 1,048,576 rows and the table goes on in the next;
  texts are cut at 32,767 characters; ids beyond 2^53 are texts, for Excel would round them.

`periplus export warc` writes what was fetched as an archive, and `periplus import warc` makes a collection of one: see [warc.md](warc.md).
The tables `urls`, `hosts` and `visits` are the views of [sql.md](sql.md); `pages` and `redirects` hold more than their views.
"""


def sql_reference() -> str:
    """docs/sql.md: every view."""
    from periplus.store.sqlite.views import VIEWS

    parts = [_SQL]
    for view in VIEWS.values():
        parts.append(f"## {view.name}\n\n{view.sentence}\n\n{_columns(view.columns)}")
    return "\n".join(parts)


def exports_reference() -> str:
    """docs/exports.md: every table of an export."""
    from periplus.api.exporting import TABLES, columns_of

    return "\n".join([_EXPORTS, *(f"## {name}\n\n{_columns(columns_of(name))}" for name in TABLES)])


def _columns(columns: Iterable[Column]) -> str:
    rows = (f"| `{column.name}` | {column.kind} | {column.sentence} |\n" for column in columns)
    return "| column | kind | meaning |\n|---|---|---|\n" + "".join(rows)
