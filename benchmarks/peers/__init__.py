"""How are the peers called? Their command lines, and where they are installed: never in the project's own environment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

VENV = Path("/tmp/peers-venv")
SCRAPY_VERSION = "2.19.0"  # the one that the bar was measured with
SPIDER = Path(__file__).with_name("scrapy_spider.py")
WGET2 = Path("/usr/bin/wget2")
NO_PAGES = "css,js,png,jpg,jpeg,gif,svg,ico,woff,woff2,ttf,eot"  # what only wget2 would fetch; left out in its favour


def install() -> None:
    """Scrapy into VENV."""
    if not (VENV / "bin/python").exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    subprocess.run([VENV / "bin/pip", "install", "--quiet", f"scrapy=={SCRAPY_VERSION}"], check=True)


def scrapy(starts: Sequence[str], *, delay_s: float = 0.0, per_host: int = 16) -> list[str]:
    return [str(VENV / "bin/python"), str(SPIDER), f"{delay_s:g}", str(per_host), *starts]


def wget2(starts: Sequence[str], folder: Path, *, keep: bool = True) -> list[str]:
    """Robots obeyed, 16 threads, no limit of depth, nothing outside the starts' hosts.

    keep=False: files are deleted as they come, links followed all the same; measured here, writing files is most of its CPU.
    """
    said = [str(WGET2), "-q", "-r", "--level=0", "--robots=on", "--max-threads=16", "--parent=on", "--no-config"]
    said += ["--filter-urls", f"--reject={NO_PAGES}", f"--directory-prefix={folder}"]
    return [*said, *([] if keep else ["--delete-after"]), *starts]


def have_scrapy() -> bool:
    return (VENV / "bin/scrapy").exists()


def have_wget2() -> bool:
    return WGET2.exists()
