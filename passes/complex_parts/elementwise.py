"""Operations on complex numbers as operations on their parts: a table, one entry per operation."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from lavax.ir.graph import Node
from lavax.ir.types import bool_
from lavax.passes.build.builder import build, cast, iota, zeros
from lavax.passes.complex_parts import arithmetic, exponential, ordering, products, scattering, trigonometric
from lavax.passes.complex_parts.parts import Parts, Real, Truth, parts
from lavax.passes.complex_parts.roots import unit_root

Value = Node | Parts  # of an operand or result that is real, or complex
Rule = Callable[[Node, Sequence[Value]], Value]

# Each part of the result is the operation on that part of the complex operands; others are the same for both.
BY_PART = frozenset(
    {
        "add",
        "axis_gather",
        "axis_sum",
        "broadcast",
        "concatenate",
        "cumulative_sum",
        "flip",
        "gather",
        "known_value",
        "negate",
        "reshape",
        "scatter_add",
        "scatter_set",
        "shear",
        "slice",
        "stop_gradient",
        "subtract",
        "sum",
        "transpose",
        "unshear",
        "where",
    }
)


def part_of(node: Node, operands: Sequence[Node], **changed: object) -> Node:
    """The operation of `node` on one part of its operands."""
    type = node.type.with_dtype(node.dtype.part)
    return build(node.op, *operands, type=type, **{**node.attrs, **changed})


def _by_part(node: Node, operands: Sequence[Value]) -> Value:
    found = [
        part_of(node, [operand.nodes[side] if isinstance(operand, Parts) else operand for operand in operands])
        for side in (0, 1)
    ]
    return parts(*found)


def _with_value(node: Node, operands: Sequence[Value]) -> Value:
    """A constant or pad, whose attribute `value` is complex."""
    value = node.attrs["value"]
    return parts(
        *(
            part_of(node, [operand.nodes[side] for operand in operands if isinstance(operand, Parts)], value=of_part)
            for side, of_part in enumerate((value.real, value.imag))
        )
    )


def _iota(node: Node, operands: Sequence[Value]) -> Value:
    type = node.type.with_dtype(node.dtype.part)
    return parts(iota(type, node.attrs["axis"]), zeros(type))


def _cast(node: Node, operands: Sequence[Value]) -> Value:
    """A real number is the real part; the imaginary one is dropped, and truth asks for either."""
    (x,) = operands
    if isinstance(x, Parts):
        if node.dtype.is_complex:
            return parts(*(cast(part, node.dtype.part) for part in x.nodes))
        if node.dtype == bool_:
            return build("or", *(cast(part, bool_) for part in x.nodes))
        return cast(x.real.node, node.dtype)
    real = cast(x, node.dtype.part)
    return parts(real, zeros(real.type))


def _barrier(node: Node, operands: Sequence[Value]) -> Value:
    value, after = (operand if isinstance(operand, Parts) else (operand, operand) for operand in operands)
    found = [
        build("barrier", *(one.node if isinstance(one, Real) else one for one in pair))
        for pair in zip(value, after, strict=True)
    ]
    return parts(*found) if node.dtype.is_complex else found[0]


def _of(function: Callable[..., Parts | Real | Truth]) -> Rule:
    """The rule of an operation on complex operands, from its formula."""

    def rule(node: Node, operands: Sequence[Value]) -> Value:
        found = function(*operands)
        return found if isinstance(found, Parts) else found.node

    return rule


def _unit_root(node: Node, operands: Sequence[Value]) -> Value:
    (position,) = operands
    assert isinstance(position, Node)
    return unit_root(position, node.attrs["length"], node.dtype.part)


def _with_node(function: Callable[..., Value]) -> Rule:
    return lambda node, operands: function(node, *operands)


_FUNCTIONS: dict[str, Callable[..., Parts | Real | Truth]] = {
    "abs": arithmetic.absolute,
    "acos": trigonometric.acos,
    "acosh": trigonometric.acosh,
    "asin": trigonometric.asin,
    "asinh": trigonometric.asinh,
    "atan": trigonometric.atan,
    "atanh": trigonometric.atanh,
    "conjugate": arithmetic.conjugate,
    "cos": trigonometric.cos,
    "cosh": trigonometric.cosh,
    "divide": arithmetic.divide,
    "equal": arithmetic.equal,
    "exp": exponential.exp,
    "expm1": exponential.expm1,
    "greater": ordering.greater,
    "greater_equal": ordering.greater_equal,
    "less": ordering.less,
    "less_equal": ordering.less_equal,
    "log": exponential.log,
    "log1p": exponential.log1p,
    "logistic": exponential.logistic,
    "maximum": ordering.maximum,
    "minimum": ordering.minimum,
    "multiply": arithmetic.multiply,
    "not_equal": arithmetic.not_equal,
    "power": exponential.power,
    "rsqrt": exponential.rsqrt,
    "sin": trigonometric.sin,
    "sinh": trigonometric.sinh,
    "sqrt": exponential.sqrt,
    "tan": trigonometric.tan,
    "tanh": trigonometric.tanh,
}

RULES: dict[str, Rule] = {
    **dict.fromkeys(BY_PART, _by_part),
    "constant": _with_value,
    "pad": _with_value,
    "iota": _iota,
    "cast": _cast,
    "barrier": _barrier,
    "complex": lambda node, operands: parts(*operands),  # type: ignore[arg-type]  # both are real
    "real": _of(lambda z: z.real),
    "imag": _of(lambda z: z.imaginary),
    **{name: _of(function) for name, function in _FUNCTIONS.items()},
    "argmax": _with_node(ordering.argmax),
    "argmin": _with_node(ordering.argmin),
    "conv": _with_node(products.bilinear),
    "cumulative_prod": _with_node(products.cumulative_product),
    "dot": _with_node(products.bilinear),
    "unit_root": _unit_root,
    "prod": _with_node(products.product_over),
    "scatter_multiply": _with_node(scattering.scatter_multiply),
    "search_sorted": _with_node(ordering.search_sorted),
    "sort": _with_node(ordering.sort),
    "sort_order": _with_node(ordering.sort_order),
    "top_order": _with_node(ordering.top_order),
    "unsort": _with_node(ordering.unsort),
}
