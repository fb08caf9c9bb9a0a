"""Compiles what is done byte by byte: each module that has a `.pxd` beside it, which gives C types to its names.

The module itself is ordinary Python, and runs as such where nothing is compiled: without a C compiler an installation
warns, goes on, and is slow. All else about the package stands in pyproject.toml.
"""

import os
import shutil
import sys
from pathlib import Path
from threading import Lock

from Cython.Compiler import Options
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError
from setuptools.modified import newer_group

SOURCES = Path("src")
SHARED = (
    "periplus.document._shared"  # what Cython needs for buffers, once: each module is a tenth of its size without it
)
FLAGS = [] if "CFLAGS" in os.environ else ["-g0"]  # whoever names flags has others in mind
# Modules read bytes of strangers. On Linux gcc and clang take these flags; macOS has no RELRO, and a sanitizer brings
# checks of its own. Python's flags may fortify already, and a second definition is a warning.
HARDENED = sys.platform == "linux" and "-fsanitize" not in os.environ.get("CFLAGS", "")
COMPILED_HARD = ["-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"] if HARDENED else []
LINKED_HARD = ["-Wl,-z,relro,-z,now"] if HARDENED else []
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
    compiled = Extension(
        name,
        module,
        depends=types,
        optional=True,
        extra_compile_args=FLAGS + COMPILED_HARD,
        extra_link_args=LINKED_HARD,
    )
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
extensions = [extension(name, sources) for name, sources in {SHARED: list[Path](), **modules}.items()]


class CompileInParallel(build_ext):
    """Compiles, and names each module as it is done: all of them take half a minute of CPU.

    With --parallel, one thread at a time translates (Cython's state is global) while others wait for the C compiler.
    """

    translation = Lock()

    def build_extension(self, ext: Extension) -> None:
        if (compiler := getattr(self.compiler, "compiler_so", None)) and not shutil.which(compiler[0]):
            raise CCompilerError(f"there is no {compiler[0]}")  # before the translation, which takes half of the time
        is_stale = self.force or newer_group([*ext.sources, *ext.depends], self.get_ext_fullpath(ext.name))
        self.translation.acquire()
        ext.is_translating = True
        try:
            super().build_extension(ext)
        finally:
            self.end_translation(ext)
        if is_stale:
            sys.stdout.write(f"compiled {ext.name}\n")

    def swig_sources(self, sources: list[str], ext: Extension) -> list[str]:
        """The hook that setuptools calls between Cython and the C compiler."""
        self.end_translation(ext)
        return super().swig_sources(sources, ext)

    def end_translation(self, ext: Extension) -> None:
        if ext.is_translating:
            ext.is_translating = False
            self.translation.release()


# `make setup` compiles in place first; a second compilation while pip links the package would take as long again.
setup(ext_modules=[] if "PERIPLUS_COMPILED" in os.environ else extensions, cmdclass={"build_ext": CompileInParallel})
