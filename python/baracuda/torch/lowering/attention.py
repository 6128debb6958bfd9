"""Attention: results lie as torch's kernel has them, heads inside of queries, so that the view that follows is free."""

from __future__ import annotations

from typing import Any

import baracuda as bc
from baracuda.torch.lowering.common import empty_as, run_plan
from baracuda.torch.table import NotMapped, Want, lowers


def _problem(q: Any, k: Any, v: Any, causal: bool, mask: Any) -> dict[str, Any]:
    problem = {
        "q_shape": tuple(q.shape), "k_shape": tuple(k.shape), "v_shape": tuple(v.shape), "causal": causal,
        "causal_alignment": "top_left", "element": str(q.element),
    }  # fmt: skip
    if mask is not None:
        problem |= {"mask_shape": tuple(mask.shape), "mask_element": str(mask.element)}
    return problem


def _layouts(want: Want, count: int) -> list[Any]:
    if any(layout is None for layout in want.results[:count]):
        raise NotMapped("a result that is no tensor")
    return [empty_as(layout) for layout in want.results[:count] if layout is not None]


@lowers("_scaled_dot_product_flash_attention_for_cpu.default")
def attention(
    want: Want, q: Any, k: Any, v: Any, dropout_p: float = 0.0, is_causal: bool = False, *, attn_mask: Any = None,
    scale: float | None = None,
) -> Any:  # fmt: skip
    """Softmax of scores times values, and the logarithms of the sums that its gradient reads."""
    if dropout_p:
        raise NotMapped("dropout of attention's weights")
    out, lse = _layouts(want, 2)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    descriptor = bc.AttentionDescriptor(**_problem(q, k, v, is_causal, attn_mask))
    run_plan(descriptor, q=q, k=k, v=v, mask=attn_mask, scale=scale, out=out, lse=lse)
    return out, lse


@lowers("_scaled_dot_product_flash_attention_for_cpu_backward.default")
def attention_backward(
    want: Want, dout: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, dropout_p: float, is_causal: bool, *,
    attn_mask: Any = None, scale: float | None = None,
) -> Any:  # fmt: skip
    """Gradients by queries, keys and values."""
    if dropout_p:
        raise NotMapped("dropout of attention's weights")
    dq, dk, dv = _layouts(want, 3)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    descriptor = bc.AttentionBackwardDescriptor(**_problem(q, k, v, is_causal, attn_mask))
    run_plan(descriptor, dout=dout, q=q, k=k, v=v, mask=attn_mask, out=out, lse=lse, dq=dq, dk=dk, dv=dv, scale=scale)
    return dq, dk, dv
