"""Tensors of at most 1024 elements, where a call costs more than its kernel: functions and plans against torch's ops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import thread_time
from typing import Any

import torch

import baracuda as bc
import baracuda.functional as functional
from baracuda.bench.case import Case, Sides, Statement
from baracuda.bench.cases._tools import noise, plan, space, there


@dataclass(frozen=True)
class _Op:
    """An op: the function's call, torch's, torch's with a given result, and the plan."""

    name: str
    family: str
    ours: str
    peer: str
    peer_out: str
    desc: Callable[[], Any]
    run: str


_OPS = (
    _Op("exp of 1024", "unary", "F.exp(b)", "torch.exp(b)", "torch.exp(b, out=y)",
        lambda: bc.UnaryDescriptor("exp", (1024,)), "run(b, y)"),
    _Op("add of 1024", "binary", "F.add(b, c)", "torch.add(b, c)", "torch.add(b, c, out=y)",
        lambda: bc.BinaryDescriptor("add", (1024,), (1024,)), "run(b, c, y)"),
    _Op("sum of 1024", "reduce", "F.sum(b)", "torch.sum(b)", "torch.sum(b, 0, out=s)",
        lambda: bc.ReduceDescriptor("sum", (1024,), (0,)), "run(b, s)"),
    _Op("softmax 32x32", "softmax", "F.softmax(m, -1)", "torch.softmax(m, -1)", "torch.softmax(m, -1, out=z)",
        lambda: bc.SoftmaxDescriptor("softmax", (32, 32), 1), "run(m, z)"),
    _Op("layer_norm 32x32", "norm", "F.layer_norm(m, (32,), w, v)", "T.layer_norm(m, (32,), w, v)",
        "T.layer_norm(m, (32,), w, v)", lambda: bc.LayerNormDescriptor((32, 32), (32,)),
        "run(m, w, v, z, mean, rstd)"),
    _Op("matmul 32x32", "matmul", "F.matmul(m, n)", "torch.matmul(m, n)", "torch.mm(m, n, out=z)",
        lambda: bc.MatmulDescriptor((32, 32), (32, 32)), "run(m, n, z, workspace=workspace)"),
    _Op("cat of 2 x 512", "layout", "F.cat([d, e])", "torch.cat([d, e])", "torch.cat([d, e], out=y)",
        lambda: bc.CatDescriptor(((512,), (512,))), "run([d, e], y)"),
    _Op("cross_entropy 32x32", "loss", "F.cross_entropy(m, t)", "T.cross_entropy(m, t)", "T.cross_entropy(m, t)",
        lambda: bc.CrossEntropyDescriptor((32, 32)), "run(m, t, loss, lse, workspace=workspace)"),
)  # fmt: skip


def _data() -> dict[str, Any]:
    b, c = noise(1024), noise(1024, seed=1)
    return {
        "torch": torch, "T": torch.nn.functional, "F": functional,
        "b": b, "c": c, "d": b[:512], "e": c[:512], "y": space(1024), "s": space(), "loss": space(),
        "m": b.view(32, 32), "n": c.view(32, 32), "z": space(32, 32), "w": noise(32, seed=2), "v": noise(32, seed=3),
        "mean": space(32, 1), "rstd": space(32, 1), "lse": space(32),
        "t": there(torch.arange(32)),
    }  # fmt: skip


def _sides(op: _Op, planned: bool) -> Sides:
    names = _data()
    made = plan(op.desc())
    if planned:
        names |= {"run": made.run, "workspace": bc.empty(made.workspace_size, "u8", device=made.device)}
    ours, peer = (op.run, op.peer_out) if planned else (op.ours, op.peer)

    def results() -> tuple[list[Any], list[Any]]:
        mine, theirs = eval(op.run if planned else op.ours, names), eval(op.peer, names)
        if isinstance(mine, tuple):
            mine = mine[0]
        return [mine.clone()], [theirs]

    return Sides(Statement(ours, names, thread_time), Statement(peer, names, thread_time), (made,), results)


def cases(quick: bool) -> list[Case]:
    """Each op as a function on torch tensors, and as a plan that is run on them."""
    del quick
    return [
        Case(
            f"small: {op.name}, {'plan.run' if planned else 'function'}",
            op.family,
            "f32",
            "1024",
            (op.peer_out if planned else op.peer).replace("T.", "torch.nn.functional."),
            partial(_sides, op, planned),
            required=5 if planned else 2,
        )
        for op in _OPS
        for planned in (False, True)
    ]
