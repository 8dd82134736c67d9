"""The reasons why a node was not computed in a kernel whose value it reads, or why a value was stored although its
readers could compute it again."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """The value is the text that follows "%5 add did not join k1: " or "%5 add is stored: "."""

    ELSEWHERE = "it joined another kernel that it reads from, and is computed in one only"
    NEEDS_LATER = "it also needs what a kernel computes that does not run before this one"
    NODES = "the kernel has as many operations as one may have"
    ARRAYS = "the kernel would read and write more arrays than one may"
    EPILOGUE_COST = "it costs more than a contraction's tile may repeat for each of its elements"
    EPILOGUE_OPERAND = "it needs what costs more, of other arrays, than a contraction's tile may wait for"
    EPILOGUE_ARRAYS = "a contraction's tile would read more arrays than it may"
    READ_APART = "what is computed from the contraction does not come together in one value of its size soon"
    BESIDE = "it reads a second product, which runs beside this one if neither computes it"
    NO_COORDINATES = "its elements are not one to one with the kernel's"
    LONG_ROWS = "it would go over long rows again, of which there are too few to keep a device busy"
    TURNED = "its elements lie in another order than the kernel's rows, so neighbours would be written far apart"
    OTHER_ELEMENTS = "it needs reductions of other elements than those that an invocation has at hand"
    OTHER_ROWS = "it reduces over other elements than the kernel's rows have"
    NOT_LAST = "of the kernels that a value is made from, only the last can compute it"
    WHOLE_ROWS = "a reduction needs whole rows, and this kernel's invocations have none at hand"
    PRODUCT = "a contraction reads its operands over and over"
    ROUTINE = "a routine reads its operands in an order of its own"
    UPDATED = "a loop updates the array in place that this is made of"
    PROLOGUE = "it costs more than what a contraction may compute again at every read"
    SCATTERED = "its neighbours in memory are none in the contraction that reads it over and over"
    JOINED = "it is several arrays end to end, or gathered: a contraction would look for each element that it reads"
    PLACES = "it is gathered: a contraction's tile would wait for each place, and then for what is there"
    LINES = "with padding, its lines begin where vectors do in a contraction that reads it over and over"
    STRIDES = "steps between its elements are not always as long, so the contraction could not share its shader"
    ROUNDED = "it is what a contraction rounds an operand to that it reads over and over"
    REPEATED = "it is small and costly, and would be computed for each of very many elements"
    LARGE = "what reads it would take too many operations or arrays"
    CONTROL_FLOW = "branches and loops read their operands from memory"
