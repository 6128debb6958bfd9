"""Appending to attention's key-value cache. Kernels: csrc/ops/attention; reference: attention_append_ref.py."""

from __future__ import annotations

from baracuda.call.op import NotDifferentiable, Op
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.spec import Descriptor, Signature, descriptor, inout, scalar, tensor


@descriptor(family="attention", op="kv_cache_append")
class KvCacheAppendDescriptor(Descriptor):
    """cache[b, :, p : p + S] = x[b], where p is `position`, or positions[b].

    The position is checked before anything is written: IndexOutOfRangeError when p < 0 or p + S > Smax. A copy: exact.
    The scalar `position` may be a 0-d tensor, so that one plan serves a whole decoding loop.

    Args:
        cache_shape: [B, Hkv, Smax, D].
        x_shape: [B, Hkv, S, D].
        positions_shape: (B,) for a position per batch entry in a tensor; None for the scalar.
        positions_element: i64 or i32.
        element: f16, bf16, f32 or f64.
    """

    cache_shape: Shape
    x_shape: Shape
    positions_shape: Shape | None = None
    positions_element: Element = Element.I64
    element: Element = Element.F32

    def validate(self) -> None:
        cache, x = self.cache_shape, self.x_shape
        if len(cache) != 4:
            raise self.wrong("cache_shape", cache, "four dimensions [batch, kv heads, longest sequence, dim]")
        if len(x) != 4 or (x[0], x[1], x[3]) != (cache[0], cache[1], cache[3]):
            raise self.wrong("x_shape", x, f"[{cache[0]}, {cache[1]}, new positions, {cache[3]}]")
        if self.positions_shape is not None and self.positions_shape != (cache[0],):
            raise self.wrong("positions_shape", self.positions_shape, f"({cache[0]},): one position per batch entry")
        if self.positions_element not in (Element.I64, Element.I32):
            raise self.wrong("positions_element", str(self.positions_element), "i64 or i32")

    def signature(self) -> Signature:
        positions = self.positions_shape
        return Signature(
            tensor("x", self.x_shape, self.element),
            tensor("positions", positions or (), self.positions_element, present=positions is not None),
            inout("cache", self.cache_shape, self.element),
            scalar("position", "int", 0),
        )


OPS = (
    Op(
        "kv_cache_append",
        KvCacheAppendDescriptor,
        NotDifferentiable("a cache serves generation, which is not differentiated"),
        "cache[:, :, position : position + S] = x",
    ),
)
