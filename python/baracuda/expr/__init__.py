"""Array expressions as one kernel: `bc.expr.fuse`. See docs/expr.md."""

from baracuda.expr.fused import Expr, fuse

__all__ = ["Expr", "fuse"]
