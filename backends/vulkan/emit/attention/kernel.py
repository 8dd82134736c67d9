"""Attention and its derivatives: scores are computed and used block by block, and none is stored.

A kernel has *rows* of its own, queries or keys, and goes over the others, the *columns*, block by block. Per block it
makes a tile of scores, turns it into a tile of weights, and adds the tile's product with an operand to its rows of a
result. The schedule decides who makes a tile, and where sums are kept meanwhile (tiles.py).

    attention, attention_logsumexp    rows are queries; each row keeps its peak so far and its sum of weights, and its
                                      result is scaled whenever the peak grows; by matrices, a subgroup's rows are
                                      where one of their peaks does, or grows enough
    attention_query_gradient          rows are queries; weights follow from the logsumexp of each
    attention_key_gradient, attention_value_gradient    rows are keys, columns queries
    attention_query_parts                               beside the gradient of keys: the contribution of a workgroup's
                                                        keys to the gradient of queries, without repeating products

Blocks of columns that no row sees are skipped if hidden scores are -inf.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from math import inf

from lavax.backends.vulkan.emit.attention.broadcast import BroadcastTiles
from lavax.backends.vulkan.emit.attention.choose import AttentionSchedule, choose_schedule
from lavax.backends.vulkan.emit.attention.cooperative import CooperativeTiles
from lavax.backends.vulkan.emit.attention.cooperative_shape import STATISTICS, CooperativeShape
from lavax.backends.vulkan.emit.attention.few_queries import FewQueriesEmitter
from lavax.backends.vulkan.emit.attention.few_queries_shape import FewQueriesShape
from lavax.backends.vulkan.emit.attention.invocation import InvocationTiles
from lavax.backends.vulkan.emit.attention.problem import nodes_of, problem_of, stages_of
from lavax.backends.vulkan.emit.attention.subgroup_shape import BroadcastShape, InvocationShape
from lavax.backends.vulkan.emit.attention.tiles import Part, Row, Tiles
from lavax.backends.vulkan.emit.attention.workgroup import WorkgroupTiles
from lavax.backends.vulkan.emit.attention.workgroup_shape import WorkgroupShape
from lavax.backends.vulkan.glsl.expressions import INFINITY, MINUS_INFINITY, literal
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.ir.types import float32
from lavax.passes.build.attention import named_operands
from lavax.passes.kernels.kernel import Kernel

# The initial peak: finite, so that differences from it are not NaN, and no score but -inf is less.
_LEAST = literal(-3.4028234663852886e38, float32)
_LEAST_SCALE = 2.0**-20  # of products that are kept unscaled: a logsumexp divided by it is far from an overflow
# Where totals are those of rounded weights, rows keep their peaks until a score exceeds them by this exponent of 2.
_ABOVE_PEAKS = 7.0
_NAN = "uintBitsToFloat(0x7fc00000u)"
# The tiles of each kind of schedule; choose.py says when each is used.
TILES: dict[type[AttentionSchedule], Callable[..., Tiles]] = {
    CooperativeShape: CooperativeTiles,
    WorkgroupShape: WorkgroupTiles,
    BroadcastShape: BroadcastTiles,
    InvocationShape: InvocationTiles,
}


class AttentionEmitter:
    """The state of writing one kernel of attention."""

    def __init__(
        self, kernel: Kernel, profile: DeviceProfile, lifted: bool, chosen: AttentionSchedule
    ) -> None:
        self.nodes = nodes_of(kernel)
        self.operands: dict[str, Node] = {}
        for node in kernel.graph.outputs:
            self.operands |= named_operands(node)
        self.attrs = kernel.graph.outputs[0].attrs
        self.hides = self.attrs["fill"] == -inf
        self.is_plain = self._is_plain()
        self.scale = self.attrs["scale"] if self.is_plain else 1.0
        self.stages = stages_of(self.nodes)
        problem = problem_of(self.nodes)
        self.tiles: Tiles = TILES[type(chosen)](kernel, profile, lifted, problem, self.stages, chosen)
        self.keeping: CooperativeTiles | None = None  # the tiles, if blocks in which no peak grows scale nothing
        if isinstance(self.tiles, CooperativeTiles) and profile.subgroup_ballot:
            self.keeping = self.tiles
        # The tiles, if rows' totals are those of weights as they are rounded, by products with ones. Then what the
        # rounding of a row's largest weights changes cancels: they need not be 1, so that peaks may stay.
        self.adding: CooperativeTiles | None = None
        if self.keeping is not None and self.keeping.adds_ones and "attention" in self.nodes:
            self.adding = self.keeping
        self.parts: WorkgroupTiles | None = None  # the tiles, if parts of the queries' gradient are made of them
        if "attention_query_parts" in self.nodes:
            assert isinstance(self.tiles, WorkgroupTiles), "parts are asked for where workgroups have tiles"
            self.parts = self.tiles

    def _is_plain(self) -> bool:
        """Whether `s` holds products of queries and keys, which the base of `_exp` scales: a factor less per score."""
        alone = "bias" not in self.operands and self.hides
        return bool(self.attrs["precision"]) and alone and _LEAST_SCALE <= self.attrs["scale"] <= 1 / _LEAST_SCALE

    def _exp(self, difference: str) -> str:
        """exp of a difference of scores, as `s` holds them, that is not positive.

        Where weights are rounded to 16 bits the builtin 2^x is exact enough: Vulkan bounds its error by 3 + 2 |x| units
        in the last place, so by 2^-16 of any normal number. Its code is a tenth as long.
        """
        if self.attrs["precision"]:
            return f"exp2({literal(self._base(), float32)} * ({difference}))"
        return f"{self.tiles.body.uses.function('lx_exp_nonpositive')}({difference})"

    def _base(self) -> float:
        """The factor of a difference of scores, as `s` holds them, in an exponent of 2."""
        return self.scale * math.log2(math.e)

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

    def _blocks(self) -> Iterator[None]:
        """The loops over blocks of columns that rows see; a block's statements are written once for each."""
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
        fill = MINUS_INFINITY if self.hides else literal(self.attrs["fill"], float32)
        for part in () if self.is_plain else tiles.parts():
            name = part.of("s")
            bias = f" + {part.score(self.operands['bias'])}" if "bias" in self.operands else ""
            tiles.line(f"{name} = {name} * {literal(self.attrs['scale'], float32)}{bias};")
        for part in tiles.parts_to_hide(of_scores=True):
            name = part.of("s")
            for visible in self._visible(part):
                tiles.line(f"{name} = mix({part.filled(fill)}, {name}, {visible});")
            if part.beyond:
                tiles.line(f"{name} = mix({name}, {part.filled(MINUS_INFINITY)}, {part.beyond});")

    def _visible(self, part: Part) -> list[str]:
        """The conditions that all hold if a score is not hidden."""
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
        tiles.open_rows(peak=_LEAST, total="0.0")
        if result is not None:
            tiles.open_result(result)
        if self.adding is not None:
            self.adding.open_ones()
        for _ in self._blocks():
            self._scores()
            if self.keeping is None:
                self._take_in()
            else:
                self._take_in_where_peaks_grow(self.keeping, result)
            if result is not None and self.adding is not None:
                weights = self.adding.as_operands("s")
                self.adding.add_rows(weights, tiles.row_names("total"))
                self.adding.accumulate_operands(result, weights, self.operands["value"])
            elif result is not None:
                tiles.accumulate(result, "s", self.operands["value"], scaled=self.keeping is None)
        if self.adding is None:
            tiles.folded("+", tiles.row_names("total"))
        statistic, empty = self.nodes.get("attention_logsumexp"), self.attrs["empty"]
        if result is not None:
            tiles.declare_rows("share")
            for row in tiles.rows():
                nothing, total = "0.0" if empty else _NAN, row.of("total")
                tiles.line(f"{row.first('share')} = {total} == 0.0 ? {nothing} : 1.0 / {total};")
            tiles.close_result(result, tiles.row_names("share"))
        if statistic is not None:
            tiles.declare_rows("found")
            for row in tiles.rows():
                nothing, total = INFINITY if empty else MINUS_INFINITY, row.of("total")
                times = f"{literal(self.scale, float32)} * " if self.is_plain else ""
                found = f"{times}{row.of('peak')} + {self._log(total)}"
                tiles.line(f"{row.first('found')} = {total} == 0.0 ? {nothing} : {found};")
            tiles.store_statistic(statistic, tiles.row_names("found"))

    def _take_in(self) -> None:
        """Turns the rows' scores into weights relative to the new peak; `scale` is the factor for earlier weights.

        Until the end, a total covers only the invocation's own columns.
        """
        tiles = self.tiles
        self._reduce_rows()
        for row in tiles.rows():
            self._raise_peak(row)
            peak, scale, total = map(row.of, ("peak", "scale", "total"))
            for vector in row.vectors("s"):
                tiles.line(f"{vector} = {self._exp(f'{vector} - {peak}')};")
            added = row.sum("s")
            tiles.line(f"{total} = {total} * {scale} + {added};")

    def _reduce_rows(self) -> None:
        """Declares and writes `higher`, the greatest score of each row."""
        self.tiles.declare_rows("higher", "scale")
        for row in self.tiles.rows():
            self.tiles.line(f"{row.first('higher')} = {row.greatest('s')};")
        self.tiles.folded("max", self.tiles.row_names("higher"))

    def _raise_peak(self, row: Row) -> None:
        """The new peak, and `scale`, the factor for earlier weights."""
        peak, higher = map(row.of, ("peak", "higher"))
        self.tiles.line(f"{higher} = max({peak}, {higher});")
        self.tiles.line(f"{row.first('scale')} = {self._exp(f'{peak} - {higher}')};")
        self.tiles.line(f"{peak} = {higher};")

    def _take_in_where_peaks_grow(self, tiles: CooperativeTiles, result: Node | None) -> None:
        """`_take_in`, which reduces rows and scales sums only if some score of the subgroup's is above its peak."""
        # A comparison of each score would be a branch each, for most drivers' compilers.
        tiles.line("float above = 0.0;")
        for row in tiles.rows():
            tiles.line(f"above = max(above, {row.greatest('s')} - {row.of('peak')});")
        most = 0.0 if self.adding is None else _ABOVE_PEAKS / self._base()
        with tiles.body.block(f"if ({tiles.any_lane(f'above > {literal(most, float32)}')})"):
            self._reduce_rows()
            for row in tiles.rows():
                self._raise_peak(row)
                scale, total = map(row.of, ("scale", "total"))
                tiles.line(f"{total} = {total} * {scale};")
            if result is not None:
                tiles.scale_result(result, tiles.row_names("scale"))
        for part in tiles.parts():
            weight, total = part.of("s"), part.of_its_row("total")
            tiles.line(f"{weight} = {self._exp(f'{weight} - ' + part.of_its_row('peak'))};")
            if self.adding is None:
                tiles.line(f"{total} = {total} + {weight};")

    # -- derivatives --------------------------------------------------------------------------------------------------

    def _of_queries(self) -> None:
        tiles, result = self.tiles, self.nodes["attention_query_gradient"]
        tiles.open_result(result)
        for _ in self._blocks():
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
        for _ in self._blocks():
            tiles.load_statistics(*(self.operands[name] for name in STATISTICS if name in self.operands))
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

    def _statistic(self, part: Part, operand: Node) -> str:
        """A number per query."""
        return part.of_columns(operand) if self.tiles.problem.by_keys else part.of_row(operand)

    def _weights(self) -> None:
        """Replaces the scores `s` by weights, which are 0 beyond the last column."""
        statistic = self.operands["logsumexp"]
        for part in self.tiles.parts(statistic):
            name = part.of("s")
            logsumexp = self._statistic(part, statistic)
            over = f" * {literal(1 / self.scale, float32)}" if self.is_plain else ""
            self.tiles.line(f"{name} = {self._exp(f'{name} - {logsumexp}{over}')};")
        for part in self.tiles.parts_to_hide(of_scores=False):
            name = part.of("s")
            if part.beyond:
                self.tiles.line(f"{name} = mix({name}, {part.filled('0.0')}, {part.beyond});")

    def _score_gradient(self, of_rows: str, of_columns: str) -> None:
        """The tile `g`: the scores' cotangents, times the scale of the product of query and key."""
        tiles, statistic = self.tiles, self.operands["delta"]
        tiles.product("g", self.operands[of_rows], self.operands[of_columns])
        for part in tiles.parts(statistic):
            name, scale = part.of("g"), literal(self.attrs["scale"], float32)
            delta = self._statistic(part, statistic)
            tiles.line(f"{name} = {scale} * {part.of('s')} * ({name} - {delta});")
        for part in tiles.parts_to_hide(of_scores=True):
            name = part.of("g")
            for visible in self._visible(part):
                tiles.line(f"{name} = mix({part.filled('0.0')}, {name}, {visible});")
            if part.beyond:
                tiles.line(f"{name} = mix({name}, {part.filled('0.0')}, {part.beyond});")


def emit_attention(
    kernel: Kernel, profile: DeviceProfile, lifted: bool, schedule: AttentionSchedule | None = None
) -> Launch:
    """The shader of attention, or of some of its derivatives over the same rows."""
    chosen = schedule or choose_schedule(profile, nodes_of(kernel))
    if isinstance(chosen, FewQueriesShape):
        return FewQueriesEmitter(kernel, profile, lifted, chosen).emit()
    return AttentionEmitter(kernel, profile, lifted, chosen).emit()
