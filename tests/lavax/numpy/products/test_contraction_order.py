"""The order in which einsum combines its operands: that of fewest multiplications."""
from __future__ import annotations

from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import pytest

import lavax.numpy as lnp
from lavax.numpy.products.contraction_order import after, cheapest_path

# The extents of each term's labels, and the labels of the result.
CONTRACTIONS: dict[str, tuple[str, dict[str, int]]] = {
    "a chain": ("ij,jk,kl->il", {"i": 2, "j": 30, "k": 40, "l": 3}),
    "small matrices first": ("ijk,kl,lj->i", {"i": 64, "j": 64, "k": 64, "l": 64}),
    "a bilinear form": ("bi,ij,bj->b", {"b": 1000, "i": 32, "j": 32}),
    "summed before": ("ab,bc,cd->a", {"a": 5, "b": 6, "c": 7, "d": 900}),
    "experts": ("te,eod,td->to", {"t": 256, "e": 8, "o": 32, "d": 32}),
    "four": ("ab,bc,cd,de->ae", {"a": 40, "b": 2, "c": 50, "d": 3, "e": 60}),
    "five": ("abc,ad,be,cf,def->", {"a": 7, "b": 8, "c": 9, "d": 3, "e": 2, "f": 4}),
    "outer": ("a,b,c->abc", {"a": 3, "b": 4, "c": 5}),
}


def terms_of(name: str) -> tuple[list[dict[str, int]], str]:
    subscripts, extents = CONTRACTIONS[name]
    inputs, output = subscripts.split("->")
    return [{label: extents[label] for label in term} for term in inputs.split(",")], output


def multiplications(terms: Any, output: str, path: Any) -> int:
    total = 0
    for first, second in path:
        left, right = terms[first], terms[second]
        terms = after(terms, (first, second), output)
        kept = {**{x: n for x, n in left.items() if x in right}, **terms[-1]}
        total += prod(kept.values())
    return total


def paths(count: int) -> list[list[tuple[int, int]]]:
    if count == 1:
        return [[]]
    return [[pair, *rest] for pair in combinations(range(count), 2) for rest in paths(count - 1)]


@pytest.mark.parametrize("name", CONTRACTIONS)
def test_no_order_takes_fewer_multiplications(name: str) -> None:
    terms, output = terms_of(name)
    least = min(multiplications(terms, output, path) for path in paths(len(terms)))
    assert multiplications(terms, output, cheapest_path(terms, output)) == least


def test_of_many_terms_the_smallest_product_comes_first() -> None:
    terms = [{"a": 9, "b": 9}, {"b": 9, "c": 2}, {"c": 2, "d": 1}, *({"d": 1, f"e{k}": 9} for k in range(5))]
    path = cheapest_path(terms, ["a", *(f"e{k}" for k in range(5))])
    assert len(path) == 7 and path[0] == (0, 1)


@pytest.mark.parametrize("name", CONTRACTIONS)
def test_einsum_has_numpys_values(name: str) -> None:
    subscripts, _ = CONTRACTIONS[name]
    terms, _ = terms_of(name)
    rng = np.random.default_rng(2)
    arrays = [rng.normal(size=tuple(term.values())).astype("f") for term in terms]
    expected = np.einsum(subscripts, *(array.astype(float) for array in arrays), optimize=True)
    found = np.asarray(lnp.einsum(subscripts, *arrays))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("subscripts", ["ij,jk,kl->il", "ij,jk->k", "ij,jk->ik"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_of_products_are_not_rounded_to_the_dtype_of_operands(subscripts: str, dtype: str) -> None:
    """Nor are sums that are multiplied: of float16 they might be infinite."""
    given = [lnp.full((16, 16), 60.5, dtype) for _ in range(subscripts.count(",") + 1)]
    given[0] = given[0].at[::2].set(99)
    found = lnp.einsum(subscripts, *given, preferred_element_type="float32")
    assert found.dtype == np.float32
    exact = np.einsum(subscripts, *(np.asarray(each.astype("float32"), np.float64) for each in given))
    np.testing.assert_allclose(found, exact, rtol=1e-6)
