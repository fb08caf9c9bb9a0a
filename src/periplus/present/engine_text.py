"""How is it said which stages of an analysis were computed, by which engine, and where their tables are?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from periplus.present.wording import count_of, number

Rows = Sequence[Mapping[str, object]]  # of periplus.analyse.engines.computing.Computed


def computed_lines(engine: str, why: str, rows: Rows) -> Iterator[str]:
    """A line a stage."""
    yield f"Engine {engine}: {why}."
    width = max((len(str(row["stage"])) for row in rows), default=0)
    for row in rows:
        took = f"there already, by {row['engine']}" if row["was_there"] else f"{row['took_s']:.1f} s"
        tables = row["rows"]
        assert isinstance(tables, Mapping)
        yield f"  {row['stage']!s:<{width}}  {took:>10}  {', '.join(f'{name} {number(rows)}' for name, rows in tables.items())}  {row['folder']}"
    made = sum(not row["was_there"] for row in rows)
    yield f"{count_of(made, 'stage')} computed, {number(len(rows) - made)} there already."


def computed_json(engine: str, why: str, rows: Rows) -> str:
    return json.dumps({"engine": engine, "why": why, "stages": [dict(row) for row in rows]}, ensure_ascii=False, indent=1) + "\n"
