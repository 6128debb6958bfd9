"""Elementwise ops on 64M elements, permuted copies, random fills."""

# torch's stubs are not fought here.
# mypy: disable-error-code="call-arg, assignment"
from __future__ import annotations

from functools import partial

import torch

import baracuda as bc
from baracuda.bench.case import Case, Sides
from baracuda.bench.cases._tools import SIZE, bind, noise, plan, space, text


def _unary(kind: str, element: str, n: int) -> Sides:
    x, y, z = noise(n, element=element), space(n, element=element), space(n, element=element)
    if kind == "gelu(tanh)":
        made = plan(bc.GeluDescriptor((n,), "tanh", element))
        peer = partial(torch._C._nn.gelu, x, approximate="tanh", out=z)
    else:
        made = plan(bc.UnaryDescriptor(kind, (n,), element))
        peer = partial(getattr(torch, kind), x, out=z)
    return Sides.calls(bind(made, x=x, y=y), peer, made, lambda: [y])


def _add(element: str, shape: tuple[int, ...], *, transposed: bool = False) -> Sides:
    a, b = noise(*shape, element=element), noise(*shape, element=element, seed=1)
    a = a.T if transposed else a
    y, z = space(*shape, element=element), space(*shape, element=element)
    made = plan(bc.BinaryDescriptor("add", shape, shape, element))
    return Sides.calls(bind(made, a=a, b=b, y=y), lambda: torch.add(a, b, out=z), made, lambda: [y])


def _copy(element: str, shape: tuple[int, ...], order: tuple[int, ...]) -> Sides:
    x = noise(*shape, element=element).permute(order)
    y, z = space(*x.shape, element=element), space(*x.shape, element=element)
    made = plan(bc.CopyDescriptor(tuple(x.shape), element))
    return Sides.calls(bind(made, x=x, y=y), lambda: z.copy_(x), made, lambda: [y])


def _cat(element: str, rows: int, widths: tuple[int, ...]) -> Sides:
    parts = [noise(rows, n, element=element, seed=i) for i, n in enumerate(widths)]
    y, z = space(rows, sum(widths), element=element), space(rows, sum(widths), element=element)
    made = plan(bc.CatDescriptor(tuple((rows, n) for n in widths), 1, element))
    return Sides.calls(bind(made, tensors=parts, y=y), lambda: torch.cat(parts, 1, out=z), made, lambda: [y])


def _cast(source: str, target: str, n: int) -> Sides:
    x = (noise(n) * 50).to(getattr(torch, source))
    y, z = (torch.zeros_like(x, dtype=getattr(torch, target)) for _ in range(2))
    names = {"int8": "i8", "int32": "i32", "int64": "i64", "float32": "f32"}
    made = plan(bc.CastDescriptor((n,), names[source], names[target]))
    return Sides.calls(bind(made, x=x, y=y), lambda: z.copy_(x), made, lambda: [y])


def _uniform(element: str, n: int) -> Sides:
    y, z = space(n, element=element), space(n, element=element)
    made = plan(bc.RandomDescriptor("uniform", (n,), element))
    return Sides.calls(bind(made, y=y, low=0.0, high=1.0, seed=1, offset=0), lambda: z.uniform_(0, 1), made)


_UNARY = {
    "exp": (10, {"f32": 1.8, "bf16": 1.0}),
    "tanh": (14, {"f32": 4.5, "bf16": 2.5}),
    "gelu(tanh)": (22, {"f32": 2.5, "bf16": 2.5}),
}
# name, sizes, order of the dimensions, required, goal
_COPIES = (
    ("copy of x.T", (4096, 4096), (1, 0), {"f32": 2.5, "bf16": 2.5}, 5),
    ("copy of permute(3,1,2,0)", (64, 64, 64, 64), (3, 1, 2, 0), {"f32": 6, "bf16": 6}, 12),
    ("copy of rank-8 reverse", (8,) * 8, tuple(range(7, -1, -1)), {"f32": 14, "bf16": 16}, 30),
)


def cases(quick: bool) -> list[Case]:
    """The elementwise and layout rows of the speed table."""
    n, out = 1 << (14 if quick else 26), []
    side = (64, 64) if quick else (4096, 4096)
    for e in ("f32", "bf16"):
        size = SIZE[e]
        for kind, (flops, required) in _UNARY.items():
            out.append(Case(kind, "unary", e, text((n,)), f"torch {kind} out=", partial(_unary, kind, e, n),
                            bytes=2 * n * size, flops=flops * n, ceiling="memory", required=required[e]))  # fmt: skip
        out.append(Case("add", "binary", e, text((n,)), "torch.add out=", partial(_add, e, (n,)), bytes=3 * n * size,
                        flops=n, ceiling="memory", required=0.95, goal=1.2))  # fmt: skip
        for name, shape, order, required, goal in _COPIES:
            sizes = (
                tuple(s if s < 4096 else side[0] for s in shape) if len(shape) == 2 or not quick else (4,) * len(shape)
            )
            numel = torch.Size(sizes).numel()
            out.append(Case(name, "layout", e, text(sizes), "torch copy_", partial(_copy, e, sizes, order),
                            bytes=2 * numel * size, ceiling="memory", required=required[e], goal=goal))  # fmt: skip
        numel = side[0] * side[1]
        out.append(Case("x.T + y", "binary", e, text(side), "torch.add out=", partial(_add, e, side, transposed=True),
                        bytes=3 * numel * size, flops=numel, ceiling="memory",
                        required={"f32": 4.5, "bf16": 3.3}[e], goal=8))  # fmt: skip
        for rows, widths in ((1 << 16, (32, 32)), (1 << 15, (128, 128, 128)), (4096, (2048, 2048))):
            rows = 64 if quick else rows
            numel = rows * sum(widths)
            out.append(Case(f"cat of {len(widths)} x {widths[0]}, last axis", "layout", e, text((rows, sum(widths))),
                            "torch.cat out=", partial(_cat, e, rows, widths), bytes=2 * numel * size, ceiling="memory",
                            required=1.0, goal=1.4))  # fmt: skip
    m = n >> 2
    for source, target, moved in (
        ("int64", "int32", 12),
        ("int32", "int64", 12),
        ("int32", "float32", 8),
        ("int8", "int32", 5),
    ):
        out.append(Case(f"cast {source} to {target}", "cast", "", text((m,)), "torch copy_",
                        partial(_cast, source, target, m), bytes=moved * m, ceiling="memory"))  # fmt: skip
    out.append(Case("uniform", "random", "f32", text((m,)), "torch uniform_", partial(_uniform, "f32", m), bytes=4 * m,
                    flops=0, ceiling="nt_fill", required=5))  # fmt: skip
    return out
