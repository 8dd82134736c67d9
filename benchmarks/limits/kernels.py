"""The hand-written kernels, with the sizes for which they are compiled and the forms that are tried."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from lavax.backends.vulkan.plan.plan import Dispatch, Plan, Result, Shader

FOLDER = Path(__file__).resolve().parent
FLOAT_BYTES = 4
LANES = 8  # of a subgroup, on the CPU drivers that these are written for

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class HandWritten:
    """A kernel in `file`. The shapes of a workload's arguments determine its sizes, the shape of its result and its
    number of workgroups. `forms` are sets of further macros; the fastest set is used."""

    file: str
    sizes: Callable[[Sequence[tuple[int, ...]]], Sizes]
    groups: Callable[[Sizes], int]
    result: Callable[[Sequence[tuple[int, ...]]], tuple[int, ...]]
    forms: tuple[Sizes, ...] = ({},)

    def plans(self, arguments: Sequence[Any]) -> list[Plan]:
        """A program per form."""
        return [self._plan(form, arguments) for form in self.forms]

    def _plan(self, form: Sizes, arguments: Sequence[Any]) -> Plan:
        shapes = [argument.shape for argument in arguments]
        macros = {**self.sizes(shapes), **form}
        slots = tuple(range(len(shapes) + 1))
        bindings = (*(("vectors", slot) for slot in slots[:-1]), ("stores", slots[-1]))  # as every file declares them
        shader = Shader(source(self.file, macros), subgroup_size=LANES, bindings=bindings)
        dispatch = Dispatch(shader, slots, (), (self.groups(macros), 1, 1), False, self.file)
        result = Result(FLOAT_BYTES * prod(self.result(shapes)), None)
        nbytes = tuple(argument.nbytes for argument in arguments)
        return Plan(nbytes, (result,), (), (), 0, (dispatch,), range_slots=slots)


def source(file: str, macros: Sizes) -> str:
    """The GLSL of a kernel with these macros instead of the file's own."""
    text = (FOLDER / file).read_text(encoding="utf-8")
    head, version, rest = text.partition("#version 460\n")
    return head + version + "".join(f"#define {name} {value}\n" for name, value in macros.items()) + rest


def _first(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return shapes[0]


def _product(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return shapes[0][0], shapes[1][1]


_MATMUL = HandWritten(
    "matmul.comp",
    lambda shapes: {"M": shapes[0][0], "K": shapes[0][1], "N": shapes[1][1]},
    lambda sizes: sizes["M"] // sizes["ROWS"] * (sizes["N"] // (4 * LANES * sizes["COLUMNS"])),
    _product,
    tuple(
        {"ROWS": rows, "COLUMNS": columns}
        for rows, columns in ((8, 1), (16, 1), (16, 2), (32, 1), (32, 2))
    ),
)
_ELEMENTWISE = HandWritten(
    "elementwise.comp",
    lambda shapes: {"SIZE": shapes[0][0]},
    lambda sizes: -(-sizes["SIZE"] // (4 * LANES * sizes["VECTORS"])),
    _first,
    tuple({"VECTORS": vectors} for vectors in (1, 4, 16)),
)
_SOFTMAX, _LAYER_NORM = (
    HandWritten(file, lambda shapes: {"WIDTH": shapes[0][1], "HEIGHT": shapes[0][0]}, lambda s: s["HEIGHT"], _first)
    for file in ("softmax.comp", "layer_norm.comp")
)
_ATTENTION = HandWritten(
    "attention.comp",
    lambda shapes: dict(zip(("BATCH", "POSITIONS", "HEADS", "SIZE"), shapes[0], strict=True)),
    lambda sizes: sizes["BATCH"] * sizes["HEADS"] * sizes["POSITIONS"] // sizes["ROWS"],
    _first,
    tuple({"ROWS": rows} for rows in (4, 8)),
)

# By workload.
KERNELS: dict[str, HandWritten] = {
    "elementwise": _ELEMENTWISE,
    "softmax": _SOFTMAX,
    "layer-norm": _LAYER_NORM,
    "matmul-256": _MATMUL,
    "matmul-512": _MATMUL,
    "matmul-1024": _MATMUL,
    "attention": _ATTENTION,
}
