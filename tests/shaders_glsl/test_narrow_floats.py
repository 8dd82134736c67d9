"""Every number of 16 bits goes through a kernel unchanged but for its sign."""
from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

from lavax.ir import parse
from tests import denormals
from tests.backends.vulkan.run.execution import backend


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_numbers_are_stored_as_they_were_rounded(dtype: str) -> None:
    graph = parse(
        dedent(
            f"""
            graph (x: {dtype}[65536]) {{
              %0 = cast(x) : f32[65536]
              %1 = negate(%0) : f32[65536]
              %2 = cast(%1) : {dtype}[65536]
              return %2
            }}
            """
        )
    )
    device, bits = backend(), np.arange(1 << 16, dtype=np.uint16)
    lowered = device.lower(graph)
    assert f"lx_{dtype}_held_to_bits" in lowered.as_text("glsl")
    (result,) = lowered.compile()(device.upload(bits))
    found = device.device.transfer.download(result, bits.nbytes).view(np.uint16)
    infinity = {"f16": 0x7C00, "bf16": 0x7F80}[dtype]
    is_number = (bits & 0x7FFF) <= infinity
    # bfloat16 has float32's exponents: what the device takes for zero there, it takes for zero here.
    is_denormal = ((bits & 0x7F80) == 0) & (dtype == "bf16" and denormals.are_flushed())
    wanted = np.where(is_denormal, bits & 0x8000, bits) ^ 0x8000
    np.testing.assert_array_equal(found[is_number], wanted[is_number])
    assert ((found[~is_number] & 0x7FFF) > infinity).all()
