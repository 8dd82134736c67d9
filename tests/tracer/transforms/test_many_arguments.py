"""Transformations of functions of thousands of arrays."""
from __future__ import annotations

import time

import numpy as np

from lavax.tracer.calls.signature import signature_of
from lavax.tracer.compiled.collection import without_collection
from lavax.tracer.transforms.arguments import arguments_of


def test_arguments_are_taken_in_a_time_that_grows_as_they_do() -> None:
    def function(arrays: list[np.ndarray]) -> None: ...

    def seconds(count: int) -> float:
        arrays = [np.float32(0)] * count
        start = time.process_time()
        with without_collection:  # as when a program is made
            arguments = arguments_of(signature_of(function, "grad"), (arrays,), {}, lambda call: list(range(count)))
        taken = time.process_time() - start
        assert len(arguments.inputs) == count
        return taken

    seconds(100)
    assert min(seconds(16000), seconds(16000)) < 7 * min(seconds(4000), seconds(4000))
