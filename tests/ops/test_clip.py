"""Gradient clipping: torch's results, mixed lists, what is checked, bits over threads."""

from __future__ import annotations

import math

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F

SHAPES = [(40, 50), (), (3, 0), (333,), (7, 5, 3)]


def gradients(dtype: type = np.float32, scale: float = 1.0) -> list[np.ndarray]:
    rng = np.random.default_rng(11)
    return [np.asarray(rng.normal(0, scale, s), dtype) for s in SHAPES]


@pytest.mark.parametrize("p", [2.0, 1.0, 3.0, 0.5, math.inf])
@pytest.mark.parametrize("max_norm", [0.5, 1e6])
def test_clip_grad_norm_is_torchs(p: float, max_norm: float) -> None:
    torch = pytest.importorskip("torch")
    ours = gradients(np.float64)
    if p == math.inf:  # torch has no maximum of nothing
        ours = [g for g in ours if g.size]
    theirs = [torch.zeros(s, dtype=torch.float64, requires_grad=True) for s in [g.shape for g in ours]]
    for t, g in zip(theirs, ours, strict=True):
        t.grad = torch.tensor(g)
    want = torch.nn.utils.clip_grad_norm_(theirs, max_norm, p)
    found = F.clip_grad_norm_(ours, max_norm, p)
    assert found == pytest.approx(want.item(), rel=1e-12)
    for g, t in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(g, t.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_a_norm_that_is_not_finite(bad: float) -> None:
    torch = pytest.importorskip("torch")
    ours = gradients()
    ours[3][7] = bad
    before = [g.copy() for g in ours]
    with pytest.raises(bc.ValueOutOfRangeError, match="want a finite number"):
        F.clip_grad_norm_(ours, 1.0, error_if_nonfinite=True)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(ours, before, strict=True))
    theirs = [torch.zeros(s, requires_grad=True) for s in SHAPES]
    for t, g in zip(theirs, ours, strict=True):
        t.grad = torch.tensor(g)
    torch.nn.utils.clip_grad_norm_(theirs, 1.0)
    F.clip_grad_norm_(ours, 1.0)
    for g, t in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(g, t.grad.numpy())


def test_halves_and_f32_together() -> None:
    ours = gradients()
    ours[0], ours[3] = ours[0].astype(np.float16), ours[3].astype(np.float16)
    want = math.sqrt(sum(float(np.sum(np.square(g.astype(np.float64)))) for g in ours))
    before = [g.astype(np.float64) for g in ours]
    found = F.clip_grad_norm_(ours, 2.0)
    assert found.dtype == np.float32
    assert found == pytest.approx(want, rel=1e-6)
    for g, b in zip(ours, before, strict=True):
        half = g.dtype == np.float16
        close = {"rtol": 2**-11, "atol": 2**-25} if half else {"rtol": 1e-6}  # one rounding, also of subnormal numbers
        np.testing.assert_allclose(g.astype(np.float64), b * (2.0 / want), **close)


def test_lists_that_have_no_norm_are_refused() -> None:
    ours = gradients()
    ours[0] = ours[0].astype(np.float64)
    with pytest.raises(bc.InvalidProblemError, match="f64"):
        F.clip_grad_norm_(ours, 1.0)
    for p in (0.0, -1.0, math.nan):
        with pytest.raises(bc.InvalidProblemError, match="p"):
            F.get_total_norm(gradients(), p)
    assert F.clip_grad_norm_([], 1.0) == 0
    assert F.get_total_norm([np.zeros((0, 3), np.float32)], math.inf) == 0


@pytest.mark.parametrize("limit", [0.5, 0.0, -0.25, math.inf])
def test_clip_grad_value_is_torchs(limit: float) -> None:
    torch = pytest.importorskip("torch")
    ours = gradients()
    ours[3][:3] = [np.nan, np.inf, -np.inf]
    theirs = [torch.zeros(s, requires_grad=True) for s in SHAPES]
    for t, g in zip(theirs, ours, strict=True):
        t.grad = torch.tensor(g)
    torch.nn.utils.clip_grad_value_(theirs, limit)
    F.clip_grad_value_(ours, limit)
    for g, t in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(g, t.grad.numpy())
    with pytest.raises(bc.InvalidProblemError, match="clip_value"):
        F.clip_grad_value_(ours, math.nan)


def test_the_norm_does_not_depend_on_threads_or_on_how_tensors_lie() -> None:
    rng = np.random.default_rng(2)
    values = [rng.normal(size=s).astype(np.float32) for s in ((300, 401), (7,), (99_999,))]
    desc = bc.TotalNormDescriptor(tuple(v.shape for v in values))
    bits = set()
    for threads in (1, 2):
        for given in (values, [np.asfortranarray(values[0]), values[1][::-1][::-1], values[2]]):
            norm = np.empty((), np.float32)
            bc.plan(desc, preference=bc.PlanPreference(threads=threads)).run(given, norm)
            bits.add(norm.tobytes())
    assert len(bits) == 1


def test_a_norm_and_its_use_are_torchs_two_steps() -> None:
    one, two = gradients(), gradients()
    F.clip_grad_norm_(one, 1.5)
    F.clip_grads_with_norm_(two, 1.5, F.get_total_norm(two))
    assert all(a.tobytes() == b.tobytes() for a, b in zip(one, two, strict=True))


def test_one_array_is_a_list_of_it() -> None:
    g = gradients()[0]
    assert F.get_total_norm(g) == pytest.approx(float(np.linalg.norm(g)), rel=1e-6)
