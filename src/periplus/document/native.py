"""Whether the modules that read documents byte by byte run as machine code, and if not, why.

Such a module has a `.pxd` beside it. `setup.py` compiles it; where it does not, the same source runs interpreted.
"""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from importlib.resources import files


def reason_interpreted() -> str:
    """Why some of the modules run interpreted; empty: all are compiled."""
    names = [entry.name for entry in files("periplus.document").iterdir()]
    modules = sorted(name.removesuffix(".pxd") for name in names if name.endswith(".pxd"))
    missing = [module for module in modules if not any(f"{module}{suffix}" in names for suffix in EXTENSION_SUFFIXES)]
    if not missing:
        return ""
    if any(name.startswith(f"{missing[0]}.") and name.endswith((".so", ".pyd")) for name in names):
        return "compiled for another Python; install Periplus anew with this one"
    if missing != modules:
        return f"not compiled: {', '.join(missing)}; install Periplus anew"
    return "not compiled; install a C compiler, then Periplus anew"
