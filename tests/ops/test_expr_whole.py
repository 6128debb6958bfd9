"""Whole numbers in fused expressions: what a function makes wraps as its element does, whatever reads it."""

from __future__ import annotations

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.describe.elements import Element
from baracuda.ops.expr.expr import ExprDescriptor

NARROW = [Element.U8, Element.I8, Element.U16, Element.I16, Element.U32, Element.I32]


@pytest.mark.parametrize("to", [Element.F32, Element.F64, Element.I64, Element.U64, Element.BF16], ids=str)
@pytest.mark.parametrize("name", ["neg", "square", "add", "mul", "sub"])
@pytest.mark.parametrize("e", NARROW, ids=str)
def test_values_wrap_before_another_element_reads_them(e: Element, name: str, to: Element) -> None:
    info = np.iinfo(e.numpy)
    x = np.array([info.min, info.min + 1, 0, 1, 3, info.max // 2, info.max - 1, info.max], e.numpy)
    y = x[::-1].copy()
    binary = name in ("add", "mul", "sub")
    text = f"inputs 2; {name} {e} 0{' 1' if binary else ''}; cast {to} 2; add {to} 3 3; out 4; out 2;"
    plan = bc.plan(ExprDescriptor(text, x.shape, (x.shape, x.shape), (e, e), (to, e)))
    found, whole = np.empty(x.shape, to.numpy), np.empty_like(x)
    plan.run(x, y, found, whole)
    want = getattr(F, name)(x, y) if binary else getattr(F, name)(x)
    cast = F.cast(want, to)
    np.testing.assert_array_equal(whole, want)
    np.testing.assert_array_equal(found, F.add(cast, cast))
