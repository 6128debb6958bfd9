"""Losses: what the generated tests do not reach."""

from __future__ import annotations

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.loss import CrossEntropyFusedDescriptor

RNG = np.random.default_rng(5)


def test_mean_over_no_target_is_nan_and_its_gradient_zero() -> None:
    x, target = RNG.normal(size=(4, 9)).astype(np.float32), np.full(4, -100)
    assert np.isnan(F.cross_entropy(x, target))
    assert F.cross_entropy(x, target, reduction="sum") == 0
    assert (F.cross_entropy_backward(np.ones((), np.float32), x, target) == 0).all()
    loss, dx = F.cross_entropy_fused(x, target)
    assert np.isnan(loss) and (dx == 0).all()


def test_mean_divides_by_the_counted_targets() -> None:
    x = RNG.normal(size=(6, 9)).astype(np.float32)
    target = np.array([1, -100, 2, -100, -100, 3])
    counted = target != -100
    assert F.cross_entropy(x, target) == pytest.approx(float(F.cross_entropy(x[counted], target[counted])), rel=1e-6)


def test_ignored_class_may_be_a_valid_one() -> None:
    x, target = RNG.normal(size=(5, 9)).astype(np.float32), np.array([0, 3, 3, 1, 8])
    none = F.cross_entropy(x, target, ignore_index=3, reduction="none")
    assert none[1] == none[2] == 0 and (none[[0, 3, 4]] > 0).all()


@pytest.mark.parametrize("bad", [9, -1, -99])
def test_bad_target_changes_no_byte(bad: int) -> None:
    x, target = RNG.normal(size=(5, 9)).astype(np.float32), np.array([0, 1, 2, bad, 4])
    plan = bc.plan(CrossEntropyFusedDescriptor(x.shape))
    loss, dlogits = np.full((), 7, np.float32), np.full_like(x, 7)
    workspace = bc.empty(plan.workspace_size, "u8")
    with pytest.raises(bc.IndexOutOfRangeError, match=f"{bad} at element 3"):
        plan.run(logits=x, target=target, loss=loss, dlogits=dlogits, workspace=workspace)
    assert loss == 7 and (dlogits == 7).all()


@pytest.mark.parametrize("classes", [32000, 32003])
@pytest.mark.parametrize("name", ["f32", "bf16"])
def test_fused_agrees_with_forward_and_backward_and_works_in_place(classes: int, name: str) -> None:
    element = bc.Element.coerce(name).numpy
    x, target = RNG.normal(0, 2, (3, classes)).astype(element), np.array([0, classes - 1, 77], np.int32)
    loss, lse = F.cross_entropy_forward(x, target, label_smoothing=0.1)
    expected = F.cross_entropy_backward(np.ones((), element), x, target, label_smoothing=0.1, lse=lse)
    plan = bc.plan(CrossEntropyFusedDescriptor(x.shape, name, "i32"))
    workspace, fused = bc.empty(plan.workspace_size, "u8"), np.empty((), element)
    plan.run(logits=x, target=target, loss=fused, dlogits=x, label_smoothing=0.1, workspace=workspace)
    assert fused == loss
    got, want = x.astype(np.float64), expected.astype(np.float64)
    assert np.allclose(got, want, rtol=2.0**-7 if name == "bf16" else 1e-5, atol=1e-9)


def test_spatial_targets() -> None:
    x, target = RNG.normal(size=(2, 5, 3, 4)).astype(np.float32), RNG.integers(0, 5, (2, 3, 4))
    flat = F.cross_entropy(np.ascontiguousarray(np.moveaxis(x, 1, -1)).reshape(-1, 5), target.reshape(-1))
    assert F.cross_entropy(x, target) == pytest.approx(float(flat), rel=1e-6)


def test_what_has_no_kernel_is_refused() -> None:
    x, target = np.zeros((2, 3), np.float32), np.zeros(2, np.int64)
    with pytest.raises(bc.InvalidProblemError, match="class weights"):
        F.cross_entropy(x, target, weight=np.ones(3, np.float32))
    with pytest.raises(bc.InvalidProblemError, match="class indices"):
        F.cross_entropy(x, x)
