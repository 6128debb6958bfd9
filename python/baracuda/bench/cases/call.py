"""The run path: what a call costs around the kernel.

Nothing is subtracted. The design's goals are for a call without its kernel, so they stand at the calls on empty
tensors, where the kernel finds nothing to do; the same calls on [4, 4] show what the smallest kernel adds. Times are CPU
time of the calling thread: nothing here waits, and other processes should not count. The peer is torch's own op on the
same tensors; of making a bc.Tensor and views of it, what NumPy does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import thread_time
from timeit import Timer
from typing import Any

import numpy as np
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


def _rms_norm(framework: str, shape: tuple[int, int]) -> Sides:
    """Four tensors of rms_norm: x, weight, y, rstd."""
    rows, columns = shape
    tensors: dict[str, Any] = {
        "x": torch.randn(shape),
        "weight": torch.randn(columns),
        "y": torch.zeros(shape),
        "rstd": torch.zeros(rows, 1),
    }
    if framework == "numpy":
        tensors = {k: v.numpy() for k, v in tensors.items()}
    made = bc.plan(bc.RmsNormDescriptor(shape, (columns,)))
    names = [p.name for p in made.signature.present]
    if sorted(names) != sorted(tensors):
        raise AttributeError(f"baracuda's rms_norm takes {names}, not {list(tensors)}", name="RmsNormDescriptor")
    statement = Statement(f"run({', '.join(names)})", {"run": made.run, **tensors}, thread_time)
    peer = Statement(
        f"rms_norm(x, ({columns},), w)",
        {"rms_norm": torch.nn.functional.rms_norm, "x": torch.randn(shape), "w": torch.randn(columns)},
        thread_time,
    )
    return Sides(statement, peer, (made,))


# Making a bc.Tensor and views of one; what NumPy takes for the same is the peer.
_TENSORS = {
    "from_pointer": ("from_pointer(p, (4, 6), 'f32')", "ndarray((4, 6), 'f4', held)"),
    "empty": ("empty((4, 6), 'f32')", "new((4, 6), 'f4')"),
    "x[1:3]": ("x[1:3]", "a[1:3]"),
    "x.T": ("x.T", "a.T"),
    "x.reshape(6, 4)": ("x.reshape(6, 4)", "a.reshape(6, 4)"),
    "x.numpy()": ("x.numpy()", "a.view()"),
}


def _tensor(kind: str) -> Sides:
    a = np.zeros((4, 6), np.float32)
    ours = {"from_pointer": bc.from_pointer, "p": a.ctypes.data, "empty": bc.empty, "x": bc.from_dlpack(a)}
    theirs = {"ndarray": np.ndarray, "new": np.empty, "held": bytearray(a.nbytes), "a": a}
    texts = _TENSORS[kind]
    return Sides(Statement(texts[0], ours, thread_time), Statement(texts[1], theirs, thread_time))


def _torch_empty() -> float:
    """Nanoseconds of torch.empty for the result."""
    timer = Timer("empty((4, 2), dtype=f32)", timer=thread_time, globals={"empty": torch.empty, "f32": torch.float32})
    return min(timer.repeat(5, 20_000)) / 20_000 * 1e9


def cases(quick: bool) -> list[Case]:
    """plan.run, bound plans and functional hits; the goals are those of the design."""
    del quick
    out = []

    def add(
        name: str,
        build: Callable[[tuple[int, int]], Sides],
        goal: float | Callable[[], float],
        peer: str,
        with_kernel: bool = False,
    ) -> None:
        out.append(Case(f"call: {name}, empty", "call", "f32", "0x4", peer, partial(build, (0, 4)), goal_ns=goal))
        kept = goal if with_kernel else None
        out.append(Case(f"call: {name}", "call", "f32", "4x4", peer, partial(build, (4, 4)), goal_ns=kept))

    with_out, new, norm = _PEERS["out"][1], _PEERS["new"][1], "torch.nn.functional.rms_norm"
    add("run, NumPy, 2 tensors", partial(_glu, "run", "numpy"), 100, with_out)
    add("run, NumPy, 2 tensors, keywords", partial(_glu, "keywords", "numpy"), 100, with_out)
    add("run, NumPy, 4 tensors", partial(_rms_norm, "numpy"), 150, norm)
    add("run, torch, 2 tensors", partial(_glu, "run", "torch"), 250, with_out)
    add("run, torch, 4 tensors", partial(_rms_norm, "torch"), 450, norm)
    add("bound, NumPy", partial(_glu, "bound", "numpy"), 60, with_out)
    add("bound, torch", partial(_glu, "bound", "torch"), 60, with_out)
    add("functional hit, NumPy", partial(_glu, "functional", "numpy"), 1500, new, with_kernel=True)
    add("functional hit, torch", partial(_glu, "functional", "torch"), lambda: 1000 + _torch_empty(), new, True)
    for kind, (_, numpys) in _TENSORS.items():
        name, peer = f"call: bc.Tensor, {kind}", f"NumPy {numpys}"
        out.append(Case(name, "call", "f32", "4x6", peer, partial(_tensor, kind), goal_ns=300))
    return out
