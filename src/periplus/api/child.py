"""A worker process's own entrance: `python -m periplus.api.child`, its orders on standard input."""

from __future__ import annotations

import sys

from periplus.api.crawling import serve_as_child

if __name__ == "__main__":
    serve_as_child(sys.stdin.buffer.read())
