"""Halves through functions of one and of several steps: results and gradients are those of f32 of the same numbers, rounded once."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F
from harness.differential import calls, functions

pytestmark = pytest.mark.filterwarnings("ignore")
CALLS = 40 if os.environ.get("BARACUDA_FULL") else 3
# Gradients from a saved result, which is a half (as in torch), and steps to the next number of the element.
SAVED = {
    "cumprod", "erfinv", "exp", "exp2", "expm1", "log_softmax", "logsumexp", "norm", "reciprocal", "rsqrt",
    "scaled_dot_product_attention", "sigmoid", "softmax", "softmin", "sqrt", "std", "std_mean", "tan", "tanh", "vector_norm",
    "prod", "linalg_vector_norm", "linalg_norm",
}  # fmt: skip
# CPUs with dot products of bf16 have rows that round gradients of logits before their products, as the functions say.
DOT_PRODUCTS = {"linear_cross_entropy"}
OWN = {"nextafter"}
# Sums of products are added in another order for halves than for f32.
UNITS = 1.0


def _plain(v: Any) -> Any:
    """A torch tensor, floats in f32, of whatever a call of ours is given."""
    if isinstance(v, (list, tuple)):
        return type(v)(map(_plain, v))
    if v is None or isinstance(v, (bool, int, float, str)):
        return v
    array = v.detach().float().numpy() if isinstance(v, torch.Tensor) and v.is_floating_point() else np.asarray(v)
    if array.dtype.kind not in "fbiuV":
        return v
    floats = array.dtype.kind in "fV" or array.dtype.name == "bfloat16"
    return torch.from_numpy(np.array(array, np.float32 if floats else array.dtype, order="C", copy=True))


def _in(v: Any, element: torch.dtype) -> Any:
    if isinstance(v, (list, tuple)):
        return type(v)(_in(x, element) for x in v)
    return v.to(element) if isinstance(v, torch.Tensor) and v.is_floating_point() else v


def _flat(value: Any) -> list[torch.Tensor]:
    return [x for v in value for x in _flat(v)] if isinstance(value, (list, tuple)) else [value]


def _units(got: torch.Tensor, wide: torch.Tensor) -> float:
    """The largest distance from the rounded numbers, in units of the half there."""
    half, want = torch.finfo(got.dtype), wide.to(got.dtype)
    wrong = (got != want) & ~(got.isnan() & want.isnan())
    if not wrong.any():
        return 0.0
    a, b = got[wrong].double(), want[wrong].double()
    if (a.isfinite() != b.isfinite()).any():
        return float("inf")
    size = b.abs().clamp_min(half.tiny)
    return float(((a - b).abs() / (torch.exp2(torch.floor(torch.log2(size))) * half.eps)).max())


def _results(name: str, args: Any, options: Any, dys: list[torch.Tensor] | None) -> tuple[list[Any], list[Any]]:
    """Results and gradients; no gradients where there are none, or of other results than floats."""
    function = getattr(F, name)
    found = _flat(function(*args, **options))
    if getattr(function, "vjp_rule", None) is None or dys is None:
        return found, []
    try:
        return found, _flat(bc.vjp(function, *args, **options)[1](*dys))
    except bc.BaracudaError:
        return found, []


def _compare(name: str, seed: int, element: torch.dtype) -> list[str]:
    call = calls.make(name, (seed, 31))
    positional, options = call.arguments(calls.ours(call))
    options.pop("out", None)
    if "dtype" in options:
        return []
    given = _in(_plain(list(positional)), element), {k: _in(_plain(v), element) for k, v in options.items()}
    wide = _in(given[0], torch.float32), {k: _in(v, torch.float32) for k, v in given[1].items()}
    try:
        y = _flat(getattr(F, name)(*given[0], **given[1]))
    except bc.BaracudaError:
        return []
    floats = [x for x in y if isinstance(x, torch.Tensor) and x.is_floating_point()]
    made = torch.Generator().manual_seed(seed)
    dys = [torch.randn(x.shape, generator=made).to(element) for x in floats]
    dys_or_none = dys if dys and all(x.dtype is element for x in floats) else None
    ours = _results(name, *given, dys_or_none)
    theirs = _results(name, *wide, dys_or_none and [d.float() for d in dys])
    wrong = []
    for what, mine, own in zip(("result", "gradient"), ours, theirs, strict=True):
        rounded = name in SAVED or (name in DOT_PRODUCTS and element is torch.bfloat16)
        if len(mine) != len(own) or (what == "gradient" and rounded):
            continue
        for i, (a, b) in enumerate(zip(mine, own, strict=True)):
            if isinstance(a, torch.Tensor) and a.dtype is element and a.shape == b.shape and _units(a, b) > UNITS:
                wrong.append(
                    f"{element} seed {seed}: {what} {i}: {_units(a, b)} units: {a.flatten()[:4]}, f32 {b.flatten()[:4]}"
                )
    return wrong


@pytest.mark.parametrize("name", [n for n in functions.names() if n not in OWN])
def test_halves_are_rounded_once(name: str) -> None:
    wrong = [
        w for seed in range(CALLS) for element in (torch.float16, torch.bfloat16) for w in _compare(name, seed, element)
    ]
    assert not wrong, "\n".join(wrong[:4])


@pytest.mark.parametrize("element", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_folds_do_not_become_infinite_between_steps(reduce: str, element: torch.dtype) -> None:
    """Products of 300 and 1e-3 leave the range of f16 on their way, and come back."""
    x = torch.tensor([300.0, 200.0, 1e-3, 0.5]).to(element)
    source = torch.tensor([400.0, 1e-3, 3.0, 500.0, 1e-3, 2.0]).to(element)
    index, dy = torch.tensor([0, 0, 1, 1, 1, 3]), torch.tensor([1.0, 30.0, -2.0, 0.25]).to(element)
    for function in (F.scatter_reduce, F.index_reduce):
        if function is F.index_reduce and reduce == "sum":
            continue
        got = bc.vjp(function, x, 0, index, source, reduce)[1](dy)
        want = bc.vjp(function, x.double(), 0, index, source.double(), reduce)[1](dy.double())
        for a, b in zip(got, want, strict=True):
            assert _units(a, b) <= UNITS, f"{function.__name__} {a} {b}"
