"""Rows of a matrix: norms, softmax, cross-entropy, reductions."""

# torch's stubs are not fought here.
# mypy: disable-error-code="call-overload, unused-ignore"
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

import baracuda as bc
from baracuda import functional
from baracuda.bench.case import Case, Sides, Statement
from baracuda.bench.cases._tools import SIZE, bind, noise, plan, space, text, there, wide


def _norm_forward(kind: str, element: str, rows: int, columns: int) -> Sides:
    x, w, b = noise(rows, columns, element=element), noise(columns, element=element), noise(columns, element=element)
    y = torch.zeros_like(x)
    if kind == "rms_norm":
        made = plan(bc.RmsNormDescriptor((rows, columns), (columns,), element))
        ours = bind(made, x=x, weight=w, y=y, rstd=wide(rows, 1), eps=1e-5)
        return Sides.calls(ours, lambda: F.rms_norm(x, (columns,), w, 1e-5), made, lambda: [y])
    if kind == "rms_norm_add":
        residual = noise(rows, columns, element=element)
        made = plan(bc.RmsNormAddDescriptor((rows, columns), (columns,), element))
        ours = bind(made, x=x, residual=residual, weight=w, y=y, rstd=wide(rows, 1), eps=1e-5)
        return Sides.calls(ours, lambda: residual + F.rms_norm(x, (columns,), w, 1e-5), made, lambda: [y])
    made = plan(bc.LayerNormDescriptor((rows, columns), (columns,), element))
    ours = bind(made, x=x, weight=w, bias=b, y=y, mean=wide(rows, 1), rstd=wide(rows, 1), eps=1e-5)
    return Sides.calls(ours, lambda: F.layer_norm(x, (columns,), w, b, 1e-5), made, lambda: [y])


def _norm_quantize(element: str, rows: int, columns: int) -> Sides:
    x, w = noise(rows, columns, element=element), noise(columns, element=element)
    codes, scale = torch.zeros(rows, columns, dtype=torch.int8), wide(rows, 1)
    made = plan(bc.NormQuantizeDescriptor("rms_norm_quantize", (rows, columns), element))
    ours = bind(made, x=x, weight=w, y=codes, scale=scale, eps=1e-5)
    kept = torch.zeros_like(codes)

    def peer() -> torch.Tensor:
        y = F.rms_norm(x, (columns,), w, 1e-5).float()
        found = y.abs().amax(-1, keepdim=True) / 127
        kept.copy_((y / found).round_().clamp_(-128, 127))
        return found

    return Sides.calls(ours, peer, made, lambda: [scale])


def _rms_norm_backward(element: str, rows: int, columns: int) -> Sides:
    x, w, dy = (
        noise(rows, columns, element=element),
        noise(columns, element=element),
        noise(rows, columns, element=element),
    )
    rstd = (x.float().square().mean(-1, keepdim=True) + 1e-5).rsqrt()
    dx, dweight = torch.zeros_like(x), torch.zeros_like(w)
    made = plan(bc.RmsNormBackwardDescriptor((rows, columns), (columns,), element))
    ours = bind(made, dy=dy, x=x, weight=w, rstd=rstd, dx=dx, dweight=dweight)
    leaves = [x.clone().requires_grad_(), w.clone().requires_grad_()]
    y = F.rms_norm(leaves[0], (columns,), leaves[1], 1e-5)

    def peer() -> list[torch.Tensor]:
        return list(torch.autograd.grad(y, leaves, dy, retain_graph=True))

    return Sides.calls(ours, peer, made, lambda: [dx, dweight])


def _softmax(axis: int, element: str, rows: int, columns: int) -> Sides:
    x, y, z = (
        noise(rows, columns, element=element),
        space(rows, columns, element=element),
        space(rows, columns, element=element),
    )
    made = plan(bc.SoftmaxDescriptor("softmax", (rows, columns), axis, element))
    ours = bind(made, x=x, y=y)
    return Sides.calls(ours, lambda: torch.softmax(x, axis, out=z), made, lambda: [y])


def _cross_entropy(element: str, rows: int, columns: int) -> Sides:
    logits = noise(rows, columns, element=element)
    target = there(torch.randint(0, columns, (rows,), generator=torch.Generator().manual_seed(1)))
    loss, dlogits = space(element=element), torch.zeros_like(logits)
    made = plan(bc.CrossEntropyFusedDescriptor((rows, columns), element))
    ours = bind(made, logits=logits, target=target, loss=loss, dlogits=dlogits)
    leaf = logits.clone().requires_grad_()

    def peer() -> list[torch.Tensor]:
        value = F.cross_entropy(leaf, target)
        return [value, *torch.autograd.grad(value, leaf)]

    return Sides.calls(ours, peer, made, lambda: [loss, dlogits])


def _linear_cross_entropy(element: str, rows: int, features: int, classes: int) -> Sides:
    x, w = noise(rows, features, element=element), noise(classes, features, element=element)
    target = there(torch.randint(0, classes, (rows,), generator=torch.Generator().manual_seed(1)))
    loss, dx, dw = space(element=element), torch.zeros_like(x), torch.zeros_like(w)
    desc = bc.LinearCrossEntropyDescriptor((rows, features), classes, element, save=False, gradients_wanted=True)
    made = plan(desc)
    ours = bind(made, input=x, target=target, linear_weight=w, loss=loss, dinput=dx, dlinear_weight=dw)
    leaves = [x.clone().requires_grad_(), w.clone().requires_grad_()]

    def peer() -> list[torch.Tensor]:
        value = F.cross_entropy(F.linear(*leaves), target)
        return [value, *torch.autograd.grad(value, leaves)]

    return Sides.calls(ours, peer, made, lambda: [loss, dx, dw])


def _reduce(what: str, element: str, rows: int, columns: int) -> Sides:
    x = noise(rows, columns, element=element)
    if what == "argmax":
        made = plan(bc.ArgReduceDescriptor("argmax", (rows, columns), axis=-1, element=element))
        y, z = (there(torch.zeros(rows, dtype=torch.int64)) for _ in range(2))
        ours = bind(made, x=x, y=y)
        return Sides.calls(ours, lambda: torch.argmax(x, -1, out=z), made, lambda: [y])
    if what == "max":
        made = plan(bc.IndexedExtremumDescriptor("max", (rows, columns), -1, element=element))
        y, z = (space(rows, element=element) for _ in range(2))
        at, place = (there(torch.zeros(rows, dtype=torch.int64)) for _ in range(2))
        ours = bind(made, x=x, values=y, indices=at)
        return Sides.calls(ours, lambda: torch.max(x, -1, out=(z, place)), made, lambda: [y, at])
    if what == "var":
        made = plan(bc.VarianceDescriptor("var", (rows, columns), (1,), element=element))
        y, z = space(rows, element=element), space(rows, element=element)
        ours = bind(made, x=x, y=y)
        return Sides.calls(ours, lambda: torch.var(x, 1, out=z), made, lambda: [y])
    axes = {"sum all": None, "sum axis 0": (0,), "sum": (1,)}[what]
    made = plan(bc.ReduceDescriptor("sum", (rows, columns), axes, element=element))
    shape = () if axes is None else (rows if axes == (1,) else columns,)
    y, z = space(*shape, element=element), space(*shape, element=element)
    ours = bind(made, x=x, y=y)
    dim = axes or (0, 1)
    return Sides.calls(ours, lambda: torch.sum(x, dim, out=z), made, lambda: [y])


def _running(kind: str, axis: int, element: str, rows: int, columns: int) -> Sides:
    x = noise(rows, columns, element=element)
    if kind == "logcumsumexp":
        y, z = torch.empty_like(x), torch.empty_like(x)
        made = plan(bc.LogCumSumExpDescriptor((rows, columns), axis, element))
        return Sides.calls(bind(made, x=x, y=y), lambda: torch.logcumsumexp(x, axis, out=z), made, lambda: [y])
    values, theirs = torch.empty_like(x), torch.empty_like(x)
    at, place = (there(torch.zeros(rows, columns, dtype=torch.int64)) for _ in range(2))
    made = plan(bc.CumulativeExtremeDescriptor("cummax", (rows, columns), axis, element))
    ours = bind(made, x=x, values=values, indices=at)
    return Sides.calls(ours, lambda: torch.cummax(x, axis, out=(theirs, place)), made, lambda: [values, at])


def _reversed(axis: int, element: str, rows: int, columns: int) -> Sides:
    x = noise(rows, columns, element=element)
    values, at = torch.empty_like(x), there(torch.zeros(rows, columns, dtype=torch.int64))

    def ours() -> list[Any]:
        return list(functional.cummax(x, axis, reverse=True))

    def peer() -> list[torch.Tensor]:
        torch.cummax(x.flip(axis), axis, out=(values, at))
        return [values.flip(axis), at.flip(axis).neg_().add_(x.shape[axis] - 1)]

    return Sides(Statement.call(ours), Statement.call(peer), (), lambda: (ours(), peer()))


def _scan(kind: str, axis: int, element: str, rows: int, columns: int) -> Sides:
    x = noise(rows, columns, element=element)
    if kind == "cumprod":
        x = 1 + x / columns
    made = plan(bc.ScanDescriptor(kind, (rows, columns), axis, element))
    y, z = torch.zeros_like(x), torch.zeros_like(x)
    peer = getattr(torch, kind)
    return Sides.calls(bind(made, x=x, y=y), lambda: peer(x, axis, out=z), made, lambda: [y])


def cases(quick: bool) -> list[Case]:
    """The rows of the speed table on 4096 x 4096, and cross-entropy on 2048 x 32000."""
    shape = rows, columns = (64, 256) if quick else (4096, 4096)
    large = (32, 1000) if quick else (2048, 32000)
    n = rows * columns
    out: list[Case] = []

    def add(
        name: str, family: str, e: str, build: Callable[[], Sides], peer: str, moved: float, flops: float,
        required: float | None, goal: float | None, ceiling: str = "memory", sizes: tuple[int, ...] = shape,
    ) -> None:  # fmt: skip
        moved *= SIZE[e]
        rest: dict[str, Any] = {"bytes": moved, "flops": flops, "ceiling": ceiling, "required": required, "goal": goal}
        out.append(Case(name, family, e, text(sizes), f"torch {peer}", build, **rest))

    for e in ("f32", "bf16"):
        half = e == "bf16"
        add("rms_norm forward", "norm", e, partial(_norm_forward, "rms_norm", e, *shape), "F.rms_norm", 2 * n, 4 * n,
            6 if half else 1.8, 10 if half else 2.5)  # fmt: skip
        add("rms_norm, int8 a token", "norm", e, partial(_norm_quantize, e, *shape), "F.rms_norm, amax, round", 1.5 * n, 8 * n,
            None, None)  # fmt: skip
        add("rms_norm backward", "norm", e, partial(_rms_norm_backward, e, *shape), "autograd of F.rms_norm", 3 * n,
            9 * n, 6 if half else 4, 10 if half else 5)  # fmt: skip
        add("rms_norm_add forward", "norm", e, partial(_norm_forward, "rms_norm_add", e, *shape),
            "residual + F.rms_norm", 3 * n, 5 * n, None, None)  # fmt: skip
        add("layer_norm forward", "norm", e, partial(_norm_forward, "layer_norm", e, *shape), "F.layer_norm", 2 * n,
            7 * n, 1.0, 2 if half else 1.5)  # fmt: skip
        add("softmax last axis", "softmax", e, partial(_softmax, -1, e, *shape), "softmax out=", 2 * n, 5 * n,
            1.0 if half else 0.95, 2 if half else 1.3)  # fmt: skip
        add("softmax first axis", "softmax", e, partial(_softmax, 0, e, *shape), "softmax out=", 2 * n, 5 * n, 3, 5)
        m = large[0] * large[1]
        add("cross_entropy forward+backward", "loss", e, partial(_cross_entropy, e, *large),
            "F.cross_entropy and its autograd", 2 * m, 5 * m, 2.2 if half else 2, 4 if half else 3,
            sizes=large)  # fmt: skip
        size = (64, 32, 500) if quick else (1024, 512, 32000)
        add("linear_cross_entropy with gradients", "loss", e, partial(_linear_cross_entropy, e, *size),
            "F.linear, F.cross_entropy and their autograd", 2 * (size[0] + size[2]) * size[1],
            6 * size[0] * size[1] * size[2], None, None, ceiling=e, sizes=size)  # fmt: skip
        add("sum all", "reduce", e, partial(_reduce, "sum all", e, *shape), "sum out=", n, n, 1, 1, ceiling="read")
        add("sum axis 0", "reduce", e, partial(_reduce, "sum axis 0", e, *shape), "sum out=", n, n, 1.5, 3,
            ceiling="read")  # fmt: skip
        add("argmax last axis", "reduce", e, partial(_reduce, "argmax", e, *shape), "argmax out=", n, n,
            18 if half else 4, None, ceiling="read")  # fmt: skip
        add("var last axis", "reduce", e, partial(_reduce, "var", e, *shape), "var out=", n, 4 * n, 20, None,
            ceiling="read")  # fmt: skip
        add("cumsum axis 0", "scan", e, partial(_scan, "cumsum", 0, e, *shape), "cumsum out=", 2 * n, n, 8, None)
        for kind in ("cumsum", "cumprod"):
            add(f"{kind} last axis", "scan", e, partial(_scan, kind, 1, e, *shape), f"{kind} out=", 2 * n, n,
                None if half else 1.8, None if half else 2.2)  # fmt: skip
        for kind in ("cummax", "logcumsumexp"):
            for axis, where in ((0, "axis 0"), (1, "last axis")):
                add(f"{kind} {where}", "scan", e, partial(_running, kind, axis, e, *shape), f"{kind} out=", 2 * n, n,
                    None, None)  # fmt: skip
        for axis, where in ((0, "axis 0"), (1, "last axis")):
            add(f"cummax from the end, {where}", "scan", e, partial(_reversed, axis, e, *shape),
                "flip, cummax out=, flip", 2 * n, n, None, None)  # fmt: skip
        add("max with index, last axis", "reduce", e, partial(_reduce, "max", e, *shape), "max out=", n, n,
            4 if half else 2, None, ceiling="read")  # fmt: skip
        short = (64, 32) if quick else (1 << 17, 32)  # rows of a vector or two
        m = short[0] * short[1]
        add("softmax of short rows", "softmax", e, partial(_softmax, -1, e, *short), "softmax out=", 2 * m, 5 * m,
            None, None, sizes=short)  # fmt: skip
        add("layer_norm of short rows", "norm", e, partial(_norm_forward, "layer_norm", e, *short), "F.layer_norm",
            2 * m, 7 * m, None, None, sizes=short)  # fmt: skip
        add("sum of short rows", "reduce", e, partial(_reduce, "sum", e, *short), "sum out=", m, m, None, None,
            ceiling="read", sizes=short)  # fmt: skip
    return out
