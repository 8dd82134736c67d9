"""What a kernel schedule may know of a device: limits and features, never its name or vendor.

Imports no Vulkan, so kernels can be lowered on a machine without a driver.
"""
from __future__ import annotations

from dataclasses import dataclass

# Simple operations that are worth computing again where a byte less is moved. GPUs compute ten in that time; where
# shaders run on the processor, layer norm's gradient won 5 to 11 % so.
_OPERATIONS_PER_BYTE = {"cpu": 0.0, "gpu": 2.0}
# Eight subgroups on a processor; a hundred workgroups of 256 on a GPU.
_BUSY_INVOCATIONS = {"cpu": 64, "gpu": 1 << 15}
# Of the lengths of windows: half of one is a multiple of any device's alignment for texels and storage.
_WINDOW_UNIT = 512


@dataclass(frozen=True)
class MatrixShape:
    """Cooperative matrices of a subgroup: (m × k) · (k × n) of the dtype, "f16" or "bf16", added up in float32."""

    dtype: str
    m: int
    n: int
    k: int


@dataclass(frozen=True)
class DeviceProfile:
    """Limits and features of a device. Sizes are in bytes, workgroup sizes in invocations."""

    name: str
    kind: str  # "cpu" for a driver that runs shaders on the processor, else "gpu"
    subgroup_size: int
    min_subgroup_size: int
    max_subgroup_size: int
    names_subgroup_size: bool  # pipelines may ask for a subgroup size; else it is that of all shaders
    shared_memory_bytes: int
    max_workgroup_invocations: int
    max_workgroup_count: tuple[int, int, int]
    subgroup_shuffle: bool
    subgroup_ballot: bool
    preserves_special_floats: bool  # shaders may ask that float32 zeros keep their signs, and infinities and NaN count
    preserves_special_doubles: bool  # the same for float64
    preserves_denormals: bool  # shaders may ask that float32 numbers below the smallest normal one count too
    float16: bool
    int64: bool
    float64: bool
    int8: bool
    int16: bool
    storage_8bit: bool
    storage_16bit: bool
    descriptor_bytes: int  # what a descriptor shows of a buffer at most, as texels of 32 bits and as storage
    memory_model: bool  # Vulkan's memory model, which shaders with cooperative matrices are written in
    matrices: tuple[MatrixShape, ...]  # those that shaders can be compiled for, best first

    @property
    def knows_subgroup_size(self) -> bool:
        """Whether shaders can rely on a number of lanes: pipelines ask for it, or there is one alone."""
        within = self.min_subgroup_size <= self.subgroup_size <= self.max_subgroup_size
        return within and (self.names_subgroup_size or self.min_subgroup_size == self.max_subgroup_size)

    @property
    def busy_invocations(self) -> int:
        """How many invocations keep the device busy. An assumption: Vulkan has no portable count of processors."""
        return _BUSY_INVOCATIONS[self.kind]

    @property
    def operations_per_byte(self) -> float:
        """How many simple operations are worth computing again where a byte less is moved."""
        return _OPERATIONS_PER_BYTE[self.kind]

    @property
    def packed(self) -> frozenset[int]:
        """The widths in bits of elements that shaders cannot address by themselves, but only in 32-bit words."""
        missing = ((8, self.storage_8bit), (16, self.storage_16bit))
        return frozenset(width for width, exists in missing if not exists)

    @property
    def paired(self) -> bool:
        """Whether four 32-bit elements are better read and written as two of 64 bits.

        Drivers for processors make one access of a vector as many as it has components, in each lane.
        """
        return self.kind == "cpu"

    @property
    def window_bytes(self) -> int:
        """How much of a block of memory shaders see at once where they read texels, through descriptors; 0: none do.

        Drivers for processors make an access by address a loop over the lanes, and a read of a texel none.
        """
        return self.descriptor_bytes & -_WINDOW_UNIT if self.kind == "cpu" else 0


# What every desktop GPU of the last years offers; for lowering where there is no device.
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
    float16=False,
    int64=True,
    float64=False,
    int8=False,
    int16=False,
    storage_8bit=False,
    storage_16bit=False,
    descriptor_bytes=1 << 27,
    memory_model=False,
    matrices=(),
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
    float16=True,
    int64=True,
    float64=True,
    int8=True,
    int16=True,
    storage_8bit=True,
    storage_16bit=True,
    descriptor_bytes=1 << 27,
    memory_model=True,
    matrices=(),
)
