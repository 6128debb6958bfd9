"""Fused expressions beside torch's functions one after the other, each with out=."""

# torch's stubs are not fought here.
# mypy: disable-error-code="call-overload, unused-ignore"
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

import baracuda as bc
import baracuda.functional as F
from baracuda.bench.case import Case, Sides, Statement
from baracuda.bench.cases._tools import SIZE, noise, space, text


def _cheap(x: Any, w: Any) -> Any:
    y = F.add(F.abs(F.neg(F.relu(F.add(F.mul(x, w), w)))), w)
    return F.square(F.sub(F.maximum(F.mul(y, x), w), w))


def _cheap_peer(x: torch.Tensor, w: torch.Tensor, o: torch.Tensor) -> torch.Tensor:
    torch.add(torch.mul(x, w, out=o), w, out=o)
    torch.abs(torch.neg(torch.relu_(o), out=o), out=o)
    torch.mul(torch.add(o, w, out=o), x, out=o)
    torch.sub(torch.maximum(o, w, out=o), w, out=o)
    return torch.square(o, out=o)


def _heavy(x: Any, w: Any) -> Any:
    y = F.exp(F.neg(F.abs(F.add(F.sigmoid(F.mul(F.tanh(x), w)), x))))
    return F.sqrt(F.abs(F.mul(y, w)))


def _heavy_peer(x: torch.Tensor, w: torch.Tensor, o: torch.Tensor) -> torch.Tensor:
    torch.sigmoid(torch.mul(torch.tanh(x, out=o), w, out=o), out=o)
    torch.neg(torch.abs(torch.add(o, x, out=o), out=o), out=o)
    torch.mul(torch.exp(o, out=o), w, out=o)
    return torch.sqrt(torch.abs(o, out=o), out=o)


def _turned(x: Any, w: Any) -> Any:
    return F.relu(F.div(F.add(x.T, w), 2))


def _turned_peer(x: torch.Tensor, w: torch.Tensor, o: torch.Tensor) -> torch.Tensor:
    return torch.relu_(torch.div(torch.add(x.T, w, out=o), 2, out=o))


def _sides(fn: Callable[..., Any], peer: Callable[..., Any], e: str, n: int) -> Sides:
    x, w, y, o = noise(n, n, element=e), noise(n, n, element=e, seed=1), space(n, n, element=e), space(n, n, element=e)
    expr = bc.expr.fuse(fn)
    kernels = expr.explain(x, w).kernels

    def ours() -> Any:
        return expr(x, w, out=y)

    def theirs() -> Any:
        return peer(x, w, o)

    # torch rounds halves after every function, so that results differ.
    results = (lambda: ([ours()], [theirs()])) if e == "f32" else None
    return Sides(Statement.call(ours), Statement.call(theirs), [bc.plan(d) for d in kernels], results)


def _row_sum(n: int) -> Sides:
    x, w, o = noise(n, n), noise(n, seed=1), space(n, n)
    y, z = space(n), space(n)
    expr = bc.expr.fuse(lambda x, w: F.sum(_heavy(x, w), -1))

    def ours() -> Any:
        return expr(x, w, out=y)

    def peer() -> torch.Tensor:
        return torch.sum(_heavy_peer(x, w, o), -1, out=z)

    made = [bc.plan(d) for d in expr.explain(x, w).kernels]
    return Sides(Statement.call(ours), Statement.call(peer), made, lambda: ([ours()], [peer()]))


def cases(quick: bool) -> list[Case]:
    """Ten functions of 16M elements, cheap ones and dear ones; a transposed operand; a sum of rows behind."""
    n = 64 if quick else 4096
    out: list[Case] = []

    def add(name: str, e: str, build: Callable[[], Sides], moved: float, goal: float | None) -> None:
        out.append(
            Case(
                name,
                "expr",
                e,
                text((n, n)),
                "torch out=",
                build,
                bytes=moved * n * n * SIZE[e],
                ceiling="memory",
                goal=goal,
            )
        )

    for e in ("f32", "bf16"):
        add("10 cheap functions fused", e, partial(_sides, _cheap, _cheap_peer, e, n), 3, None)
        add("10 functions fused", e, partial(_sides, _heavy, _heavy_peer, e, n), 3, 4.5 if e == "f32" else None)
    add("relu((x.T + w) / 2) fused", "f32", partial(_sides, _turned, _turned_peer, "f32", n), 3, None)
    add("10 functions and a sum of rows fused", "f32", partial(_row_sum, n), 1, None)
    return out
