"""What all tests share."""
from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import hypothesis
import pytest

from lavax.base import config
from lavax.ir.operation import names_of_family
from lavax.tracer.values import backend
from tests.numpy_backend import NumpyBackend

_LOWERED = names_of_family("lowered")

# JAX is an oracle, and takes most of a GPU's memory at once if it finds one.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

# A machine that has other work draws examples slowly, which is no fault of what is tested.
hypothesis.settings.register_profile("lavax", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("lavax")

# Modules and tests live as long as the run. Without this, the garbage collector walks them again and again: a third of
# the time to collect tests, and 3 % of that to run them.
gc.disable()


def pytest_collection_finish() -> None:
    """From here on, the garbage collector looks at what tests make alone."""
    gc.enable()
    gc.collect()
    _draw_once()
    gc.freeze()


def _draw_once() -> None:
    """Hypothesis makes its generator of random numbers while the collector still sees what refers to it.

    It looks for that, and from Python 3.14 on nothing else refers to it: it would warn that the generator is lost.
    """
    once = hypothesis.settings(max_examples=1, database=None)
    once(hypothesis.given(hypothesis.strategies.none())(lambda _: None))()


@pytest.fixture(scope="module", autouse=True)
def left_to_themselves() -> Iterator[None]:
    """The garbage collector looks once at what a module's tests leave, such as programs, and never again.

    Every full collection else walks over all of it, and each `lx.clear_caches` is one: 0.3 s late in a run.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every run starts with empty disk caches, so that no result hangs on what an earlier run left behind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAVAX_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def reference_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference interpreter in float32 in place of a device, so that only the array functions are tested."""
    monkeypatch.setattr(backend, "_factory", NumpyBackend)
    monkeypatch.setattr(backend.in_use, "runtime", None)


@pytest.fixture
def no_register_loops(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Loops over few elements are what they are with more: dispatches, or a workgroup's."""
    import lavax as lx
    from lavax.backends.vulkan.emit.loop.registers import choose

    monkeypatch.setattr(choose, "REGISTER_LOOPS", choose.RegisterLoops(statements=0))
    lx.clear_caches()  # other tests run equal loops
    yield
    lx.clear_caches()


@pytest.fixture(autouse=True)
def verified_passes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs are verified after every pass, unless a test starts from an operation that only lowering makes."""
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    if _LOWERED.isdisjoint(getattr(value, "op", str(value)) for value in parameters.values()):
        monkeypatch.setenv("LAVAX_VERIFY", "1")


@pytest.fixture(autouse=config.validate())
def silent_validation_layer() -> Iterator[None]:
    """Under LAVAX_VALIDATE=1 a test fails on whatever the Khronos validation layer said while it ran."""
    from lavax.backends.vulkan.device import validation  # late: it needs the Vulkan loader

    before = len(validation.messages())
    yield
    assert validation.messages()[before:] == []
