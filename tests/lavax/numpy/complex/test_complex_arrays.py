"""Complex arrays: dtypes, promotion, conversion, movement, reductions, loops, donation, text."""
from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax, nn
from lavax.ir import parse

RANDOM = np.random.default_rng(5)


def sample(shape: tuple[int, ...]) -> np.ndarray:
    return (RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)).astype(np.complex64)


Z, W = sample((3, 4)), sample((3, 4))


def test_data_become_complex_arrays() -> None:
    assert lnp.asarray(1j).dtype == np.complex64 and lnp.asarray(1j).weak
    assert complex(lnp.asarray(2 - 3j)) == 2 - 3j and lnp.asarray(2 - 3j).item() == 2 - 3j
    assert lnp.asarray([1 + 2j, 3]).tolist() == [1 + 2j, 3]
    assert lnp.asarray(np.complex128(1j)).dtype == np.complex64
    assert lnp.zeros(2, "complex64").tolist() == [0j, 0j] and lnp.asarray([1, 2], complex).dtype == np.complex64
    np.testing.assert_array_equal(np.asarray(lnp.asarray(Z)), Z)
    assert lnp.linspace(0, 1 + 1j, 3).tolist() == [0, 0.5 + 0.5j, 1 + 1j]
    assert repr(lnp.asarray([1 + 2j, 3])) == "Array([1.+2.j, 3.+0.j], dtype=complex64)"


def test_copies_keep_the_numbers() -> None:
    array = lnp.asarray(Z)
    for other in (copy.copy(array), copy.deepcopy(array), pickle.loads(pickle.dumps(array)), lnp.array(array)):
        np.testing.assert_array_equal(np.asarray(other), Z)
    array[0, 1] = 5j
    assert complex(array[0, 1]) == 5j


# What jax 0.10 gives, in 32 bits.
@pytest.mark.parametrize(
    ("left", "right", "dtype", "weak"),
    [
        (np.float32(1), 1j, "complex64", False),
        (np.float16(1), 1j, "complex64", False),
        (np.int32(1), 1j, "complex64", True),
        (np.bool_(True), 1j, "complex64", True),
        (1.5, 1j, "complex64", True),
        (2, 1j, "complex64", True),
        (np.complex64(1), 2.5, "complex64", False),
        (np.complex64(1), np.float32(2), "complex64", False),
        (np.complex64(1), np.int32(2), "complex64", False),
    ],
)
def test_promotion_is_that_of_jax(left: object, right: object, dtype: str, weak: bool) -> None:
    for first, second in ((left, right), (right, left)):
        found = lnp.add(lnp.asarray(first), second)
        assert (found.dtype, found.weak) == (np.dtype(dtype), weak)


def test_complex128_where_float64_is() -> None:
    with lx.enable_x64():
        z = lnp.asarray(Z.astype(np.complex128))
        assert z.dtype == np.complex128 and z.real.dtype == np.float64
        assert lnp.promote_types("complex64", "float64") == np.complex128
        np.testing.assert_allclose(np.asarray(z * z), Z.astype(np.complex128) ** 2, rtol=1e-14)
        np.testing.assert_allclose(np.asarray(lnp.exp(z)), np.exp(Z.astype(np.complex128)), rtol=1e-13)


def test_casts() -> None:
    z = lnp.asarray([1.7 + 2j, 0j, -3j])
    np.testing.assert_array_equal(np.asarray(z.astype(bool)), [True, False, True])
    np.testing.assert_array_equal(np.asarray(lnp.asarray([1, 2]).astype("complex64")), [1 + 0j, 2])


def test_movement_and_choices() -> None:
    def program(z: lx.Array, w: lx.Array) -> list[lx.Array]:
        return [
            z.T.reshape(2, 6)[:, ::2],
            lnp.concatenate([z, w], 1)[::-1],
            lnp.pad(z, 1, constant_values=2j),
            lnp.where(z.real > 0, z, w),
            z[lnp.asarray([2, 0]), 1:],
            z.at[1].set(w[0]).at[0, 1].add(1j),
            lnp.stack([z, w]),
            lnp.roll(z, 1, 1),
            lnp.broadcast_to(z[0], (2, 4)),
        ]

    def wanted() -> list[np.ndarray]:
        written = Z.copy()
        written[1] = W[0]
        written[0, 1] += 1j
        return [
            Z.T.reshape(2, 6)[:, ::2],
            np.concatenate([Z, W], 1)[::-1],
            np.pad(Z, 1, constant_values=2j),
            np.where(Z.real > 0, Z, W),
            Z[[2, 0], 1:],
            written,
            np.stack([Z, W]),
            np.roll(Z, 1, 1),
            np.broadcast_to(Z[0], (2, 4)),
        ]

    for run in (program, lx.compile(program)):
        for found, expected in zip(run(lnp.asarray(Z), lnp.asarray(W)), wanted(), strict=True):
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)


def test_reductions() -> None:
    for name in ("sum", "prod", "mean", "cumsum", "cumprod"):
        for axis in (0, 1):
            wanted = getattr(np, name)(Z.astype(np.complex128), axis)
            np.testing.assert_allclose(np.asarray(getattr(lnp, name)(Z, axis)), wanted, rtol=2e-6, err_msg=name)
    assert lnp.var(Z).dtype == np.float32
    np.testing.assert_allclose(np.asarray(lnp.var(Z, 1)), np.var(Z, 1), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(lnp.std(Z)), np.std(Z), rtol=1e-6)
    assert complex(lnp.prod(lnp.zeros(0, "complex64"))) == 1
    assert not lnp.any(lnp.zeros(3, "complex64")) and lnp.all(lnp.asarray(Z))


def test_products() -> None:
    np.testing.assert_allclose(np.asarray(lnp.asarray(Z) @ W.T), Z @ W.T, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.asarray(lnp.vdot(Z, W)), np.vdot(Z, W), rtol=1e-5)
    wanted = np.einsum("ij,kj->ki", Z, W)
    np.testing.assert_allclose(np.asarray(lnp.einsum("ij,kj->ki", Z, W)), wanted, rtol=1e-5, atol=1e-5)


def test_loops_and_branches_carry_complex_numbers() -> None:
    def program(z: lx.Array) -> tuple[lx.Array, ...]:
        final, steps = lax.scan(lambda carry, x: (carry * x + 1j, carry), lnp.complex64(1), z[0])
        counted = lax.while_loop(lambda s: lnp.abs(s[0]) < 100, lambda s: (s[0] * (1 + 1j), s[1] + 1), (z[0, 0], 0))
        chosen = lax.cond(z[0, 0].real > 0, lambda z: z * 2j, lambda z: z.conj(), z)
        return final, steps, *counted, chosen

    found = lx.compile(program)(Z)
    carry, steps = 1 + 0j, []
    for x in Z[0]:
        steps.append(carry)
        carry = carry * x + 1j
    np.testing.assert_allclose(np.asarray(found[0]), carry, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(found[1]), steps, rtol=1e-5)
    number, count = Z[0, 0], 0
    while abs(number) < 100:
        number, count = number * (1 + 1j), count + 1
    np.testing.assert_allclose(np.asarray(found[2]), number, rtol=1e-5)
    assert int(found[3]) == count
    np.testing.assert_allclose(np.asarray(found[4]), Z * 2j if Z[0, 0].real > 0 else Z.conj(), rtol=1e-6)


def test_a_donated_argument_is_the_memory_of_the_result() -> None:
    step = lx.compile(lambda z: z * 1j, donate_argnums=0)
    z = lnp.asarray(Z) + 0
    found = step(z)
    np.testing.assert_allclose(np.asarray(found), Z * 1j, rtol=1e-6)
    with pytest.raises(lx.DonatedArrayError):
        z + 1


def test_an_argument_that_is_returned_is_not_copied() -> None:
    found = lx.compile(lambda z: (z, z.real))(Z)
    np.testing.assert_array_equal(np.asarray(found[0]), Z)
    np.testing.assert_array_equal(np.asarray(found[1]), Z.real)


def test_text_is_complex_until_the_pass_and_real_from_there() -> None:
    lowered = lx.compile(lambda z: lnp.pad(z * (1 - 2j), 1, constant_values=-1j)).lower(Z)
    text = lowered.as_text("ir")
    assert "c64[3,4]" in text and "value=(1-2j)" in text and "value=(-0-1j)" in text
    assert str(parse(text)) == text
    assert "c64" in lowered.as_text("optimized") and "c64" not in lowered.as_text("prepare:complex")
    assert "graph (z: f32[3,4,2])" in lowered.as_text("prepare:complex")


@pytest.mark.parametrize("name", ["floor", "signbit", "cbrt", "median", "histogram"])
def test_functions_of_real_numbers_refuse_complex_ones(name: str) -> None:
    with pytest.raises(lx.DtypeError, match="c64"):
        getattr(lnp, name)(Z)


@pytest.mark.usefixtures("reference_backend")
def test_functions_made_of_others() -> None:
    for name in ("log2", "log10", "exp2", "sinc", "cov", "trace", "round", "nansum", "nanmean", "nanvar", "nanstd"):
        square = Z[:, :3]
        np.testing.assert_allclose(
            np.asarray(getattr(lnp, name)(square)), getattr(np, name)(square), rtol=1e-5, atol=1e-5, err_msg=name
        )
    for name in ("correlate", "convolve", "kron", "polyval"):
        wanted = getattr(np, name)(Z[0], W[1])
        np.testing.assert_allclose(np.asarray(getattr(lnp, name)(Z[0], W[1])), wanted, rtol=1e-5, atol=1e-5)
    assert lnp.allclose(Z, Z + 1e-9) and not lnp.allclose(Z, Z + 1j)
    assert lnp.finfo("complex64").eps == np.finfo(np.float32).eps
    np.testing.assert_array_equal(np.asarray(lnp.isreal(Z.real + 0j)), np.ones((3, 4), bool))


@pytest.mark.usefixtures("reference_backend")
def test_views_of_the_parts() -> None:
    np.testing.assert_array_equal(np.asarray(lnp.asarray(Z).view("float32")), Z.view(np.float32))
    np.testing.assert_array_equal(np.asarray(lnp.asarray(Z).view("uint16")), Z.view(np.uint16))
    np.testing.assert_array_equal(np.asarray(lnp.asarray(Z).view("float32").view("complex64")), Z)
    with pytest.raises(lx.DtypeError, match="view: the bits of c64"):
        lnp.asarray(Z).view("float64")


@pytest.mark.usefixtures("reference_backend")
def test_a_dropped_imaginary_part_is_told() -> None:
    for given in (Z, lnp.asarray(Z)):
        with pytest.warns(np.exceptions.ComplexWarning, match="asarray: the imaginary parts are dropped") as told:
            np.testing.assert_array_equal(np.asarray(lnp.array(given, "float32")), Z.real)
        assert told[0].filename == __file__
    with pytest.warns(np.exceptions.ComplexWarning, match="full: the imaginary parts are dropped"):
        assert lnp.full(2, lnp.asarray(1 + 2j), "float32").tolist() == [1, 1]
    for given in (Z.tolist(), 1 + 2j, [1, 2j]):
        with pytest.raises(TypeError, match=r"asarray: .* has imaginary parts, which int8 cannot hold"):
            lnp.array(given, "int8")
    with pytest.raises(TypeError, match="full: 2j has imaginary parts"):
        lnp.full_like(lnp.ones(2), 2j)
    with pytest.warns(np.exceptions.ComplexWarning, match="imaginary parts are dropped"):
        np.testing.assert_array_equal(np.asarray(lnp.asarray(Z).astype("float32")), Z.real)


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("name", ["hypot", "copysign"])
def test_further_functions_of_real_numbers(name: str) -> None:
    with pytest.raises(lx.DtypeError, match=f"{name}.* is not defined for c64"):
        getattr(lnp, name)(Z, W)


@pytest.mark.usefixtures("reference_backend")
def test_elements_outside_are_nan() -> None:
    found = np.asarray(lnp.take(Z[0], np.array([1, 9], np.int32), mode="fill"))
    assert found[0] == Z[0, 1] and np.isnan(found[1].real) and found[1].imag == 0  # as in JAX
    np.testing.assert_array_equal(np.asarray(lnp.asarray(Z[0]).at[9].get(mode="fill", fill_value=2j)), 2j)


@pytest.mark.usefixtures("reference_backend")
def test_softmax_sums_to_one() -> None:
    grown = np.exp(Z.astype(np.complex128))
    wanted = grown / grown.sum(-1, keepdims=True)
    np.testing.assert_allclose(np.asarray(nn.softmax(Z)), wanted, rtol=1e-5)
    np.testing.assert_allclose(np.exp(np.asarray(nn.log_softmax(Z))), wanted, rtol=1e-5)


@pytest.mark.parametrize("shape", [(), (7,), (2, 3)])
def test_products_at_positions(shape: tuple[int, ...]) -> None:
    """Several factors may meet one element, and those outside are dropped; on the device."""
    rows, columns = (RANDOM.integers(0, 2, shape).astype(np.int32) for _ in range(2))
    one, two = Z.copy(), Z.copy()
    lines, numbers = sample((*shape, 4)), sample(shape)
    np.multiply.at(one, rows, lines)
    np.multiply.at(two, (rows, columns), numbers)
    np.testing.assert_allclose(np.asarray(lnp.asarray(Z).at[rows].multiply(lines)), one, rtol=1e-5)
    found = lx.compile(lambda z, r, c, v: z.at[r, c].multiply(v))(Z, rows, columns, numbers)
    np.testing.assert_allclose(np.asarray(found), two, rtol=1e-5)
    outside = lnp.asarray(Z).at[rows, columns + 3].multiply(numbers, mode="drop")
    expected, inside = Z.copy(), columns.reshape(-1) == 0
    np.multiply.at(expected, (rows.reshape(-1)[inside], 3), numbers.reshape(-1)[inside])
    np.testing.assert_allclose(np.asarray(outside), expected, rtol=1e-5)


@pytest.mark.usefixtures("reference_backend")
def test_updates_of_real_arrays_tell_that_they_drop_parts() -> None:
    x = lnp.ones(3)
    for values in (2 + 1j, lnp.asarray(2 + 1j)):
        with pytest.warns(np.exceptions.ComplexWarning, match="imaginary parts of the updates are dropped"):
            assert x.at[1].set(values).tolist() == [1, 2, 1]


def test_roots_of_polynomials() -> None:
    for coefficients in (Z[0], Z[0].real, np.array([0, 0, 2, 1, -1], np.float32)):
        found = lnp.sort(lnp.roots(coefficients))
        wanted = np.sort(np.roots(coefficients).astype(np.complex64))
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-4, atol=1e-5)
    assert lnp.roots([3.0]).shape == (0,)
    inside = lx.compile(lambda p: lnp.sort(lnp.roots(p, strip_zeros=False)))(Z[0])
    np.testing.assert_allclose(np.asarray(inside), np.sort(np.roots(Z[0])), rtol=1e-4)
    gradient = lx.grad(lambda p: lnp.sum(lnp.abs(lnp.roots(p, strip_zeros=False)) ** 2))(Z[0])
    step = 1e-3 * W[0]

    def total(p: np.ndarray) -> float:
        return float(np.sum(np.abs(np.roots(p.astype(np.complex128))) ** 2))

    slope = (total(Z[0] + step) - total(Z[0] - step)) / 2
    np.testing.assert_allclose(np.sum(np.asarray(gradient) * step).real, slope, rtol=1e-3)


@pytest.mark.usefixtures("reference_backend")
def test_special_parts_are_replaced() -> None:
    z = np.array([complex(np.nan, 1), complex(1, np.inf), complex(-np.inf, np.nan)], np.complex64)
    np.testing.assert_array_equal(np.asarray(lnp.nan_to_num(z)), np.nan_to_num(z))
    found = lnp.nan_to_num(z, nan=7, posinf=5, neginf=-5)
    np.testing.assert_array_equal(np.asarray(found), np.nan_to_num(z, nan=7, posinf=5, neginf=-5))


@pytest.mark.usefixtures("reference_backend")
def test_ranges_and_samples() -> None:
    np.testing.assert_allclose(np.asarray(lnp.geomspace(1j, 100, 4)), np.geomspace(1j, 100, 4), rtol=1e-5)
    points = np.arange(4, dtype=np.float32)
    at = np.array([0.5, 1.2, -1, 9], np.float32)
    np.testing.assert_allclose(np.asarray(lnp.interp(at, points, Z[0])), np.interp(at, points, Z[0]), rtol=1e-5)
    for name, arguments in (("interp", (Z[0], points, points)), ("fabs", (Z,)), ("heaviside", (Z, 1.0))):
        with pytest.raises(lx.DtypeError, match=f"{name} takes real numbers"):
            getattr(lnp, name)(*arguments)


@pytest.mark.parametrize("other", ["bool", "int8", "uint32", "int32", "float16", "bfloat16", "float32", "complex128"])
def test_narrower_numbers_meet_complex128_in_complex128(other: str) -> None:
    """Not in int32, as unsigned and signed integers do without 64 bits enabled."""
    assert lnp.promote_types("complex128", other) == lnp.promote_types(other, "complex128") == np.complex128
    z, x = lnp.array([0.5 + 2.0j, -1.0j], dtype="complex128"), lnp.ones(2, other)
    for found in (z * x, x * z, lnp.concatenate([z, x])[:2], lx.jit(lnp.multiply)(x, z)):
        assert found.dtype == np.complex128
        np.testing.assert_array_equal(found, [0.5 + 2.0j, -1.0j])


def test_data_of_complex128_keep_their_digits() -> None:
    data = np.array([0.3 + 0.1j, 1 / 3 - 0.7j])
    for found in (lnp.array(data, dtype="complex128"), lnp.asarray(data.tolist(), "complex128")):
        np.testing.assert_array_equal(found, data)
    z = lnp.array(data, dtype="complex128")
    np.testing.assert_allclose(lnp.clip(lnp.real(z), 0.1, 0.35), [0.3, 1 / 3], rtol=1e-15)
    np.testing.assert_allclose(lnp.isclose(z, z + 1e-9, 1e-12, 1e-8), [True, True])
