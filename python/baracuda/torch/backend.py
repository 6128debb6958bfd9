"""The backend of `torch.compile`: AOTAutograd's graphs, forward and backward, as programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch.fx import GraphModule

from baracuda.describe.errors import InvalidProblemError, shown
from baracuda.torch.compiled import Options, compile_graph
from baracuda.torch.lowering import ROWS


def options_of(given: Mapping[str, Any] | None) -> Options:
    """What `torch.compile(options=...)` says.

    Raises:
        InvalidProblemError: An option is unknown.
    """
    from baracuda.graph.passes import PASSES

    given = dict(given or {})
    if unknown := [name for name in given if name not in ("passes", "fallback")]:
        raise InvalidProblemError(f"options: got {shown(unknown[0])}, want some of passes, fallback.")
    passes, fallback = given.get("passes"), given.get("fallback", True)
    if passes is not None and not all(name in PASSES for name in passes):
        raise InvalidProblemError(f"passes: got {shown(passes)}, want some of {', '.join(PASSES)}.")
    if not isinstance(fallback, bool):
        raise InvalidProblemError(f"fallback: got {shown(fallback)}, want True or False.")
    return Options(None if passes is None else tuple(passes), fallback)


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """Torch's own, of what has no row; random functions are left whole, as eager torch calls them."""
    known: Any = core_aten_decompositions()  # type checkers know none of its methods
    return {
        op: made for op, made in known.items()
        if op not in ROWS and torch.Tag.nondeterministic_seeded not in getattr(op, "tags", ())
    }  # fmt: skip


def backend(
    gm: GraphModule, example_inputs: Any, *, options: Mapping[str, Any] | None = None, mode: str | None = None
) -> Callable[..., Any]:
    """`torch.compile(model, backend="baracuda")`: programs of baracuda in the place of torch's graphs.

    What baracuda has nothing for runs in torch between programs: `baracuda.torch.report()` says what and why.

    Args:
        gm: What dynamo captured.
        example_inputs: Its arguments.
        options: `{"passes": names}` of the passes to make (docs/graph.md), all by default; `{"fallback": False}` to have
            an error in the place of what torch would run.
        mode: Torch's modes choose among its own compilers: only "default" is taken.

    Raises:
        InvalidProblemError: An option is unknown.
    """
    if mode not in (None, "default"):
        raise InvalidProblemError(f"mode: got {shown(mode)}, want none: baracuda's kernels have no modes.")
    chosen = options_of(options)

    def compiler(gm: GraphModule, example_inputs: Any) -> Callable[[list[Any]], list[Any]]:
        return compile_graph(gm, chosen)

    compiled: Callable[..., Any] = aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        inference_compiler=compiler,
        decompositions=decompositions(),
        keep_inference_input_mutations=True,
    )(gm, example_inputs)
    return compiled
