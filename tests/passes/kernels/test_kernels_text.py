"""The text of kernels: what each part of it says, and that it is the same on every run."""
from __future__ import annotations

import re
from textwrap import dedent

from lavax.passes.kernels.program import print_program
from lavax.passes.simplify import simplify
from tests.passes.lowering import program_of
from tests.random_graphs import random_graph

STEP = """
    graph (w: f32[4,4], m: f32[4,4], x: f32[2,4]) {
      %0 = dot(x, w) contract=[1]x[0] : f32[2,4]
      %1 = tanh(%0) : f32[2,4]
      %2 = dot(x, %1) contract=[0]x[0] : f32[4,4]
      %3 = add(m, %2) : f32[4,4]
      return %3
    }
"""


def test_donations_barriers_and_the_arena_are_written_out() -> None:
    assert str(program_of(STEP, donated=(0,))) == dedent("""
        program (w: f32[4,4], m: f32[4,4], x: f32[2,4]) -> (%r0) arena=256
        donated w -> %r0
        kernel k0 kind=contract outer=[2,4]
          [2,4] (x, w) -> (%t0)
          graph (a0: f32[2,4], a1: f32[4,4]) {
            %0 = dot(a0, a1) contract=[1]x[0] : f32[2,4]
            %1 = tanh(%0) : f32[2,4]
            return %1
          }
        kernel k1 kind=contract outer=[4,4] after_barrier
          [4,4] (x, %t0, m) -> (%r0)
          graph (a0: f32[2,4], a1: f32[2,4], a2: f32[4,4]) {
            %0 = dot(a0, a1) contract=[0]x[0] : f32[4,4]
            %1 = add(a2, %0) : f32[4,4]
            return %1
          }
    """).strip()


def test_a_reduction_says_what_it_reduces() -> None:
    text = str(program_of("""
        graph (x: i32[2,3,4]) {
          %0 = max(x) axes=[0,2] : i32[3]
          return %0
        }
    """))
    assert text.splitlines()[1] == "kernel k0 kind=row outer=[3] reduced=[2,4]"


def test_the_text_is_the_same_on_every_run() -> None:
    for seed in range(40):
        graph, _ = random_graph(seed, 60)
        simple = simplify(graph)
        assert print_program(program_of(simple)) == print_program(program_of(simple))


def test_each_dispatch_has_one_kernel_line() -> None:
    for seed in range(20):
        program = program_of(random_graph(seed)[0])
        heads = re.findall(r"^kernel (\w+) kind=(map|row|contract|routine)\b", str(program), re.MULTILINE)
        assert [name for name, _ in heads] == [step.name for step in program.steps]
