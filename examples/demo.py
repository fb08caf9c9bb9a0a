"""A crawl from nothing, on this machine alone: serves the example site, crawls it with the real command,
shows what was found.

python examples/demo.py        (or: make demo)
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "news"))

from coastnews import DOMAIN, SITES, starts  # noqa: E402  (it lies beside its texts)

TOPIC = {"sea": "--positive", "land": "--negative"}  # what the pages of a site are to the topic that is learned
OUT = Path("demo-out")
START_WITHIN_S = 20.0


def served(folder: Path, *words: str) -> tuple[subprocess.Popen[bytes], str]:
    """The example site's server as a child process, and its address. words: further arguments of the server."""
    port_file = folder / "port"
    server = subprocess.Popen(
        [sys.executable, str(HERE / "serve.py"), "--port", "0", "--port-file", str(port_file), *words],
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + START_WITHIN_S
    while not (port_file.exists() and port_file.read_text().strip()):
        if time.monotonic() > deadline or server.poll() is not None:
            server.terminate()
            sys.exit("the example site did not start")
        time.sleep(0.05)
    return server, f"http://127.0.0.1:{port_file.read_text().strip()}/"


def run(*words: str) -> int:
    """One command, shown before it runs."""
    print("\n$ periplus " + shlex.join(words), flush=True)
    return subprocess.run([sys.executable, "-m", "periplus.cli", *words], check=False).returncode


def harbours() -> None:
    """One site: crawled, mapped, reported."""
    collection = str(OUT / "harbours.periplus")
    with tempfile.TemporaryDirectory() as folder:
        server, address = served(Path(folder))
        try:
            # The site is our own and on this machine: hence the short delay and the loopback address.
            crawled = run(
                "crawl",
                address,
                "-o",
                collection,
                "--mine",
                "127.0.0.1",
                "--delay",
                "0.02",
                "--allow-private",
                "--retry-wait",
                "0.2",
            )
        finally:
            server.terminate()
            server.wait()
    if crawled != 0:
        sys.exit(crawled)
    run("map", "-c", collection)
    run("status", "-c", collection)
    run("pages", "-c", collection, "--state", "invalid")
    run("report", "-c", collection, "-o", str(OUT / "report.html"))


def news() -> None:
    """Ten sites of news: what they tell one another, and a portal of one of their two topics."""
    collection = ("-c", str(OUT / "news.periplus"))
    with tempfile.TemporaryDirectory() as folder:
        server, address = served(Path(folder), "--news")
        port = address.rpartition(":")[2].strip("/")
        try:
            # `--resolve` lets the sites' invented names lead to this machine.
            resolve = (
                "--resolve",
                f"*:{port}:127.0.0.1",
                "--mine",
                "*.example",
                "--delay",
                "0.02",
                "--allow-private",
                "--retry-wait",
                "0.2",
            )
            crawled = run("crawl", *starts(port), "-o", collection[1], *resolve)
        finally:
            server.terminate()
            server.wait()
    if crawled != 0:
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
    said = (
        "--title",
        "The Seven Lights",
        "--lead",
        "What the harbours of the coast tell one another, gathered every morning",
    )
    run("portal", "create", "coast", *said, "--topic", "sea", "--period", "24h", *collection)
    run("portal", "show", "coast", *collection)
    run("portal", "build", "coast", "-o", str(OUT / "portal"), *collection)


def main() -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    harbours()
    news()
    print(f"\nOpen {OUT / 'report.html'} and {OUT / 'portal' / 'index.html'} in a browser.")
    print(
        f"The collections are {OUT}/harbours.periplus and {OUT}/news.periplus; every command above works on them again."
    )


if __name__ == "__main__":
    main()
