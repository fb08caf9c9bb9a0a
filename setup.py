"""Compiles what is done byte by byte: each module that has a `.pxd` beside it, which gives C types to its names.

The module itself is ordinary Python, and runs as such where nothing is compiled: without a C compiler an installation
warns, goes on, and is slow. All else about the package stands in pyproject.toml.
"""

from pathlib import Path

from setuptools import Extension, setup

SOURCES = Path("src")
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": True,  # bytes of strangers decide about indices
    "wraparound": False,
    "cdivision": True,
    "annotation_typing": False,  # types of C stand in the .pxd alone
}


def extension(types: Path) -> Extension:
    """How the module beside a `.pxd` is compiled. What Cython writes goes to the build folder."""
    module = types.with_suffix(".py")
    name = ".".join(module.relative_to(SOURCES).with_suffix("").parts)
    neighbours = [str(other) for other in types.parent.glob("*.pxd")]  # whose types it may use
    compiled = Extension(name, [str(module)], depends=neighbours, optional=True)
    compiled.cython_directives = DIRECTIVES
    compiled.cython_c_in_temp = True
    return compiled


setup(ext_modules=[extension(types) for types in sorted(SOURCES.rglob("*.pxd"))])
