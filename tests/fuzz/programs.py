"""Random typed programs over all operations or functions of arrays, transformed: each is made by its number alone."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from lavax.base.errors import CustomRuleError
from lavax.ir import OPERATIONS, Graph, Node, TensorType, float32, int32
from lavax.ir.graph import graph_of, input_node
from lavax.ir.operation import names_of_family
from lavax.passes.simplify import remove_stop_gradient
from tests.fuzz import complex_numbers, elementwise, regions, routines, structure, transformations
from tests.fuzz.compositions import composed
from tests.fuzz.draw import Source, dtype_of
from tests.fuzz.noise import Expected, IllConditionedError, expected
from tests.operation_cases.case import sample

GENERATORS: dict[str, Callable[[Source], Node]] = {
    **elementwise.GENERATORS,
    **complex_numbers.GENERATORS,
    **structure.GENERATORS,
    **routines.GENERATORS,
    **regions.GENERATORS,
}

# Operations that no program is made of, and why.
NOT_GENERATED: dict[str, str] = {
    **dict.fromkeys(names_of_family("lowered"), "only passes make it, of operations that are generated"),
    **dict.fromkeys(names_of_family("axis"), "means something in a batch alone: transformations.AXIS_OPERATIONS"),
    "custom_vmap": "its rule is Python, which has no text",
    "host_call": "calls Python, which has no text",
}

# How often an operation is drawn, by its family; families have very different numbers of members.
_WEIGHTS = {"elementwise": 3, "movement": 6, "reduction": 4, "indexing": 5, "contraction": 5, "routine": 2, "region": 3}
_OF_ARITHMETIC = ("add", "subtract", "multiply", "divide", "maximum", "where", "cast", "exp", "tanh", "less", "sum")


def _weighted() -> dict[str, list[str]]:
    families: dict[str, list[str]] = {}
    for op in sorted(GENERATORS.keys() - complex_numbers.GENERATORS.keys()):
        families.setdefault(OPERATIONS[op].family, []).append(op)
    families["source"] = ["constant", "iota"]
    families["arithmetic"] = list(_OF_ARITHMETIC)
    families["complex"] = list(complex_numbers.GENERATORS)
    return families


_FAMILIES = _weighted()
_ALL_WEIGHTS = {**_WEIGHTS, "arithmetic": 6, "complex": 3, "source": 1}
_COMPOSED = 3  # one in so many programs is as users write them
_MOSTLY_REGIONS = _ALL_WEIGHTS | {"region": 25}  # of some programs: loops beside and within each other


def any_operation(source: Source, weights: Mapping[str, int] = _ALL_WEIGHTS) -> Node:
    """A value of an operation that is drawn by the weights."""
    each = np.array([weights[family] for family in _FAMILIES], float)
    family = list(_FAMILIES)[int(source.random.choice(len(_FAMILIES), p=each / each.sum()))]
    return GENERATORS[source.one_of(_FAMILIES[family])](source)


@dataclass(frozen=True)
class Program:
    """A graph, arrays for its inputs, and how its text came about."""

    number: int
    graph: Graph
    arrays: tuple[np.ndarray, ...]
    transformations: tuple[str, ...]

    def expected(self) -> Expected:
        """Raises IllConditionedError."""
        return expected(self.graph, self.arrays, self.number)


def _base(random: np.random.Generator) -> tuple[Graph, list[np.ndarray]]:
    weights = _MOSTLY_REGIONS if random.random() < 0.25 else _ALL_WEIGHTS
    source = Source(random, any_operation=partial(any_operation, weights=weights))
    wide = source.chance(0.15)
    dtypes = [float32, *(dtype_of(random, wide) for _ in range(source.number(1, 4)))]
    if source.chance(0.5):
        dtypes.append(int32)
    inputs, arrays = [], []
    for number, dtype in enumerate(dtypes):
        node = input_node(f"x{number}", TensorType(source.extents(source.number(0, 4)), dtype))
        array = sample(random, node.type)
        array = dtype.rounded(array) if dtype.is_float else array
        source.give(node, array)
        inputs.append(node)
        arrays.append(array)
    source.grow(source.one_of((1, 2, 4, 8, 12, 20)))
    made = source.values[len(inputs) :]
    if not made:
        raise IllConditionedError("nothing was made")
    outputs = [node for node in made if source.chance(0.2)] + made[-2:]
    return graph_of(inputs, list(dict.fromkeys(outputs))), arrays


def program(number: int) -> Program:
    """The program of that number, the same always. Raises IllConditionedError if the number has none."""
    random = np.random.default_rng([number, 17])
    graph, arrays = composed(random) if number % _COMPOSED == _COMPOSED - 1 else _base(random)
    names: list[str] = []
    for _ in range(int(random.choice([0, 1, 2, 3], p=[0.4, 0.35, 0.18, 0.07]))):
        name = transformations.choose(random, graph)
        try:
            graph, arrays = transformations.TRANSFORMATIONS[name](random, graph, arrays)
        except CustomRuleError as error:  # of a rule with a loop, which reverse mode does not transpose
            raise IllConditionedError(str(error)) from None
        names.append(name)
    return Program(number, remove_stop_gradient(graph), tuple(arrays), tuple(names))
