"""The libraries with which lavax is compared: those that can be imported, on the hardware on which lavax runs."""
from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable
from typing import Any

from benchmarks.peers.peer import Peer, Run

__all__ = ["LIBRARIES", "Peer", "Run", "find_peers"]


def _lavax(on_gpu: bool) -> Iterable[Peer]:
    return [_adapter("lavax").LavaxPeer()]


def _glsl(on_gpu: bool) -> Iterable[Peer]:
    return [] if on_gpu else [_adapter("glsl").GlslPeer()]


def _numpy(on_gpu: bool) -> Iterable[Peer]:
    return [] if on_gpu else [_adapter("numpy").NumpyPeer()]


def _jax(on_gpu: bool) -> Iterable[Peer]:
    return [_adapter("jax").JaxPeer(on_gpu)]


def _torch(on_gpu: bool) -> Iterable[Peer]:
    peers: Iterable[Peer] = _adapter("torch").torch_peers(on_gpu)
    return peers


def _iree(on_gpu: bool) -> Iterable[Peer]:
    return [_adapter("iree").IreePeer()]


def _tinygrad(on_gpu: bool) -> Iterable[Peer]:
    return [_adapter("tinygrad").TinygradPeer()]


# By the names of the libraries. lavax comes first: the others' results are compared with its results.
_FINDERS: dict[tuple[str, ...], Callable[[bool], Iterable[Peer]]] = {
    ("lavax",): _lavax,
    ("GLSL",): _glsl,
    ("NumPy",): _numpy,
    ("JAX",): _jax,
    ("PyTorch", "torch.compile"): _torch,
    ("IREE",): _iree,
    ("tinygrad",): _tinygrad,
}
LIBRARIES = tuple(name for names in _FINDERS for name in names)


def _adapter(name: str) -> Any:
    return importlib.import_module(f"benchmarks.peers.{name}")


def find_peers(
    on_gpu: bool, absent: Callable[[str, str], None], libraries: Collection[str] = LIBRARIES
) -> list[Peer]:
    """Those of `libraries` that work here; `absent(library, why)` is called for the others."""
    found: list[Peer] = []
    for names, find in _FINDERS.items():
        if set(names).isdisjoint(libraries):
            continue
        try:
            found += [peer for peer in find(on_gpu) if peer.name in libraries]
        except Exception as error:  # whatever a library raises where it does not work is a reason to go on without it
            absent(names[0], f"{type(error).__name__}: {error}".splitlines()[0])
    return found
