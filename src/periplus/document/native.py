"""Whether the modules that process documents byte by byte are compiled, and if not, why.

Such a module has a `.pxd` file. `setup.py` compiles it; otherwise the same source is interpreted.
"""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from importlib.resources import files


def interpreter_reason() -> str:
    """Why some of the modules are interpreted; '' if all are compiled."""
    names = [entry.name for entry in files("periplus.document").iterdir()]
    modules = sorted(name.removesuffix(".pxd") for name in names if name.endswith(".pxd"))
    missing = [module for module in modules if not any(f"{module}{suffix}" in names for suffix in EXTENSION_SUFFIXES)]
    if not missing:
        return ""
    if any(name.startswith(f"{missing[0]}.") and name.endswith((".so", ".pyd")) for name in names):
        return "compiled for another Python; reinstall Periplus with this one"
    if missing != modules:
        return f"not compiled: {', '.join(missing)}; reinstall Periplus"
    return "not compiled; install a C compiler, then reinstall Periplus"
