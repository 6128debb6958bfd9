"""Classes of elementwise ops and rows that were slower than torch's once, in sizes that stay in the caches.

A shape stands for its class: the same op of other sizes and layouts should reach the same ratio. torch's group_norm makes
new memory for its results, which is in its time.
"""

# torch's stubs are not fought here.
# mypy: disable-error-code="call-arg, assignment"
from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F

import baracuda as bc
from baracuda.bench.case import Case, Sides
from baracuda.bench.cases._tools import DTYPES, SIZE, bind, noise, plan, space, text, there


def _unary(kind: str, element: str, n: int) -> Sides:
    x, y, z = noise(n, element=element), space(n, element=element), space(n, element=element)
    if kind == "gelu":
        made, peer = plan(bc.GeluDescriptor((n,), "none", element)), partial(torch._C._nn.gelu, x, out=z)
    elif kind == "relu":
        made, peer = plan(bc.UnaryDescriptor(kind, (n,), element)), partial(torch.clamp, x, min=0, out=z)
    else:
        made, peer = plan(bc.UnaryDescriptor(kind, (n,), element)), partial(getattr(torch, kind), x, out=z)
    return Sides.calls(bind(made, x=x, y=y), peer, made, lambda: [y])


def _cast(of: str, to: str, n: int) -> Sides:
    x, y, z = (50 * noise(n)).to(DTYPES[of]), space(n, element=to), space(n, element=to)
    made = plan(bc.CastDescriptor((n,), of, to))
    return Sides.calls(bind(made, x=x, y=y), partial(z.copy_, x), made, lambda: [y])


def _pow(exponent: float | None, element: str, n: int) -> Sides:
    x = noise(n, element=element).abs() + 0.5
    y, z = space(n, element=element), space(n, element=element)
    if exponent is None:
        b = noise(n, element=element, seed=1)
        made = plan(bc.BinaryDescriptor("pow", (n,), (n,), element))
        return Sides.calls(bind(made, a=x, b=b, y=y), partial(torch.pow, x, b, out=z), made, lambda: [y])
    made = plan(bc.BinaryDescriptor("pow", (n,), None, element))
    return Sides.calls(bind(made, a=x, y=y, number=exponent), partial(torch.pow, x, exponent, out=z), made, lambda: [y])


def _broadcast(kind: str, element: str, shape: tuple[int, ...], other: tuple[int, ...]) -> Sides:
    a, b = noise(*shape, element=element), noise(*other, element=element, seed=1)
    y, z = space(*shape, element=element), space(*shape, element=element)
    made = plan(bc.BinaryDescriptor(kind, shape, other, element))
    return Sides.calls(bind(made, a=a, b=b, y=y), partial(getattr(torch, kind), a, b, out=z), made, lambda: [y])


def _group_norm(element: str, shape: tuple[int, ...], groups: int) -> Sides:
    x, w, b = noise(*shape, element=element), noise(shape[1], element=element), noise(shape[1], element=element, seed=1)
    grouped = (shape[0], groups, shape[1] // groups, math.prod(shape[2:]))
    made = plan(bc.LayerNormDescriptor(grouped, grouped[2:], element, save=False, weight_rows=1))
    y = space(*grouped, element=element)
    weight, bias = (v.view(*grouped[1:3], 1).expand(grouped[1:]) for v in (w, b))
    call = bind(made, x=x.view(grouped), weight=weight, bias=bias, y=y, eps=1e-5)
    return Sides.calls(call, partial(F.group_norm, x, groups, w, b), made, lambda: [y.view(shape)])


def _reduce(kind: str, element: str, rows: int, columns: int) -> Sides:
    x = noise(rows, columns, element=element)
    y, z = there(torch.zeros(rows, dtype=x.dtype)), there(torch.zeros(rows, dtype=x.dtype))
    made = plan(bc.ReduceDescriptor(kind, (rows, columns), (1,), element=element))
    return Sides.calls(bind(made, x=x, y=y), partial(getattr(torch, kind), x, 1, out=z), made, lambda: [y])


# op, operations per element, required per element
_UNARY: tuple[tuple[str, int, dict[str, float]], ...] = (
    ("sin", 20, {"f32": 1.8, "bf16": 1.8, "f64": 1.8}),
    ("cos", 20, {"f32": 1.8, "bf16": 1.8, "f64": 1.8}),
    ("tan", 30, {"f32": 2.0, "bf16": 2.0, "f64": 2.5}),
    ("sigmoid", 12, {"f32": 1.0, "bf16": 1.0}),
    ("relu", 1, {"bf16": 1.0}),
    ("abs", 1, {"bf16": 0.95}),
    ("square", 1, {"bf16": 0.95}),
    ("gelu", 20, {"bf16": 1.0}),
)
_BROADCAST = (
    ("mul by a column", "mul", (1024, 1024), (1024, 1)),
    ("mul by a column", "mul", (4096, 256), (4096, 1)),
    ("add of channels", "add", (8, 64, 56, 56), (64, 1, 1)),
)
_GROUPS = (((8, 64, 56, 56), 32), ((4, 320, 32, 32), 32))
_ROWS = (
    ("mean", 4096, 256), ("sum", 1000, 768), ("sum", 20000, 300), ("sum", 100000, 9), ("amax", 4096, 256), ("amax", 20000, 64),
    ("amax", 100000, 9),
)  # fmt: skip
_CASTS = (
    ("i8", "i16"), ("i16", "i8"), ("i8", "f32"), ("bool", "i32"), ("i32", "i64"), ("i64", "i32"), ("i32", "bf16"), ("bf16", "i32"),
    ("f32", "i32"),
)  # fmt: skip


def cases(quick: bool) -> list[Case]:
    """The classes, one or two shapes of each."""
    n, out = 1 << (12 if quick else 20), []
    for kind, flops, required in _UNARY:
        for e, least in required.items():
            out.append(Case(f"{kind} in cache", "unary", e, text((n,)), f"torch {kind} out=", partial(_unary, kind, e, n),
                            bytes=2 * n * SIZE[e], flops=flops * n, required=least))  # fmt: skip
    for of, to in _CASTS:
        out.append(Case(f"cast of {of} in cache", "cast", to, text((n,)), "torch copy_", partial(_cast, of, to, n),
                        bytes=n * (SIZE[of] + SIZE[to]), required=0.95))  # fmt: skip
    for name, exponent in (("pow", None), ("pow 2", 2.0)):
        for e in ("f32", "bf16"):
            out.append(Case(name, "binary", e, text((n,)), "torch.pow out=", partial(_pow, exponent, e, n),
                            bytes=3 * n * SIZE[e], flops=40 * n, required=1.0))  # fmt: skip
    for name, kind, shape, other in _BROADCAST:
        sizes, beside = ((8, 16), (8, 1)) if quick and len(shape) == 2 else (shape, other)
        for e in ("f32", "bf16"):
            numel = math.prod(sizes)
            out.append(Case(name, "binary", e, text(sizes), f"torch.{kind} out=",
                            partial(_broadcast, kind, e, sizes, beside), bytes=2 * numel * SIZE[e], flops=numel,
                            required=1.0))  # fmt: skip
    for shape, groups in _GROUPS:
        sizes = (1, *shape[1:2], 4, 4) if quick else shape
        for e in ("f32", "bf16"):
            numel = math.prod(sizes)
            out.append(Case("group_norm", "norm", e, text(sizes), "torch group_norm", partial(_group_norm, e, sizes, groups),
                            bytes=2 * numel * SIZE[e], flops=8 * numel, required=1.0))  # fmt: skip
    for kind, rows, columns in _ROWS:
        r = 16 if quick else rows
        for e in ("f32", "bf16"):
            out.append(Case(f"{kind} of short rows", "reduce", e, text((r, columns)), f"torch {kind} out=",
                            partial(_reduce, kind, e, r, columns), bytes=SIZE[e] * r * columns, flops=r * columns,
                            required=1.0))  # fmt: skip
    return out
