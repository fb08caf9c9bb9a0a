"""What do the tables say that leave a collection? Writes docs/sql.md, docs/exports.md and docs/parquet.md from their columns' descriptions."""

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
_PARQUET = """# A collection as Parquet

`periplus export parquet FOLDER` writes a collection as a folder of Parquet tables, for programs that compute over all of it: DuckDB,
pandas, Polars, Spark, and Periplus' own engines. It needs pyarrow: `pip install 'periplus[parquet]'`.

```text
periplus export parquet graph -c example.org.periplus
duckdb -c "SELECT u.text, count(*) AS links FROM 'graph/links/*.parquet' l JOIN 'graph/urls/*.parquet' u ON u.url = l.target
           GROUP BY ALL ORDER BY links DESC LIMIT 20"
python -c "import pyarrow.dataset as ds; print(ds.dataset('graph/links').head(5))"
spark.read.parquet("graph/links")
```

```text
graph/
  hosts/part-00000.parquet
  urls/part-00000.parquet
  redirects/part-00000.parquet
  pages/part-00000.parquet
  links/part-00000.parquet  part-00001.parquet ...
  texts/part-00000.parquet      with --texts only
  manifest.json                 written last
```

- **Numbers.** URLs, hosts and sites are whole numbers from 0 without a gap, in the order of their texts (bytes of UTF-8). Equal
  collections give equal numbers and equal files, whatever order they were crawled in. `urls` leads from numbers to texts.
- **Files.** zstd; a new part begins every ten million rows; each table is read in the order of its parts' names, and is in the order that
  its columns say. Times are timestamps in UTC, to the millisecond; each field carries its sentence.
- **The manifest** is JSON: `format`, `kind` (`collection`), `program` (version), `made`, `inputs` (collection, how many runs, the last one),
  `parameters`, `tables` (each with `rows`, `parts` with `rows`, `size_bytes` and `sha256`, `columns`), and `digest`, equal for equal tables.
  A folder without it is not whole: an export that was killed leaves none, and the next one into the same folder begins again.
- **Memory.** Rows are streamed; kept are 16 bytes a URL and one batch of links. Links are put in order in temporary files beside the
  tables, of up to 64 bytes a link.
- Everything is of one moment, also while a crawl goes on.
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


def parquet_reference() -> str:
    """docs/parquet.md: every table of a dataset."""
    from periplus.model.dataset import TABLES

    return "\n".join([_PARQUET, *(f"## {name}\n\n{_columns(columns)}" for name, columns in TABLES.items())])


def _columns(columns: Iterable[Column]) -> str:
    rows = (f"| `{column.name}` | {column.kind} | {column.sentence} |\n" for column in columns)
    return "| column | kind | meaning |\n|---|---|---|\n" + "".join(rows)
