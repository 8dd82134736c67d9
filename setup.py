"""Metadata is in setup.cfg; this file only adds the glslang extension, which is optional."""
from __future__ import annotations

from setuptools import setup

setup(cffi_modules=["backends/vulkan/glslang/build.py:ffibuilder"])
