"""Float64 reference of layer_norm: norm_ref.py has it beside the other norms."""

from __future__ import annotations

from baracuda.ops.norm.norm_ref import cases, forward_of, reference

__all__ = ["cases", "forward_of", "reference"]
