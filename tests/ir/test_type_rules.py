"""The type rules: what they infer is in the cases of every operation; here is what they refuse, and how."""
from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir import OPERATIONS
from lavax.ir.graph import input_node, make_node
from lavax.ir.operation import Operation, define
from lavax.ir.parser import parse_type
from lavax.ir.types import DTYPES, TensorType, tuple_of
from tests.operation_cases import OPERATIONS_WITH_CASES, WITHOUT_CASES, cases_of

Refused = tuple[str, str, dict[str, Any], str | None, type[Exception], str]


def test_every_operation_has_cases() -> None:
    assert set(OPERATIONS) == OPERATIONS_WITH_CASES | WITHOUT_CASES
    assert [op for op in OPERATIONS_WITH_CASES if not cases_of(op)] == []


def test_cases_differ() -> None:
    labels = [str(case) for op in OPERATIONS for case in cases_of(op)]
    assert len(set(labels)) == len(labels)


def test_an_operation_is_defined_once() -> None:
    with pytest.raises(ValueError, match="'sin' is defined twice"):
        define(OPERATIONS["sin"])
    assert isinstance(OPERATIONS["sin"], Operation)


INNER = dict(contract=((0,), (0,)), batch=((), ()))
CONV = dict(
    window=((0,), (0,)), stride=(1,), low=(0,), high=(0,), interior=(0,), dilation=(1,),
    contract=((), ()), batch=((), ()),
)
DIGITS = dict(shift=0, bits=4, tile=8, tied=False)
RUNS = dict(join="add", chunk=2)
SHEAR = dict(axes=(0,), along=(1,), stride=(1,), dilation=(1,))
REFUSED: list[Refused] = [
    ("sin", "f32[2] f32[2]", {}, None, ShapeError, "sin takes 1 operands, got 2"),
    ("sin", "i32[2]", {}, None, DtypeError, "sin is not defined for i32[2] (float or complex dtypes only)"),
    ("negate", "bool[2]", {}, None, DtypeError, "negate is not defined for bool[2]"),
    ("not", "f32[2]", {}, None, DtypeError, "not is not defined for f32[2] (integer or bool dtypes only)"),
    ("add", "f32[2] f32[3]", {}, None, ShapeError, "add: operands must have one shape, got f32[2], f32[3]"),
    ("add", "f32[2] f32[]", {}, None, ShapeError, "add: operands must have one shape"),
    ("add", "f32[2] i32[2]", {}, None, DtypeError, "add: operands must have one dtype, got f32[2], i32[2]"),
    ("add", "bool[2] bool[2]", {}, None, DtypeError, "add is not defined for bool[2]"),
    ("where", "i32[2] f32[2] f32[2]", {}, None, DtypeError, "where: the condition must be bool, got i32[2]"),
    ("where", "bool[2] f32[2] i32[2]", {}, None, DtypeError, "where: both choices must have one dtype"),
    ("where", "bool[] f32[2] f32[2]", {}, None, ShapeError, "where: operands must have one shape"),
    ("cast", "f32[2]", {}, "i32[3]", ShapeError, "cast keeps the shape: f32[2] does not become i32[3]"),
    ("shift_left", "f32[2] f32[2]", {}, None, DtypeError, "shift_left is not defined for f32[2] (integer dtypes only)"),
    ("bitcast", "f32[2]", {}, "i32[3]", ShapeError, "bitcast keeps the shape: f32[2] does not become i32[3]"),
    ("bitcast", "bool[2]", {}, "u32[2]", DtypeError, "bitcast: bool[2] and u32[2] must be numbers of one width"),
    ("threefry", "i32[] i32[] i32[] i32[]", dict(word=0), None, DtypeError, "threefry is not defined for i32[]"),
    ("threefry", "u32[] u32[] u32[] u32[]", dict(word=3), None, ShapeError, "threefry: word 3 is not 0 (first)"),
    ("sum", "f32[2,3]", dict(axes=(1, 0)), None, ShapeError, "sum: axes [1, 0] must be distinct axes"),
    ("sum", "f32[2,3]", dict(axes=(0, 0)), None, ShapeError, "sum: axes [0, 0] must be distinct axes"),
    ("sum", "f32[2,3]", dict(axes=(2,)), None, ShapeError, "sum: axes [2] must be distinct axes"),
    ("sum", "bool[2]", dict(axes=(0,)), None, DtypeError, "sum is not defined for bool[2]"),
    ("max", "f32[2,0]", dict(axes=(1,)), None, ShapeError, "max of no elements has no value: f32[2,0] over axes [1]"),
    ("argmax", "f32[0]", dict(axis=0), None, ShapeError, "argmax of no elements has no value"),
    ("argmin", "f32[2]", dict(axis=1), None, ShapeError, "argmin: axes [1] must be distinct axes"),
    ("reshape", "f32[2,3]", {}, "f32[5]", ShapeError, "reshape: f32[2,3] with 6 elements does not become f32[5]"),
    ("reshape", "f32[2,3]", {}, "i32[6]", ShapeError, "does not become i32[6]"),
    ("transpose", "f32[2,3]", dict(axes=(0, 0)), None, ShapeError, "transpose: axes [0, 0] are not a permutation"),
    ("broadcast", "f32[2,3]", dict(axes=(1, 0)), "f32[3,2]", ShapeError, "do not place the axes of f32[2,3]"),
    ("broadcast", "f32[2]", dict(axes=(0,)), "f32[3]", ShapeError, "f32[2] does not fit f32[3] at axes [0]"),
    ("broadcast", "f32[2]", dict(axes=(0,)), "i32[2]", DtypeError, "broadcast: f32[2] does not become i32[2]"),
    ("slice", "f32[5]", dict(start=(3,), limit=(6,), stride=(1,)), None, ShapeError, "3:6:1 is not within an extent"),
    ("slice", "f32[5]", dict(start=(3,), limit=(2,), stride=(1,)), None, ShapeError, "slice: 3:2:1 is not within"),
    ("slice", "f32[5]", dict(start=(0,), limit=(2,), stride=(0,)), None, ShapeError, "slice: 0:2:0 is not within"),
    ("slice", "f32[5]", dict(start=(), limit=(), stride=()), None, ShapeError, "need 1 entries each for f32[5]"),
    (
        "pad",
        "f32[2]",
        dict(low=(-1,), high=(0,), interior=(0,), value=0.0),
        None,
        ShapeError,
        "pad: widths must not be negative",
    ),
    ("pad", "f32[2]", dict(low=(1,), high=(), interior=(0,), value=0.0), None, ShapeError, "need 1 entries each"),
    ("pad", "f32[2]", dict(low=(1,), high=(0,), interior=(0,), value=0), None, DtypeError, "0 is not a Python number"),
    ("concatenate", "", dict(axis=0), None, ShapeError, "concatenate takes at least one operand"),
    ("concatenate", "f32[2] f32[2]", dict(axis=1), None, ShapeError, "concatenate: axis 1 is not an axis of f32[2]"),
    ("concatenate", "f32[2,3] f32[2,4]", dict(axis=0), None, ShapeError, "f32[2,3], f32[2,4] do not fit together"),
    ("concatenate", "f32[2] i32[2]", dict(axis=0), None, ShapeError, "f32[2], i32[2] do not fit together"),
    ("flip", "f32[2]", dict(axes=(1,)), None, ShapeError, "flip: axes [1] must be distinct axes of f32[2]"),
    ("gather", "f32[3] i32[2]", dict(axes=(1,)), None, ShapeError, "gather: axes [1] must be distinct axes"),
    ("gather", "f32[3] f32[2]", dict(axes=(0,)), None, DtypeError, "gather: indices must be i32, got f32[2]"),
    ("gather", "f32[3,3] i32[2]", dict(axes=(0, 1)), None, ShapeError, "2 axes need as many index operands, got 1"),
    ("gather", "f32[3]", dict(axes=()), None, ShapeError, "0 axes need as many index operands, got 0"),
    ("gather", "f32[3,3] i32[2] i32[3]", dict(axes=(0, 1)), None, ShapeError, "indices must have one shape"),
    ("gather", "f32[0] i32[2]", dict(axes=(0,)), None, ShapeError, "nothing can be read along an empty axis of f32[0]"),
    ("scatter_add", "f32[3] f32[3] i32[2]", dict(axes=(0,)), None, ShapeError, "updates f32[3] must be f32[2]"),
    ("scatter_add", "f32[3] i32[2] i32[2]", dict(axes=(0,)), None, ShapeError, "updates i32[2] must be f32[2]"),
    ("scatter_add", "bool[3] bool[2] i32[2]", dict(axes=(0,)), None, DtypeError, "not defined for bool[3]"),
    (
        "dot",
        "f32[2,3] f32[4,5]",
        dict(contract=((1,), (0,)), batch=((), ())),
        None,
        ShapeError,
        "dot: f32[2,3] and f32[4,5] do not agree on the axes to contract: [1] and [0]",
    ),
    (
        "dot",
        "f32[2,3] f32[4,3]",
        dict(contract=((1,), (1,)), batch=((0,), (0,))),
        None,
        ShapeError,
        "do not agree on the axes to batch: [0] and [0]",
    ),
    (
        "dot",
        "f32[3] f32[3]",
        dict(contract=((0,), (0,)), batch=((0,), (0,))),
        None,
        ShapeError,
        "batch [0] and contract [0] must be distinct axes of f32[3]",
    ),
    ("dot", "f32[3] i32[3]", INNER, None, DtypeError, "dot: operands must have one dtype, got f32[3] and i32[3]"),
    ("dot", "bool[3] bool[3]", INNER, None, DtypeError, "dot is not defined for bool[3]"),
    ("conv", "f32[5] i32[2]", CONV, None, DtypeError, "conv: operands must have one dtype, got f32[5] and i32[2]"),
    ("conv", "bool[5] bool[2]", CONV, None, DtypeError, "conv is not defined for bool[5]"),
    ("conv", "f32[5] f32[0]", CONV, None, ShapeError, "conv: a window of no elements: f32[0] along axes [0]"),
    ("conv", "f32[5] f32[2]", CONV | dict(stride=(0,)), None, ShapeError, "stride and dilation must be at least 1"),
    ("conv", "f32[5] f32[2]", CONV | dict(low=()), None, ShapeError, "and dilation must be of 1 axes"),
    ("conv", "f32[5] f32[2]", CONV | dict(window=((1,), (0,))), None, ShapeError, "distinct axes of f32[5], got [1]"),
    (
        "conv",
        "f32[5,3] f32[2,4]",
        CONV | dict(contract=((1,), (1,))),
        None,
        ShapeError,
        "conv: f32[5,3] and f32[2,4] do not agree on the axes to contract: [1] and [1]",
    ),
    ("shear", "f32[5,2]", SHEAR, "f32[5,2]", ShapeError, "axis 0 of f32[5,2] does not hold the windows of f32[5,2]"),
    ("shear", "f32[5,2]", SHEAR, "f32[4,3]", ShapeError, "f32[5,2] and f32[4,3] must agree in all axes but [0]"),
    ("shear", "f32[5,2]", SHEAR | dict(along=(0,)), "f32[4,2]", ShapeError, "must be distinct axes of f32[5,2]"),
    ("shear", "f32[5,2]", SHEAR | dict(stride=()), "f32[4,2]", ShapeError, "1 axes need as many along"),
    ("unshear", "f32[5,2]", SHEAR, "f32[5,2]", ShapeError, "axis 0 of f32[5,2] does not hold the windows of f32[5,2]"),
    ("unshear", "f32[0,2]", SHEAR, "f32[5,2]", ShapeError, "does not hold the windows of f32[0,2]"),
    ("unshear", "f32[4,2]", SHEAR, "i32[5,2]", ShapeError, "unshear: f32[4,2] does not become i32[5,2]"),
    ("constant", "", dict(value=1), "f32[]", DtypeError, "constant: 1 is not a Python number that f32[] holds"),
    ("constant", "", dict(value=1.0), "i32[]", DtypeError, "constant: 1.0 is not a Python number that i32[] holds"),
    ("constant", "", dict(value=True), "i32[]", DtypeError, "constant: True is not a Python number that i32[] holds"),
    ("constant", "", dict(value=2**31), "i32[]", DtypeError, "constant: 2147483648 is not a Python number"),
    ("constant", "", dict(value=1.0), None, ShapeError, "constant takes no operands and a result type"),
    ("iota", "", dict(axis=1), "i32[3]", ShapeError, "iota: axis 1 is not an axis of i32[3]"),
    ("iota", "", dict(axis=0), "bool[3]", DtypeError, "iota counts in numbers, not in bool"),
    ("unsort", "f32[3] i32[4]", dict(axis=0), None, ShapeError, "unsort: the order i32[4] must be i32[3]"),
    ("unsort", "f32[3] i32[3]", dict(axis=1), None, ShapeError, "axis 1 is not an axis of f32[3]"),
    ("count_digits", "i32[9]", DIGITS, None, DtypeError, "the values must be rows of unsigned integers, got i32[9]"),
    ("count_digits", "u32[9]", {**DIGITS, "bits": 0}, None, ShapeError, "count_digits: no digits of u32[9]"),
    ("count_digits", "u64[9]", {**DIGITS, "tied": True}, None, DtypeError, "only u32 has words of both zeros"),
    ("move_by_digit", "u32[9] i32[16,1]", DIGITS, None, ShapeError, "the starts i32[16,1] must be i32[16,2]"),
    (
        "join_places", "f32[5] f32[3] i32[2]", dict(join="add"), None, ShapeError,
        "join_places: updates f32[3] at i32[2] do not fit the array f32[5]",
    ),
    (
        "join_places", "f32[5] f32[3] i32[3]", dict(join="maximum"), None, ShapeError,
        "join_places: 'maximum' is no atomic operation on f32[5]",
    ),
    (
        "depthwise_conv", "f32[1,1,5,5,4] f32[1,3,3,2]", dict(stride=(1, 1), dilation=(1, 1), run=9), None, ShapeError,
        "depthwise_conv: weights f32[1,3,3,2] are no [summed,window…,channels] of f32[1,1,5,5,4]",
    ),
    (
        "depthwise_conv", "f32[1,1,5,5,4] f32[1,3,3,4]", dict(stride=(1,), dilation=(1, 1), run=9), None, ShapeError,
        "depthwise_conv: stride, dilation and run must be at least 1, one of 2 axes",
    ),
    (
        "depthwise_conv", "f32[1,1,5,5,4] f64[1,3,3,4]", dict(stride=(1, 1), dilation=(1, 1), run=9), None, DtypeError,
        "depthwise_conv is not defined for f32[1,1,5,5,4] and f64[1,3,3,4]",
    ),
    (
        "join_rows", "f32[1,5,2] f32[3,4] i32[3]", dict(join="add"), None, ShapeError,
        "join_rows: updates f32[3,4] at i32[3] do not fit the arrays f32[1,5,2]",
    ),
    (
        "join_rows", "f32[2,5,2] f32[3,2] i32[4]", dict(join="add"), None, ShapeError,
        "join_rows: updates f32[3,2] at i32[4] do not fit the arrays f32[2,5,2]",
    ),
    (
        "join_rows", "f32[1,5,2] f32[3,2] i32[3]", dict(join="mean"), None, ShapeError,
        "join_rows: 'mean' is none of add, multiply, minimum, maximum and set",
    ),
    (
        "link_rows", "i32[9] i32[3]", dict(lists=2, extent=4), None, ShapeError,
        "link_rows: 2 lists of 4 places, of updates at i32[3], do not fit i32[9]",
    ),
    (
        "join_lists", "f32[4,2] f32[3,2] i32[9]", dict(join="add", lists=2), None, ShapeError,
        "join_lists: updates f32[3,2] in lists i32[9] do not fit the array f32[4,2]",
    ),
    (
        "join_lists", "f32[4,2] f32[3,2] i32[11]", dict(join="set", lists=2), None, ShapeError,
        "join_lists: 'set' is none of add, multiply, minimum, maximum",
    ),
    ("top_order", "f32[5]", dict(axis=0, count=6), None, ShapeError, "top_order: axis 0 of f32[5] does not have 6"),
    ("select_greatest", "f64[5]", dict(count=2, by_place=False), None, DtypeError, "numbers of at most 32 bits"),
    ("select_greatest", "f32[5]", dict(count=6, by_place=False), None, ShapeError, "no rows of 6 elements or more"),
    (
        "bidiagonal_svd", "f32[5,5] f32[5,5] f32[4] f32[5]", dict(vectors=True), None, ShapeError,
        "bidiagonal_svd: f32[5,5], f32[4] and f32[5] do not fit the left reflections f32[5,5]",
    ),
    (
        "tridiagonal_eigh", "f32[5,5] f32[4] f32[5]", dict(vectors=True), None, ShapeError,
        "tridiagonal_eigh: f32[4] and f32[5] do not fit the reflections f32[5,5]",
    ),
    ("fold_runs", "f32[3,2] i32[3] i32[2]", RUNS, None, ShapeError, "places i32[2] do not fit the updates f32[3,2]"),
    ("fold_runs", "f32[3] i32[3] i32[3]", {**RUNS, "join": "sin"}, None, ShapeError, "'sin' is none of add, "),
    (
        "join_runs", "f32[5] f32[3] i32[3] i32[3]", {**RUNS, "axes": (0,)}, None, ShapeError,
        "join_runs: nothing is given as [2] folded runs",
    ),
    (
        "join_runs", "f32[5,2] f32[1] i32[1] i32[1]", {**RUNS, "axes": (0,)}, None, ShapeError,
        "join_runs: updates f32[1] are none of f32[5,2] at the axes [0]",
    ),
    (
        "join_runs", "f32[5,2,4] f32[1,2] i32[1] i32[1]", {**RUNS, "axes": (0, 2)}, None, ShapeError,
        "join_runs: [0, 2] are no neighbouring axes of f32[5,2,4]",
    ),
]


@pytest.mark.parametrize("refused", REFUSED, ids=lambda refused: f"{refused[0]}-{refused[5]}")
def test_wrong_operands_are_refused(refused: Refused) -> None:
    op, operands, attrs, declared, error, message = refused
    inputs = [input_node(f"x{number}", parse_type(text)) for number, text in enumerate(operands.split())]
    with pytest.raises(error) as raised:
        make_node(op, inputs, attrs, parse_type(declared) if declared else None)
    assert message in str(raised.value)


def test_a_copied_or_pickled_dtype_is_the_same_object() -> None:
    """Dtypes are compared by identity."""
    for dtype in [*DTYPES.values(), tuple_of([]).dtype]:
        assert pickle.loads(pickle.dumps(dtype)) is copy.deepcopy(dtype) is copy.copy(dtype) is dtype
    kind = TensorType((2, 3), DTYPES["f32"])
    assert pickle.loads(pickle.dumps(kind)) == kind and hash(copy.deepcopy(kind)) == hash(kind)
