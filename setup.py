"""Metadata is in setup.cfg; this file finds the packages of every room and adds the optional glslang extension."""
from __future__ import annotations

from setuptools import find_packages, setup

ROOMS = ("lavax", "tracer", "ir", "passes", "backends", "shaders_glsl")  # setup.cfg says what they are imported as


def packages_of(room: str) -> list[str]:
    """The room's package and all below it, by the names that they are imported by."""
    name = room if room == "lavax" else f"lavax.{room}"
    return [name, *(f"{name}.{package}" for package in find_packages(room))]


setup(
    packages=[package for room in ROOMS for package in packages_of(room)],
    cffi_modules=["backends/vulkan/glslang/build.py:ffibuilder"],
)
