"""Whole computations taken down once and replayed without Python: `bc.trace`. See docs/graph.md."""

from baracuda.graph.execution import ExecutionPlan
from baracuda.graph.graph import ComputeGraph, trace

__all__ = ["ComputeGraph", "ExecutionPlan", "trace"]
