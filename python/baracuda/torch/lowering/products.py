"""Matrix products."""

from __future__ import annotations

from typing import Any

from baracuda.torch.lowering.common import F
from baracuda.torch.table import Want, lowers


@lowers("mm.default bmm.default mv.default dot.default")
def matmul(want: Want, a: Any, b: Any) -> Any:
    """A product."""
    return F.matmul(a, b)


@lowers("addmm.default")
def addmm(want: Want, bias: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """A product and a sum: two calls where a pass makes one kernel of them; halves are rounded once, as torch does."""
    if alpha == beta == 1 and len(bias.shape) == 1 and want.element in ("f32", "f64"):
        return F.add(F.matmul(a, b), bias)
    return F.addmm(bias, a, b, beta=beta, alpha=alpha)


@lowers("baddbmm.default addmv.default addbmm.default addr.default")
def add_product(want: Want, x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Beta x + alpha a b; of integers torch takes the numbers' whole parts."""
    if not want.result.dtype.is_floating_point and not want.result.dtype.is_complex:
        beta, alpha = int(beta), int(alpha)
    return getattr(F, want.name)(x, a, b, beta=beta, alpha=alpha)


@lowers("linear.default")
def linear(want: Want, x: Any, weight: Any, bias: Any = None) -> Any:
    """X weight^T + bias."""
    return F.linear(x, weight, bias)
