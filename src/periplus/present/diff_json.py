"""How is a comparison of two runs written as JSON, whole, for programs?"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TextIO

from periplus.model.comparison import Comparison


def write_diff_json(found: Comparison, out: TextIO) -> None:
    """One object with the names of `model.comparison.Comparison`; every list complete. out: UTF-8."""
    json.dump(asdict(found), out, ensure_ascii=False, indent=1)
    out.write("\n")
