"""The backend that the tracer uses: it lowers graphs, copies arrays, and opens the device when first needed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lavax.backends.vulkan.compile import plan_cache
from lavax.backends.vulkan.compile.disk_cache import DiskCache, folder_of
from lavax.backends.vulkan.compile.shader_compiler import text_of_module
from lavax.backends.vulkan.emit.candidates import chosen_by_rules
from lavax.backends.vulkan.emit.dispatches import Choice
from lavax.backends.vulkan.emit.program import by_sizes, emit_early, emit_program
from lavax.backends.vulkan.measure.tuner import Records, Tuner
from lavax.backends.vulkan.plan.memory_use import memory_of
from lavax.backends.vulkan.plan.plan import Dispatch, Plan, blocks_of
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.base import config
from lavax.base.errors import DeviceError
from lavax.ir import Graph, TensorType
from lavax.ir.printer import structural_key
from lavax.passes.kernels.kernel import KernelStep
from lavax.passes.kernels.program import KernelProgram, print_program
from lavax.passes.prepare.pipeline import PASSES, graph_at, prepare, verify_optimized
from lavax.passes.reports import Cost, Memory, Profile, cost_of_program, profile_of
from lavax.passes.reports.fusion import fusion_report
from lavax.passes.schedule.schedule import schedule, with_results_apart
from lavax.passes.target.target import ANY_DEVICE, Target

if TYPE_CHECKING:
    from concurrent.futures import Future

    from lavax.backends.vulkan.device.device import Device
    from lavax.backends.vulkan.device.instance import DeviceDescription
    from lavax.backends.vulkan.memory.memory import Buffer
    from lavax.backends.vulkan.run.estimate import Rates

# The size limit of the records of tuning, which take a few hundred bytes per kernel.
_TUNING_BYTES = 16 << 20
_TUNING_METHOD = 2  # of measurement: the records of another one are of no use
# Temporaries that take a driver milliseconds to allocate: 46 to 71 for 2.2 GB, on an H100.
_LARGE_ARENA_BYTES = 256 << 20


class VulkanBackend:
    """One device, opened at its first use. Lowering needs none."""

    _rates: Rates | None = None

    @cached_property
    def device(self) -> Device:
        """The chosen device. Raises DeviceError."""
        from lavax.backends.vulkan.device.device import get_device

        return get_device()

    @cached_property
    def profile(self) -> DeviceProfile:
        """The profile of the chosen device, or that of Mesa's CPU driver if there is no device."""
        try:
            return self.device.profile
        except DeviceError:
            return CPU_DRIVER

    @cached_property
    def target(self) -> Target:
        """The chosen device in the form that passes use."""
        return target_of(self.profile, *self.memory_sizes)

    @cached_property
    def memory_sizes(self) -> tuple[int, int]:
        """Bytes of the chosen device's memory, and of its largest allocation."""
        return self._memory_bytes, self._largest_allocation

    @cached_property
    def _memory_bytes(self) -> int:
        """The memory of the chosen device; 0 if there is no device."""
        try:
            return self.device.physical.memory_bytes
        except DeviceError:
            return 0

    @cached_property
    def _largest_allocation(self) -> int:
        """The most bytes of one allocation; without a device, those of any device."""
        try:
            return self.device.arrays.largest_block
        except DeviceError:
            return ANY_DEVICE.largest_allocation

    @cached_property
    def tuner(self) -> Tuner | None:
        """The tuner, which chooses schedules by their times on the device; None if there is no device."""
        try:
            device = self.device
        except DeviceError:
            return None
        from lavax.backends.vulkan.measure.trials import seconds_of

        cache = DiskCache(folder_of("tuning"), _TUNING_BYTES)
        records = Records(cache, f"{device.identity} lavax {config.VERSION} method {_TUNING_METHOD}")
        return Tuner(self.profile, records, lambda plans, dtypes: seconds_of(device, plans, dtypes, self.rates))

    def rates(self) -> Rates:
        """What the device does in a second: of GPUs measured once, and then kept on disk."""
        if self._rates is None:
            from lavax.backends.vulkan.measure.kept_rates import rates_of
            from lavax.backends.vulkan.run.estimate import PROCESSORS

            self._rates = PROCESSORS if self.device.profile.kind == "cpu" else rates_of(self.device)
        return self._rates

    def lower(
        self, graph: Graph, donated: tuple[int, ...] = (), eager: bool = False, tune: bool = False
    ) -> LoweredGraph:
        """A simplified graph that is cut into kernels when it is asked for them, or compiled.

        `donated` are the positions of inputs whose memory results may take over. The shaders of an `eager` program take
        sizes as push constants, so other shapes share them. With `tune`, schedules are chosen by their times; unknown
        times are measured now, or when shaders are written.
        """
        tuner = self.tuner if tune else None
        target = self.target if tuner is None else self.target.with_parts(tuner.parts_of)
        choice = by_sizes if tuner is None else tuner.schedule_of
        return LoweredGraph(self, graph, donated, target, eager, choice)

    def upload(self, array: np.ndarray) -> Buffer:
        """A buffer with a copy of the array, which must be contiguous and of a storage dtype."""
        return self.device.transfer.upload(array)

    def download(self, buffer: Buffer, type: TensorType) -> np.ndarray:
        """The buffer's contents in the dtype's NumPy form; waits for them."""
        contents = self.device.transfer.download(buffer, type.nbytes)
        return type.dtype.from_storage(contents.view(type.dtype.storage).reshape(type.shape))

    def wait(self, buffer: Buffer) -> None:
        """Returns when the buffer's contents have been produced."""
        buffer.wait()

    def devices(self) -> list[Any]:
        """Descriptions of all usable devices."""
        from lavax.backends.vulkan.device.instance import list_devices

        return list(list_devices())

    def default_device(self) -> DeviceDescription:
        """The description of the chosen device."""
        from lavax.backends.vulkan.device.instance import describe

        return describe(self.device.physical)

    def release_memory(self) -> None:
        """Waits for the device, destroys what no program uses any more, and gives unused memory back to the driver."""
        if "device" in vars(self):  # it is open
            self.device.release_unused()

    def busy_invocations(self) -> int:
        """The invocations that keep the chosen device busy, or Mesa's CPU driver if there is no device."""
        return self.profile.busy_invocations

    def bytes_in_use(self) -> int:
        """Device memory that arrays and programs hold."""
        return sum(pool.use().in_use for pool in {self.device.arrays, self.device.tables})


def _nobody_waits(kernels: KernelProgram) -> None:
    """What is done with kernels before their shaders are written."""


class LoweredGraph:
    """A graph, its kernels, and the shaders and the program that are made of them, each when first asked for."""

    def __init__(
        self,
        backend: VulkanBackend,
        graph: Graph,
        donated: tuple[int, ...],
        target: Target,
        eager: bool,
        choice: Choice,
    ) -> None:
        verify_optimized(graph)
        self.backend = backend
        self.graph, self.target = graph, target
        self._donated, self._eager, self._choice = donated, eager, choice

    @cached_property
    def kernels(self) -> KernelProgram:
        """The kernels in the order they run, with the buffers between them.

        An output that is an input, or another output, is copied: any of the arrays may be donated.
        """
        prepared = with_results_apart(prepare(self.graph, self.target), {})
        return schedule(prepared, self._donated, None, self.target)

    @cached_property
    def plan(self) -> Plan:
        """Shaders, dispatches and memory."""
        return emit_program(self.kernels, self.backend.profile, self._eager, self._choice)

    def find_plan(
        self,
        early: Callable[[Dispatch], None],
        written: Callable[[Dispatch], None],
        scheduled: Callable[[KernelProgram], None] = _nobody_waits,
    ) -> Plan:
        """The plan: made now, or found on disk.

        If it is made now, unless shaders are timed meanwhile, `early` is told of some dispatches whose shaders the plan
        is likely to have before all else is done, `scheduled` of the kernels before shaders are written, and `written`
        of each dispatch at once.
        """
        key = self._key()
        kept = None if key is None else plan_cache.load(key)
        if kept is not None:
            vars(self)["plan"] = kept
            return kept
        if "plan" not in vars(self) and self._choice is by_sizes:
            profile = self.backend.profile
            is_early = "kernels" not in vars(self) and not self._eager
            launches = emit_early(self.graph, self.target, profile, early) if is_early else {}
            scheduled(self.kernels)
            vars(self)["plan"] = emit_program(self.kernels, profile, self._eager, self._choice, written, launches)
        if key is not None:
            plan_cache.store(key, self.plan)
        return self.plan

    def _key(self) -> str | None:
        """By which its plan is kept on disk; None if it is not: schedules by measured times have records of their own.
        """
        if self._choice is not by_sizes:
            return None
        rest = f"{self.backend.profile} {self.backend.memory_sizes} {self._donated} {self._eager}"
        return plan_cache.key_of(structural_key(self.graph), rest)

    def schedule_of(self, step: KernelStep) -> Hashable | None:
        """How a step is computed: as tuning chose it, or as the rules do; None for routines that have one way."""
        chosen = self._choice(step.kernel)
        if chosen is not None:
            return chosen
        return chosen_by_rules(step, self.kernels.views, self.backend.profile)

    def memory(self) -> Memory:
        """The memory of the program and of a call, before anything is allocated."""
        return memory_of(self.plan)

    def as_text(self, stage: str) -> str:
        """The text of a stage: "prepare", "kernels", "fusion", "glsl" or "spirv". Raises ValueError for any other.

        "prepare:PASS" is the graph after that pass, named or numbered; "prepare" is the one after the last.
        """
        kind, _, which = stage.partition(":")
        match kind:
            case "prepare":
                return str(graph_at(self.graph, self.target, which or PASSES[-1].name))
            case "kernels":
                return print_program(self.kernels)
            case "fusion":
                return str(fusion_report(self.kernels.graph, self.target))
            case "glsl":
                return self._shaders(lambda source: source)
            case "spirv":
                return self._shaders(text_of_module)
        raise ValueError(f"no stage {stage!r}; there are 'prepare', 'kernels', 'fusion', 'glsl' and 'spirv'")

    def _shaders(self, text_of: Any) -> str:
        return "\n".join(f"// {dispatch.name}\n{text_of(dispatch.shader.source)}" for dispatch in self.plan.dispatches)

    def compile(self) -> CompiledGraph:
        """The program on the device. Raises DeviceError, ShaderCompilerError."""
        return CompiledGraph(self)


class CompiledGraph:
    """A program whose results are the graph's outputs, in order."""

    def __init__(self, lowered: LoweredGraph) -> None:
        from lavax.backends.vulkan.run.cuts import pieces_of
        from lavax.backends.vulkan.run.long_dispatches import shader_as_cut
        from lavax.backends.vulkan.run.program import Program

        self.lowered = lowered
        device, rates = lowered.backend.device, lowered.backend.rates
        with device.pipelines.ahead() as ahead:

            def written(dispatch: Dispatch) -> None:
                ahead.want(shader_as_cut(dispatch, pieces_of(dispatch, device.profile, rates)))

            def early(dispatch: Dispatch) -> None:
                written(dispatch)
                ahead.begin_last()

            def scheduled(kernels: KernelProgram) -> None:
                if kernels.arena_bytes >= _LARGE_ARENA_BYTES:
                    sizes = blocks_of(kernels.arena_bytes, kernels.block_bytes)
                    reserving.append(ahead.aside(lambda: device.arrays.reserve(sizes)))

            reserving: list[Future[None] | None] = []
            plan = lowered.find_plan(early, written, scheduled)
            for future in filter(None, reserving):
                future.result()
            self.program = Program(device, plan, rates, ahead)
        self.run: Callable[..., Sequence[Buffer]] = self.program.run

    def __call__(self, *buffers: Buffer) -> Sequence[Buffer]:
        """Submits one run; returns a buffer per output at once. Raises ValueError for buffers of other sizes."""
        self.program.check(buffers)
        return self.run(buffers)

    def cost(self) -> Cost:
        """The operations and the memory traffic of its kernels."""
        return cost_of_program(self.lowered.kernels)

    def memory(self) -> Memory:
        """The memory of the program and of a call."""
        return self.lowered.memory()

    def profile(self, *buffers: Buffer) -> Profile:
        """The times of its kernels, from a few separate runs; `buffers` keep their contents."""
        from lavax.backends.vulkan.measure.limits import measure_limits
        from lavax.backends.vulkan.measure.profiling import profile_program

        device = self.program.device
        dispatches, limits = profile_program(self.program, buffers), measure_limits(device)
        return profile_of(device.physical.name, self.cost(), dispatches, limits.copy, limits.arithmetic)
