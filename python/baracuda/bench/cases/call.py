"""The run path: what a call costs around the kernel, on tensors so small that the kernel hardly counts.

Nothing is subtracted; the calls on empty tensors have no kernel at all. Times are CPU time of the calling thread:
nothing here waits, and other processes should not count. The peer is torch's own glu on the same tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import thread_time
from timeit import Timer
from typing import Any

import torch

import baracuda as bc
import baracuda.functional as functional
from baracuda.bench.case import Case, Sides, Statement

_PEERS = {
    "out": ("torch._C._nn.glu(t, -1, out=u)", "torch glu with out= (nothing allocated)"),
    "new": ("glu(t)", "torch.nn.functional.glu"),
}


def _peer(kind: str, t: torch.Tensor, u: torch.Tensor) -> Statement:
    return Statement(_PEERS[kind][0], {"torch": torch, "t": t, "u": u, "glu": torch.nn.functional.glu}, thread_time)


def _glu(how: str, framework: str, shape: tuple[int, int]) -> Sides:
    """A call of glu on [rows, 2 columns]: run, bound, or functional."""
    t, u = torch.randn(shape), torch.zeros(shape[0], shape[1] // 2)
    x, y = (t.numpy(), u.numpy()) if framework == "numpy" else (t, u)
    made = bc.plan(bc.GatedActivationDescriptor("glu", shape))
    if how == "run":
        return Sides(
            Statement("run(x, y)", {"run": made.run, "x": x, "y": y}, thread_time), _peer("out", t, u), (made,)
        )
    if how == "keywords":
        return Sides(
            Statement("run(x=x, y=y)", {"run": made.run, "x": x, "y": y}, thread_time), _peer("out", t, u), (made,)
        )
    if how == "bound":
        return Sides(Statement("bound()", {"bound": made.bind(x, y)}, thread_time), _peer("out", t, u), (made,))
    return Sides(Statement("glu(x)", {"glu": functional.glu, "x": x}, thread_time), _peer("new", t, u), (made,))


def _rms_norm(framework: str) -> Sides:
    """Four tensors of rms_norm: x, weight, y, rstd."""
    tensors: dict[str, Any] = {
        "x": torch.randn(4, 4),
        "weight": torch.randn(4),
        "y": torch.zeros(4, 4),
        "rstd": torch.zeros(4, 1),
    }
    if framework == "numpy":
        tensors = {k: v.numpy() for k, v in tensors.items()}
    made = bc.plan(bc.RmsNormDescriptor((4, 4), (4,)))
    names = [p.name for p in made.signature.present]
    if sorted(names) != sorted(tensors):
        raise AttributeError(f"baracuda's rms_norm takes {names}, not {list(tensors)}", name="RmsNormDescriptor")
    statement = Statement(f"run({', '.join(names)})", {"run": made.run, **tensors}, thread_time)
    x, w = torch.randn(4, 4), torch.randn(4)
    peer = Statement("rms_norm(x, (4,), w)", {"rms_norm": torch.nn.functional.rms_norm, "x": x, "w": w}, thread_time)
    return Sides(statement, peer, (made,))


def _torch_empty() -> float:
    """Nanoseconds of torch.empty for the result."""
    timer = Timer("empty((4, 2), dtype=f32)", timer=thread_time, globals={"empty": torch.empty, "f32": torch.float32})
    return min(timer.repeat(5, 20_000)) / 20_000 * 1e9


def cases(quick: bool) -> list[Case]:
    """plan.run, bound plans and functional hits on [4, 4]; the goals are those of the design."""
    del quick
    out = []

    def add(
        name: str, shape: str, build: Callable[[], Sides], goal: float | Callable[[], float] | None, peer: str
    ) -> None:
        out.append(Case(f"call: {name}", "call", "f32", shape, peer, build, goal_ns=goal))

    four, empty = (4, 4), (0, 4)
    with_out, new = _PEERS["out"][1], _PEERS["new"][1]
    add("run, NumPy, 2 tensors", "4x4", partial(_glu, "run", "numpy", four), 100, with_out)
    add("run, NumPy, 2 tensors, keywords", "4x4", partial(_glu, "keywords", "numpy", four), 100, with_out)
    add("run, NumPy, 2 tensors, empty", "0x4", partial(_glu, "run", "numpy", empty), 100, with_out)
    add("run, NumPy, 4 tensors", "4x4", partial(_rms_norm, "numpy"), 150, "torch.nn.functional.rms_norm")
    add("run, torch, 2 tensors", "4x4", partial(_glu, "run", "torch", four), 250, with_out)
    add("run, torch, 2 tensors, empty", "0x4", partial(_glu, "run", "torch", empty), 250, with_out)
    add("run, torch, 4 tensors", "4x4", partial(_rms_norm, "torch"), 450, "torch.nn.functional.rms_norm")
    add("bound, NumPy", "4x4", partial(_glu, "bound", "numpy", four), 60, with_out)
    add("bound, NumPy, empty", "0x4", partial(_glu, "bound", "numpy", empty), 60, with_out)
    add("bound, torch", "4x4", partial(_glu, "bound", "torch", four), 60, with_out)
    add("functional hit, NumPy", "4x4", partial(_glu, "functional", "numpy", four), 1500, new)
    add("functional hit, torch", "4x4", partial(_glu, "functional", "torch", four), lambda: 1000 + _torch_empty(), new)
    return out
