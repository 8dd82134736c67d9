"""Replays a kernel program's steps over its memory, and says which rule of order or storage they break."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from lavax.passes.kernels.accesses import is_pointwise
from lavax.passes.kernels.commands import Command, Guard
from lavax.passes.kernels.kernel import KernelStep
from lavax.passes.kernels.program import KernelProgram

ALIGNMENT = 256
Range = tuple[str, int, int]  # an allocation, from where to where


@dataclass
class Replay:
    """What memory holds, and what was done since the last barrier."""

    program: KernelProgram
    contents: dict[str, Range] = field(default_factory=dict)  # the buffers whose values are in memory
    reads: list[Range] = field(default_factory=list)
    writes: list[Range] = field(default_factory=list)

    def range_of(self, name: str) -> Range:
        size = self.program.sizes[name]
        if name in self.program.offsets:
            start = self.program.offsets[name]
            assert start % ALIGNMENT == 0 and start + size <= self.program.arena_bytes, f"{name} leaves the arena"
            return ("arena", start, start + size)
        return (self.program.donors.get(name, name), 0, size)

    def step(self, step: KernelStep) -> None:
        if step.barrier:
            self.reads, self.writes = [], []
        reads = [[self.range_of(name) for name in part] for part in step.reads]
        writes = [[self.range_of(name) for name in part] for part in step.writes]
        handed_on = [names if step.in_turn else () for names in ((), *step.writes)]  # by the part before
        for names, given in zip(step.reads, handed_on, strict=False):
            is_there = all(name in self.contents or name in given for name in names)
            assert is_there, f"{step.name} reads {names}, not all of it in memory"
        for part, (read, written) in enumerate(zip(reads, writes, strict=True)):
            assert not _common(read, self.writes), f"{step.name} reads what was written, without a barrier"
            assert not _common(written, self.writes), f"{step.name} overwrites what was written, without a barrier"
            assert not _common(written, self.reads), f"{step.name} overwrites what is read, without a barrier"
            for other in range(len(reads)):
                if other != part:
                    given = handed_on[other] if other == part + 1 else ()
                    own = [at for name, at in zip(step.reads[other], reads[other], strict=True) if name not in given]
                    clash = _common(written, own)
                    assert not clash, f"{step.name}: parts read and write one memory"
                    assert not _common(written, writes[other]), f"{step.name}: two parts write one memory"
            self._check_own_overlaps(step, part)
            assert len(set(written)) == len(written)
        for names, ranges in zip(step.writes, writes, strict=True):
            for name, place in zip(names, ranges, strict=True):
                self.contents = {other: at for other, at in self.contents.items() if not _common([place], [at])}
                self.contents[name] = place
        self.reads += [place for part in reads for place in part]
        self.writes += [place for part in writes for place in part]

    def _check_own_overlaps(self, step: KernelStep, part: int) -> None:
        """A kernel may write over what it reads only element by element, and over the whole of it."""
        kernel = step.kernels[part]
        for read, read_node in zip(step.reads[part], kernel.graph.inputs, strict=True):
            for written, written_node in zip(step.writes[part], kernel.graph.outputs, strict=True):
                if _common([self.range_of(read)], [self.range_of(written)]):
                    whole = self.range_of(read) == self.range_of(written)
                    assert whole, f"{step.name}: {written} lies over a part of {read}"
                    assert is_pointwise(kernel, read_node, written_node), f"{step.name}: {written} is not pointwise"


def _common(some: Sequence[Range], others: Sequence[Range]) -> bool:
    return any(a == b and start < end_b and start_b < end for a, start, end in some for b, start_b, end_b in others)


def _steps_of(commands: Iterable[Command]) -> Iterator[KernelStep]:
    """All steps, also those of branches and loops."""
    for command in commands:
        if isinstance(command, KernelStep):
            yield command
        elif not isinstance(command, Guard):
            yield from _steps_of(command.commands)


def check_sizes(program: KernelProgram) -> None:
    """Asserts that kernels take whole buffers for what these are, and parts that move for parts within them."""
    for step in _steps_of(program.steps):
        for kernel, reads, writes in zip(step.kernels, step.reads, step.writes, strict=True):
            assert len(reads) == len(kernel.graph.inputs) and len(writes) == len(kernel.graph.outputs)
            for name, node in zip((*reads, *writes), (*kernel.graph.inputs, *kernel.graph.outputs), strict=True):
                if name in program.views:
                    assert node.type.nbytes == program.views[name].stride, f"{name} is no part of {step.name}'s"
                else:
                    assert program.sizes[name] == node.type.nbytes, f"{name} has two sizes"


def check_program(program: KernelProgram, donated: Sequence[int] = ()) -> None:
    """Asserts that steps, barriers, arena and donors are right, and that the results are in memory at the end."""
    replay = Replay(program)
    inputs = [node.name for node in program.graph.inputs]
    replay.contents = {name: replay.range_of(name) for name in inputs}
    allowed = {inputs[position] for position in donated}
    assert len(set(program.donors.values())) == len(program.donors), "one input's memory goes to two results"
    for result, donor in program.donors.items():
        assert result in program.results and donor in allowed and donor not in program.results
        assert program.sizes[result] == program.sizes[donor]
    for step in program.steps:
        replay.step(step)
    assert all(name in replay.contents for name in program.results), "a result is not in memory at the end"
    check_sizes(program)
    written = [name for step in program.steps for part in step.writes for name in part]
    assert len(set(written)) == len(written), "a buffer is written twice"
    read = {name for step in program.steps for part in step.reads for name in part} | set(program.results)
    assert set(written) <= read, "a buffer is written for nobody"
