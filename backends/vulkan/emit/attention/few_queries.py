"""Attention of few queries, such as that of a new token to a cache: a workgroup for each query and part of its keys.

Lanes share a key: each has some neighbouring elements of it, and the same elements of its value. So a lane knows the
scores of its keys, adds up its elements of their values, and all that is loaded is loaded before anything is computed.
Subgroups exchange twice through shared memory: the greatest score, then the sums. Operands are read once, so they may
be computed where they are read: a cache's new row, say, comes from where it was made.

`attention_head_products` goes on: the workgroup that joins a head's parts multiplies its result by the head's rows of a
weight. Which workgroup it will be is not known before, so each reads its head's rows of the weight as early as its
keys. In `attention_projected` the one that ends last of all heads adds up what these give.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from math import inf

from lavax.backends.vulkan.emit.attention.few_queries_shape import FewQueriesShape
from lavax.backends.vulkan.emit.attention.last_workgroup import LastWorkgroup
from lavax.backends.vulkan.emit.attention.problem import Problem, nodes_of, problem_of
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, INFINITY, MINUS_INFINITY, VECTOR, conversion, literal
from lavax.backends.vulkan.glsl.lanes import LANE, GlslValue, widened
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, grid, open_body
from lavax.backends.vulkan.glsl.reductions import doubling
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.ir.ops.attention import PROJECTED, ROUNDED, rounded_dtype
from lavax.ir.types import float32
from lavax.passes.build.attention import named_operands
from lavax.passes.kernels.index import Index, clamp, linear, quotient, remainder, unflatten, variable
from lavax.passes.kernels.kernel import Kernel

# Finite, so that differences from it are not NaN, and no score but -inf is less.
_LEAST = literal(-3.4028234663852886e38, float32)
_NAN = "uintBitsToFloat(0x7fc00000u)"
# A dispatch that is cut could be left before all parts of a row have met. Those whose workgroups are not numbered by
# the text of `WORKGROUP` are never cut; this gives the same number.
_UNCUT_WORKGROUP = "(gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x)"


class FewQueriesEmitter:
    """The state of writing a kernel."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool, shape: FewQueriesShape) -> None:
        self.nodes: Mapping[str, Node] = nodes_of(kernel)
        self.operands: dict[str, Node] = {}
        for node in kernel.graph.outputs:
            self.operands |= named_operands(node)
        self.attrs, self.shape = kernel.graph.outputs[0].attrs, shape
        self.problem: Problem = problem_of(self.nodes)
        self.subgroup = profile.subgroup_size
        self.subgroups = shape.local // self.subgroup
        self.body, self.outputs = open_body(kernel, lifted)
        self.body.loads_runs = shape.run > 1
        self.declarations: list[str] = []
        self.rows = self.problem.count * self.problem.rows
        self.projected = next((node for op, node in self.nodes.items() if op in PROJECTED), None)
        self.line_vectors = self.operands["value"].shape[-1] // VECTOR if "value" in self.operands else 0
        self.last: LastWorkgroup | None = None
        if shape.parts > 1 or self.projected is not None:
            shared = self.operands["residual"].type.size // VECTOR if "residual" in self.operands else 0
            self.last = LastWorkgroup(self.body, self.rows, shape.parts, 1 + self.line_vectors, shared)
            self.declarations += self.last.declarations
            self.declarations += () if self.projected is None else self.last.shared_declarations
        self._open()
        row, member = variable("row", self.rows), variable("member", shape.local)
        self.part = variable("part", shape.parts)
        self.batch = unflatten(quotient(row, self.problem.rows), self.problem.batch)
        self.query, self.member = remainder(row, self.problem.rows), member
        self.chunk, self.place = remainder(member, shape.lanes), quotient(member, shape.lanes)
        # The invocations that join parts, by number: those of the first subgroup, or of each for itself.
        self.joining = "member" if self.projected is None else "int(gl_SubgroupInvocationID)"
        self.weights: list[list[str]] = []

    def _open(self) -> None:
        rows, parts = self.rows, self.shape.parts
        self.line(f"int group = int{WORKGROUP if self.last is None else _UNCUT_WORKGROUP};")
        self.line(f"if (group >= {self.body.parameters.integer(rows * parts)}) return;")
        if self.last is None:
            self.line("int row = group;")
        else:
            self.line(f"int row = int(uint(group) / {parts}u), part = group - row * {parts};")
        self.line(f"int member = int(gl_SubgroupID * {self.subgroup}u + gl_SubgroupInvocationID);")
        self.body.scopes[0].variables |= {"row", "part", "member"}

    def line(self, text: str) -> None:
        self.body.line(text)

    def emit(self) -> Launch:
        self.line(f"float peak = {_LEAST}, total = 0.0;")
        if self.line_vectors:
            self.line("vec4 found = vec4(0);")
        if self.shape.skips_hidden:
            self._read_weight()
            self._ask_for_visible_keys()
            with self.body.pinned_block("if (shared_visible != 0u)"):
                self._find_part()
        else:
            self._find_part()
        if self.last is not None:
            self._join_parts(self.last)
        if self.projected is None:
            self._store()
        else:
            self._project(self.projected)
        lines, local = self.body.scopes[0].lines, (self.shape.local, 1)
        text = ShaderText(self.body.uses, lines, local, self.declarations, self.subgroup, shuffles=True)
        memory_bytes = 0 if self.last is None else self.last.memory_bytes
        words, groups = tuple(self.body.parameters.words), grid(self.rows * self.shape.parts)
        return Launch(assemble(text), words, groups, memory_bytes=memory_bytes)

    def _ask_for_visible_keys(self) -> None:
        """Finds whether the workgroup has any: in a cache that is filled in part, many have none."""
        self.declarations.append("shared uint shared_visible;")
        self.line("if (member == 0) shared_visible = 0u;")
        self.line("barrier();")
        seen = [f"({' && '.join(self._visible(step))})" for step in range(self.shape.steps)]
        self.line(f"if ({' || '.join(seen)}) shared_visible = 1u;")
        self.line("barrier();")

    def _find_part(self) -> None:
        """The greatest score of the workgroup's keys, the sum of their weights, and that of weighted values.

        The last is in the first lanes, a vector in each.
        """
        query = self._elements("query", self.query)
        rows = [self._key(step) for step in range(self.shape.steps)]
        keys = [self._elements("key", row) for row in rows]
        values = [self._elements("value", row) for row in rows] if "value" in self.operands else []
        if not self.weights:
            self._read_weight()
        for step, key in enumerate(keys):
            self._score(step, query, key)
        self._find_peak()
        self._find_weights()
        for number in range(self.shape.run if values else 0):
            self._mix(number, [value[number] for value in values])
        self._join(["total", *(f"mixed{number}" for number in range(self.shape.run if values else 0))])
        line = self.line_vectors
        if line:
            sums = " + ".join(f"shared_mixed[{number * line} + member]" for number in range(self.subgroups))
            self.line(f"if (member < {line}) found = {sums};")

    # -- scores -------------------------------------------------------------------------------------------------------

    def _far_key(self, step: int) -> Index:
        """The key that a lane shares in a step; it may lie beyond the last one."""
        return linear([(self.part, self.shape.keys), (self.place, 1)], step * self.shape.together)

    def _key(self, step: int) -> Index:
        return clamp(self._far_key(step), 0, self.problem.keys - 1)

    def _elements(self, name: str, row: Index) -> list[str]:
        """The lane's elements of an operand's row, as vectors."""
        found, run = [], self.shape.run
        for number in range(run):
            along = linear([(self.chunk, VECTOR * run), (LANE, 1)], VECTOR * number)
            value = self.body.value(self.operands[name], (*self.batch, row, along))
            found.append(widened(value, VECTOR, float32))
        return found

    def _score(self, step: int, query: list[str], key: list[str]) -> None:
        name, attrs = f"score{step}", self.attrs
        products = " + ".join(f"{left} * {right}" for left, right in zip(query, key, strict=True))
        self.line(f"vec4 products{step} = {products};")
        parts = [f"products{step}.{component}" for component in COMPONENTS]
        self.line(f"float {name} = ({parts[0]} + {parts[1]}) + ({parts[2]} + {parts[3]});")
        for distance in doubling(self.shape.lanes):
            self.line(f"{name} += subgroupShuffleXor({name}, {distance}u);")
        at = (*self.batch, self.query, self._key(step))
        bias = f" + {self.body.value(self.operands['bias'], at).text}" if "bias" in self.operands else ""
        self.line(f"{name} = {name} * {literal(attrs['scale'], float32)}{bias};")
        fill = MINUS_INFINITY if attrs["fill"] == -inf else literal(attrs["fill"], float32)
        for visible in self._visible(step):
            self.line(f"{name} = mix({fill}, {name}, {visible});")
        of_part = linear([(self.place, 1)], step * self.shape.together)
        for place, keys in ((of_part, self.shape.keys), (self._far_key(step), self.problem.keys)):
            if place.high >= keys:
                beyond = f"{self.body.index(place)} >= {self.body.parameters.integer(keys)}"
                self.line(f"{name} = mix({name}, {MINUS_INFINITY}, {beyond});")

    def _visible(self, step: int) -> list[str]:
        """The conditions that all hold if a score is not hidden."""
        problem, attrs, conditions = self.problem, self.attrs, []
        if "mask" in self.operands:
            conditions.append(self.body.value(self.operands["mask"], (*self.batch, self.query, self._key(step))).text)
        distance = f"{self.body.index(self._far_key(step))} - {self.body.index(self.query)}"
        if attrs["lowest"] > 1 - problem.queries:
            conditions.append(f"{distance} >= {attrs['lowest']}")
        if attrs["highest"] < problem.keys - 1:
            conditions.append(f"{distance} <= {attrs['highest']}")
        return conditions

    def _find_peak(self) -> None:
        """The greatest score of all keys, in all lanes."""
        for step in range(self.shape.steps):
            self.line(f"peak = max(peak, score{step});")
        for distance in self._between_keys():
            self.line(f"peak = max(peak, subgroupShuffleXor(peak, {distance}u));")
        if self.subgroups == 1:
            return
        self.declarations.append(f"shared float shared_peaks[{self.subgroups}];")
        self.line("if (gl_SubgroupInvocationID == 0u) shared_peaks[gl_SubgroupID] = peak;")
        self.line("barrier();")
        self.line(f"peak = shared_peaks[gl_SubgroupInvocationID % {self.subgroups}u];")
        for distance in doubling(self.subgroups):
            self.line(f"peak = max(peak, subgroupShuffleXor(peak, {distance}u));")

    def _between_keys(self) -> list[int]:
        """The distances of lanes that have the same elements of other keys."""
        return [distance for distance in doubling(self.subgroup) if distance >= self.shape.lanes]

    # -- sums ---------------------------------------------------------------------------------------------------------

    def _find_weights(self) -> None:
        exp = self.body.uses.function("lx_exp_nonpositive")
        for step in range(self.shape.steps):
            self.line(f"float weight{step} = {exp}(score{step} - peak);")
        self.line(f"total = {' + '.join(f'weight{step}' for step in range(self.shape.steps))};")

    def _mix(self, number: int, values: list[str]) -> None:
        """The sum of weights times values; a value that is hidden may be NaN."""
        self.line(f"vec4 mixed{number} = vec4(0);")
        for step, value in enumerate(values):
            weight = f"weight{step}"
            self.line(f"mixed{number} += mix({weight} * {value}, vec4(0), bvec4({weight} == 0.0));")

    def _join(self, names: list[str]) -> None:
        """Adds up what lanes have of other keys; subgroups leave their sums in shared memory."""
        for name in names:
            for distance in self._between_keys():
                self.line(f"{name} += subgroupShuffleXor({name}, {distance}u);")
        line, run = self.shape.lanes * self.shape.run, self.shape.run
        kinds = {name: "float" if name == "total" else "vec4" for name in names}
        for name in ("total", "mixed") if len(names) > 1 else ("total",):
            kind, size = ("float", 1) if name == "total" else ("vec4", line)
            self.declarations.append(f"shared {kind} shared_{name}[{self.subgroups * size}];")
        with self.body.block("if (gl_SubgroupInvocationID == 0u)"):
            self.line("shared_total[gl_SubgroupID] = total;")
        if len(kinds) > 1:
            with self.body.block(f"if (gl_SubgroupInvocationID < {self.shape.lanes}u)"):
                for number in range(run):
                    place = f"int(gl_SubgroupID) * {line} + {self.body.index(self.chunk)} * {run} + {number}"
                    self.line(f"shared_mixed[{place}] = mixed{number};")
        self.line("barrier();")
        self.line(f"total = {' + '.join(f'shared_total[{number}]' for number in range(self.subgroups))};")

    def _join_parts(self, last: LastWorkgroup) -> None:
        """Joins the parts of the row in its last workgroup, relative to the greatest score of all.

        A lane has the statistics of a part, and a vector of every part, or of every second or fourth where lines of
        vectors are shorter than a subgroup. All is loaded before anything is computed.
        """
        line, parts = self.line_vectors, self.shape.parts
        self.line(f"if (member == 0) {last.vector('part', '0')} = vec4(peak, total, 0, 0);")
        if line:
            self.line(f"if (member < {line}) {last.vector('part', '1 + member')} = found;")
        if self.projected is None:
            last.end_unless_last()
        else:
            last.end_workgroup_unless_last()
        member = self.joining
        self.line(f"vec2 statistics = {last.vector(f'min({member}, {parts - 1})', '0')}.xy;")
        beside = self.subgroup // line if line else 1
        steps = -(-parts // beside) if line else 0
        for step in range(steps):
            number = f"min({member} / {line} + {step * beside}, {parts - 1})"
            self.line(f"vec4 found{step} = {last.vector(number, f'1 + {member} % {line}')};")
        self.line("peak = statistics.x;")
        for distance in doubling(self.subgroup):
            self.line(f"peak = max(peak, subgroupShuffleXor(peak, {distance}u));")
        exp = self.body.uses.function("lx_exp_nonpositive")
        self.line(f"float share = {member} < {parts} ? {exp}(statistics.x - peak) : 0.0;")
        self.line("total = share * statistics.y;")
        for distance in doubling(self.subgroup):
            self.line(f"total += subgroupShuffleXor(total, {distance}u);")
        if not line:
            return
        self.line("found = vec4(0);")
        for step in range(steps):
            self.line(f"float share{step} = subgroupShuffle(share, uint({member} / {line} + {step * beside}));")
            self.line(f"found += mix(share{step} * found{step}, vec4(0), bvec4(share{step} == 0.0));")
        for distance in doubling(self.subgroup):
            if distance >= line:
                self.line(f"found += subgroupShuffleXor(found, {distance}u);")

    # -- the weight of an output --------------------------------------------------------------------------------------

    def _column(self, step: int) -> Index:
        """The column of the weight that a lane shares in a step; it may lie beyond the last one."""
        return linear([(self.place, 1)], step * self.shape.together)

    def _read_weight(self) -> None:
        """The lane's elements of the head's rows of the weight, in each of its columns, as vectors."""
        if self.projected is None:
            return
        weight, run = self.operands["weight"], self.shape.run
        for step in range(self.shape.projected):
            column = clamp(self._column(step), 0, weight.shape[-1] - 1)
            along = [linear([(self.chunk, VECTOR * run), (LANE, 1)], VECTOR * number) for number in range(run)]
            values = (self.body.value(weight, (*self.batch, each, column)) for each in along)
            self.weights.append([widened(value, VECTOR, float32) for value in values])

    def _project(self, node: Node) -> None:
        """Multiplies the joined result of the row by the weight; the last row adds up the products of all, if they are
        to be one sum."""
        assert self.last is not None, "rows meet in memory"
        run, lanes, columns = self.shape.run, self.shape.lanes, node.shape[-1]
        is_summed = "residual" in self.operands
        self.line(f"found *= total == 0.0 ? {self._nothing()} : 1.0 / total;")
        self.line(f"found = {self._rounded('found', node)};")
        for number in range(run):
            source = f"gl_SubgroupInvocationID % {lanes}u * {run}u + {number}u"
            self.line(f"vec4 near{number} = subgroupShuffle(found, {source});")
        steps = range(self.shape.projected)
        for step in steps:
            products = " + ".join(f"dot(near{number}, {each})" for number, each in enumerate(self.weights[step]))
            self.line(f"float product{step} = {products};")
        for distance in doubling(lanes):
            for step in steps:
                self.line(f"product{step} += subgroupShuffleXor(product{step}, {distance}u);")
        with self.body.block(f"if (member % {lanes} == 0)"):
            for step in steps:
                column = self._column(step)
                within = f"if ({self.body.index(column)} < {columns})" if column.high >= columns else ""
                with self.body.block(within) if within else nullcontext():
                    self._leave(node, self.last, column, f"product{step}", is_summed)
        if not is_summed:
            return
        self.last.end_workgroup_unless_last(of_rows=True)
        vectors = columns // VECTOR
        for first in range(0, vectors, self.shape.local):
            wanted = linear([(self.member, 1)], first)
            self._add_rows(node, self.last, clamp(wanted, 0, vectors - 1), wanted)

    def _leave(self, node: Node, last: LastWorkgroup, column: Index, product: str, is_summed: bool) -> None:
        """Writes the row's product with a column: into memory of the kernel's own where it is a term of a sum."""
        if is_summed:
            at = self.body.index(column)
            self.line(f"{last.of_row('row', f'({at}) / {VECTOR}')}[({at}) % {VECTOR}] = {product};")
        else:
            self.body.store(node, (*self.batch, column), GlslValue(product, 1), self.outputs[node])

    def _add_rows(self, node: Node, last: LastWorkgroup, number: Index, wanted: Index) -> None:
        """A vector of the sum of all rows' products and the residual."""
        along = linear([(number, VECTOR), (LANE, 1)])
        at = self.body.index(number)
        total = " + ".join(last.of_row(str(row), at) for row in range(self.rows))
        residual = widened(self.body.value(self.operands["residual"], (along,)), VECTOR, float32)
        with self.body.block(f"if ({self.body.index(wanted)} < {node.type.size // VECTOR})"):
            self.line(f"vec4 sum = {residual} + {self._rounded(f'({total})', node)};")
            self.body.store(node, (along,), GlslValue("sum", VECTOR), self.outputs[node])

    def _rounded(self, text: str, node: Node) -> str:
        """`text` as the attention and the sum are rounded."""
        if not node.attrs[ROUNDED]:
            return text
        return conversion(text, float32, rounded_dtype(node.op, node.attrs), VECTOR, self.body.uses)

    def _nothing(self) -> str:
        """What attention without visible keys gives."""
        return "0.0" if self.attrs["empty"] else _NAN

    def _store(self) -> None:
        result, statistic = self.nodes.get("attention"), self.nodes.get("attention_logsumexp")
        line, empty = self.line_vectors, self.attrs["empty"]
        if result is not None:
            with self.body.block(f"if (member < {line})"):
                self.line(f"found *= total == 0.0 ? {self._nothing()} : 1.0 / total;")
                along = linear([(clamp(self.member, 0, line - 1), VECTOR), (LANE, 1)])
                self.body.store(
                    result, (*self.batch, self.query, along), GlslValue("found", VECTOR), self.outputs[result]
                )
        if statistic is not None:
            with self.body.block("if (member == 0)"):
                found = f"peak + {self.body.uses.function('lx_log')}(total)"
                nothing = INFINITY if empty else MINUS_INFINITY
                self.line(f"float logsumexp = total == 0.0 ? {nothing} : {found};")
                value = GlslValue("logsumexp", 1)
                self.body.store(statistic, (*self.batch, self.query), value, self.outputs[statistic])
