"""Compiles what is done byte by byte: each module that has a `.pxd` beside it, which gives C types to its names.

The module itself is ordinary Python, and runs as such where nothing is compiled: without a C compiler an installation
warns, goes on, and is slow. All else about the package stands in pyproject.toml.
"""

import os
from pathlib import Path

from Cython.Compiler import Options
from setuptools import Extension, setup

SOURCES = Path("src")
SHARED = (
    "periplus.document._shared"  # what Cython needs for buffers, once: each module is a tenth of its size without it
)
FLAGS = [] if "CFLAGS" in os.environ else ["-g0"]  # whoever names flags has others in mind
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": True,  # bytes of strangers decide about indices
    "wraparound": False,
    "initializedcheck": False,  # a view that was never set has a length of 0, so that boundscheck meets it
    "cdivision": True,
    "annotation_typing": False,  # types of C stand in the .pxd alone
}
# A view is passed by value, and has room for so many dimensions (one more than are used): 88 bytes in place of 208.
Options.buffer_max_dims = 3


def extension(name: str, sources: list[Path]) -> Extension:
    """How a module is compiled. What Cython writes goes to the build folder."""
    module, types = list(map(str, sources[:1])), list(map(str, sources[1:]))
    compiled = Extension(name, module, depends=types, optional=True, extra_compile_args=FLAGS)
    compiled.cython_directives = DIRECTIVES
    compiled.cython_c_in_temp = True
    compiled.shared_utility_qualified_name = SHARED
    return compiled


modules = {
    ".".join(types.relative_to(SOURCES).with_suffix("").parts): [
        types.with_suffix(".py"),
        *types.parent.glob("*.pxd"),
    ]  # whose types it may use
    for types in sorted(SOURCES.rglob("*.pxd"))
}
setup(ext_modules=[extension(name, sources) for name, sources in {SHARED: list[Path](), **modules}.items()])
