"""A campaign over five small sites on this machine: python examples/survey/campaign.py

Four of the sites have few external links, one has some on each page. The budget is forty pages; the rule finds out
which site is worth most of them.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from periplus.settings import settings_from
from periplus_studies import api as survey
from periplus_studies.api import LinkChoice, links
from periplus_studies.harvest import standing_lines
from periplus_studies.model import Campaign
from periplus_studies.units import unit_of

LOOPBACK, PAGES = "127.0.0.1", 30
# external links on each page
SITES = {"almanac.example": 0, "chandlers.example": 0, "links.example": 4, "pilots.example": 1, "tides.example": 0}


class Handler(BaseHTTPRequestHandler):
    """Serves all sites by the Host header: a start page with links to all pages of the site, and pages with external
    links.
    """

    def do_GET(self) -> None:
        host = self.headers.get("Host", "").partition(":")[0]
        inner = (
            "".join(f'<li><a href="/{page}">Page {page}</a>' for page in range(1, PAGES)) if self.path == "/" else ""
        )
        outer = "".join(
            f'<li><a href="http://{page_word(self.path, host, number)}.example/">Elsewhere</a>'
            for number in range(SITES.get(host, 0))
        )
        # pages with the same text would be treated as a trap
        words = " ".join(page_word(self.path, host, number) for number in range(100, 140))
        body = f"<!DOCTYPE html><title>{host}{self.path}</title><ul>{inner}{outer}</ul><p>{words}</p>".encode()
        found = self.path != "/robots.txt"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def page_word(path: str, host: str, number: int) -> str:
    """A unique word for each page and number."""
    return f"w{abs(hash((path, host, number))):x}"


def main() -> None:
    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    units = tuple(unit_of(f"http://{host}:{port}/", name=host, short=host.partition(".")[0]) for host in SITES)
    settings = settings_from(
        {"allow_private": True, "resolve": [f"*:{port}:{LOOPBACK}"], "mine": list(SITES), "delay_s": 0.01},
        survey.DEFAULTS,
    )
    with tempfile.TemporaryDirectory() as temp:
        folder = Path(temp) / "example.periplus"
        survey.create(folder, Campaign("Five sites", units, rule="r2:2", pages=40))
        end = survey.run(folder, settings, lambda watched: False)
        print(end.state, end.note)
        sys.stdout.writelines(line + "\n" for line in standing_lines(survey.standing_of(folder), boxes=False))
        print("some links:")
        for link in links(folder, LinkChoice("external", site="links", limit=3)):
            print(" ", link.page, "->", link.target)
    server.shutdown()


if __name__ == "__main__":
    main()
