"""Assertions about compiled functions, for tests: their IR, their derivatives, their kernels.

They work in any test runner. With pytest, the plugin that comes with lavax adds `--lavax-update`, which rewrites the
texts of `assert_ir`, the fixtures `fresh_lavax_cache` and `lavax_device`, and the marker `every_lavax_device`.
"""
from lavax.testing.assertions import assert_grads, assert_ir, assert_kernels
from lavax.testing.caches import fresh_caches
from lavax.testing.devices import using_device

__all__ = ["assert_grads", "assert_ir", "assert_kernels", "fresh_caches", "using_device"]
