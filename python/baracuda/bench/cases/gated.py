"""Gated activations, forward and backward. torch has only glu as one kernel; the others are eager formulas."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import torch
import torch.nn.functional as F

import baracuda as bc
from baracuda.bench.case import Case, Sides
from baracuda.bench.cases._tools import SIZE, bind, noise, plan, space

aten = torch.ops.aten
Tensor: TypeAlias = torch.Tensor

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"swiglu": F.silu, "geglu": F.gelu, "reglu": F.relu}
_PEERS = {
    "swiglu": "F.silu(gate) * value",
    "geglu": "F.gelu(gate) * value",
    "reglu": "F.relu(gate) * value",
    "glu": "F.glu",
}
_FLOPS = {"swiglu": 5, "geglu": 20, "reglu": 2, "glu": 4}
_FLOPS_BACKWARD = {"swiglu": 10, "geglu": 28, "reglu": 4, "glu": 8}


def _activation_backward(kind: str, dy: Tensor, gate: Tensor, saved: Tensor, out: Tensor) -> None:
    if kind == "swiglu":
        aten.silu_backward.grad_input(dy, gate, grad_input=out)
    elif kind == "geglu":
        aten.gelu_backward.grad_input(dy, gate, grad_input=out)
    else:
        aten.threshold_backward.grad_input(dy, saved, 0, grad_input=out)


def _forward(kind: str, element: str, rows: int, columns: int) -> Sides:
    x, y, z = (
        noise(rows, 2 * columns, element=element),
        space(rows, columns, element=element),
        space(rows, columns, element=element),
    )
    made = plan(bc.GatedActivationDescriptor(kind, tuple(x.shape), -1, element))
    value, gate = x[:, :columns], x[:, columns:]

    def peer() -> Tensor:
        if kind == "glu":
            return torch._C._nn.glu(x, -1, out=z)  # type: ignore[call-arg]
        return torch.mul(_ACTIVATIONS[kind](gate), value, out=z)

    ours = bind(made, x=x, y=y)
    return Sides.calls(ours, peer, made, lambda: [y])


def _backward(kind: str, element: str, rows: int, columns: int) -> Sides:
    x, dy = noise(rows, 2 * columns, element=element), noise(rows, columns, element=element, seed=1)
    dx, dz = torch.zeros_like(x), torch.zeros_like(x)
    made = plan(bc.GatedActivationBackwardDescriptor(kind, tuple(x.shape), -1, element))
    value, gate = x[:, :columns], x[:, columns:]
    dvalue, dgate = dz[:, :columns], dz[:, columns:]
    saved = torch.zeros_like(dy) if kind == "glu" else _ACTIVATIONS[kind](gate)  # autograd keeps it from the forward

    def peer() -> Tensor:
        if kind == "glu":
            return aten.glu_backward.grad_input(dy, x, -1, grad_input=dz)  # type: ignore[no-any-return]
        torch.mul(dy, saved, out=dvalue)
        _activation_backward(kind, dy * value, gate, saved, dgate)
        return dz

    ours = bind(made, dy=dy, x=x, dx=dx)
    return Sides.calls(ours, peer, made, lambda: [dx])


def cases(quick: bool) -> list[Case]:
    """All kinds over 4096 rows of 2 x 4096."""
    rows, columns = (64, 256) if quick else (4096, 4096)
    numel = rows * columns
    out = []
    for kind, flops in _FLOPS.items():
        for element in ("f32", "bf16"):
            goal = None if kind == "glu" else 1.7 if element == "f32" else 1.6
            required = {"f32": 1.6, "bf16": 1.5} if kind == "swiglu" else {}
            required_backward = {"f32": 1.6, "bf16": 1.4} if kind == "swiglu" else {}
            shape, size = f"{rows} x (2 x {columns})", SIZE[element]
            out.append(Case(
                f"{kind} forward", "gated", element, shape, f"torch {_PEERS[kind]}, out=",
                partial(_forward, kind, element, rows, columns), bytes=3 * numel * size, flops=flops * numel,
                ceiling="memory", required=required.get(element), goal=goal,
            ))  # fmt: skip
            backward = "glu_backward, out=" if kind == "glu" else "what autograd runs, written into the halves of dx"
            out.append(Case(
                f"{kind} backward", "gated", element, shape, f"torch {backward}",
                partial(_backward, kind, element, rows, columns), bytes=5 * numel * size,
                flops=_FLOPS_BACKWARD[kind] * numel, ceiling="memory", required=required_backward.get(element),
                goal=goal,
            ))  # fmt: skip
    return out
