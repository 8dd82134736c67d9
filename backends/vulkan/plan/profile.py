"""A device as the schedules of kernels see it: limits and features, never its name or vendor.

Imports no Vulkan, so that kernels can be lowered on a machine without a driver.
"""
from __future__ import annotations

from lavax.base.quick_dataclasses import dataclass


@dataclass(frozen=True)
class KindOfDevice:
    """Assumptions about a kind of device, which Vulkan does not report.

    Chosen by `python -m benchmarks comparison --only layer-norm-backward`, whose gradient took 5 to 11 % less time on a
    CPU driver with no repeated operations. GPUs compute ten operations in the time that moving a byte takes.
    """

    operations_per_byte: float  # simple operations that are worth repeating to avoid moving one byte
    busy_invocations: int  # eight subgroups on a processor; a hundred workgroups of 256 on a GPU
    processors: int  # if the driver does not tell


_KINDS = {"cpu": KindOfDevice(0.0, 64, 4), "gpu": KindOfDevice(2.0, 1 << 15, 128)}
# The length of descriptor ranges is a multiple of this: half of it is a multiple of any device's alignment for texels
# and storage buffers.
_RANGE_UNIT = 512


@dataclass(frozen=True)
class MatrixShape:
    """Cooperative matrices of a subgroup: (m × k) · (k × n) of the dtype, "f16" or "bf16", summed in float32."""

    dtype: str
    m: int
    n: int
    k: int


@dataclass(frozen=True)
class DeviceProfile:
    """Limits and features of a device. Sizes are in bytes, those of workgroups in invocations."""

    name: str
    kind: str  # "cpu" if the driver runs shaders on the processor, else "gpu"
    subgroup_size: int
    min_subgroup_size: int
    max_subgroup_size: int
    names_subgroup_size: bool  # pipelines may request a subgroup size; else all shaders have the same
    shared_memory_bytes: int
    max_workgroup_invocations: int
    max_workgroup_count: tuple[int, int, int]
    subgroup_shuffle: bool
    subgroup_ballot: bool
    preserves_special_floats: bool  # shaders may request zeros with signs, infinities and NaN in float32
    preserves_special_doubles: bool  # the same for float64
    preserves_denormals: bool  # shaders may request that denormal float32 numbers are not flushed to zero
    reorders_floats: bool  # the driver may compute floats in another order, unless a shader forbids it
    float16: bool
    exact_float16: bool  # conversions to it may be rounded to the nearest, and keep denormals, signs of zeros and NaN
    int64: bool
    float64: bool
    int8: bool
    int16: bool
    storage_8bit: bool
    storage_16bit: bool
    descriptor_bytes: int  # the most that a descriptor covers, as texels of 32 bits and as a storage buffer
    changing_texels: int  # how many texel buffers a shader may read of what it writes
    memory_model: bool  # Vulkan's memory model, which shaders with cooperative matrices use
    adds_floats: bool  # atomically, in buffers, in float32
    adds_longs: bool  # atomically, in buffers, whole numbers of 64 bits
    matrices: tuple[MatrixShape, ...]  # those that shaders can be compiled for, the best first
    converts_matrices: bool  # shaders may reduce a matrix's rows, and use one of sums as an operand
    told_processors: int | None  # each of which runs several workgroups; None if the driver does not tell
    register_bits: int  # the longest registers in which a CPU driver computes; 0 on a GPU

    @property
    def knows_subgroup_size(self) -> bool:
        """Whether shaders can rely on the subgroup size: pipelines request it, or there is only one."""
        within = self.min_subgroup_size <= self.subgroup_size <= self.max_subgroup_size
        return within and (self.names_subgroup_size or self.min_subgroup_size == self.max_subgroup_size)

    @property
    def busy_invocations(self) -> int:
        """The invocations that keep the device busy: assumed, because Vulkan has no portable count of processors."""
        return _KINDS[self.kind].busy_invocations

    @property
    def processors(self) -> int:
        """The processors that run workgroups, such as multiprocessors or compute units: told, or else assumed."""
        return self.told_processors or _KINDS[self.kind].processors

    @property
    def operations_per_byte(self) -> float:
        """The number of simple operations that are worth repeating to avoid moving one byte."""
        return _KINDS[self.kind].operations_per_byte

    @property
    def packed(self) -> frozenset[int]:
        """The widths in bits of elements that shaders can only address in 32-bit words."""
        missing = ((8, self.storage_8bit), (16, self.storage_16bit))
        return frozenset(width for width, exists in missing if not exists)

    @property
    def paired(self) -> bool:
        """Whether four 32-bit elements are best read and written as two of 64 bits.

        CPU drivers split each lane's access of a vector into one per component.
        """
        return self.kind == "cpu"

    @property
    def stores_long_words(self) -> bool:
        """Whether a store through a descriptor takes less time by words of 64 bits than by twice as many of 32.

        A CPU driver stores lane by lane what is in vectors, of which it writes one to the stack and reads a word of it
        back for each word that it stores. Eight words of 64 bits are two registers of 256 bits, or a longer one, of
        which parts are read back slowly (docs/rejected/transforms.md).
        """
        return self.kind == "cpu" and self.int64 and self.register_bits <= 256

    @property
    def descriptor_range_bytes(self) -> int:
        """The length of the descriptor ranges through which shaders read texels; 0 if they use addresses alone.

        CPU drivers turn an access by address into a loop over the lanes, but not a texel read.
        """
        return self.descriptor_bytes & -_RANGE_UNIT if self.kind == "cpu" else 0


# What every recent desktop GPU offers; for lowering without a device.
GENERIC_GPU = DeviceProfile(
    name="generic GPU",
    kind="gpu",
    subgroup_size=32,
    min_subgroup_size=32,
    max_subgroup_size=32,
    names_subgroup_size=True,
    shared_memory_bytes=32768,
    max_workgroup_invocations=1024,
    max_workgroup_count=(65535, 65535, 65535),
    subgroup_shuffle=True,
    subgroup_ballot=True,
    preserves_special_floats=True,
    preserves_special_doubles=True,
    preserves_denormals=True,
    reorders_floats=False,
    float16=False,
    exact_float16=False,
    int64=True,
    float64=False,
    int8=False,
    int16=False,
    storage_8bit=False,
    storage_16bit=False,
    descriptor_bytes=1 << 27,
    changing_texels=64,
    memory_model=False,
    adds_floats=False,
    adds_longs=False,
    matrices=(),
    converts_matrices=False,
    told_processors=None,
    register_bits=0,
)

# What Mesa's lavapipe reports with 256-bit vectors.
CPU_DRIVER = DeviceProfile(
    name="CPU driver",
    kind="cpu",
    subgroup_size=8,
    min_subgroup_size=8,
    max_subgroup_size=8,
    names_subgroup_size=True,
    shared_memory_bytes=32768,
    max_workgroup_invocations=1024,
    max_workgroup_count=(65535, 65535, 65535),
    subgroup_shuffle=True,
    subgroup_ballot=True,
    preserves_special_floats=True,
    preserves_special_doubles=True,
    preserves_denormals=False,
    reorders_floats=False,
    float16=True,
    exact_float16=False,
    int64=True,
    float64=True,
    int8=True,
    int16=True,
    storage_8bit=True,
    storage_16bit=True,
    descriptor_bytes=1 << 27,
    changing_texels=64,
    memory_model=True,
    adds_floats=True,
    adds_longs=True,
    matrices=(),
    converts_matrices=False,
    told_processors=None,
    register_bits=256,
)
