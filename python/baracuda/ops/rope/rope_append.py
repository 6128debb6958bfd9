"""Rotary position embedding and key-value cache in one pass. Kernels in csrc/ops/rope, reference in rope_append_ref.py."""

from __future__ import annotations

from baracuda.call.op import NotDifferentiable, Op
from baracuda.describe.dims import Shape, Size, check_shape
from baracuda.describe.spec import Signature, descriptor, inout, scalar, tensor
from baracuda.ops.rope.rope import RopeLayout, Rotary


@descriptor(family="rope", op="rope_append", enums={"layout": RopeLayout})
class RopeAppendDescriptor(Rotary):
    """q = rope(q); k_cache[b, :, p] = rope(k)[b, :, s]; v_cache[b, :, p] = v[b, :, s], where p is the position of row s.

    What a decoding step does between its projections and its attention: rope of queries and keys as in RopeDescriptor,
    and kv_cache_append of keys and values, with their bits. Row s has position `position` + s, or positions[s], or
    positions[b, s]; one outside the tables or the caches is IndexOutOfRangeError, before anything is written. Of rows of a
    sequence with the same position the last one stays in the caches. The scalar `position` may be a 0-d tensor.

    Args:
        input_shape: Of q: [B, H, S, D].
        table_rows: Rows of the tables: positions are 0 to table_rows - 1.
        rotary_dim: How many elements are rotated, even; all by default.
        layout: Which elements are a pair; see RopeLayout.
        positions_shape: (S,) or (B, S) for positions in a tensor; None for the scalar `position` (0 by default).
        positions_element: i64 or i32.
        table_element: Element of cos and sin; by default f32, or f64 for f64.
        element: f16, bf16, f32 or f64.
        kv_heads: Heads of k, v and the caches; by default H.
        cache_rows: Positions that the caches have; by default table_rows.
        v_dim: Last dimension of v and its cache; by default D.
    """

    kv_heads: Size | None = None
    cache_rows: Size | None = None
    v_dim: Size | None = None

    def validate(self) -> None:
        Rotary.validate(self)
        shape = self.input_shape
        if len(shape) != 4:
            raise self.wrong("input_shape", shape, "four dimensions [batch, heads, new positions, dim]")
        defaults = {"kv_heads": shape[1], "cache_rows": self.table_rows, "v_dim": shape[3]}
        for field, default in defaults.items():
            given = getattr(self, field)
            (size,) = check_shape((default if given is None else given,), f"{type(self).__name__}.{field}")
            object.__setattr__(self, field, size)

    def _rows(self, middle: Size, last: Size) -> Shape:
        assert self.kv_heads is not None
        return (self.input_shape[0], self.kv_heads, middle, last)

    def signature(self) -> Signature:
        e, seq, dim = self.element, self.input_shape[2], self.input_shape[3]
        assert self.cache_rows is not None
        assert self.v_dim is not None
        return Signature(
            inout("q", self.input_shape, e),
            tensor("k", self._rows(seq, dim), e),
            tensor("v", self._rows(seq, self.v_dim), e),
            *self.tables(),
            inout("k_cache", self._rows(self.cache_rows, dim), e),
            inout("v_cache", self._rows(self.cache_rows, self.v_dim), e),
            scalar("position", "int", 0),
        )


OPS = (
    Op(
        "rope_append",
        RopeAppendDescriptor,
        NotDifferentiable("a cache serves generation, which is not differentiated"),
        "q = rope(q), and rope(k) and v appended to their caches",
    ),
)
