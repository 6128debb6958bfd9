"""Whole computations taken down once and replayed without Python: `bc.trace`. See docs/graph.md."""

from baracuda.graph.execution import ExecutionPlan
from baracuda.graph.graph import ComputeGraph, trace
from baracuda.graph.jitted import jit

__all__ = ["ComputeGraph", "ExecutionPlan", "jit", "trace"]
