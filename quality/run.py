"""Runs the quality measurements.

`make quality`: one table of all figures with those of peers, aims and floors; fails if a figure is below its floor.

python quality/run.py [NAME...]                          # folders of quality/; default: all
python quality/run.py --raise [NAME...]                  # raises floors to the scores
python quality/run.py --lower NAME --because SENTENCE    # lowers floors of a folder; the reason goes to floors.json
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from figures import Figure, read

HERE = Path(__file__).parent
FLOORS = HERE / "floors.json"
STEADY = 1e-6  # floors.json has six places

Floors = dict[str, dict[str, dict[str, str | float]]]


def measured(name: str) -> list[Figure] | None:
    """The figures of a folder; None if its program failed. The program prints its own tables."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "figures.json"
        done = subprocess.run([sys.executable, HERE / name / "measure.py", "--json", out], check=False)
        return read(out) if done.returncode == 0 and out.exists() else None


def is_worse(figure: Figure, floor: float) -> bool:
    """Whether the figure is below its floor."""
    return (figure.score < floor - STEADY) if figure.higher_is_better else (figure.score > floor + STEADY)


def verdict(figure: Figure, floor: dict[str, str | float] | None) -> str:
    """The state of a figure relative to its floor."""
    if not figure.data:
        return "-"
    if floor is None:
        return "none yet"
    if floor["data"] != figure.data:
        return "of other data"
    sign = ">=" if figure.higher_is_better else "<="
    return f"{'BELOW' if is_worse(figure, float(floor['floor'])) else sign} {number(float(floor['floor']))}"


def number(score: float) -> str:
    """Four significant digits, or whole thousands."""
    return f"{score:,.0f}" if abs(score) >= 1000 else f"{score:.4g}"


def reaches(figure: Figure) -> str:
    """The aim, marked if it is reached."""
    if figure.aim is None:
        return ""
    good = figure.score >= figure.aim if figure.higher_is_better else figure.score <= figure.aim
    return f"{number(figure.aim)} {'reached' if good else 'missed'}"


def table(rows: list[tuple[str, ...]]) -> str:
    """A Markdown table with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def row(subject: str, figure: Figure, peers: list[Figure], floor: str) -> tuple[str, ...]:
    """Our figure with those of peers of the same name, best first."""
    best_first = sorted(peers, key=lambda peer: peer.score, reverse=figure.higher_is_better)
    beside = ", ".join(f"{peer.by} {number(peer.score)}" for peer in best_first)
    return subject, figure.name, number(figure.score), beside, reaches(figure), floor


def moved(floors: Floors, name: str, figures: list[Figure], because: str) -> None:
    """Sets the floors of a folder: higher only, or any value with a reason."""
    rows = floors.setdefault(name, {})
    for figure in figures:
        old = rows.get(figure.name)
        if figure.data and (
            because or old is None or old["data"] != figure.data or not is_worse(figure, float(old["floor"]))
        ):
            rows[figure.name] = {"floor": round(figure.score, 6), "data": figure.data} | (
                {"because": because} if because else {}
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="folders of quality/ (all of them)")
    parser.add_argument(
        "--raise", dest="up", action="store_true", help="set floors to the scores where these are higher, or new"
    )
    parser.add_argument("--lower", metavar="NAME", help="set this folder's floors to its scores, including lower ones")
    parser.add_argument(
        "--because", default="", metavar="SENTENCE", help="reason for lower floors, stored in floors.json"
    )
    options = parser.parse_args()
    if bool(options.lower) != bool(options.because.strip()):
        parser.error("--lower and --because go together: a floor is lowered for a reason")
    every = sorted(path.parent.name for path in HERE.glob("*/measure.py"))
    if unknown := [name for name in [*options.names, *filter(None, [options.lower])] if name not in every]:
        parser.error(f"there is no quality/{unknown[0]}/measure.py; there are: {', '.join(every)}")
    floors: Floors = json.loads(FLOORS.read_text("utf-8")) if FLOORS.exists() else {}
    failed, rows = [], [("subject", "figure", "ours", "others", "aim", "floor")]
    for name in [options.lower] if options.lower else options.names or every:
        print(f"\n# {name}\n", flush=True)
        figures = measured(name)
        if figures is None:
            failed.append(f"{name}: its measure.py failed")
            continue
        if options.up or options.lower:
            moved(floors, name, figures, options.because.strip())
        for figure in figures:
            if figure.by:
                continue
            floor = verdict(figure, floors.get(name, {}).get(figure.name))
            rows.append(row(name, figure, [peer for peer in figures if peer.by and peer.name == figure.name], floor))
            if floor.startswith("BELOW"):
                failed.append(f"{name}: {figure.name} is {figure.score:.4f}, {floor}")
    if options.up or options.lower:
        FLOORS.write_text(json.dumps(floors, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
    print(f"\n# Quality on {datetime.date.today()}\n\n{table(rows)}")
    print("\n" + ("\n".join(["Below the floors:", *failed]) if failed else "no figure is below its floor"))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
