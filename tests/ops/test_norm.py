"""Norms: what the generated tests do not reach."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.norm.layer_norm import LayerNormDescriptor
from baracuda.ops.norm.norm import (
    AddRmsNormDescriptor,
    RmsNormAddDescriptor,
    RmsNormBackwardDescriptor,
    RmsNormDescriptor,
)

RNG = np.random.default_rng(3)


def test_sum_of_add_rms_norm_may_be_the_residual_itself() -> None:
    x, residual = RNG.normal(size=(2, 6, 90)).astype(np.float16)
    weight = np.ones(90, np.float16)
    y, total = F.add_rms_norm(x, residual, (90,), weight, 1e-5)
    plan = bc.plan(AddRmsNormDescriptor(x.shape, (90,), "f16", save=False))
    again = np.empty_like(y)
    plan.run(x=x, residual=residual, weight=weight, y=again, sum=residual)
    assert np.array_equal(again, y) and np.array_equal(residual, total)
    assert np.array_equal(F.rms_norm(total, (90,), weight, 1e-5), y), "the sum is rounded before it is normalised"


def test_eps_default_is_that_of_the_compute_element() -> None:
    x = np.full((1, 8), 1e-4, np.float16)
    expected = x.astype(np.float64) / np.sqrt((x.astype(np.float64) ** 2).mean() + 2.0**-23)
    assert np.allclose(F.rms_norm(x, (8,)), expected, rtol=1e-3)


def test_changing_eps_needs_no_new_plan() -> None:
    x = RNG.normal(size=(4, 16)).astype(np.float32)
    plan = bc.plan(RmsNormDescriptor(x.shape, (16,), weight=False, save=False))
    for eps in (1e-6, 10.0):
        y = np.empty_like(x)
        plan.run(x=x, y=y, eps=eps)
        assert np.allclose(y, x / np.sqrt((x**2).mean(1, keepdims=True) + eps), rtol=1e-5)


def test_weight_gradient_is_summed_in_f32_and_the_same_for_any_thread_count() -> None:
    rows = 5000
    x, dy = np.ones((rows, 4), np.float16), np.full((rows, 4), 0.25, np.float16)
    rstd = np.ones((rows, 1), np.float32)
    found = []
    for threads in (1, 2, 3):
        plan = bc.plan(RmsNormBackwardDescriptor(x.shape, (4,), "f16"), preference=bc.PlanPreference(threads=threads))
        dx, dweight = np.empty_like(x), np.empty(4, np.float16)
        workspace = bc.empty(plan.workspace_size, "u8")
        plan.run(dy=dy, x=x, weight=np.ones(4, np.float16), rstd=rstd, dx=dx, dweight=dweight, workspace=workspace)
        found.append(dweight.tobytes())
        assert (dweight == rows * 0.25).all()
    assert len(set(found)) == 1


def test_one_plan_serves_all_batches() -> None:
    batch = bc.Dim("batch", max=300)
    descriptor = RmsNormDescriptor((batch, 40), (40,)).backward()
    plan = bc.plan(descriptor)
    workspace = bc.empty(plan.workspace_size, "u8")
    for rows in (0, 1, 17, 300):
        x, dy = RNG.normal(size=(2, rows, 40)).astype(np.float32)
        weight = np.ones(40, np.float32)
        y, rstd = F.rms_norm_forward(x, (40,), weight)
        dx, dweight = np.empty_like(x), np.empty(40, np.float32)
        plan.run(dy=dy, x=x, weight=weight, rstd=rstd, dx=dx, dweight=dweight, workspace=workspace)
        assert np.allclose(dweight, (dy * x * rstd).sum(0), atol=1e-4)


def test_layer_norm_of_values_far_from_zero() -> None:
    x = (RNG.normal(size=(3, 5000)) + 1000).astype(np.float32)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    assert np.allclose(F.layer_norm(x, (5000,)), expected, atol=2e-4)


def test_bad_normalized_shape_is_refused() -> None:
    with pytest.raises(bc.InvalidProblemError, match="last dimensions"):
        F.rms_norm(np.zeros((3, 4), np.float32), (3,))


@pytest.mark.parametrize("shape", [(2, 6), (3, 4, 5), (2, 6, 3, 4), (2, 4, 50, 61)])
@pytest.mark.parametrize("affine", [True, False])
def test_group_norm_as_torch(shape: tuple[int, ...], affine: bool) -> None:
    x = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    wb = (torch.randn(shape[1], dtype=torch.float64), torch.randn(shape[1], dtype=torch.float64)) if affine else ()
    leaves = [v.clone().requires_grad_(True) for v in (x, *wb)]
    want = torch.nn.functional.group_norm(leaves[0], 2, *leaves[1:])
    dy = torch.randn(shape, dtype=torch.float64)
    want.backward(dy)
    y, pull = bc.vjp(F.group_norm, x, 2, *wb)
    assert torch.allclose(y, want, rtol=1e-10, atol=1e-12) and torch.equal(y, F.group_norm(x, 2, *wb))
    found = pull(dy) if affine else (pull(dy),)
    for got, leaf in zip(found, leaves, strict=True):
        assert torch.allclose(got, leaf.grad, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("positions", [1, 7, 8, 300, 5001])
@pytest.mark.parametrize("element", ["f16", "f32", "f64"])
def test_weights_of_channels_give_the_bits_of_those_written_out(positions: int, element: str) -> None:
    shape, dtype = (3, 2, 3, positions), {"f16": "f2", "f32": "f4", "f64": "f8"}[element]
    x = RNG.normal(size=shape).astype(dtype)
    weight, bias = (np.broadcast_to(RNG.normal(size=(2, 3, 1)), shape[1:]).astype(dtype) for _ in range(2))
    beside = [np.broadcast_to(v[..., :1].copy(), shape[1:]) for v in (weight, bias)]
    plan = bc.plan(LayerNormDescriptor(shape, shape[2:], element, save=False, weight_offset=1.0, weight_rows=1))
    found, want = np.empty_like(x), np.empty_like(x)
    plan.run(x=x, weight=beside[0], bias=beside[1], y=found)
    plan.run(x=x, weight=weight, bias=bias, y=want)
    assert np.array_equal(found, want)
    wide = x.astype("f8")
    mean, deviation = wide.mean((2, 3), keepdims=True), wide.std((2, 3), keepdims=True)
    exact = (wide - mean) / np.sqrt(deviation**2 + 1e-5) * (weight.astype("f8") + 1) + bias
    assert np.allclose(found, exact, atol=32 * np.finfo(dtype).eps)


def test_weights_of_rows_have_no_gradient() -> None:
    with pytest.raises(bc.InvalidProblemError, match="weight_rows"):
        LayerNormDescriptor((2, 3, 4, 5), (4, 5), weight_rows=1).backward()
    with pytest.raises(bc.InvalidProblemError, match="weight_rows"):
        LayerNormDescriptor((2, 3), (3,), weight_rows=2)


def test_group_norm_refuses_what_does_not_fit() -> None:
    x = np.ones((2, 6, 3), np.float32)
    with pytest.raises(bc.InvalidProblemError, match="divisor"):
        F.group_norm(x, 4)
    with pytest.raises(bc.InvalidProblemError, match="num_groups: got ndarray, want an int"):
        F.group_norm(x, np.empty(0, np.int64))
    with pytest.raises(bc.InvalidProblemError, match="weight"):
        F.group_norm(x, 2, np.ones(3, np.float32))


def _gemma(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.rms_norm(x, x.shape[-1:], None, 1e-6) * (1 + weight)


@pytest.mark.parametrize("columns", [33, 5000])
def test_weight_offset_and_residual_behind_as_torch(columns: int) -> None:
    made = torch.Generator().manual_seed(2)
    shapes = ((3, 4, columns), (3, 4, columns), (columns,))
    leaves = [torch.randn(s, dtype=torch.float64, generator=made).requires_grad_() for s in shapes]
    x, residual, weight = (v.detach() for v in leaves)
    dy = torch.randn(x.shape, dtype=torch.float64, generator=made)
    want = leaves[1] + _gemma(leaves[0], leaves[2])
    want.backward(dy)
    y, pull = bc.vjp(F.rms_norm_add, x, residual, (columns,), weight, 1e-6, 1.0)
    assert torch.allclose(y, want, rtol=1e-12, atol=1e-12)
    for got, leaf in zip(pull(dy), leaves, strict=True):
        assert torch.allclose(got, leaf.grad, rtol=1e-9, atol=1e-10)
    dx, dweight = bc.vjp(F.rms_norm, x, (columns,), weight, 1e-6, 1.0)[1](dy)
    assert torch.allclose(dx, leaves[0].grad, atol=1e-10) and torch.allclose(dweight, leaves[2].grad, atol=1e-10)
    both = F.add_rms_norm(x, residual, (columns,), weight, 1e-6, 1.0)[0]
    assert torch.allclose(both, _gemma(x + residual, weight), atol=1e-12)
    layer = F.layer_norm(x, (columns,), weight, weight, 1e-6, weight_offset=1.0)
    assert torch.allclose(layer, torch.nn.functional.layer_norm(x, (columns,), 1 + weight, weight, 1e-6), atol=1e-11)


def test_offset_is_added_before_weights_are_rounded_to_halves() -> None:
    x, weight = np.full((1, 4), 2.0, np.float16), np.full(4, 2.0**-12, np.float16)
    y, rstd = F.rms_norm_forward(x, (4,), weight, 1e-6, 1.0)
    assert np.array_equal(y, np.float16((x * rstd) * (np.float32(1) + weight.astype(np.float32))))


@pytest.mark.parametrize("into", ["x", "residual"])
@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_result_of_rms_norm_add_may_be_an_input(into: str, element: str) -> None:
    dtype = bc.Element.coerce(element, "element").numpy
    x, residual = (RNG.normal(size=(2, 6, 90)).astype(dtype) for _ in range(2))
    weight = RNG.normal(size=90).astype(dtype)
    want = F.rms_norm_add(x, residual, (90,), weight, 1e-5)
    plan = bc.plan(RmsNormAddDescriptor(x.shape, (90,), element, save=False))
    plan.run(x=x, residual=residual, weight=weight, y=x if into == "x" else residual, eps=1e-5)
    assert np.array_equal(x if into == "x" else residual, want)


def test_offset_without_a_weight_is_refused() -> None:
    x = np.zeros((3, 4), np.float32)
    with pytest.raises(bc.InvalidProblemError, match=r"weight_offset: got 1\.0, want 0 without a weight"):
        F.rms_norm(x, (4,), weight_offset=1.0)
    with pytest.raises(bc.InvalidProblemError, match="weight_offset: got nan, want a finite number"):
        RmsNormDescriptor((3, 4), (4,), weight_offset=float("nan"))
    with pytest.raises(bc.InvalidProblemError, match="weight_offset: got ndarray, want a number"):
        F.rms_norm_add(x, x, (4,), x[0], 1e-5, x)
    with pytest.raises(bc.InvalidProblemError, match="residual"):
        F.rms_norm_add(x, np.zeros((2, 4), np.float32), (4,))


def test_gradient_of_a_norm_without_weight_wants_no_dweight() -> None:
    desc = RmsNormAddDescriptor((3, 4), (4,), "f16", weight=False).backward()
    assert [p.name for p in desc.signature().outputs] == ["dx"]
    assert RmsNormDescriptor((3, 4), (4,), weight_offset=1.0).backward().weight_offset == 1.0
