"""The same cases on a GPU: CUDA events for a clock, data that is rotated past the L2 cache, the GPU's own ceilings.

Both sides work on torch's memory in torch's current stream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle
from time import perf_counter
from typing import Any

import torch

from baracuda.bench.case import Case, Sides, Statement
from baracuda.bench.cases import _tools
from baracuda.bench.ceilings import Ceilings
from baracuda.memory.device import Device, place_of

_FAMILIES = (
    "gated",
    "unary",
    "binary",
    "layout",
    "norm",
    "softmax",
    "loss",
    "reduce",
    "rope",
    "matmul",
    "attention",
    "random",
)
# Issue 3's goals: never slower than torch's eager kernel, fused ones twice as fast; products beside cuBLAS and cuDNN.
_REQUIRED = {"matmul": 0.98, "attention": 0.9}
_GOALS = {"gated": 2.0, "loss": 2.0, "attention": 0.95}
_MOST_COPIES = 16
Clock = Callable[[], float]


class EventClock:
    """Seconds of the GPU's own clock, for differences: reading it waits for what was launched before."""

    def __init__(self) -> None:
        self.last, self.seconds = self._record(), 0.0

    def _record(self) -> Any:
        event: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def __call__(self) -> float:
        """Waits, and reads it."""
        now = self._record()
        now.synchronize()
        self.seconds += self.last.elapsed_time(now) / 1e3
        self.last = now
        return self.seconds


def use(name: str) -> tuple[str, str]:
    """Chooses the device for the cases' data; its full name, and why it cannot be used (empty where it can)."""
    device = Device(name)
    reason = device.reason
    if not reason and not torch.cuda.is_available():
        reason = "this torch has no CUDA: the peer is missing"
    if not reason:
        torch.cuda.set_device(place_of(device)[1])
        torch.backends.cuda.matmul.allow_tf32 = False
        _tools.use_device(device.name)
    return device.name, reason


def cache_bytes() -> int:
    """The size of the device's L2 cache."""
    return int(torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size)


def on_device(cases: Sequence[Case], cache: int, clock: Callable[[], Clock] | None = None) -> list[Case]:
    """The cases that make sense on a GPU, with its goals, clock and data."""
    found = []
    for case in cases:
        if case.family not in _FAMILIES:
            continue
        copies = min(_MOST_COPIES, 1 + int(3 * cache / max(case.bytes, 1)))
        ceiling = case.ceiling if case.ceiling in ("f32", "bf16") else "memory" if case.bytes else ""
        build = partial(_rotated, case.build, copies, clock or (lambda: perf_counter))
        required, goal = _REQUIRED.get(case.family, 1.0), _GOALS.get(case.family)
        found.append(replace(case, build=build, ceiling=ceiling, required=required, goal=goal, goal_ns=None))
    return found


def _rotated(build: Callable[[], Sides], copies: int, clock: Callable[[], Clock]) -> Sides:
    """Both sides on so many sets of data in turn that none of it is in the cache when its turn comes again."""
    made = [build() for _ in range(copies)]
    time = clock()

    def in_turn(statements: Sequence[Statement]) -> Statement:
        turn = cycle([s.names["f"] for s in statements])
        return Statement("next(turn)()", {"turn": turn, "next": next}, time)

    peers = [s.peer for s in made if s.peer is not None]
    ours = in_turn([s.ours for s in made])
    return replace(made[0], ours=ours, peer=in_turn(peers) if peers else None)


def _best(call: Callable[[], object], passes: int) -> float:
    clock = EventClock()
    times = []
    for _ in range(passes + 2):
        before = clock()
        call()
        times.append(clock() - before)
    return min(times[2:])


def measure_ceilings(*, quick: bool = False) -> Ceilings:
    """The device's copy bandwidth in GB/s and multiply-add rates in GFLOP/s, by torch's copy and cuBLAS."""
    n, side, passes = (1 << 20, 512, 3) if quick else (1 << 28, 8192, 10)
    x = torch.ones(n, device="cuda")
    y = torch.empty_like(x)
    values = {"memory": 8 * n / _best(lambda: y.copy_(x), passes) / 1e9}
    for name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        a = torch.randn(side, side, device="cuda", dtype=dtype)
        out = torch.empty_like(a)
        values[name] = 2 * side**3 / _best(partial(torch.mm, a, a, out=out), passes) / 1e9
    return Ceilings("torch copy_ and mm on the device", 0, values)
