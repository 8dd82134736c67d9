"""Attention and its derivatives: blocks of scores are computed, used and forgotten, so that none goes to memory.

A kernel has *rows* of its own, queries or keys, and goes over the others, the *columns*, block by block. In a block it
makes a tile of scores, of that a tile of weights, and adds the tile's product with some operand to its rows of a
result. Who makes a tile, and where what is added up stands meanwhile, is the schedule's: attention_tiles.py.

    attention, attention_logsumexp    rows are queries; the peak so far and the sum of weights go along with each row,
                                      and what has been added up is scaled whenever the peak grows
    attention_query_gradient          rows are queries; weights are made of the logsumexp of each
    attention_key_gradient, attention_value_gradient    rows are keys, columns queries
    attention_query_parts                               beside the gradient of keys: what a workgroup's keys add to the
                                                        gradient of queries, whose products with keys are not made twice

Columns that no row of the block sees are gone past if hidden scores are -inf.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from math import inf

from lavax.backends.vulkan.emit.attention.broadcast import BroadcastShape, BroadcastTiles, broadcast_shapes
from lavax.backends.vulkan.emit.attention.invocation import InvocationTiles
from lavax.backends.vulkan.emit.attention.shape import Shape, choose_shape, fitting_shapes, keeps_busy
from lavax.backends.vulkan.emit.attention.tiles import Part, Problem, Stage, Tiles
from lavax.backends.vulkan.emit.attention.workgroup import WorkgroupTiles
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, INFINITY, MINUS_INFINITY, literal
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.ir.types import float32
from lavax.passes.build.attention import named_operands
from lavax.passes.kernels.kernel import Kernel

# What a peak starts from: finite, so that differences from it are no NaN, and no score is less but -inf.
_LEAST = literal(-3.4028234663852886e38, float32)
_NAN = "uintBitsToFloat(0x7fc00000u)"
# How a kernel's work is shared out.
Schedule = Shape | BroadcastShape
_BY_KEYS = ("attention_key_gradient", "attention_value_gradient", "attention_query_parts")


def stages_of(nodes: Mapping[str, Node]) -> list[Stage]:
    """What a block is made of in the kernel that computes these nodes, which are given by their operations."""
    operands: dict[str, Node] = {}
    for node in nodes.values():
        operands |= named_operands(node)
    found = [_stage(operands, *stage) for op, *stages in _STAGES if op in nodes for stage in stages]
    product = ("query", "key") if _is_by_keys(nodes) else ("key", "query")
    if "attention_query_parts" in nodes:
        alone = "attention_key_gradient" not in nodes
        found += [_stage(operands, "cotangent", "value")] if alone else []
        found.append(Stage(operands["key"], to_columns=True))
    return [_stage(operands, *product), *found]


# After the product of queries and keys: what is accumulated by which columns, and products by columns and rows.
_STAGES = (
    ("attention", ("value",)),
    ("attention_query_gradient", ("value", "cotangent"), ("key",)),
    ("attention_value_gradient", ("cotangent",)),
    ("attention_key_gradient", ("cotangent", "value"), ("query",)),
)


def _stage(operands: Mapping[str, Node], of_columns: str, of_rows: str | None = None) -> Stage:
    return Stage(operands[of_columns], None if of_rows is None else operands[of_rows])


def _is_by_keys(nodes: Mapping[str, Node]) -> bool:
    return not nodes.keys().isdisjoint(_BY_KEYS)


def _problem_of(nodes: Mapping[str, Node]) -> Problem:
    """The problem of the kernel that computes these nodes."""
    node = next(iter(nodes.values()))
    operands, by_keys = named_operands(node), _is_by_keys(nodes)
    query, key = operands["query"], operands["key"]
    rows, columns = (key, query) if by_keys else (query, key)
    grows = node.attrs["fill"] == -inf and not by_keys and node.attrs["highest"] < key.shape[-2] - 1
    return Problem(query.shape[:-2], rows.shape[-2], columns.shape[-2], by_keys, grows)


def _outputs(kernel: Kernel) -> dict[str, Node]:
    return {node.op: node for node in kernel.graph.outputs}


class AttentionEmitter:
    """The state of writing one kernel of attention."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool, schedule: Schedule | None) -> None:
        self.nodes = _outputs(kernel)
        self.operands: dict[str, Node] = {}
        for node in kernel.graph.outputs:
            self.operands |= named_operands(node)
        self.attrs = kernel.graph.outputs[0].attrs
        self.hides = self.attrs["fill"] == -inf
        self.stages = stages_of(self.nodes)
        problem = _problem_of(self.nodes)
        match schedule or _chosen(profile, problem, self.stages, _block(self.nodes)):
            case Shape() as shape:
                self.tiles: Tiles = WorkgroupTiles(kernel, profile, lifted, problem, self.stages, shape)
            case BroadcastShape() as shape:
                self.tiles = BroadcastTiles(kernel, profile, lifted, problem, shape)
            case None:
                self.tiles = InvocationTiles(kernel, profile, lifted, problem)
        self.parts: WorkgroupTiles | None = None  # the tiles, where parts of the gradient of queries are made of them
        if "attention_query_parts" in self.nodes:
            assert isinstance(self.tiles, WorkgroupTiles), "parts are asked for where workgroups have tiles"
            self.parts = self.tiles

    def _exp(self, difference: str) -> str:
        """Of a difference that is not positive."""
        return f"{self.tiles.body.uses.function('lx_exp_nonpositive')}({difference})"

    def _log(self, total: str) -> str:
        return f"{self.tiles.body.uses.function('lx_log')}({total})"

    def emit(self) -> Launch:
        if self.tiles.problem.by_keys:
            self._of_keys()
        elif "attention_query_gradient" in self.nodes:
            self._of_queries()
        else:
            self._forward()
        return self.tiles.close()

    def _blocks(self) -> AbstractContextManager[None]:
        """The loop over blocks of columns that rows see."""
        problem, before, behind = self.tiles.problem, None, None
        lowest, highest = self.attrs["lowest"], self.attrs["highest"]
        if self.hides:
            before = -lowest if lowest > 1 - problem.queries else None
            behind = highest if highest < problem.keys - 1 else None
        bounds = (behind, before) if problem.by_keys else (before, behind)
        return self.tiles.blocks(*bounds, self.stages)

    # -- scores -------------------------------------------------------------------------------------------------------

    def _scores(self) -> None:
        """The tile `s`: scores, -inf beyond the last column."""
        tiles = self.tiles
        row, column = ("key", "query") if tiles.problem.by_keys else ("query", "key")
        tiles.product("s", self.operands[row], self.operands[column])
        fill = f"vec4({MINUS_INFINITY if self.hides else literal(self.attrs['fill'], float32)})"
        for part in tiles.parts():
            name = part.of("s")
            bias = f" + {part.score(self.operands['bias'])}" if "bias" in self.operands else ""
            tiles.line(f"{name} = {name} * {literal(self.attrs['scale'], float32)}{bias};")
            for visible in self._visible(part):
                tiles.line(f"{name} = mix({fill}, {name}, {visible});")
            if part.beyond:
                tiles.line(f"{name} = mix({name}, vec4({MINUS_INFINITY}), {part.beyond});")

    def _visible(self, part: Part) -> list[str]:
        """Conditions that all hold where a score is not hidden."""
        problem, conditions = self.tiles.problem, []
        if "mask" in self.operands:
            conditions.append(part.score(self.operands["mask"]))
        if self.attrs["lowest"] > 1 - problem.queries:
            conditions.append(part.key_behind_query(self.attrs["lowest"]))
        if self.attrs["highest"] < problem.keys - 1:
            conditions.append(part.key_before_query(self.attrs["highest"]))
        return conditions

    # -- forward ------------------------------------------------------------------------------------------------------

    def _forward(self) -> None:
        tiles, result = self.tiles, self.nodes.get("attention")
        rows = range(tiles.height)
        for row in rows:
            tiles.line(f"float peak{row} = {_LEAST}, total{row} = 0.0;")
        if result is not None:
            tiles.open_result(result)
        with self._blocks():
            self._scores()
            self._take_in(rows)
            if result is not None:
                tiles.accumulate(result, "s", self.operands["value"], scaled=True)
        tiles.folded("+", [f"total{row}" for row in rows])
        empty = self.attrs["empty"]
        if result is not None:
            for row in rows:
                nothing = "0.0" if empty else _NAN
                tiles.line(f"float share{row} = total{row} == 0.0 ? {nothing} : 1.0 / total{row};")
            tiles.close_result(result, [f"share{row}" for row in rows])
        statistic = self.nodes.get("attention_logsumexp")
        if statistic is not None:
            nothing = INFINITY if empty else MINUS_INFINITY
            found = (f"(total{row} == 0.0 ? {nothing} : peak{row} + {self._log(f'total{row}')})" for row in rows)
            tiles.store_statistic(statistic, list(found))

    def _take_in(self, rows: range) -> None:
        """Makes weights of the rows' scores, relative to the new peak; `scale` is what the old ones shrink by.

        A total is of the invocation's own columns until the end.
        """
        tiles = self.tiles
        vectors = {row: [f"s{row}_{group}" for group in range(tiles.groups)] for row in rows}
        for row in rows:
            tiles.line(f"vec4 most{row} = {_folded('max', vectors[row])};")
            tiles.line(f"float higher{row} = {_folded('max', [f'most{row}.{c}' for c in COMPONENTS])};")
        tiles.folded("max", [f"higher{row}" for row in rows])
        for row in rows:
            tiles.line(f"higher{row} = max(peak{row}, higher{row});")
            tiles.line(f"float scale{row} = {self._exp(f'peak{row} - higher{row}')};")
            tiles.line(f"peak{row} = higher{row};")
            for vector in vectors[row]:
                tiles.line(f"{vector} = {self._exp(f'{vector} - peak{row}')};")
            tiles.line(f"vec4 sums{row} = {' + '.join(vectors[row])};")
            tiles.line(f"float sum{row} = (sums{row}.x + sums{row}.y) + (sums{row}.z + sums{row}.w);")
            tiles.line(f"total{row} = total{row} * scale{row} + sum{row};")

    # -- derivatives --------------------------------------------------------------------------------------------------

    def _of_queries(self) -> None:
        tiles, result = self.tiles, self.nodes["attention_query_gradient"]
        tiles.open_result(result)
        with self._blocks():
            self._scores()
            self._weights()
            self._score_gradient("cotangent", "value")
            tiles.accumulate(result, "g", self.operands["key"], scaled=False)
        tiles.close_result(result, ())

    def _of_keys(self) -> None:
        tiles = self.tiles
        of_keys, of_values = (self.nodes.get(f"attention_{name}_gradient") for name in ("key", "value"))
        for result in (of_keys, of_values):
            if result is not None:
                tiles.open_result(result)
        with self._blocks():
            for part in tiles.parts():  # loaded before the products, whose barriers keep loads in their places
                for name in ("logsumexp", *(("delta",) if "delta" in self.operands else ())):
                    self._statistic(part, name)
            self._scores()
            self._weights()
            if of_values is not None:
                tiles.accumulate(of_values, "s", self.operands["cotangent"], scaled=False)
            if "delta" in self.operands:
                self._score_gradient("value", "cotangent")
            if of_keys is not None:
                tiles.accumulate(of_keys, "g", self.operands["query"], scaled=False)
            if self.parts is not None:
                self.parts.give(self.nodes["attention_query_parts"], "g", self.operands["key"])
        for result in (of_keys, of_values):
            if result is not None:
                tiles.close_result(result, ())
        if self.parts is not None:
            self.parts.give_nothing(self.nodes["attention_query_parts"])

    def _statistic(self, part: Part, name: str) -> str:
        """A number of each query."""
        operand = self.operands[name]
        return part.of_columns(operand) if self.tiles.problem.by_keys else part.of_row(operand)

    def _weights(self) -> None:
        """Weights in place of the scores `s`, 0 beyond the last column."""
        for part in self.tiles.parts():
            name = part.of("s")
            difference = f"{name} - {self._statistic(part, 'logsumexp')}"
            self.tiles.line(f"{name} = {self._exp(difference)};")
            if part.beyond:
                self.tiles.line(f"{name} = mix({name}, vec4(0), {part.beyond});")

    def _score_gradient(self, of_rows: str, of_columns: str) -> None:
        """The tile `g`: what the scores' cotangents are, times what the product of query and key is multiplied by."""
        tiles = self.tiles
        tiles.product("g", self.operands[of_rows], self.operands[of_columns])
        for part in tiles.parts():
            name, scale = part.of("g"), literal(self.attrs["scale"], float32)
            delta = self._statistic(part, "delta")
            tiles.line(f"{name} = {scale} * {part.of('s')} * ({name} - {delta});")
            for visible in self._visible(part):
                tiles.line(f"{name} = mix(vec4(0), {name}, {visible});")
            if part.beyond:
                tiles.line(f"{name} = mix({name}, vec4(0), {part.beyond});")


def _folded(function: str, texts: Sequence[str]) -> str:
    """Joined two by two."""
    if len(texts) == 1:
        return texts[0]
    half = len(texts) // 2
    return f"{function}({_folded(function, texts[:half])}, {_folded(function, texts[half:])})"


def _block(nodes: Mapping[str, Node]) -> int | None:
    """How many keys a workgroup has, if that is said."""
    parts = nodes.get("attention_query_parts")
    return None if parts is None else parts.attrs["block"]


def block_of_parts(node: Node, profile: DeviceProfile) -> int | None:
    """How many keys a workgroup has that computes, for a node of the gradient of queries, parts of it beside the
    gradients of keys and values; None where there is no kernel for it, or too little work."""
    if profile.kind != "gpu" or not profile.subgroup_shuffle:
        return None
    nodes = dict.fromkeys(_BY_KEYS, node)
    problem = _problem_of(nodes)
    shape = choose_shape(profile, problem, stages_of(nodes))
    return shape.rows if shape is not None and keeps_busy(shape, problem, profile) else None


def _chosen(
    profile: DeviceProfile, problem: Problem, stages: Sequence[Stage], rows: int | None
) -> Schedule | None:
    """The schedule that suits the sizes; None: invocations work by themselves. A workgroup has so many `rows`, if that
    is said."""
    if not profile.subgroup_shuffle:
        return None
    if profile.kind == "cpu":
        return broadcast_shapes(profile, problem, stages)[0]
    return choose_shape(profile, problem, stages, rows)


def attention_candidates(kernel: Kernel, profile: DeviceProfile) -> list[Schedule]:
    """The schedules worth a try, first the one that is chosen without trying."""
    nodes = _outputs(kernel)
    problem, stages = _problem_of(nodes), stages_of(nodes)
    rows = _block(nodes)
    chosen = _chosen(profile, problem, stages, rows)
    if chosen is None:
        return []
    if profile.kind == "cpu":
        return [*broadcast_shapes(profile, problem, stages)]
    fitting = (shape for shape in fitting_shapes(profile, stages) if rows is None or shape.rows == rows)
    return list(dict.fromkeys((chosen, *fitting)))


def emit_attention(kernel: Kernel, profile: DeviceProfile, lifted: bool, schedule: Schedule | None = None) -> Launch:
    """The shader of attention, or of some of its derivatives over the same rows."""
    return AttentionEmitter(kernel, profile, lifted, schedule).emit()
