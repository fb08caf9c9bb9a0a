"""Makes the screenshots in docs/images, from crawls of the webs of `periplus demo`.

python tests/pictures.py                  all screenshots, in a few minutes
python tests/pictures.py ui-map ui-page   only these
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

sys.path.append(str(Path(__file__).parent / "whole"))

from served_interface import free_port, served
from voyage import command, environment

from browser import Browser

IMAGES = Path(__file__).parents[1] / "docs" / "images"
DESK, LOW, HIGH, PHONE = (1280, 900), (1280, 700), (1280, 1200), (390, 900)
NEWS = (
    "gazette", "coastwatch", "harbourpost", "lampkeepers", "northpilot", "tides", "orchardist", "hillfarm", "market",
    "sennight",
)  # fmt: skip
TOWNS = ["averby", "vellmouth", "port-lorne", "thornmouth", "kestrel-haven", "grey-skerry", "sandholm", "old-quay"]
SEA, LAND = ("coastwatch", "harbourpost", "lampkeepers", "tides"), ("orchardist", "hillfarm", "market")
SCREENS = {  # (path, size in pixels, colour scheme, selector of the element to scroll to)
    "ui-start": ("/", DESK, "light", ""),
    "ui-live": ("/c/pilots/live", HIGH, "light", ""),
    "ui-phone": ("/c/pilots/live", PHONE, "dark", ""),
    "ui-map": ("/c/pilots/map", DESK, "light", ""),
    "ui-graph": ("/c/pilots/graph", DESK, "light", ""),
    "ui-pages": ("/c/pilots/t/pages?sort=-size", DESK, "light", ""),
    "ui-page": ("/c/pilots/page?url={page}", DESK, "light", ""),
    "ui-search": ("/c/pilots/search?q=harbour", DESK, "light", ""),
    "ui-issues": ("/c/pilots/t/faults", DESK, "light", ""),
    "ui-delete": ("/c/pilots/delete?run=1", LOW, "light", ""),
    "ui-jobs": ("/jobs", LOW, "light", ""),
    "ui-notices": ("/notices", DESK, "light", ""),
    "ui-topic": ("/c/coast/topic/sea", HIGH, "light", ""),
    "ui-label": ("/c/coast/topic/sea/label", DESK, "light", ""),
    "ui-portal": ("/c/coast/portal/coast", DESK, "light", "#entries"),
    "ui-stories": ("/c/coast/stories", DESK, "light", ""),
    "ui-surveys": ("/surveys", DESK, "light", ""),
    "ui-survey": ("/c/towns/survey", HIGH, "light", ""),
    "ui-survey-companions": ("/c/towns/survey/companions", DESK, "light", ""),
    "ui-survey-matrix": ("/c/towns/survey/matrix", DESK, "light", ""),
    "ui-survey-network": ("/c/towns/survey/network", HIGH, "light", ""),
}


def collections(folder: Path) -> str:
    """Makes three collections of the example webs, like the tutorials. Returns the URL of the first web."""
    port = free_port()
    home = f"http://127.0.0.1:{port}/"

    def run(*words: str) -> str:
        done = subprocess.run(
            command(*words), cwd=folder, env=environment(), capture_output=True, text=True, timeout=600, check=False
        )
        print(f"{done.returncode}  periplus {' '.join(words)[:90]}", flush=True)
        return done.stdout

    def of(names: Sequence[str]) -> list[str]:
        return [f"http://{name}.example:{port}/" for name in names]

    web = subprocess.Popen(command("demo", "--port", str(port)), cwd=folder, env=environment(), stdout=subprocess.PIPE)
    assert web.stdout is not None
    web.stdout.readline()  # it listens
    try:
        (folder / "periplus.toml").write_text(run("demo", "--port", str(port), "--settings"))
        (folder / "news.txt").write_text("\n".join(of(NEWS)))
        towns = zip(of(TOWNS), TOWNS, strict=True)
        (folder / "towns.csv").write_text("start,name\n" + "".join(f"{url},{name}\n" for url, name in towns))
        run("crawl", home, "-o", "pilots.periplus", "-q")
        run("check", "--no-external", "-c", "pilots.periplus", "-q")
        run("refresh", "-c", "pilots.periplus", "-q")
        run("crawl", "-i", "news.txt", "-o", "coast.periplus", "-q")
        examples = [*(("-p", f"{url}*/*") for url in of(SEA)), *(("-n", f"{url}*/*") for url in of(LAND))]
        run("topic", "train", "sea", *(word for pair in examples for word in pair), "-c", "coast.periplus")
        run("topic", "judge", "sea", "--keep", "-c", "coast.periplus")
        run("stories", "-c", "coast.periplus")
        title = ("--title", "The Seven Lights", "--topic", "sea", "--approve")
        run("portal", "create", "coast", *title, "-c", "coast.periplus")
        run("portal", "build", "coast", "-c", "coast.periplus")
        run("survey", "create", "-i", "towns.csv", "-c", "towns.periplus", "--title", "Eight towns", "--pages", "120")
        run("survey", "run", "-c", "towns.periplus", "-q")
        run("jobs", "add", "--every", "24h", "refresh", "-c", "coast.periplus")
        run("jobs", "add", "check", "-c", "pilots.periplus", "--no-external")
        run("notices", "add", "https://example.org/hook", "--kind", "broken-links")
    finally:
        web.terminate()
        web.wait()
    return home


def main(names: list[str]) -> None:
    """Each screen is opened twice, so that slow computations are ready for the screenshot."""
    with tempfile.TemporaryDirectory() as place:
        page = quote(collections(Path(place)) + "en/ports/old-quay.html", safe="")
        with served(Path(place), "--no-workers") as address, Browser.started() as browser:
            for picture in names or SCREENS:
                path, size, scheme, top = SCREENS[picture]
                browser.look(*size, scheme)
                for wait_s in (1.5, 1.5):
                    browser.open(address + path.format(page=page))
                    time.sleep(wait_s)
                if top:
                    browser.value(f"document.querySelector('{top}').scrollIntoView()")
                browser.picture(IMAGES / f"{picture}.png")
                print(picture, browser.value("document.title"), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
