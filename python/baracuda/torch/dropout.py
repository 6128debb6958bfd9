"""Dropout: masks are drawn by torch, from its generator, in eager's order; what is done with them is baracuda's.

A mask waits for nothing but its size, so that all masks of a graph are drawn before its first program. Within
`torch.utils.checkpoint` AOTAutograd has a forward function save the state of the generator and the backward one draw from
that; functions that draw nothing for these arguments are taken out of it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state
from torch.fx import GraphModule, Node

from baracuda.torch.fx import called
from baracuda.torch.lowering.common import F
from baracuda.torch.table import Want, lowers

aten = torch.ops.aten
_ATTENTION = aten._scaled_dot_product_flash_attention_for_cpu.default


def draw_mask(shape: Sequence[int], strides: Sequence[int], keep: float) -> torch.Tensor:
    """True with a probability, as `torch.native_dropout` draws it."""
    return torch.empty_strided(shape, strides, dtype=torch.bool).bernoulli_(keep)


def save_state() -> torch.Tensor:
    """The state of torch's generator."""
    return torch.get_rng_state()


def draw_mask_again(state: torch.Tensor, shape: Sequence[int], strides: Sequence[int], keep: float) -> torch.Tensor:
    """The mask that was drawn from a state; the generator stays as it is."""
    now = torch.get_rng_state()
    torch.set_rng_state(state)
    try:
        return draw_mask(shape, strides, keep)
    finally:
        torch.set_rng_state(now)


DRAWS: tuple[Callable[..., torch.Tensor], ...] = (draw_mask, save_state, draw_mask_again)
for _function in DRAWS:
    vars(_function)["tags"] = (torch.Tag.nondeterministic_seeded,)


def with_masks(gm: GraphModule) -> None:
    """Has dropouts be products with masks, those that are computed again, too."""
    for node in list(gm.graph.nodes):
        if node.target is run_and_save_rng_state:
            _saved(gm, node)
        elif node.target is run_with_rng_state:
            state, op, *args = node.args
            if not _draws(op, args, node.kwargs):
                _called(gm, node, op, args)
            elif op is aten.native_dropout.default:
                _replace(gm, node, args, state)
        elif node.target is aten.native_dropout.default:
            _replace(gm, node, node.args, None)
    gm.graph.lint()


def _draws(op: Any, args: Sequence[Any], kwargs: Any) -> bool:
    """Whether a function draws numbers for these arguments."""
    return op is not _ATTENTION or bool((*args, *[0.0] * 4)[3]) or bool(kwargs.get("dropout_p"))


def _called(gm: GraphModule, node: Node, op: Any, args: Sequence[Any]) -> Node:
    """The function itself in the place of one that cares for the generator."""
    with gm.graph.inserting_before(node):
        plain = gm.graph.call_function(op, tuple(args), dict(node.kwargs))
    plain.meta["val"] = _promised(plain)
    node.replace_all_uses_with(plain)
    gm.graph.erase_node(node)
    return plain


def _saved(gm: GraphModule, node: Any) -> None:
    """State and results apart."""
    op, *args = node.args
    if not all(u.target is operator.getitem for u in node.users):
        return
    with gm.graph.inserting_before(node):
        saving = gm.graph.call_function(save_state, ())
        plain = gm.graph.call_function(op, tuple(args), dict(node.kwargs))
    plain.meta["val"] = _promised(plain)
    for part in list(node.users):
        if not part.args[1]:
            saving.meta["val"] = part.meta["val"]
        part.replace_all_uses_with(plain if part.args[1] else saving)
        gm.graph.erase_node(part)
    gm.graph.erase_node(node)
    if op is aten.native_dropout.default:
        _replace(gm, plain, args, None)


def _replace(gm: GraphModule, node: Node, args: Sequence[Any], state: Any) -> None:
    """A product with a mask in the place of a dropout; what drops nothing or all is left to torch."""
    x, p, train = args
    if not isinstance(x, Node) or train is False or not isinstance(p, float) or not 0 < p < 1:
        return
    if not all(u.target is operator.getitem for u in node.users):
        return
    value, mask_value = x.meta["val"], _promised_mask(x)
    with gm.graph.inserting_before(node):
        shape = [_size(gm, x, d, n, aten.sym_size.int) for d, n in enumerate(mask_value.shape)]
        strides = [_size(gm, x, d, n, aten.sym_stride.int) for d, n in enumerate(mask_value.stride())]
        if state is None:
            mask = gm.graph.call_function(draw_mask, (shape, strides, 1 - p))
        else:
            mask = gm.graph.call_function(draw_mask_again, (state, shape, strides, 1 - p))
        mask.meta["val"] = mask_value
        kept = gm.graph.call_function(aten.mul.Tensor, (x, mask))
        scaled = gm.graph.call_function(aten.mul.Tensor, (kept, 1 / (1 - p)))
        kept.meta["val"] = scaled.meta["val"] = value
    for part in list(node.users):
        part.replace_all_uses_with(mask if part.args[1] else scaled)
        gm.graph.erase_node(part)
    gm.graph.erase_node(node)


def _promised(node: Node) -> Any:
    """What torch's fake tensors come to in a call."""
    return called(node, lambda n: n.meta["val"])


def _promised_mask(x: Node) -> torch.Tensor:
    return torch.empty_like(x.meta["val"], dtype=torch.bool)


def _size(gm: GraphModule, x: Node, dim: int, size: Any, asked: Any) -> Any:
    """A size or stride as a number, or as a node that says it."""
    if isinstance(size, int):
        return size
    node = gm.graph.call_function(asked, (x, dim))
    node.meta["val"] = size
    return node


@lowers("native_dropout_backward.default")
def dropout_backward(want: Want, dy: Any, mask: Any, scale: float) -> Any:
    """Dy where the mask says so, scaled."""
    return F.mul(F.mul(dy, mask), scale)
