"""What is different in one run, seen from another?"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from periplus.api.collection import open_collection
from periplus.ui import rendering
from periplus.ui.house import folder_of

SHOWN = 100  # entries of a list; all of them stand in the JSON
READ_S = 60.0


def compare(request: Request) -> Response:
    """Two runs side by side; by default the last two. Of one run alone, that there is nothing to compare."""
    name, folder = folder_of(request)
    asked = request.query_params
    with open_collection(folder, time_limit_s=READ_S) as kept:
        runs = kept.runs()
        before, after = asked.get("before", "last-1"), asked.get("after", "last")
        found = kept.diff(before, after, site=asked.get("site", "")) if len(runs) > 1 or "before" in asked else None
    values: dict[str, object] = {"title": "Compare", "name": name, "before": before, "after": after, "comparison": found}
    if rendering.wants_json(request):
        return rendering.answer(request, "", values)
    return rendering.answer(request, "compare.html", values | {"runs": list(reversed(runs)), "shown": SHOWN})
