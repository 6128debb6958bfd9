"""gated_matmul beyond the generated tests: the bits of matmul and the gated activation, layouts, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.matmul.gated_matmul import GatedMatmulDescriptor


def run(a: Any, b: Any, out: Any, gate: str, half: str) -> Any:
    plan = bc.plan(GatedMatmulDescriptor(a.shape, b.shape, a.dtype, gate, half))
    plan.run(a=a, b=b, out=out, workspace=bc.empty(plan.workspace_size, "u8"))
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gate", ["glu", "reglu", "swiglu", "geglu"])
@pytest.mark.parametrize("half", ["first", "second"])
def test_bits_are_those_of_both(dtype: Any, gate: str, half: str, rng: np.random.Generator) -> None:
    for rows, k, n in (((1,), 256, 688), ((3,), 513, 40), ((8,), 31, 7), ((2, 2), 300, 129), ((), 9, 5)):
        a, b = rng.normal(size=(*rows, 1, k)).astype(dtype), rng.normal(size=(k, 2 * n)).astype(dtype)
        for each in (b, np.asfortranarray(b)):
            x = F.matmul(a, each)
            want = np.empty((*rows, 1, n), dtype)
            bc.plan(bc.GatedActivationDescriptor(gate, x.shape, -1, x.dtype, half)).run(x=x, y=want)
            np.testing.assert_array_equal(run(a, each, np.empty_like(want), gate, half), want)


def test_strides_of_all_tensors(rng: np.random.Generator) -> None:
    a, b = rng.normal(size=(40, 6)).astype(np.float32).T, rng.normal(size=(40, 44)).astype(np.float32)[:, ::2]
    wide = np.full((22, 6), 7, np.float32)
    out = run(a, b, wide.T[:, ::2], "swiglu", "first")
    x = np.asarray(a, np.float64) @ b
    np.testing.assert_allclose(out, x[:, :11] / (1 + np.exp(-x[:, :11])) * x[:, 11:], rtol=1e-4, atol=1e-4)
    assert (wide[1::2] == 7).all(), "what lies between the results is not written"


def test_halves_are_rounded_once(rng: np.random.Generator) -> None:
    a, b = rng.normal(size=(2, 64)).astype(np.float16), rng.normal(size=(64, 66)).astype(np.float16)
    x = F.matmul(a.astype(np.float32), b.astype(np.float32))
    want = np.asarray(F.silu_and_mul(x)).astype(np.float16)
    got = run(a, b, np.empty((2, 33), np.float16), "swiglu", "first")
    assert np.abs(got.view(np.int16).astype(int) - want.view(np.int16)).max() <= 1


def test_problems_are_refused() -> None:
    for a, b, why in (
        ((2, 3), (3, 5), "an even number of columns"),
        ((2, 3), (2, 3, 4), "two dimensions"),
        ((2, 3), (4, 6), "3 in dimension -2"),
        ((2, 3), (3, bc.Dim("n", max=8)), "an even number of columns"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=why):
            GatedMatmulDescriptor(a, b)
    with pytest.raises(bc.UnsupportedError, match="at most 8 rows or columns"):
        bc.plan(GatedMatmulDescriptor((9, 4), (4, 40)))
    many = bc.plan(GatedMatmulDescriptor((bc.Dim("rows", max=8), 4), (4, 40)))
    a, b = np.ones((5, 4), np.float32), np.ones((4, 40), np.float32)
    out = np.empty((5, 20), np.float32)
    many.run(a=a, b=b, out=out, workspace=bc.empty(many.workspace_size, "u8"))
    np.testing.assert_array_equal(out, run(a, b, np.empty_like(out), "swiglu", "second"))
