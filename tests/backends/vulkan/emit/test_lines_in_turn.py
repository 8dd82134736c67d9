"""Steps of Fourier transforms for some lines at a time, on the device: values, derivatives, and lines left over."""
from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit import lines_in_turn
from lavax.backends.vulkan.emit.lines_in_turn import LinesInTurn, _texels_behind
from lavax.base import config
from lavax.ir.graph import input_node
from lavax.ir.types import TensorType, float32
from tests.backends.vulkan.run.execution import backend
from tests.sweeps import each_value

RANDOM = np.random.default_rng(9)
FORMS = [
    *(("fft", lines, length) for lines, length in ((9, 4096), (37, 2187), (67, 1001), (8, 15625), (200, 144 * 9))),
    *(("fft", lines, length) for lines, length in ((1, 512), (1, 1000), (2, 1000), (1, 2048))),
    *((name, 1, 2048) for name in ("rfft", "irfft")),
    *((name, lines, length) for name in ("rfft", "irfft") for lines, length in ((11, 8192), (19, 3125), (300, 243))),
]


@pytest.fixture(params=[LinesInTurn(), LinesInTurn(nbytes=1 << 16, parts=2, groups=2)])
def limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also few workgroups, which have several parts each, of which the last one is shorter."""
    monkeypatch.setattr(lines_in_turn, "LINES_IN_TURN", request.param)
    lx.clear_caches()
    yield
    lx.clear_caches()


def _operand(name: str, lines: int, length: int) -> np.ndarray:
    if name == "rfft":
        return RANDOM.normal(size=(lines, length))
    z = RANDOM.normal(size=(2, lines, length // 2 + 1 if name == "irfft" else length))
    if name == "irfft":
        z[1, :, [0, -1]] *= length % 2 == 1
        z[1, :, 0] = 0
    return z[0] + 1j * z[1]


@pytest.mark.usefixtures("limits")
@each_value(form=FORMS, wide=[False, True])
def test_values(form: tuple[str, int, int], wide: bool) -> None:
    name, lines, length = form
    options = {"n": length} if name == "irfft" else {}
    x = _operand(name, lines, length)
    expected = getattr(np.fft, name)(x, **options)
    with config.enable_x64(wide):
        narrow = x if wide else x.astype(np.complex64 if np.iscomplexobj(x) else np.float32)
        transform = lx.compile(lambda x: getattr(lnp.fft, name)(x, **options))
        if backend().profile.kind == "cpu":
            assert "line by line" in transform.lower(narrow).as_text("kernels")
        found = np.asarray(transform(narrow))
    limit = 2.0 ** (-53 if wide else -24) * np.log2(length)
    assert np.linalg.norm(found - expected) <= limit * np.linalg.norm(expected)


@pytest.mark.usefixtures("limits")
def test_gradients_in_the_middle() -> None:
    """Of 3·Σ v·|F(2x)|²: 12·Re(F*(v·F(2x))), and of the spectra's parts in turn."""
    x, v = RANDOM.normal(size=(9, 4096)), RANDOM.normal(size=(9, 4096))
    gradient = lx.compile(lx.grad(lambda x: 3 * lnp.sum(lnp.abs(lnp.fft.fft(2 * x)) ** 2 * v.astype(np.float32))))
    if backend().profile.kind == "cpu":
        assert gradient.lower(x.astype(np.float32)).as_text("kernels").count("line by line") == 2
    found = np.asarray(gradient(x.astype(np.float32)))
    expected = 12 * np.fft.ifft(v * np.fft.fft(2 * x), norm="forward").real
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max())


@pytest.mark.usefixtures("limits")
def test_turns_of_a_loop() -> None:
    """Lines that move with a loop's turns, and lines that are carried."""
    z = (RANDOM.normal(size=(3, 9, 4096)) + 1j * RANDOM.normal(size=(3, 9, 4096))).astype(np.complex64)

    @lx.compile
    def looped(z: lx.Array) -> tuple[lx.Array, lx.Array]:
        return lx.scan(lambda held, x: (lnp.fft.ifft(held) + x, lnp.fft.fft(x)), z[0], z)

    last, stacked = map(np.asarray, looped(z))
    held = z[0].astype(np.complex128)
    for x in z:
        held = np.fft.ifft(held) + x
    np.testing.assert_allclose(last, held, rtol=0, atol=1e-5)
    np.testing.assert_allclose(stacked, np.fft.fft(z.astype(np.complex128)), rtol=0, atol=1e-3)


def test_lines_outside_compile() -> None:
    z = (RANDOM.normal(size=(40, 4096)) + 1j * RANDOM.normal(size=(40, 4096))).astype(np.complex64)
    expected = np.fft.fft(z.astype(np.complex128))
    assert np.linalg.norm(np.asarray(lnp.fft.fft(z)) - expected) <= 12 * 2**-24 * np.linalg.norm(expected)


_PLACES = [(256, 8192, 1), (300, 244, 32), (1000, 4374, 2), (70, 4099, 1)]


@pytest.mark.parametrize(("lines", "floats", "together"), _PLACES)
def test_lines_at_hand_have_places_of_their_own_within_the_array(lines: int, floats: int, together: int) -> None:
    array = input_node("between", TensorType((lines, floats), float32))
    line, parts = 4 * floats, -(-lines // together)
    turns = -(-parts // LinesInTurn().groups)
    text = _texels_behind(array, lines, together, turns).replace("/", "//")
    ends = []
    for group in range(-(-parts // turns)):
        firsts = range(group * turns * together, min((group + 1) * turns * together, lines), together)
        places = [first * line - 16 * eval(text, {"first": first, "group": group}) for first in firsts]
        ends.append((min(places), max(places) + together * line))
        assert all(place % 16 == first * line % 16 for place, first in zip(places, firsts, strict=True))
    assert ends[0][0] >= 0 and (turns == 1 or ends[-1][1] <= array.type.nbytes)
    assert all(end <= start for (_, end), (start, _) in pairwise(ends))
