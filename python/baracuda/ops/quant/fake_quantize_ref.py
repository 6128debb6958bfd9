"""Reference of fake quantization: with that of scales."""

from baracuda.ops.quant.scaled_ref import cases, reference

__all__ = ["cases", "reference"]
