"""A crawl from nothing, on this machine alone: serves the example site, crawls it with the real command, shows what was found.

python examples/demo.py        (or: make demo)
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
OUT = Path("demo-out")
START_WITHIN_S = 20.0


def served(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """The example site's server as a child process, and its address."""
    port_file = folder / "port"
    server = subprocess.Popen([sys.executable, str(HERE / "serve.py"), "--port", "0", "--port-file", str(port_file)], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + START_WITHIN_S
    while not (port_file.exists() and port_file.read_text().strip()):
        if time.monotonic() > deadline or server.poll() is not None:
            server.terminate()
            sys.exit("the example site did not start")
        time.sleep(0.05)
    return server, f"http://127.0.0.1:{port_file.read_text().strip()}/"


def run(*words: str) -> int:
    """One command, shown before it runs."""
    print("\n$ periplus " + " ".join(words), flush=True)
    return subprocess.run([sys.executable, "-m", "periplus.cli", *words], check=False).returncode


def main() -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    collection = str(OUT / "harbours.periplus")
    with tempfile.TemporaryDirectory() as folder:
        server, address = served(Path(folder))
        try:
            # The site is our own and on this machine: hence the short delay and the loopback address.
            crawled = run("crawl", address, "-o", collection, "--mine", "127.0.0.1", "--delay", "0.02", "--allow-private", "--retry-wait", "0.2")
        finally:
            server.terminate()
            server.wait()
    if crawled != 0:
        sys.exit(crawled)
    run("map", "-c", collection)
    run("status", "-c", collection)
    run("pages", "-c", collection, "--state", "invalid")
    run("report", "-c", collection, "-o", str(OUT / "report.html"))
    print(f"\nOpen {OUT / 'report.html'} in a browser. The collection is {collection}/; every command above works on it again.")


if __name__ == "__main__":
    main()
