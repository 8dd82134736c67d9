"""Why kernels are cut as they are: the report, and the reasons that fusion gives."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.passes.fuse.costs import KERNEL_LIMITS
from lavax.passes.fuse.fuse import fuse
from lavax.passes.fuse.reasons import Reason
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.reports.fusion import FusionReport, fusion_report
from lavax.passes.simplify import remove_stop_gradient
from lavax.passes.target.target import ANY_DEVICE, Rows, Target
from tests.passes.lowering import f32, i32


def report_of(function: Callable[..., Any], *arguments: Any) -> FusionReport:
    return fusion_report(prepare(remove_stop_gradient(lx.trace(function)(*arguments))))


def reasons_of(function: Callable[..., Any], *arguments: Any) -> set[Reason]:
    """All that fusion noted on its way."""
    fusion = fuse(prepare(remove_stop_gradient(lx.trace(function)(*arguments))))
    return {*fusion.refusals.values(), *fusion.storing.values()}


def test_one_kernel_has_no_borders_and_keeps_what_it_computes() -> None:
    (kernel,) = report_of(lambda x: x - lnp.max(x, axis=1, keepdims=True), f32(64, 48)).kernels
    assert (kernel.name, kernel.kind, kernel.borders, kernel.recomputed) == ("k0", "row", (), ())
    assert [node.op for node in kernel.kept] == ["max"]
    assert [node.op for node in kernel.written] == ["subtract"]


def test_a_border_names_the_value_its_reader_and_the_reason() -> None:
    report = report_of(lambda x, w: lnp.sum(x @ w, axis=1), f32(64, 48), f32(48, 32))
    product, reduction = report.kernels
    (border,) = product.borders
    assert (border.value.op, border.reader.op, border.kernel) == ("dot", "sum", reduction.name)
    assert border.reason == Reason.WHOLE_ROWS.value
    assert "writes %0 for k1, where %1 sum (test_fusion_report.py:" in str(report)


def test_what_two_kernels_compute_is_computed_again() -> None:
    report = report_of(lambda x, w: ((x * 2.0) @ w, lnp.sum(x * 2.0, axis=1)), f32(64, 48), f32(48, 32))
    again = [[node.op for node in kernel.recomputed] for kernel in report.kernels]
    assert again == [["multiply"], ["multiply"]]
    assert "computes again %1 multiply: a cost of 1 an element in place of reading 12 KiB" in str(report)


def _many_operations(x: Any) -> Any:
    y = lnp.sum(x, axis=1, keepdims=True)
    for number in range(KERNEL_LIMITS.nodes + 8):
        y = lnp.sin(y) + number
    return y


def _apart(x: Any, w: Any) -> Any:
    product = x @ w
    return product * 2.0, lnp.sum(product, axis=0)


REASONS: dict[Reason, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    Reason.NODES: (_many_operations, (f32(64, 48),)),
    Reason.READ_APART: (_apart, (f32(64, 48), f32(48, 32))),
    Reason.EPILOGUE_COST: (lambda x, w: lnp.exp(lnp.exp(lnp.exp(x @ w))), (f32(64, 48), f32(48, 32))),
    Reason.PROLOGUE: (lambda x, w: lnp.exp(x) @ w, (f32(64, 48), f32(48, 32))),
    Reason.PRODUCT: (lambda x, w, v: (x @ w) @ v, (f32(64, 48), f32(48, 32), f32(32, 16))),
    Reason.OTHER_ROWS: (lambda x: lnp.sum(x / lnp.sum(x, axis=1, keepdims=True), axis=0), (f32(64, 48),)),
    Reason.LONG_ROWS: (lambda x: x - lnp.max(x, axis=1, keepdims=True), (f32(2, 20_000),)),
    Reason.REPEATED: (lambda x: lnp.exp(lnp.sin(x)) + f32(1024, 1024), (f32(1024),)),
    Reason.ROUTINE: (lambda x: lnp.cumsum(lnp.sum(x, axis=1)), (f32(64, 48),)),
    Reason.CONTROL_FLOW: (lambda n, x: lx.fori_loop(0, n, lambda i, y: y * 2.0, x + 1.0), (i32(), f32(8))),
}


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: reason.name)
def test_reasons(reason: Reason) -> None:
    function, arguments = REASONS[reason]
    assert reason in reasons_of(function, *arguments)


def test_rows_leave_large_turned_values_to_maps_where_neighbours_matter() -> None:
    def function(x: Any, y: Any) -> Any:
        return lnp.sum(x, axis=0).T * y

    for target, is_noted in ((ANY_DEVICE, False), (Target(rows=Rows(turned=1 << 16)), True)):
        for columns, is_large in ((300, True), (128, False)):
            kinds = f32(4, 256, columns), f32(columns, 256)
            graph = prepare(remove_stop_gradient(lx.trace(function)(*kinds)), target)
            fusion = fuse(graph, target)
            assert (Reason.TURNED in fusion.refusals.values()) == (is_noted and is_large)


def test_the_text_is_a_stage() -> None:
    text = lx.compile(lambda x: lnp.sum(x * x)).lower(f32(64)).as_text("fusion")
    assert text.startswith("kernel k0 kind=row\n  computes %")
