"""Makes the call of a sample on both sides and says what differs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from differential.judge import _expected, _most, difference
from differential.probe import Probe, Record
from differential.values import to_numpy, to_torch
from torch.utils._pytree import tree_flatten, tree_map

import baracuda as bc
from opinfo.entries import RANDOM, Given

WIDE = {torch.float32: torch.float64, torch.bfloat16: torch.float64, torch.complex64: torch.complex128}


def tensors(value: Any) -> list[Any]:
    """The tensors in arguments and options, or in results."""
    return [x for x in tree_flatten(value)[0] if isinstance(x, torch.Tensor)]


def _is_float(x: torch.Tensor) -> bool:
    return x.dtype.is_floating_point or x.dtype.is_complex


def _widened(given: Given, native: Any) -> Given:
    """In the elements that torch's float64 is computed in; of integers, too, where a float comes of them."""
    whole = not any(map(_is_float, tensors(given))) and any(map(_is_float, tensors(native)))
    to = WIDE | ({torch.int64: torch.float64} if whole else {})

    def wide(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            return x.detach().to(to.get(x.dtype, x.dtype))
        return WIDE.get(x, x) if isinstance(x, torch.dtype) else x

    made: Given = tree_map(wide, given)
    return made


def _copied(given: Given) -> Given:
    """For functions that write to their arguments."""
    made: Given = tree_map(lambda x: x.detach().clone() if isinstance(x, torch.Tensor) else x, given)
    return made


def _attempt(fn: Callable[..., Any], given: Given) -> tuple[Any, Exception | None]:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return fn(*given[0], **given[1]), None
    except Exception as error:
        return None, error


def _scale(given: Given) -> float:
    """The largest term of a product of all tensors."""
    sizes = [_most(x.detach().double().numpy()) for x in tensors(given) if x.dtype.is_floating_point]
    return float(np.prod([max(1.0, size) for size in sizes]))


def _listed(value: Any, factory: bool) -> list[Any]:
    """Results in their order; functions that are given no tensor, or a device, give arrays of another kind."""
    found = [x for x in tree_flatten(value)[0] if x is not None]
    return [to_torch(to_numpy(x)) if isinstance(x, (np.ndarray, bc.Tensor)) else x for x in found] if factory else found


def compare(entry: Any, fn: Callable[..., Any], given: Given, probe: Probe) -> str:
    """What is wrong with this call; empty where nothing is, or torch refuses it."""
    native, error = _attempt(entry.op, _copied(given))
    if error is not None:
        return ""
    record = probe.fresh(scale=_scale(given))
    got, refusal = _attempt(fn, _copied(given))
    if refusal is not None:
        kind = "refused" if isinstance(refusal, bc.BaracudaError) else type(refusal).__name__
        return f"{kind}: {str(refusal)[:300]}"
    wide, failed = _attempt(entry.op, _widened(given, native))
    factory = not tensors(given) or "device" in given[1]
    theirs, ours = _listed(native, factory), _listed(got, factory)
    exact = [None] * len(theirs) if failed else _listed(wide, factory)
    if len(ours) != len(theirs):
        return f"count: {len(ours)} results, want {len(theirs)}"
    for i in range(len(ours)):
        if text := _differs(ours[i], theirs[i], exact[i], record, (i, len(ours)), entry.name in RANDOM):
            return text
    return ""


def _differs(mine: Any, own: Any, exact: Any, record: Record, place: tuple[int, int], random: bool) -> str:
    i, count = place
    if not isinstance(own, torch.Tensor):
        return "" if type(mine) is type(own) and mine == own else f"value: result {i} is {mine!r}, want {own!r}"
    if not isinstance(mine, torch.Tensor):
        return f"kind: result {i} is a {type(mine).__name__}"
    if mine.shape != own.shape:
        return f"shape: result {i} is {tuple(mine.shape)}, want {tuple(own.shape)}"
    if mine.dtype is not own.dtype:
        return f"element: result {i} is {mine.dtype}, want {own.dtype}"
    if random:
        return ""
    if own.dtype.is_complex:
        mine, own = torch.view_as_real(mine), torch.view_as_real(own.resolve_conj())
        exact = None if exact is None else torch.view_as_real(exact.resolve_conj())
    array = to_numpy(mine)
    known = _expected(record, count)
    one = known[i] if known and np.shape(known[i].magnitude) == array.shape else None
    text = difference(array, own, exact, record, one)
    return f"value: result {i} {text}" if text else ""


def wrong(entry: Any, fn: Callable[..., Any], given: list[Given], probe: Probe) -> list[str]:
    """What is wrong with each of an entry's calls that is not right."""
    with np.errstate(all="ignore"):
        return [f"{text}\n        {sample}" for sample in given if (text := compare(entry, fn, sample, probe))]


def _leaves(fn: Any, given: Given) -> list[torch.Tensor]:
    """The float tensors among the arguments, in the order of the function's parameters."""
    bound = fn.__signature__.bind(*given[0], **given[1])
    return [x for x in tensors(list(bound.arguments.values())) if x.dtype.is_floating_point]


def gradient_differs(entry: Any, fn: Any, given: Given, probe: Probe) -> str:
    """What is wrong with the gradient of a call; empty where nothing is, or torch has none.

    The gradient of torch's float64 is the one to be near.
    """
    wide = tree_map(
        lambda x: x.requires_grad_() if isinstance(x, torch.Tensor) and _is_float(x) else x, _widened(given, None)
    )
    leaves = _leaves(fn, wide)
    y, error = _attempt(entry.op, wide)
    outs = [x for x in tensors(y) if x.requires_grad] if error is None else []
    if not outs:
        return ""
    generator = torch.Generator().manual_seed(1)
    dys = [torch.randn(x.shape, generator=generator) for x in outs]
    want = torch.autograd.grad(
        outs, leaves, [d.double().to(x.dtype) for d, x in zip(dys, outs, strict=True)], allow_unused=True
    )
    record = probe.fresh(scale=10 * _scale(given) ** 2)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            mine, pull = bc.vjp(fn, *given[0], **given[1])
            floats = [x for x in tensors(mine) if x.dtype.is_floating_point]
            dys = [d.to(x.dtype) for d, x in zip(dys, floats, strict=True)]
            got = tensors(
                pull(dys[0] if len(tensors(mine)) == 1 and not isinstance(mine, (tuple, list)) else tuple(dys))
            )
    except bc.BaracudaError as refusal:
        return f"refused: {refusal}"
    if len(got) != len(want):
        return f"count: {len(got)} gradients, want {len(want)}"
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        exact = torch.zeros_like(leaves[i]) if b is None else b
        if a.shape != exact.shape:
            return f"shape: gradient {i} is {tuple(a.shape)}, want {tuple(exact.shape)}"
        if text := difference(to_numpy(a), None, exact.detach(), record, None):
            return f"value: gradient {i} {text}"
    return ""
