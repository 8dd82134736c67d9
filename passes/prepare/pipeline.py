"""The last rewrites before fusion, as a list of passes: after them kernels have a form for every operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lavax.base import config
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph
from lavax.passes.build.parts import with_parts_added_in_rows
from lavax.passes.complex_parts.taking_apart import in_real_parts
from lavax.passes.numerics.clipping import comparing_clipped_values
from lavax.passes.numerics.narrow_functions import with_narrow_functions
from lavax.passes.numerics.narrow_movement import with_narrow_movement
from lavax.passes.numerics.padded_lines import with_padded_lines
from lavax.passes.numerics.products_of_bytes import with_products_of_bytes_as_floats
from lavax.passes.numerics.rounding import with_rounded_operands
from lavax.passes.numerics.signs import by_signs
from lavax.passes.numerics.widen import widen
from lavax.passes.prepare.aligned_pads import with_aligned_pads
from lavax.passes.prepare.attention_projections import with_projected_attention
from lavax.passes.prepare.decompose.attention import with_read_shapes
from lavax.passes.prepare.decompose.attention_parts import with_query_parts
from lavax.passes.prepare.decompose.attention_results import with_rounded_results
from lavax.passes.prepare.decompose.attention_scores import with_stored_scores
from lavax.passes.prepare.decompose.depthwise import with_depthwise_convolutions
from lavax.passes.prepare.decompose.sorting import sharing_orders
from lavax.passes.prepare.gates import with_gates_as_products
from lavax.passes.prepare.head_products import with_heads_added_by_readers
from lavax.passes.prepare.layouts import with_layouts_of_convolutions
from lavax.passes.prepare.legality import verify_stage
from lavax.passes.prepare.moments import with_moments_in_parts
from lavax.passes.prepare.node_rewrites import rewrite_nodes
from lavax.passes.prepare.parts_for_maps import with_parts_for_maps
from lavax.passes.prepare.parts_for_rows import with_parts_for_rows
from lavax.passes.prepare.scalars_by_lane import with_scalars_by_lane
from lavax.passes.prepare.single_places import with_single_places_chosen
from lavax.passes.prepare.slices_of_products import with_slices_as_products
from lavax.passes.prepare.spread_convolutions import with_forms_of_spread_convolutions
from lavax.passes.prepare.vector_norms import with_norms_in_products
from lavax.passes.prepare.windows import with_windows_in_vectors
from lavax.passes.target.target import ANY_DEVICE, Target


@dataclass(frozen=True)
class Pass:
    """A rewrite of a whole graph; `name` is also that of the stage that it ends in."""

    name: str
    run: Callable[[Graph, Target], Graph]
    summary: str


def _anywhere(rewrite: Callable[[Graph], Graph]) -> Callable[[Graph, Target], Graph]:
    return lambda graph, target: rewrite(graph)


def _without_complex_values(graph: Graph, target: Target) -> Graph:
    return in_real_parts(graph, target.transforms)


PASSES = (
    Pass("complex", _without_complex_values, "complex values become their real and imaginary parts"),
    Pass("places", _anywhere(with_single_places_chosen), "updates of one place, read element by element, are choices"),
    Pass("widen", _anywhere(widen), "arithmetic of 8 and 16 bits is done in 32"),
    Pass("bytes", with_products_of_bytes_as_floats, "products of integers of 8 bits are those of floats"),
    Pass("orders", _anywhere(sharing_orders), "values that are sorted and whose order is asked for are sorted once"),
    Pass("clips", _anywhere(comparing_clipped_values), "comparisons of a clipped value use the clip"),
    Pass("scores", with_stored_scores, "derivatives of attention become products if the scores fit in memory"),
    Pass("query-parts", with_query_parts, "the gradient of queries is summed from parts that the keys' kernel writes"),
    Pass("results", with_rounded_results, "attention writes 16 bits where its result is cast to them"),
    Pass("shapes", _anywhere(with_read_shapes), "attention gives its result in the shape that is read"),
    Pass("signs", _anywhere(by_signs), "exponentials of numbers that are not positive need no overflow"),
    Pass("depthwise", with_depthwise_convolutions, "convolutions of single channels have these last"),
    Pass("spread", with_forms_of_spread_convolutions, "convolutions of spread operands have few and large products"),
    Pass("layouts", with_layouts_of_convolutions, "what follows a convolution has its channels last, too"),
    Pass("roundings", _anywhere(with_rounded_operands), "operands of low-precision products are rounded once"),
    Pass("windows", with_windows_in_vectors, "operands of convolutions lie so that windows are loaded as vectors"),
    Pass("movement", _anywhere(with_narrow_movement), "values of 16 bits are moved before they are widened"),
    Pass("lines", with_padded_lines, "large products by matrices read and write lines of whole vectors"),
    Pass("pads", with_aligned_pads, "what is computed of shifted slices, and padded, is computed at all places"),
    Pass("moments", with_moments_in_parts, "variances of few long columns are found in parts, beside their means"),
    Pass("lanes", _anywhere(with_scalars_by_lane), "lanes that end have counters of their own, and end by themselves"),
    Pass("nodes", rewrite_nodes, "every operation becomes operations that kernels have a form for"),
    Pass("updates", with_parts_for_maps, "products that optimizers alone read are summed in parts, which those add"),
    Pass("sums", with_parts_for_rows, "long sums that kernels of rows read are summed in parts, which those add"),
    Pass("slices", with_slices_as_products, "slices of a product of a vector are products, computed side by side"),
    Pass("gates", with_gates_as_products, "slices of a product of few rows in a loop are products, side by side"),
    Pass("projections", with_projected_attention, "attention of a query is multiplied by the weight of its output"),
    Pass("heads", with_heads_added_by_readers, "products of attention's heads are added up by the norm of their sum"),
    Pass("norms", with_norms_in_products, "norms of a vector are computed by the products of the vector"),
    Pass("parts", _anywhere(with_parts_added_in_rows), "kernels of rows add the few parts of a product themselves"),
    Pass("functions", with_narrow_functions, "functions whose results are rounded to 16 bits have short forms"),
)
STAGES = ("optimized", *(step.name for step in PASSES))


def prepare(graph: Graph, target: Target = ANY_DEVICE) -> Graph:
    """The graph as fusion takes it; `passes.prepare.legality` says what it may hold."""
    check, found, known = config.verify_passes(), graph, None
    for number, (_, found) in enumerate(stages(graph, target)):
        if check and number:
            verify_stage(found, STAGES[: number + 1], known)
            known = found
    return found


def verify_optimized(graph: Graph) -> None:
    """Under the setting, raises VerificationError unless the graph of a whole program is legal before all passes."""
    if config.verify_passes():
        verify_stage(graph, STAGES[:1])


def stages(graph: Graph, target: Target = ANY_DEVICE) -> Iterator[tuple[str, Graph]]:
    """The name and the graph of each stage: as it comes in, and after each pass."""
    yield STAGES[0], graph
    for step in PASSES:
        graph = step.run(graph, target)
        yield step.name, graph


def graph_at(graph: Graph, target: Target, stage: str) -> Graph:
    """The graph at a stage, which is given by its name or its number: 0 is the graph as it comes in.

    Raises ValueError for another.
    """
    for number, (name, found) in enumerate(stages(graph, target)):
        if stage in (name, str(number)):
            return found
    raise ValueError(f"there is no pass {stage!r}; there are {', '.join(STAGES)}, or 0 to {len(PASSES)}")
