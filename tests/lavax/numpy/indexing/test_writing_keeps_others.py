"""Writing to an array changes that array alone: what else was made of it keeps the old numbers."""
from __future__ import annotations

import copy
import importlib
import inspect
import pickle
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn, random
from lavax.base.errors import KeyReuseError
from lavax.io import CheckpointManager

pytestmark = pytest.mark.usefixtures("reference_backend")


def uploaded() -> Any:
    return lx.device_put(np.array([1, 2, 3], "f"))


def not_yet_uploaded() -> Any:
    return lnp.asarray(np.array([1, 2, 3], "f"))


def computed() -> Any:
    return lnp.arange(3.0) + 1


def scalar() -> Any:
    return lnp.asarray(2.0)


MADE = [uploaded, not_yet_uploaded, computed, scalar]


def assert_kept(make: Any, use: Any) -> None:
    """`use(x)` gives a function of no arguments; writing to `x` does not change what that gives."""
    x = make()
    later = use(x)
    before = np.asarray(later())
    x[...] = -7
    assert (np.asarray(x) == -7).all()
    np.testing.assert_array_equal(np.asarray(later()), before)
    x = make()
    later = use(x)
    x *= 100
    np.testing.assert_array_equal(np.asarray(later()), before)


def compiled(x: Any) -> Any:
    f = lx.compile(lambda y: x * y)
    f(1.0)
    return lambda: f(2.0)


def lowered(x: Any) -> Any:
    f = lx.compile(lambda y: x * y).lower(1.0).compile()
    return lambda: f(2.0)


def compiled_twice(x: Any) -> Any:
    inner = lx.compile(lambda y: x * y)
    f = lx.compile(lambda y: inner(y) + lx.cond(y > 0, lambda: x, lambda: x + 1))
    f(1.0)
    return lambda: f(2.0)


def passed_through(x: Any) -> Any:
    y, _ = lx.compile(lambda x: (x, x + 1))(x)
    return lambda: y


def pulled_back(x: Any) -> Any:
    _, pullback = lx.vjp(lambda x: x * x, x)
    return lambda: pullback(lnp.ones_like(x))[0]


def pushed_forward(x: Any) -> Any:
    _, pushforward = lx.linearize(lambda x: x * x, x)
    return lambda: pushforward(lnp.ones_like(x))


def transposed(x: Any) -> Any:
    turned = lx.linear_transpose(lambda y: x * y, x)
    return lambda: turned(lnp.ones(np.shape(x)))[0]


def converted(x: Any) -> Any:
    f, values = lx.closure_convert(lambda y: x * y, 1.0)
    return lambda: f(2.0, *values)


def scanned(x: Any) -> Any:
    carry, _ = lx.scan(lambda carry, _: (carry, None), x, None, length=2)
    return lambda: carry


def never_looped(x: Any) -> Any:
    y = lx.fori_loop(0, 0, lambda i, y: y + 1, x)
    return lambda: y


def chosen(x: Any) -> Any:
    y = lx.cond(True, lambda x: x, lambda x: x + 1, x)
    return lambda: y


def strong(x: Any) -> Any:
    y = lnp.asarray(x, "float32")
    z = y if y is not x else lnp.array(x)
    return lambda: z


def gradient(x: Any) -> Any:
    value, slope = lx.value_and_grad(lambda y, x: (y * y).sum(), has_aux=False)(x, x)
    aux = lx.grad(lambda y: ((y * y).sum(), x), has_aux=True)(x)[1]
    return lambda: value + slope + aux


def copied(x: Any) -> Any:
    y, z, w = copy.copy(x), copy.deepcopy([x])[0], pickle.loads(pickle.dumps(x))
    return lambda: y + z + w


def numbers(x: Any) -> Any:
    y = np.asarray(x)
    return lambda: y


def mapped(x: Any) -> Any:
    y = lx.vmap(lambda row: x, out_axes=None)(np.ones(3, "f"))
    return lambda: y


USES = [
    compiled, lowered, compiled_twice, passed_through, pulled_back, pushed_forward, transposed, converted, scanned,
    never_looped, chosen, strong, gradient, copied, numbers, mapped,
]  # fmt: skip


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("use", USES)
def test_what_was_made_of_it_is_kept(make: Any, use: Any) -> None:
    assert_kept(make, use)


def test_a_compiled_function_that_is_switched_off_changes_no_argument() -> None:
    def doubled(x: Any) -> Any:
        x += x
        return x

    x = uploaded()
    with lx.disable_jit():
        assert lx.compile(doubled)(x).tolist() == [2, 4, 6]
        assert x.tolist() == [1, 2, 3]
    assert lx.compile(doubled)(x).tolist() == [2, 4, 6] and x.tolist() == [1, 2, 3]
    assert doubled(x).tolist() == [2, 4, 6] and x.tolist() == [1, 2, 3], "as in a trace: x = x + x"


def test_an_exported_function_keeps_its_numbers(tmp_path: Path) -> None:
    x = uploaded()
    exported = lx.export(lambda y: x * y, 1.0)
    x[0] = 50
    exported.save(tmp_path / "f")
    assert exported(1.0).tolist() == lx.load_exported(tmp_path / "f")(1.0).tolist() == [1, 2, 3]


def test_one_array_is_captured_once() -> None:
    """By a function and those within it, before and after it is known to be shared: it stays one input."""
    x = uploaded()
    inner = lx.compile(lambda y: x * y)
    inner(1.0)
    f = lx.compile(lambda y: inner(y) + lx.cond(y > 0, lambda: x, lambda: x + 1) + x)
    graph = f.lower(1.0).as_text("ir")
    assert "captured0" in graph and "captured1" not in graph
    x[0] = 4
    assert inner(1.0).tolist() == [1, 2, 3] and f(1.0).tolist() == [12, 6, 9], "f is traced now, inner was before"


def test_donation_reaches_all_arrays_in_one_memory() -> None:
    give = lx.compile(lambda x: x + 1, donate_argnums=0)
    for make in (uploaded, not_yet_uploaded, computed):
        x = make()
        twin = lx.compile(lambda x: x)(x)
        other = lx.compile(lambda x: x)(twin)
        written = lx.compile(lambda x: x)(x)
        written[0] = 9
        give(twin)
        assert x.is_donated and twin.is_donated and other.is_donated and not written.is_donated
        assert written.tolist() == [9, 2, 3]


def test_a_written_array_can_be_donated_by_itself() -> None:
    x = uploaded()
    twin = lx.compile(lambda x: x)(x)
    x[...] = x + 1
    lx.compile(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_donated and twin.tolist() == [1, 2, 3]


def test_an_array_written_with_another_shares_nothing_with_it() -> None:
    x, y = uploaded(), computed() * 5
    x[...] = y
    y[0] = 0
    assert x.tolist() == [5, 10, 15]
    x[...] = y
    x[1] = 0
    assert y.tolist() == [0, 10, 15] and x.tolist() == [0, 0, 15]


def test_memory_is_shared_until_a_write() -> None:
    x = not_yet_uploaded()
    twin = lx.compile(lambda x: x)(x)
    assert twin is not x and twin.buffer is x.buffer
    x[0] = 1
    assert twin.buffer is not x.buffer


def test_a_written_key_is_another_key() -> None:
    key = random.PRNGKey(1)
    with lx.debug.key_reuse():
        random.normal(key)
        with pytest.raises(KeyReuseError):
            random.normal(lx.compile(lambda key: key)(key))
        key[...] = random.PRNGKey(2)
        random.normal(key)


def test_a_checkpoint_has_the_numbers_of_its_step(tmp_path: Path) -> None:
    x = uploaded()
    with CheckpointManager(tmp_path) as checkpoints:
        checkpoints.save(1, {"x": x})
        x[...] = x + 10
        checkpoints.save(2, {"x": x})
        assert checkpoints.restore({"x": x}, 1).tree["x"].tolist() == [1, 2, 3]
        assert checkpoints.restore({"x": x}, 2).tree["x"].tolist() == [11, 12, 13]


def test_written_parameters_reach_a_compiled_model() -> None:
    """What is passed as an argument is read at the call."""
    layer = nn.Linear(2, 2, key=random.key(0))
    f = lx.compile(lambda layer, x: layer(x))
    x = np.ones(2, "f")
    f(layer, x)
    layer.weight[...] = 0
    layer.bias[...] = 3
    with pytest.raises(AttributeError, match="replace"):
        layer.bias = layer.bias + 1
    np.testing.assert_allclose(np.asarray(f(layer, x)), 3, rtol=1e-6)


# Functions that are asked for the array itself, or write to it.
ITSELF = {"asarray", "fill_diagonal", "place", "put", "put_along_axis"}
NOT_CALLED = {"load", "save", "savez", "savez_compressed"}
ARGUMENTS: list[tuple[Any, ...]] = [(), (0,), (1,), ((),), (None,)]


def arrays() -> list[Any]:
    return [lnp.asarray(np.asarray(numbers)) for numbers in (1.5, [1.0, 2.0, 3.0], [[1, 2], [3, 4]], [True, False])]


NAMESPACES = ["numpy", "linalg", "nn", "image", "ops", *(f"scipy.{part}" for part in lx.scipy.__all__)]


@pytest.mark.filterwarnings("ignore:scipy.signal")  # which warns of signals as short as these
@pytest.mark.parametrize("namespace", [importlib.import_module(f"lavax.{name}") for name in NAMESPACES])
def test_no_function_returns_its_argument(namespace: Any) -> None:
    """Even where there is nothing to do: the result may be written to."""
    returned = set()
    for name in sorted({*namespace.__all__} - NOT_CALLED):
        function = getattr(namespace, name)
        if inspect.isclass(function) or not callable(function):
            continue
        for given in arrays():
            for rest in ARGUMENTS:
                try:
                    leaves = lx.tree.leaves(function(given, *rest))
                except (TypeError, ValueError, IndexError, AttributeError):
                    continue
                if any(leaf is given for leaf in leaves):
                    returned.add(name)
    assert returned <= ITSELF


def test_no_method_returns_its_array() -> None:
    for given in arrays():
        results = [
            +given, given.real, given.conj(), given[...], given.reshape(given.shape), given.astype(given.dtype),
            given.squeeze(), given.clip(), given.round(), given.copy(), given.clone(), given.ravel(), given.flatten(),
            given.T, given.transpose(), given[()], given ** 1, abs(given),
        ]  # fmt: skip
        assert not any(result is given for result in results)


def test_threads_may_share_arrays() -> None:
    """Twins that are made while others are written, dropped or donated: donation reaches all that have the memory."""
    give = lx.compile(lambda x: x + 1, donate_argnums=0)
    same = lx.compile(lambda x: x)
    for _ in range(20):
        x = not_yet_uploaded()
        kept: list[Any] = []

        def work(x: Any = x, kept: list[Any] = kept) -> None:
            for _ in range(20):
                twin = same(x)
                kept.append(twin)
                other = same(twin)
                other[...] = 4

        threads = [Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({id(twin.buffer) for twin in kept}) == 1 and x.tolist() == [1, 2, 3]
        give(x)
        assert all(twin.is_donated for twin in kept)
