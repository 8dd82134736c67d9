"""Operations without operands."""
from __future__ import annotations

from collections.abc import Callable, Iterator

from lavax.ir import TensorType, bool_, float32, int32, uint32
from tests.operation_cases.case import SAMPLED_DTYPES, Case, case_of


def _constant() -> Iterator[Case]:
    for value, dtype in ((2.5, float32), (-0.0, float32), (7, int32), (-7, int32), (7, uint32), (True, bool_)):
        for shape in ((), (1,), (3, 17), (0,)):
            type = TensorType(shape, dtype)
            yield case_of("constant", f"{value}-{type}", [], dict(value=value), type)
    for value in ("nan", "inf", "-inf"):
        type = TensorType((3,), float32)
        yield case_of("constant", f"special-{value}", [], dict(value=float(value)), type, special=True)


def _iota() -> Iterator[Case]:
    for dtype in (dtype for dtype in SAMPLED_DTYPES if dtype != bool_):
        for shape, axis in (((1,), 0), ((41,), 0), ((3, 17), 0), ((3, 17), 1), ((2, 1, 3), 2), ((0, 3), 1)):
            type = TensorType(shape, dtype)
            yield case_of("iota", f"{type}-{axis}", [], dict(axis=axis), type)


MAKERS: dict[str, Callable[[], Iterator[Case]]] = {
    "constant": _constant,
    "iota": _iota,
}
