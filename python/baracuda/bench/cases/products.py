"""Matrix products."""

# torch's stubs are not fought here.
# mypy: disable-error-code="misc, arg-type"
from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

import baracuda as bc
from baracuda.bench.case import Case, Sides
from baracuda.bench.cases._tools import SIZE, bind, collector, noise, plan, space, there

_ROTATED = 4  # weights that the matrix-vector product goes through in turn, so that none stays in the cache


def _matmul(element: str, n: int) -> Sides:
    a, b = noise(n, n, element=element), noise(n, n, element=element, seed=1)
    y, z = space(n, n, element=element), space(n, n, element=element)
    made = plan(bc.MatmulDescriptor((n, n), (n, n), element))
    return Sides.calls(bind(made, a=a, b=b, out=y), lambda: torch.mm(a, b, out=z), made, lambda: [y])


def _linear_gelu(element: str, m: int, n: int, k: int) -> Sides:
    x, w, b = noise(m, k, element=element), noise(n, k, element=element, seed=1), noise(n, element=element, seed=2)
    y, sums, z = (space(m, n, element=element) for _ in range(3))
    made = plan(bc.MatmulDescriptor((m, k), (k, n), element, bias=True, activation="gelu"))

    def peer() -> Any:
        torch.addmm(b, x, w.T, out=sums)
        return torch.ops.aten.gelu.out(sums, out=z)

    return Sides.calls(bind(made, a=x, b=w.T, bias=b, out=y), peer, made, lambda: [y])


def _batched(element: str, columns: bool, batch: int, m: int, k: int, n: int) -> Sides:
    a = noise(batch, m, k, element=element)
    b = noise(batch, n, k, element=element, seed=1).mT if columns else noise(batch, k, n, element=element, seed=1)
    y, z = space(batch, m, n, element=element), space(batch, m, n, element=element)
    made = plan(bc.MatmulDescriptor((batch, m, k), (batch, k, n), element))
    return Sides.calls(bind(made, a=a, b=b, out=y), lambda: torch.bmm(a, b, out=z), made, lambda: [y])


def _linear(element: str, m: int, n: int, k: int) -> Sides:
    x, w = noise(m, k, element=element), noise(n, k, element=element, seed=1)
    y, z = space(m, n, element=element), space(m, n, element=element)
    made = plan(bc.MatmulDescriptor((m, k), (k, n), element))
    return Sides.calls(bind(made, a=x, b=w.T, out=y), lambda: torch.mm(x, w.T, out=z), made, lambda: [y])


def _int_matmul(n: int) -> Sides:
    generator = torch.Generator().manual_seed(0)
    a, b = (there(torch.randint(-128, 128, (n, n), generator=generator, dtype=torch.int8)) for _ in range(2))
    y, z = (there(torch.zeros(n, n, dtype=torch.int32)) for _ in range(2))
    made = plan(bc.ScaledMatmulDescriptor((n, n), (n, n), "i8", "i32"))
    return Sides.calls(bind(made, a=a, b=b, out=y), lambda: torch._int_mm(a, b, out=z), made, lambda: [y])


def _gemv(element: str, n: int) -> Sides:
    x = noise(1, n, element=element)
    weights = [noise(n, n, element=element, seed=i) for i in range(_ROTATED)]
    ys = [space(1, n, element=element) for _ in weights]
    made = plan(bc.MatmulDescriptor((1, n), (n, n), element))
    bound = [bind(made, a=x, b=w.T, out=y) for w, y in zip(weights, ys, strict=True)]

    def ours() -> None:
        for call in bound:
            call()

    return Sides.calls(ours, lambda: [F.linear(x, w) for w in weights], made, lambda: ys)


def cases(quick: bool) -> list[Case]:
    """Matrix products of the speed table."""
    out, add = collector()

    for e in ("f32", "bf16"):
        size, half = SIZE[e], e == "bf16"
        for n in (64, 512, 2048):
            m = min(n, 96) if quick else n
            required, goal = ((3.0 if half else 1.4), None) if n == 64 else ((0.8, 1.0) if half else (1.0, 1.1))
            add(f"matmul {n}", "matmul", e, (m, m, m), partial(_matmul, e, m), "mm out=", bytes=3 * m * m * size,
                flops=2 * m**3, ceiling=e, required=required, goal=goal)  # fmt: skip
        m, n, k = (32, 96, 64) if quick else (512, 4096, 1024)
        add("linear with bias and gelu", "matmul", e, (m, n, k), partial(_linear_gelu, e, m, n, k),
            "addmm out=, gelu out=", bytes=(m * k + n * k + m * n) * size, flops=2 * m * n * k, ceiling=e,
            required=0.8 if half else 1.0, goal=1.0 if half else 1.1)  # fmt: skip
        n = 128 if quick else 4096
        add("matrix-vector product", "matmul", e, (1, n, n), partial(_gemv, e, n), f"F.linear, {_ROTATED} weights",
            bytes=_ROTATED * n * n * size, flops=_ROTATED * 2 * n * n, ceiling="read", required=1.9)  # fmt: skip
    b, m, k, n = (4, 21, 16, 21) if quick else (96, 197, 64, 197)
    for name, columns in (("products of short sequences", True), ("products of short sequences, b by rows", False)):
        add(name, "matmul", "bf16", (b, m, k, n), partial(_batched, "bf16", columns, b, m, k, n),
            "bmm out=", bytes=2 * b * (m * k + k * n + m * n), flops=2 * b * m * n * k, ceiling="bf16",
            required=0.95, goal=1.0)  # fmt: skip
    n = 128 if quick else 4096
    for m in (8, 16, 64, 128):
        add(f"linear of {m} rows", "matmul", "bf16", (m, n, n), partial(_linear, "bf16", m, n, n), "mm out=",
            bytes=2 * (2 * m * n + n * n), flops=2 * m * n * n, ceiling="bf16", required=0.95, goal=1.0)  # fmt: skip
    n = 96 if quick else 1024
    add("matmul of 8-bit integers", "matmul", "i8", (n, n, n), partial(_int_matmul, n), "_int_mm out=",
        bytes=6 * n * n, flops=2 * n**3, required=0.85, goal=1.0)  # fmt: skip
    return out
