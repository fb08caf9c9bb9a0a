"""Command lines of other crawlers, and where they are installed: never in the project's own environment."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

VENV = Path("/tmp/peers-venv")
SCRAPY_VERSION = "2.19.0"  # the version of the published figures, as for the others
PACKAGES = {  # Python packages, each in a separate environment: their requirements conflict
    VENV: f"scrapy=={SCRAPY_VERSION}",
    Path(f"{VENV}-crawlee"): "crawlee[beautifulsoup,parsel]==1.11.0",
    Path(f"{VENV}-minet"): "minet==4.2.1",
    Path(f"{VENV}-linkchecker"): "linkchecker==10.6.0",
}
CRAWLEE, MINET, LINKCHECKER = (Path(f"{VENV}-{name}/bin") for name in ("crawlee", "minet", "linkchecker"))
HERE = Path(__file__).parent
SPIDER = HERE / "scrapy_spider.py"
BIN = Path("/usr/bin")  # wget, wget2, httrack: Debian's packages of those names
WGET2 = BIN / "wget2"
# files that only wget and similar tools would fetch; excluded in their favour
NO_PAGES = "css,js,png,jpg,jpeg,gif,svg,ico,woff,woff2,ttf,eot"


def install() -> None:
    """Installs the Python crawlers in their environments."""
    for venv, package in PACKAGES.items():
        if not (venv / "bin/python").exists():
            subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([venv / "bin/pip", "install", "--quiet", package], check=True)


@dataclass(frozen=True, slots=True)
class Peer:
    """A way to run a crawler. command: built from start addresses and an empty folder."""

    program: Path  # if the file is missing, the crawler is not installed
    command: Callable[[Sequence[str], Path], list[str]]
    version: tuple[str, ...]  # arguments to its program, or (for our scripts) to the Python of its environment
    note: str

    def is_there(self) -> bool:
        return self.program.exists()

    def version_said(self) -> str:
        """Version: the first number with dots in its output."""
        done = subprocess.run([self.program, *self.version], capture_output=True, text=True, check=False)
        found = re.search(r"\d+\.\d+[.\d-]*", done.stdout + done.stderr)
        return found[0] if found else "unknown version"


def scrapy(starts: Sequence[str], *, delay_s: float = 0.0, per_host: int = 16) -> list[str]:
    return [str(VENV / "bin/python"), str(SPIDER), f"{delay_s:g}", str(per_host), *starts]


def crawlee(parser: str) -> Callable[[Sequence[str], Path], list[str]]:
    return lambda starts, _folder: [str(CRAWLEE / "python"), str(HERE / "crawlee_spider.py"), parser, *starts]


def minet(starts: Sequence[str], _folder: Path) -> list[str]:
    return [str(MINET / "python"), str(HERE / "minet_spider.py"), *starts]


def wget(starts: Sequence[str], folder: Path, *, keep: bool = True) -> list[str]:
    """One connection, robots obeyed, any depth, only the hosts of the starts. keep: as for wget2."""
    said = [
        str(BIN / "wget"),
        "-q",
        "-r",
        "--level=inf",
        "--no-config",
        f"--reject={NO_PAGES}",
        f"--directory-prefix={folder}",
    ]
    return [*said, *([] if keep else ["--delete-after"]), *starts]


def wget2(starts: Sequence[str], folder: Path, *, keep: bool = True) -> list[str]:
    """Robots obeyed, 16 threads, any depth, only the hosts of the starts.

    keep=False: files are deleted after their links were followed; writing files takes most of its CPU.
    """
    said = [str(WGET2), "-q", "-r", "--level=0", "--robots=on", "--max-threads=16", "--parent=on", "--no-config"]
    said += ["--filter-urls", f"--reject={NO_PAGES}", f"--directory-prefix={folder}"]
    return [*said, *([] if keep else ["--delete-after"]), *starts]


def httrack(starts: Sequence[str], folder: Path) -> list[str]:
    """16 sockets, no speed limits, no index, no log, files kept unchanged."""
    limits = ["--disable-security-limits", "--max-rate=0", "--connection-per-second=0", "--sockets=16"]
    leave_out = [f"-*.{ending}" for ending in NO_PAGES.split(",")]
    return [
        str(BIN / "httrack"),
        *starts,
        "-O",
        str(folder),
        "--quiet",
        "--robots=2",
        "-I0",
        "-Q",
        "--depth=9999",
        *limits,
        *leave_out,
    ]


def linkchecker(starts: Sequence[str], _folder: Path) -> list[str]:
    return [str(LINKCHECKER / "linkchecker"), "-f", str(HERE / "linkcheckerrc"), "--no-status", "-o", "none", *starts]


def _module(name: str) -> tuple[str, ...]:
    return ("-c", f"import importlib.metadata as m; print(m.version({name!r}))")


PEERS = {
    "scrapy": Peer(
        VENV / "bin/python",
        lambda starts, _folder: scrapy(starts),
        _module("scrapy"),
        "links by XPath, nothing written",
    ),
    "crawlee-parsel": Peer(CRAWLEE / "python", crawlee("parsel"), _module("crawlee"), "storage in memory"),
    "crawlee-soup": Peer(
        CRAWLEE / "python", crawlee("beautifulsoup"), _module("crawlee"), "BeautifulSoup over lxml, storage in memory"
    ),
    "minet": Peer(MINET / "python", minet, _module("minet"), "16 threads, no robots.txt, nothing written"),
    "wget-files": Peer(BIN / "wget", wget, ("--version",), "one connection, files kept"),
    "wget2-files": Peer(WGET2, wget2, ("--version",), "16 threads, files kept"),
    "wget2-nothing-kept": Peer(
        WGET2,
        lambda starts, folder: wget2(starts, folder, keep=False),
        ("--version",),
        "16 threads, files deleted as they come",
    ),
    "httrack": Peer(BIN / "httrack", httrack, ("--version",), "16 sockets, files kept"),
    "linkchecker": Peer(LINKCHECKER / "python", linkchecker, _module("linkchecker"), "16 threads, checks each link"),
}


def have_scrapy() -> bool:
    return (VENV / "bin/scrapy").exists()
