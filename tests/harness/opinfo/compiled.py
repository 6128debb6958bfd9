"""Torch's samples through compiled graphs: AOTAutograd without dynamo, which takes most of the time."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch._functorch.aot_autograd import aot_function
from torch.utils._pytree import tree_flatten, tree_unflatten

import baracuda.torch
from baracuda.torch.backend import decompositions
from baracuda.torch.compiled import Options, compile_graph
from baracuda.torch.lowering import ROWS
from opinfo.entries import Given

Flat = Callable[..., list[torch.Tensor]]
Compiler = Callable[[Any, Any], Callable[[list[Any]], list[Any]]]


def flattened(fn: Callable[..., Any], given: Given) -> tuple[Flat, list[torch.Tensor]]:
    """The call as a function of its tensors alone, which gives its tensors alone; and these arguments."""
    leaves, spec = tree_flatten(given)
    places = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]

    def call(*tensors: torch.Tensor) -> list[torch.Tensor]:
        filled = list(leaves)
        for i, x in zip(places, tensors, strict=True):
            filled[i] = x
        args, kwargs = tree_unflatten(filled, spec)
        return [x for x in tree_flatten(fn(*args, **kwargs))[0] if isinstance(x, torch.Tensor)]

    return call, [leaves[i].detach() for i in places]


def ours(graph: Any, example: Any) -> Callable[[list[Any]], list[Any]]:
    """What the backend makes of a graph."""
    return compile_graph(graph, Options())


def theirs(graph: Any, example: Any) -> Callable[[list[Any]], list[Any]]:
    """Torch's own functions, one after the other."""

    def run(args: list[Any]) -> list[Any]:
        given = list(args)
        args.clear()
        return list(graph(*given))

    vars(run)["_boxed_call"] = True
    return run


def by(compiler: Compiler, call: Flat) -> Flat:
    """The call through AOTAutograd."""
    compiled: Flat = aot_function(
        call, fw_compiler=compiler, bw_compiler=compiler, inference_compiler=compiler, decompositions=decompositions()
    )
    return compiled


def results(call: Flat, tensors: list[torch.Tensor], *, gradients: bool) -> list[torch.Tensor]:
    """Results, and gradients of the sum of their squares."""
    args = [
        x.clone(memory_format=torch.preserve_format).requires_grad_(gradients and x.is_floating_point())
        for x in tensors
    ]
    torch.manual_seed(3)
    with warnings.catch_warnings(), torch.set_grad_enabled(gradients):
        warnings.simplefilter("ignore")
        found = call(*args)
        pulled = [x for x in found if gradients and x.requires_grad and x.is_floating_point()]
        if pulled:
            floats = [x for x in args if x.requires_grad]
            total = torch.stack([x.double().square().sum() * 0.5 for x in pulled]).sum()
            found = [*found, *(x for x in torch.autograd.grad(total, floats, allow_unused=True) if x is not None)]
    return [x.detach() for x in found]


def refused() -> list[str]:
    """Which rows of the table refused a call, and which programs a run, since the report was reset."""
    report = baracuda.torch.report()
    rows = {str(op) for op in ROWS}
    found = [f"{f.op}: {f.why}" for f in report.fallbacks.values() if f.op in rows]
    return found + [f"refused: {why}" for why in report.refused]


def drew() -> bool:
    """Whether torch drew random numbers, whose order AOTAutograd may change."""
    return any("drawn by torch" in f.why for f in baracuda.torch.report().fallbacks.values())


def differs(got: torch.Tensor, want: torch.Tensor, exact: torch.Tensor | None) -> str:
    """Why a result is not eager torch's, nor as near to float64 as that is."""
    try:
        torch.testing.assert_close(got, want, equal_nan=True)
        return ""
    except AssertionError as error:
        if exact is None or got.shape != want.shape or got.dtype != want.dtype or not want.is_floating_point():
            return str(error)
        off = [(x.double() - exact).nan_to_num().abs().max() for x in (got, want)]
        return "" if off[0] <= 4 * off[1] and torch.equal(got.isnan(), want.isnan()) else str(error)
