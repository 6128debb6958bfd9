"""PyTorch's own samples (OpInfo) through the graphs that torch.compile(backend="baracuda") runs, with gradients."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from opinfo import compiled, entries

import baracuda.torch
from conftest import SEED

BY_NAME = {entries.title(e): e for e in entries.table()}
# Of each kind of row some.
CHOSEN = """
add addcmul addmm amax argmax atan2 baddbmm bmm cat clamp constant_pad_nd cumsum diagonal div.floor_rounding eq exp expand flip
gather index_add index_copy index_put index_select log_softmax logsumexp masked_fill masked_scatter max.reduction_with_dim
mean mm mul native_layer_norm nn.functional.adaptive_avg_pool2d nn.functional.avg_pool2d nn.functional.batch_norm
nn.functional.conv1d nn.functional.conv2d nn.functional.conv_transpose2d nn.functional.cross_entropy nn.functional.dropout
nn.functional.elu nn.functional.embedding nn.functional.gelu nn.functional.glu nn.functional.group_norm nn.functional.hardtanh
nn.functional.interpolate.bilinear nn.functional.layer_norm nn.functional.leaky_relu nn.functional.max_pool2d
nn.functional.mse_loss nn.functional.nll_loss nn.functional.pad.reflect nn.functional.prelu
nn.functional.scaled_dot_product_attention nn.functional.silu nn.functional.smooth_l1_loss nn.functional.softplus
nn.functional.unfold nonzero permute pow prod remainder repeat roll rsub scatter scatter_add scatter_reduce.amax sigmoid
slice_scatter softmax sort split squeeze std sub sum tanh topk tril unbind var_mean where
"""
SAMPLES = 2  # of an entry and element

# What rows say that have nothing for some arguments, which torch runs then.
REFUSED = (
    "an empty tensor", "as_strided", "another device", "scale_grad_by_freq", "of equal integers", "a mask among the indices",
    "of uint8 torch gives uint8", "of the result of a negative slope", "a view of the bits", "scales that do not give",
    "neither one nor two nor three axes", "sorter or side", "that only a run knows", "a result with gaps",
    "torch.complex32", "conjugate bit",
)  # fmt: skip
# Samples that are not determined: memory that nobody wrote.
EMPTY = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "empty_permuted")


def _samples(entry: Any, element: torch.dtype) -> list[entries.Given]:
    found = entries.samples(entry, element)
    random.Random(f"{SEED} {entry.name}").shuffle(found)
    return found[:SAMPLES]


def _judged(entry: Any, given: entries.Given, *, gradients: bool) -> list[str] | None:
    """What is wrong with a sample; None where torch refuses it, or AOTAutograd with torch's own functions does."""
    call, tensors = compiled.flattened(entry.op, given)
    try:
        want = compiled.results(call, tensors, gradients=gradients)
        traced = compiled.results(compiled.by(compiled.theirs, call), tensors, gradients=gradients)
    except Exception:  # what torch cannot trace is not the backend's
        return None
    baracuda.torch.report(reset=True)
    got = compiled.results(compiled.by(compiled.ours, call), tensors, gradients=gradients)
    plain = any(x.dtype == torch.float32 for x in tensors)
    plain = plain and not any(x.is_complex() for x in want)
    known = REFUSED if plain else (*REFUSED, "No kernel for")  # not all kernels have integers and complex numbers
    found = [text for text in compiled.refused() if not any(k in text for k in known)]
    want = traced if compiled.drew() else want
    if len(got) != len(want):
        return [*found, f"{len(got)} results, want {len(want)}"]
    if entry.name in EMPTY:
        return found
    try:
        wide = [x.double() if x.is_floating_point() else x for x in tensors]
        exact: list[Any] = compiled.results(call, wide, gradients=gradients)
    except Exception:  # not every function has float64
        exact = [None] * len(want)
    return found + [text for a, b, c in zip(got, want, exact, strict=True) if (text := compiled.differs(a, b, c))]


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", CHOSEN.split())
def test_samples_agree(name: str) -> None:
    entry = BY_NAME[name]
    judged = {}
    for element in entries.elements(entry):
        for i, given in enumerate(_samples(entry, element)):
            for gradients in (False, True) if element.is_floating_point else (False,):
                judged[element, i, gradients] = _judged(entry, given, gradients=gradients)
    if all(found is None for found in judged.values()):
        pytest.skip("torch refuses or cannot trace all of these samples")
    wrong = {place: found for place, found in judged.items() if found}
    assert not wrong, "\n".join(f"{place}: {text}" for place, found in wrong.items() for text in found)


def test_differences_are_seen() -> None:
    x = torch.randn(5)
    assert not compiled.differs(x, x.clone(), x.double())
    assert compiled.differs(x * 1.001, x, x.double()) and compiled.differs(x.double(), x, x.double())
    entry = BY_NAME["exp"]
    assert _judged(entry, ((x,), {}), gradients=True) == []
