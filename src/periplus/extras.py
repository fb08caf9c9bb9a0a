"""Optional packages: the purpose of each, and the extra that installs it.

The core (crawl, map, check, report, search) needs none of them. A test compares this table with the extras in
pyproject.toml.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib.util import find_spec

from periplus.errors import UsageError

EXTRAS = {  # by imported module: (package, extra, purpose)
    "brotli": ("brotli", "brotli", "Answers in brotli"),
    "duckdb": ("duckdb", "sql", "Asking a snapshot in SQL"),
    "fsspec": ("fsspec", "segments", "Segments on object storage"),
    "jsonpath": ("python-jsonpath", "jsonpath", "A rule of JSONPath"),
    "markdown_it": ("markdown-it-py", "office", "Reading Markdown"),
    "mcp": ("mcp", "mcp", "Offering collections to language models"),
    "networkx": ("networkx", "network", "A graph for Python"),
    "psycopg": ("psycopg", "postgres", "Collections in PostgreSQL"),
    "pyarrow": ("pyarrow", "parquet", "A table for Parquet or Arrow"),
    "pypdfium2": ("pypdfium2", "pdf", "Reading PDF files"),
    "pyspark": ("pyspark", "cluster", "Work on a Spark cluster"),
    "python_multipart": ("python-multipart", "ui", "The interface in a browser"),
    "rich": ("rich", "progress", "A panel that shows how far a crawl is"),
    "starlette": ("starlette", "ui", "The interface in a browser"),
    "typst": ("typst", "pdf", "Writing a PDF"),
    "uvicorn": ("uvicorn", "ui", "The interface in a browser"),
    "xlsxwriter": ("xlsxwriter", "office", "Writing Excel files"),
}


def is_installed(module: str) -> bool:
    """Whether a package of EXTRAS is installed; does not import it."""
    try:
        return find_spec(module) is not None
    except ValueError:  # a test has hidden it from this process
        return False


def absence(module: str) -> str:
    """An error message with the purpose of a missing package and the command that installs it."""
    package, extra, purpose = EXTRAS[module]
    return f"{purpose} needs {package}, which is not installed: pip install 'periplus[{extra}]'"


@contextlib.contextmanager
def extra_needed() -> Iterator[None]:
    """Turns an ImportError for a missing package of EXTRAS into a UsageError; others are passed on."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in EXTRAS:
            raise
        raise UsageError(absence(module)) from None
