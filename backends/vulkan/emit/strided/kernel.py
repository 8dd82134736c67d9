"""Contractions that share shaders on CPU drivers: strided products in groups that have one shader each.

A CPU driver compiles a large tile in a third to half a second. Products of arrays in strides differ only in numbers and
elementwise functions, which one shader can take as parameters.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any

from lavax.backends.vulkan.emit.contract.kernel import dot_of, schedule_of
from lavax.backends.vulkan.emit.contract.prologue_epilogue import Contraction
from lavax.backends.vulkan.emit.contract.tiles import BroadcastTile, RegisterTile
from lavax.backends.vulkan.emit.strided.choose import element_tile
from lavax.backends.vulkan.emit.strided.element_shader import ElementShader
from lavax.backends.vulkan.emit.strided.element_tile import ElementTile
from lavax.backends.vulkan.emit.strided.parameters import (
    FUNCTION_BITS,
    ROLES,
    OperandAccess,
    access_of,
    fits_tile,
    has_room,
    one_per_row,
    parameters,
)
from lavax.backends.vulkan.emit.strided.product import Function, StridedProduct, strided_product
from lavax.backends.vulkan.emit.strided.product_shader import descriptor_slots
from lavax.backends.vulkan.emit.strided.shader import VectorShader
from lavax.backends.vulkan.glsl.descriptor_arrays import arrays_by_descriptor
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.shader import assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.kernel import Kernel, kernel_key


@dataclass(frozen=True)
class SharedFunctions:
    """Which functions products share a shader with. Every product computes all of them, and chooses its own.

    Chosen by `python -m benchmarks first-calls comparison --only mlp-step`;
    docs/rejected/products_lavapipe.md, "Several epilogues in the shader that products share".
    """

    operand_cost: int = 2  # the largest, per element loaded; a function that costs more has a shader of its own
    result_cost: int = 16  # the same, per element written
    most: int = 4  # functions per operand, and of the result, in one shader


SHARED_FUNCTIONS = SharedFunctions()


def emit_strided_contracts(
    kernels: Mapping[Kernel, Hashable | None], together: Collection[Kernel], profile: DeviceProfile
) -> dict[Kernel, Launch]:
    """The launches of those of a program's contractions that can share shaders, by the schedules given or chosen.

    Those `together` share dispatches with others. They, and others with their shaders, get their numbers from tables.
    """
    if profile.kind != "cpu":
        return {}
    keys = {kernel: (kernel_key(kernel), schedule) for kernel, schedule in kernels.items()}
    one_per_key = {key: kernel for kernel, key in keys.items() if key[0] is not None}
    found = {key: _product_of(kernel, key[1], profile) for key, kernel in one_per_key.items()}
    products = {key: product for key, product in found.items() if product is not None}
    launches = dict(zip(products, emit_products(list(products.values()), profile.paired), strict=True))
    in_tables = {launches[keys[kernel]].shader for kernel in together if keys[kernel] in launches}
    return {
        kernel: replace(launches[key], in_table=launches[key].shader in in_tables)
        for kernel, key in keys.items()
        if key in launches
    }


def _product_of(
    kernel: Kernel, schedule: Hashable | None, profile: DeviceProfile
) -> tuple[StridedProduct, BroadcastTile | ElementTile] | None:
    """A kernel as a strided product with its tile; None if it is no such product."""
    tile = schedule or schedule_of(kernel, profile)
    if not isinstance(tile, BroadcastTile | RegisterTile):
        return None
    product = strided_product(kernel, Contraction(kernel, dot_of(kernel), profile, lifted=False))
    if product is None:
        return None
    by_descriptor = set(product.order) <= set(arrays_by_descriptor(kernel, profile.descriptor_range_bytes))
    product = replace(product, by_descriptor=by_descriptor)
    own = element_tile(product, tile, profile) if schedule is None else None
    fitting: BroadcastTile | ElementTile | None = own or (tile if isinstance(tile, BroadcastTile) else None)
    return (product, fitting) if fitting is not None and fits_tile(product, fitting) else None


@dataclass(frozen=True)
class _ShaderKey:
    """What products must have in common to share a shader."""

    tile: BroadcastTile | ElementTile
    access: OperandAccess
    others: tuple[bool, ...]  # of the arrays that the epilogue reads, which are read one element a row
    by_descriptor: bool
    nested: bool  # whether there are parameters for a batch in two axes, and for where operands start
    costly: tuple[Function | None, ...]  # the functions that cost too much to be computed for other products


def _shader_key(product: StridedProduct, tile: BroadcastTile | ElementTile, nested: bool) -> _ShaderKey:
    limits = (SHARED_FUNCTIONS.operand_cost, SHARED_FUNCTIONS.operand_cost, SHARED_FUNCTIONS.result_cost)
    pairs = zip(product.functions, limits, strict=True)
    costly = tuple(function if function.cost > most else None for function, most in pairs)
    nested = product.is_nested or (nested and has_room(product, tile, True))
    access = access_of(product, tile)
    return _ShaderKey(tile, access, one_per_row(product, access), product.by_descriptor, nested, costly)


def shader_key(kernel: Kernel, profile: DeviceProfile) -> Hashable | None:
    """Equal for products that share a shader, unless they have too many functions; None if the kernel shares none."""
    found = _product_of(kernel, None, profile) if profile.kind == "cpu" else None
    return None if found is None else _shader_key(*found, nested=False)


@dataclass
class _Group:
    """Products that share a shader, by number, and their functions by role."""

    numbers: list[int] = field(default_factory=list)
    functions: tuple[dict[Function, None], ...] = field(default_factory=lambda: tuple({} for _ in ROLES))

    def has_room(self, product: StridedProduct) -> bool:
        """Whether there is room for its functions."""
        pairs = zip(self.functions, product.functions, strict=True)
        return all(function in own or len(own) < SHARED_FUNCTIONS.most for own, function in pairs)

    def add(self, number: int, product: StridedProduct) -> None:
        self.numbers.append(number)
        for own, function in zip(self.functions, product.functions, strict=True):
            own[function] = None


def emit_products(products: Sequence[tuple[StridedProduct, BroadcastTile | ElementTile]], paired: bool) -> list[Launch]:
    """The launches of a program's products, with as few shaders as they can share."""
    groups: dict[_ShaderKey, list[_Group]] = {}
    nested = any(product.is_nested for product, _ in products)  # if one is, all that can be are, to share a shader
    for number, (product, tile) in enumerate(products):
        alike = groups.setdefault(_shader_key(product, tile, nested), [_Group()])
        if not alike[-1].has_room(product):
            alike.append(_Group())
        alike[-1].add(number, product)
    launches: dict[int, Launch] = {}
    for key, alike in groups.items():
        for group in alike:
            emitted = _emit_group([products[number][0] for number in group.numbers], key, group, paired)
            launches.update(zip(group.numbers, emitted, strict=True))
    return [launches[number] for number in range(len(products))]


def _emit_group(products: Sequence[StridedProduct], key: _ShaderKey, group: _Group, paired: bool) -> Iterator[Launch]:
    functions = tuple(tuple(own) for own in group.functions)
    emitter: Any = ElementShader if isinstance(key.tile, ElementTile) else VectorShader
    shared = partial(emitter, products[0], key.tile, key.access, functions, paired, key.nested)
    text = shared().text()
    has_rest = not has_room(products[0], key.tile, key.nested)
    shader = assemble(shared(has_rest=True).text() if has_rest else text)
    for product in products:
        words = parameters(product, key.tile, key.nested)
        for role, (own, function) in enumerate(zip(functions, product.functions, strict=True)):
            words["functions"] |= own.index(function) << role * FUNCTION_BITS
        groups = (key.tile.tiles(product.sizes), 1, 1)
        by_descriptor = descriptor_slots(product, key.tile, key.access)
        numbers = tuple(words.values())
        yield Launch(
            shader,
            numbers,
            groups,
            by_descriptor=by_descriptor,
            order=product.order,
            text=text,
            has_rest=has_rest,
        )
