"""Metadata is in setup.cfg; this file finds the packages of every room and adds the optional glslang extension."""
from __future__ import annotations

import os
import runpy
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

ROOMS = ("lavax", "tracer", "ir", "passes", "backends", "shaders_glsl")  # setup.cfg says what they are imported as


def packages_of(room: str) -> list[str]:
    """The room's package and all below it, by the names that they are imported by."""
    name = room if room == "lavax" else f"lavax.{room}"
    return [name, *(f"{name}.{package}" for package in find_packages(room))]


class ProbedBuild(build_ext):
    """Builds the extension, and keeps it only if it survives compiling a shader in a child process."""

    def build_extension(self, extension: Extension) -> None:
        super().build_extension(extension)
        file = Path(self.get_ext_fullpath(extension.name)).absolute()
        survives = runpy.run_path(str(Path(__file__).parent / "backends/vulkan/glslang/probe.py"))["survives"]
        if survives(file) is False:
            os.unlink(file)
            raise CompileError(f"{file.name} was built, but fails at a first shader: set CC and CXX to other compilers")


setup(
    packages=[package for room in ROOMS for package in packages_of(room)],
    cffi_modules=["backends/vulkan/glslang/build.py:ffibuilder"],
    cmdclass={"build_ext": ProbedBuild},
)
