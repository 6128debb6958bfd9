"""The machine's ceilings, measured in the session: memory bandwidth on small and huge pages, and multiply-add rates.

A small C++ program is compiled for this very processor; without a compiler PyTorch's own kernels stand in, and that is
said.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

Probe: TypeAlias = Callable[[int, int, int, int, int, int], float]

_BANDWIDTH = (("copy", 0, 2), ("nt_copy", 1, 2), ("nt_fill", 2, 1), ("read", 3, 1))  # name, kind, bytes per byte
_RATES = (("f32", 4), ("f64", 5), ("bf16", 6))


@dataclass(slots=True)
class Ceilings:
    """GB/s for bandwidths (useful bytes), GFLOP/s for rates: the best of several passes.

    Names: `copy`, `nt_copy` (non-temporal stores), `nt_fill`, `read`, each alone for ordinary 4 KB pages, with `_huge`
    for huge pages, with `_l3` for arrays that fit the last level of cache; `memory` is the best copy on 4 KB pages;
    `f32`, `f64`, `bf16` are multiply-add rates.
    """

    source: str
    threads: int
    values: dict[str, float] = field(default_factory=dict)


def _compile() -> ctypes.CDLL | None:
    compiler = os.environ.get("CXX") or next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "probe.so"
        flags = ["-std=c++17", "-O3", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC", "-pthread"]
        source = Path(__file__).with_name("probe.cpp")
        made = subprocess.run([compiler, *flags, str(source), "-o", str(out)], capture_output=True, check=False)
        return ctypes.CDLL(str(out)) if made.returncode == 0 else None


class _Pages:
    """Memory on pages of one kind."""

    def __init__(self, nbytes: int, *, huge: bool) -> None:
        self.memory = mmap.mmap(-1, nbytes)
        advice = getattr(mmap, "MADV_HUGEPAGE" if huge else "MADV_NOHUGEPAGE", None)
        if advice is not None:
            self.memory.madvise(advice)
        self.array = np.frombuffer(self.memory, np.float32)
        self.array[:] = 1.0

    @property
    def address(self) -> int:
        """Where it is."""
        return int(self.array.ctypes.data)


def _native(library: ctypes.CDLL, threads: int, nbytes: int, passes: int) -> dict[str, float]:
    probe = library.probe
    probe.restype = ctypes.c_double
    probe.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_int]
    values: dict[str, float] = {}
    for suffix, size, huge in (("", nbytes, False), ("_huge", nbytes, True), ("_l3", min(nbytes, 8 << 20), True)):
        to, source = _Pages(size, huge=huge), _Pages(size, huge=huge)
        inner = max(1, (32 << 20) // size)
        for name, kind, factor in _BANDWIDTH:
            if suffix == "_l3" and name.startswith("nt"):
                continue
            best = min(probe(kind, to.address, source.address, size, threads, inner) for _ in range(passes))
            values[name + suffix] = factor * size / best / 1e9
    scratch = _Pages(4096 * max(threads, 1), huge=False)
    width = library.probe_bytes()
    for name, kind in _RATES:
        flops = library.probe_flops(kind)
        if flops:
            rounds = 1 << 19
            best = min(probe(kind, scratch.address, scratch.address, rounds * width, threads, 4) for _ in range(passes))
            values[name] = 10 * flops * rounds * threads / best / 1e9
    return values


def _best(fn: Callable[[], Any], passes: int) -> float:
    times = []
    for _ in range(passes + 1):
        begin = perf_counter()
        fn()
        times.append(perf_counter() - begin)
    return min(times[1:])


def _by_torch(nbytes: int, passes: int) -> dict[str, float]:
    import torch

    x, y = torch.ones(nbytes // 4), torch.ones(nbytes // 4)
    side = 2048 if nbytes > 1 << 26 else 256
    a, b = torch.ones(side, side), torch.empty(side, side)
    return {
        "copy": 2 * nbytes / _best(lambda: y.copy_(x), passes) / 1e9,
        "read": nbytes / _best(lambda: x.sum(), passes) / 1e9,
        "f32": 2 * side**3 / _best(lambda: torch.mm(a, a, out=b), passes) / 1e9,
    }


def measure_ceilings(threads: int, *, quick: bool = False) -> Ceilings:
    """Measures them; takes a few seconds."""
    nbytes, passes = (16 << 20, 3) if quick else (256 << 20, 9)
    library = _compile()
    if library is None:
        found = Ceilings("torch copy_, sum and mm: no C++ compiler was found", threads, _by_torch(nbytes, passes))
    else:
        found = Ceilings("native probe", threads, _native(library, threads, nbytes, passes))
    found.values["memory"] = max(v for k, v in found.values.items() if k in ("copy", "nt_copy"))
    return found
