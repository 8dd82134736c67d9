from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable
from dataclasses import MISSING, fields, replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.plan import (
    Copies,
    Copy,
    Dispatch,
    DispatchPart,
    Fill,
    Plan,
    RepeatDispatches,
    Result,
    Shader,
    UntilFlag,
    Work,
    dispatches_of,
)
from lavax.backends.vulkan.plan.plan_file import read, written
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient

SHADER = Shader("void main() {}\n// “é”", (3, -1), 8, (("vectors", 0), ("stores", 2)), True)
OTHER = Shader("void main() { }")
DISPATCH = Dispatch(
    SHADER,
    (0, 1),
    (7, 0xFFFFFFFF),
    (3, 2, 1),
    True,
    "k0",
    (4, 12),
    (1, 0),
    Work(1 << 40, 9),
    (DispatchPart((2, 3), 5), DispatchPart((), 1)),
    Copies((Fill(1, 64, 0xFFFFFFFF),), (Copy(0, 1, ((0, 16, 8), (1 << 33, 0, 4))),)),
)
PLAN = Plan(
    (4, 1 << 33),
    (Result(8, None), Result(16, 1)),
    (b"", b"\x00\xff\n", b"{]"),
    (0, 256),
    1 << 34,
    (
        DISPATCH,
        RepeatDispatches(5, (UntilFlag(1, (DISPATCH, replace(DISPATCH, shader=OTHER, counts=None)), True),)),
        Dispatch(OTHER, (), (), (1, 1, 1), False, "k1"),
    ),
    2,
    (0, 5),
    1 << 32,
)

def test_a_plan_is_read_as_it_was_written() -> None:
    assert read(written(PLAN)) == PLAN


@pytest.mark.parametrize("made", [SHADER, DISPATCH, PLAN], ids=lambda made: type(made).__name__)
def test_the_plan_above_has_no_value_that_is_a_default(made: Any) -> None:
    """So that a field that is added, and not written, shows in the test above."""
    for each in fields(made):
        assert each.default is MISSING or getattr(made, each.name) != each.default, each.name


def test_shaders_that_are_equal_are_one_object() -> None:
    plan = read(written(PLAN))
    assert len({id(dispatch.shader) for dispatch in dispatches_of(plan.commands)}) == 2


def _attention(q: Any, k: Any) -> Any:
    return lx.nn.dot_product_attention(q, k, k, is_causal=True)


def _loop(x: Any) -> Any:
    return lx.lax.fori_loop(0, 7, lambda _, y: lnp.sin(y) @ y, x)


def _while(x: Any) -> Any:
    return lx.lax.while_loop(lambda y: lnp.sum(y) < 3.0, lambda y: y @ y + 1.0, x)


def _branch(x: Any) -> Any:
    return lx.lax.cond(lnp.sum(x) > 0.0, lambda y: y @ y, lambda y: lnp.sort(y, axis=0), x)


def _products(x: Any) -> Any:
    return [x @ x, x.T @ x, lnp.sum(x, axis=0), lnp.fft.fft(x), x.at[lnp.arange(3)].add(1.0)]


X = np.zeros((32, 32), np.float32)
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "attention": (_attention, (np.zeros((1, 32, 2, 16), np.float32),) * 2),
    "loop": (_loop, (X,)),
    "while": (_while, (X,)),
    "branch": (_branch, (X,)),
    "products": (_products, (X,)),
}


@pytest.mark.parametrize("profile", [CPU_DRIVER, GENERIC_GPU], ids=lambda profile: profile.kind)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_plans_of_functions_are_read_as_they_were_written(name: str, profile: DeviceProfile) -> None:
    function, arguments = FUNCTIONS[name]
    target = target_of(profile, 1 << 34, 1 << 32)
    graph = prepare(remove_stop_gradient(lx.trace(function)(*arguments)), target)
    plan = emit_program(schedule(graph, target=target), profile)
    found = read(written(plan))
    assert found == plan
    assert repr(found) == repr(plan), "numbers are of the same classes"


FILE = written(PLAN)


@pytest.mark.parametrize("file", [b"", b"plan", FILE[:-9], FILE[1:], zlib.compress(b""), zlib.compress(b"\xff" * 99)])
def test_other_bytes_are_refused(file: bytes) -> None:
    with pytest.raises(ValueError, match="not the bytes of a plan"):
        read(file)


def test_whatever_is_changed_in_a_file_is_a_plan_or_refused() -> None:
    """Never another error: the cache takes a file that is refused for a miss."""
    chance, content = random.Random(0), zlib.decompress(FILE)
    end = 8 + int.from_bytes(content[:8], "little")
    refused = 0
    for _ in range(300):
        changed = json.loads(content[8:end])
        place = changed
        while isinstance(place, list) and place:
            number = chance.randrange(len(place))
            if not isinstance(place[number], list) or chance.random() < 0.3:
                place[number] = chance.choice([None, [], "x", -1, [[1]], {}])
                break
            place = place[number]
        text = json.dumps(changed).encode()
        try:
            read(zlib.compress(len(text).to_bytes(8, "little") + text + content[end:]))
        except ValueError:
            refused += 1
    assert refused > 50
