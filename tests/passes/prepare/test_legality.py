"""What each stage before fusion may hold: every rule refuses a graph that breaks it, and no pass makes such a graph."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.errors import VerificationError
from lavax.ir import Graph, TensorType, float32, interpret, parse
from lavax.ir.graph import Node, graph_of, input_node
from lavax.ir.operation import OPERATIONS
from lavax.passes.build.inline import CALLS
from lavax.passes.prepare import legality, pipeline
from lavax.passes.prepare.decompose.joining import joined
from lavax.passes.prepare.legality import RULES, verify_stage
from lavax.passes.prepare.pipeline import PASSES, STAGES, graph_at, prepare, stages
from lavax.passes.simplify import remove_stop_gradient
from lavax.passes.target.target import ANY_DEVICE
from lavax.tracer.values.backend import active
from tests.operation_cases import all_cases
from tests.random_graphs import random_graph


def _joined(count: int) -> str:
    names = [f"x{number}" for number in range(count)]
    inputs = ", ".join(f"{name}: f32[1]" for name in names)
    return f"""
        graph ({inputs}) {{
          %0 = concatenate({", ".join(names)}) axis=0 : f32[{count}]
          return %0
        }}
        """


# By the rule's text: a stage at which it holds, and a graph that breaks it there.
BREAKING: dict[str, tuple[str, str]] = {
    "lowering makes this operation later": (
        "optimized",
        """
        graph (x: i32[2,4]) {
          %0 = sort_runs(x) run=2 : i32[2,4]
          return %0
        }
        """,
    ),
    "axes have no names outside vmap": (
        "optimized",
        """
        graph (x: f32[3]) {
          %0 = axis_sum(x) name="i" : f32[3]
          return %0
        }
        """,
    ),
    "calls are inlined": (
        "optimized",
        """
        graph (x: f32[3]) {
          %0 = checkpoint(x) keep="nothing" body=graph (y: f32[3]) {
            %0 = negate(y) : f32[3]
            return %0
          } : (f32[3])
          %1 = item(%0) index=0 : f32[3]
          return %1
        }
        """,
    ),
    "complex values are taken apart": (
        "complex",
        """
        graph (x: f32[3], y: f32[3]) {
          %0 = complex(x, y) : c64[3]
          %1 = real(%0) : f32[3]
          return %1
        }
        """,
    ),
    "arithmetic is done in 32 bits or more": (
        "signs",
        """
        graph (x: f16[3]) {
          %0 = add(x, x) : f16[3]
          return %0
        }
        """,
    ),
    "values whose order is asked for, too, are sorted once": (
        "orders",
        """
        graph (x: f32[3]) {
          %0 = sort(x) axis=0 : f32[3]
          %1 = sort_order(x) axis=0 : i32[3]
          return %0, %1
        }
        """,
    ),
    "operands are rounded to the product's precision": (
        "roundings",
        """
        graph (x: f32[2,3], y: f32[3,2]) {
          %0 = dot(x, y) contract=[1]x[0] precision="bf16" : f32[2,2]
          return %0
        }
        """,
    ),
    "kernels have no form for this operation": (
        "nodes",
        """
        graph (x: f32[3]) {
          %0 = stop_gradient(x) : f32[3]
          return %0
        }
        """,
    ),
    "values without elements are constants": (
        "nodes",
        """
        graph (x: f32[0]) {
          %0 = negate(x) : f32[0]
          return %0
        }
        """,
    ),
    "a concatenation has at most 8 operands": ("nodes", _joined(9)),
    "one invocation makes at most 40000 iterations": (
        "nodes",
        """
        graph (x: f32[2,50000], y: f32[50000,2]) {
          %0 = dot(x, y) contract=[1]x[0] : f32[2,2]
          return %0
        }
        """,
    ),
}


def _graph(text: str) -> Graph:
    return parse(dedent(text).lstrip("\n"))


def _after(stage: str) -> tuple[str, ...]:
    return STAGES[: STAGES.index(stage) + 1]


def test_every_rule_is_broken_here() -> None:
    assert sorted(BREAKING) == sorted(rule.text for rule in RULES)


@pytest.mark.parametrize("text", BREAKING)
def test_a_graph_that_breaks_a_rule_is_refused(text: str) -> None:
    """With the names of stage, node and rule; at stages before the rule holds, it passes."""
    stage, source = BREAKING[text]
    with pytest.raises(VerificationError, match=text) as refused:
        verify_stage(_graph(source), _after(stage))
    assert f"at the stage {stage!r}: %" in str(refused.value)
    (rule,) = (rule for rule in RULES if rule.text == text)
    earlier = _after(rule.since)[:-1]
    if earlier:
        verify_stage(_graph(source), earlier)


def test_rules_name_stages() -> None:
    assert {rule.since for rule in RULES} <= set(STAGES)
    assert {rule.until for rule in RULES} <= {*STAGES, None}


def _of_wrong_type() -> Graph:
    x = input_node("x", TensorType((3,), float32))
    return graph_of([x], [Node("negate", (x,), {}, x.type.with_shape((4,)))])


def test_a_graph_of_wrong_types_is_refused() -> None:
    with pytest.raises(VerificationError, match="at the stage 'widen': "):
        verify_stage(_of_wrong_type(), _after("widen"))


def test_prepare_checks_under_the_setting_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(VerificationError, match="at the stage 'complex': "):
        prepare(_of_wrong_type())
    monkeypatch.delenv("LAVAX_VERIFY")
    prepare(_of_wrong_type())


def test_what_a_pass_leaves_as_it_was_is_not_verified_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[Graph]()
    monkeypatch.setattr(legality, "verify", seen.append)
    prepare(lx.trace(lambda x: lnp.tanh(x) @ x)(np.ones((3, 3), "f")))
    assert 0 < len(seen) == len({id(graph) for graph in seen}) < len(PASSES) // 2


def test_what_a_pass_makes_of_a_graph_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by the last pass, of a graph that those before it left as it was; and a rule of stages, of such a graph."""
    graph = lx.trace(lambda x: lnp.tanh(x))(np.ones(3, "f"))
    last = replace(PASSES[-1], run=lambda graph, target: _of_wrong_type())
    monkeypatch.setattr(pipeline, "PASSES", (*PASSES[:-1], last))
    with pytest.raises(VerificationError, match=rf"at the stage '{last.name}': .*the type must be"):
        prepare(graph)
    monkeypatch.setattr(pipeline, "PASSES", [replace(each, run=lambda graph, target: graph) for each in PASSES])
    with pytest.raises(VerificationError, match=r"at the stage 'nodes': .*a concatenation has at most"):
        prepare(_graph(_joined(100)))


def test_programs_are_checked_before_all_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = _graph(BREAKING["lowering makes this operation later"][1])
    with pytest.raises(VerificationError, match="at the stage 'optimized': "):
        active().lower(graph, ())
    monkeypatch.delenv("LAVAX_VERIFY")
    active().lower(graph, ())


def test_passes_keep_the_rules_for_every_operation() -> None:
    """The setting is on in tests, so `prepare` raises if a pass breaks one."""
    for case in all_cases():
        if OPERATIONS[case.op].family != "axis" and case.op not in CALLS:
            prepare(remove_stop_gradient(case.graph))


@pytest.mark.parametrize("seed", range(20))
def test_passes_keep_the_rules_for_random_graphs(seed: int) -> None:
    prepare(remove_stop_gradient(random_graph(seed)[0]))


def test_decompositions_join_many_arrays_in_steps() -> None:
    inputs = [input_node(name, TensorType((2, 1), float32)) for name in "abcdefghijklmnopqrstu"]
    found = joined(inputs, 1)
    assert found.shape == (2, 21) and len(found.operands) == 3
    values = [np.full((2, 1), number) for number in range(21)]
    assert interpret(graph_of(inputs, [found]), *values)[0][1].tolist() == list(range(21))


def test_stages_are_asked_for_by_name_or_number() -> None:
    graph = _graph(BREAKING["kernels have no form for this operation"][1])
    texts = [str(found) for _, found in stages(graph)]
    assert len(texts) == len(STAGES) == len(PASSES) + 1
    for number, (name, text) in enumerate(zip(STAGES, texts, strict=True)):
        assert str(graph_at(graph, ANY_DEVICE, name)) == str(graph_at(graph, ANY_DEVICE, str(number))) == text
    assert texts[0] == str(graph) and texts[-1] == str(prepare(graph)) != texts[0]
    listed = rf"there is no pass 'nodez'; there are optimized, complex, .*{STAGES[-1]}, or 0 to {len(STAGES) - 1}"
    with pytest.raises(ValueError, match=listed):
        graph_at(graph, ANY_DEVICE, "nodez")


def test_dumps_have_the_stages() -> None:
    lowered = lx.compile(lambda x: lnp.concatenate([x] * 9)).lower(lx.ShapeDtype((2,), "float32"))
    assert lowered.as_text("prepare:0") == lowered.as_text("prepare:optimized") == lowered.as_text("optimized")
    last = len(STAGES) - 1
    assert lowered.as_text("prepare") == lowered.as_text(f"prepare:{STAGES[-1]}") == lowered.as_text(f"prepare:{last}")
    assert lowered.as_text("prepare").count("concatenate") > lowered.as_text("prepare:roundings").count("concatenate")
    for stage in (f"prepare:{last + 1}", "prepare:later", "kernels:1", "glsl:widen"):
        with pytest.raises(ValueError, match=stage.partition(":")[2] if "prepare" in stage else stage):
            lowered.as_text(stage)


def test_the_documentation_lists_the_passes() -> None:
    page = (Path(__file__).parents[3] / "docs" / "dumps.md").read_text(encoding="utf-8")
    for number, step in enumerate(PASSES, 1):
        assert f"| {number} | `{step.name}` | {step.summary} |" in page
