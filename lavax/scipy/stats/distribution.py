"""Distributions by their standard functions: how location and scale, logarithms and complements follow from those."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import lavax.numpy as lnp
from lavax.nn.functional import log1mexp
from lavax.numpy._core.application import as_floating
from lavax.tracer.values.value import Value

# standard function(y, *shape parameters), for a location of 0 and a scale of 1.
Standard = Callable[..., Any]


def within(y: Value, low: Any, high: Any, inner: Any, function: Callable[[Value], Any], outside: Any) -> Value:
    """`function` between `low` and `high`, and `outside` beyond; NaN stays. `inner` is a place where it is smooth."""
    beyond = lnp.logical_or(y < low, y > high)
    result: Value = lnp.where(beyond, outside, function(lnp.where(beyond, inner, y)))
    return result


def whole_within(k: Value, low: Any, high: Any, function: Callable[[Value], Any]) -> Value:
    """`function` of whole numbers from `low` to `high`, and -inf elsewhere."""
    beyond = lnp.logical_or(lnp.logical_or(k < low, k > high), k != lnp.floor(k))
    result: Value = lnp.where(beyond, -lnp.inf, function(lnp.where(beyond, low, k)))
    return result


def _log_less_one(logarithm: Value) -> Value:
    """log(1 - e^x) for x <= 0; -inf for 0."""
    is_zero = logarithm >= 0
    result: Value = lnp.where(is_zero, -lnp.inf, log1mexp(lnp.where(is_zero, 1.0, -logarithm)))
    return result


def _with_followers(given: Mapping[str, Standard]) -> dict[str, Standard]:
    """The standard functions, and those that follow from them."""
    found: dict[str, Standard] = dict(given)

    def add(name: str, source: str, of: Callable[[Any], Any]) -> None:
        if name not in found and source in found:
            known = found[source]
            found[name] = lambda y, *shape: of(known(y, *shape))

    add("pdf", "logpdf", lnp.exp)
    add("pmf", "logpmf", lnp.exp)
    add("cdf", "logcdf", lnp.exp)
    add("sf", "logsf", lnp.exp)
    add("sf", "cdf", lambda p: 1 - p)
    add("cdf", "sf", lambda p: 1 - p)
    add("logcdf", "logsf", _log_less_one)
    add("logsf", "logcdf", _log_less_one)
    add("logcdf", "cdf", lnp.log)
    add("logsf", "sf", lnp.log)
    if "ppf" in found and "isf" not in found:
        found["isf"] = lambda q, *shape: found["ppf"](1 - q, *shape)
    return found


_LESS_LOG_SCALE = frozenset({"logpdf"})
_OF_QUANTILES = frozenset({"ppf", "isf"})


class Distribution:
    """A distribution with the functions of SciPy: `norm.logpdf(x, loc, scale)`, `gamma.cdf(x, a, loc, scale)`.

    Parameters broadcast with `x` and are given by position or name; functions return floats, and have gradients by all
    of them. Densities are 0 outside the support, quantiles NaN for probabilities outside [0, 1].
    """

    def __init__(self, name: str, parameters: tuple[str, ...], given: Mapping[str, Standard], first: str = "x") -> None:
        self.name = name
        self.parameters = parameters
        is_discrete = "logpmf" in given
        last = ("loc",) if is_discrete else ("loc", "scale")
        for method, standard in _with_followers(given).items():
            argument = "q" if method in _OF_QUANTILES else first
            setattr(self, method, self._function(method, standard, argument, last))

    def _function(self, method: str, standard: Standard, first: str, last: tuple[str, ...]) -> Callable[..., Value]:
        names = (first, *self.parameters, *last)
        defaults = {"loc": 0, "scale": 1}
        whole = f"{self.name}.{method}"

        def function(*args: Any, **kwargs: Any) -> Value:
            values = _bound(whole, names, defaults, args, kwargs)
            place, *shape = (as_floating(values[name]) for name in (first, *self.parameters))
            loc, scale = values["loc"], values.get("scale", 1)
            if method in _OF_QUANTILES:
                return _quantile(standard, place, shape, loc, scale)
            found: Value = standard((place - loc) / scale if "scale" in names else place - loc, *shape)
            if method in _LESS_LOG_SCALE:
                return found - lnp.log(as_floating(scale))
            return found / scale if method == "pdf" else found

        shown = ", ".join(f"{name}={defaults[name]}" if name in defaults else name for name in names)
        function.__name__, function.__qualname__ = method, whole
        function.__doc__ = f"{whole}({shown}), elementwise; see Distribution. Raises TypeError for other arguments."
        return function

    def __repr__(self) -> str:
        return f"<distribution {self.name}({', '.join(self.parameters)})>"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the distribution {self.name} has no {name!r}")


def _bound(
    function: str, names: tuple[str, ...], defaults: Mapping[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """The arguments by name. Raises TypeError for missing, unknown and repeated ones."""
    positional = dict(zip(names, args, strict=False))
    wrong = [name for name in kwargs if name not in names or name in positional]
    missing = [name for name in names if name not in positional and name not in kwargs and name not in defaults]
    if wrong or missing or len(args) > len(names):
        raise TypeError(f"{function} takes ({', '.join(names)}); got {len(args)} by position, and {sorted(kwargs)}")
    return {**{name: defaults[name] for name in names if name in defaults}, **positional, **kwargs}


def _quantile(standard: Standard, q: Value, shape: list[Value], loc: Any, scale: Any) -> Value:
    valid = lnp.logical_and(q >= 0, q <= 1)
    found = standard(lnp.where(valid, q, 0.5), *shape) * scale + loc
    result: Value = lnp.where(valid, found, lnp.nan)
    return result


