"""A complete demo on this machine: serves the example webs, crawls them with the real commands, shows the results.

python examples/demo.py        (or: make demo)
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from periplus_demo.coastnews import DOMAIN, SITES, starts

TOPIC = {"sea": "--positive", "land": "--negative"}  # role of the pages of a site for the topic
OUT = Path("demo-out")
IN_DOUBT = 3  # exit code of a crawl that left out URLs of a series that seems endless, such as a calendar


def served() -> tuple[subprocess.Popen[str], str]:
    """`periplus demo` as a child process, and its port."""
    server = subprocess.Popen(
        [sys.executable, "-m", "periplus", "demo", "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    line = server.stdout.readline()
    if not line.startswith("A site"):
        sys.exit("the example webs are not served")
    return server, line.rstrip("/\n").rpartition(":")[2]


def run(*words: str) -> int:
    """Prints a command and runs it."""
    print("\n$ periplus " + shlex.join(words), flush=True)
    return subprocess.run([sys.executable, "-m", "periplus", *words], check=False).returncode


def harbours(port: str) -> None:
    """A site: crawl, map, report."""
    collection = str(OUT / "harbours.periplus")
    # The site is our own and on this machine, so a short delay and a loopback address are allowed.
    quick = ("--mine", "127.0.0.1", "--delay", "0.02", "--allow-private", "--retry-wait", "0.2")
    crawled = run("crawl", f"http://127.0.0.1:{port}/", "-o", collection, *quick)
    if crawled not in (0, IN_DOUBT):
        sys.exit(crawled)
    run("map", "-c", collection)
    run("status", "-c", collection)
    run("pages", "-c", collection, "--state", "failed")
    run("report", "-c", collection, "-o", str(OUT / "report.html"))


def news(port: str) -> None:
    """Ten news sites: their stories, and a portal on one of their two topics."""
    collection = ("-c", str(OUT / "news.periplus"))
    # `--resolve` maps the invented host names to this machine.
    quick = ("--resolve", f"*:{port}:127.0.0.1", "--mine", "*.example", "--delay", "0.02", "--allow-private")
    if crawled := run("crawl", *starts(port), "-o", collection[1], *quick, "--retry-wait", "0.2"):
        sys.exit(crawled)
    run("stories", *collection)
    run("influence", "-k", "3", *collection)
    examples = [
        word
        for site in SITES
        if SITES[site][1] in TOPIC
        for word in (TOPIC[SITES[site][1]], f"http://{site}.{DOMAIN}:{port}/*/*")
    ]
    run("topic", "train", "sea", *examples, *collection)
    lead = "News from the harbours of the coast, updated every morning"
    words = ("--title", "The Seven Lights", "--lead", lead, "--topic", "sea", "--period", "24h")
    run("portal", "create", "coast", *words, *collection)
    run("portal", "show", "coast", *collection)
    run("portal", "build", "coast", "-o", str(OUT / "portal"), *collection)


def main() -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    server, port = served()
    try:
        harbours(port)
        news(port)
    finally:
        server.terminate()
        server.wait()
    print(f"\nOpen {OUT / 'report.html'} and {OUT / 'portal' / 'index.html'} in a browser.")
    print(
        f"The collections are {OUT}/harbours.periplus and {OUT}/news.periplus; every command above works on them again."
    )


if __name__ == "__main__":
    main()
