"""The shaders that join integers to their places on GPUs, as plain text."""
from __future__ import annotations

import pytest

from lavax.ir import TensorType, int32
from lavax.ir.graph import graph_of, input_node, make_node
from tests.backends.vulkan.emit.emission import PROFILES, assert_shader, dispatches_of

# The elements of the array, the updates, and what the shader does behind the copy of the array.
SHADERS: dict[str, tuple[int, int, str]] = {
    "few updates go to memory": (
        100,
        50,
        """
        layout(local_size_x = 256, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            uint64_t p2 = table.address[words[2]];
            uint64_t p3 = table.address[words[3]];
            int i = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 256u + gl_LocalInvocationID.x);
            if (i >= 50) return;
            int vectors = 50;
            int extent = 100;
            int part = i / 50;
            int at = min(i - part * vectors, vectors - 1);
            int v1 = I32(p2).data[at];
            int v2 = I32(p1).data[at];
            if (v1 >= 0 && v1 < extent) {
                atomicAdd(I32(p3).data[part * extent + v1], v2);
            }
        }
        """,
    ),
    "many meet in shared memory": (
        100,
        8001,
        """
        layout(local_size_x = 256, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            uint64_t p2 = table.address[words[2]];
            uint64_t p3 = table.address[words[3]];
            int group = int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
            int thread = int(gl_LocalInvocationID.x);
            if (group >= 4) return;
            int vectors = 8001;
            int extent = 100;
            int part = group / 4;
            for (int k = thread; k < 100; k += 256) {
                held[k] = 0;
            }
            barrier();
            int first = group % 4 * 2048 + thread;
            for (int turn = 0; turn < 8; ++turn) {
                if (first + turn * 256 < vectors) {
                    int at = min(first + turn * 256, vectors - 1);
                    int v1 = I32(p2).data[at];
                    int v2 = I32(p1).data[at];
                    if (v1 >= 0 && v1 < extent) {
                        atomicAdd(held[v1], v2);
                    }
                }
            }
            barrier();
            for (int k = thread; k < 100; k += 256) {
                if (held[k] != 0) atomicAdd(I32(p3).data[part * extent + k], held[k]);
            }
        }
        """,
    ),
    "of a large array those of a place meet there": (
        20000,
        40001,
        """
        layout(local_size_x = 256, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            uint64_t p2 = table.address[words[2]];
            uint64_t p3 = table.address[words[3]];
            int group = int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
            int thread = int(gl_LocalInvocationID.x);
            if (group >= 20) return;
            int vectors = 40001;
            int extent = 20000;
            int part = group / 20;
            for (int k = thread; k < 2048; k += 256) {
                held[k] = 0;
                owners[k] = -1;
            }
            barrier();
            int first = group % 20 * 2048 + thread;
            for (int turn = 0; turn < 8; ++turn) {
                if (first + turn * 256 < vectors) {
                    int at = min(first + turn * 256, vectors - 1);
                    int v1 = I32(p2).data[at];
                    int v2 = I32(p1).data[at];
                    if (v1 >= 0 && v1 < extent) {
                        int owner = owners[v1 & 2047];
                        if (owner < 0) {
                            owner = atomicCompSwap(owners[v1 & 2047], -1, v1);
                            owner = owner < 0 ? v1 : owner;
                        }
                        if (owner == v1) {
                            atomicAdd(held[v1 & 2047], v2);
                        }
                        else atomicAdd(I32(p3).data[part * extent + v1], v2);
                    }
                }
            }
            barrier();
            for (int k = thread; k < 2048; k += 256) {
                if (owners[k] >= 0) atomicAdd(I32(p3).data[part * extent + owners[k]], held[k]);
            }
        }
        """,
    ),
}


@pytest.mark.parametrize("name", SHADERS)
def test_shader(name: str) -> None:
    extent, count, expected = SHADERS[name]
    sizes = dict(array=extent, updates=count, places=count)
    inputs = [input_node(label, TensorType((size,), int32)) for label, size in sizes.items()]
    graph = graph_of(inputs, [make_node("join_places", inputs, dict(join="add"))])
    copy, join = dispatches_of(graph, PROFILES["gpu"])
    assert join.barrier
    assert copy.slots == join.slots
    assert_shader(join, expected)
