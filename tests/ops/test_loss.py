"""Losses: what the generated tests do not reach."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.loss.loss import CrossEntropyFusedDescriptor

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


def test_what_has_no_meaning_is_refused() -> None:
    x, target = np.zeros((2, 3), np.float32), np.zeros(2, np.int64)
    for call, match in (
        (lambda: F.cross_entropy(x, target, weight=np.ones(3)), "weight"),
        (lambda: F.cross_entropy(x, target, weight=np.ones(2, np.float32)), "weight"),
        (lambda: F.cross_entropy(x, x, ignore_index=1), "ignore_index"),
        (lambda: F.cross_entropy(x, target, label_smoothing=1.5), "label_smoothing"),
        (lambda: F.cross_entropy_fused(x, x), "class indices"),
        (lambda: F.nll_loss(x, x), "class indices"),
        (lambda: F.nll_loss(x, np.zeros(3, np.int64)), "target"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=match):
            call()
    with pytest.raises(bc.UnsupportedError, match="element"):
        F.cross_entropy(x, x.astype(np.float64))


OPTIONS = [
    {},
    {"ignore_index": 3},
    {"reduction": "none"},
    {"reduction": "sum", "ignore_index": 0},
    {"weight": True},
    {"weight": True, "ignore_index": 2, "reduction": "sum"},
    {"weight": True, "reduction": "none"},
]


@pytest.mark.parametrize("shape", [(9,), (6, 9), (2, 9, 5), (3, 9, 2, 4)], ids=str)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("smoothing", [0.0, 0.15, 1.0])
@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss", "probabilities"])
def test_options_and_gradients_are_torchs(name: str, shape: tuple[int, ...], options: dict, smoothing: float) -> None:
    if (name == "nll_loss" and smoothing) or (name == "probabilities" and "ignore_index" in options):
        pytest.skip("torch has no such option")
    x, target = RNG.normal(size=shape), RNG.integers(0, 9, (*shape[:1], *shape[2:]) if len(shape) > 1 else ())
    if name == "probabilities":
        target = RNG.uniform(0, 1, shape)
    ours = dict(options) | ({"label_smoothing": smoothing} if name != "nll_loss" else {})
    if "weight" in ours:
        ours["weight"] = RNG.uniform(0.1, 2, 9)
    theirs = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in ours.items()}
    function = "nll_loss" if name == "nll_loss" else "cross_entropy"
    leaf = torch.tensor(x, requires_grad=True)
    want = getattr(torch.nn.functional, function)(leaf, torch.tensor(target), **theirs)
    loss, pull = bc.vjp(getattr(F, function), x, target, **ours)
    np.testing.assert_allclose(loss, want.detach().numpy(), rtol=1e-12, atol=1e-14)
    dloss = np.asarray(RNG.normal(size=np.shape(loss)))
    (grad,) = torch.autograd.grad(want, leaf, torch.tensor(dloss))
    np.testing.assert_allclose(pull(dloss), grad.numpy(), rtol=1e-10, atol=1e-14)
    np.testing.assert_array_equal(getattr(F, function)(x, target, **ours), loss)


def test_weights_of_counted_targets_that_are_zero() -> None:
    x, target, weight = RNG.normal(size=(3, 4)), np.array([1, 1, 1]), np.array([1.0, 0.0, 1.0, 1.0])
    for name in ("cross_entropy", "nll_loss"):
        want = getattr(torch.nn.functional, name)(torch.tensor(x), torch.tensor(target), torch.tensor(weight))
        assert np.isnan(want.item()) and np.isnan(getattr(F, name)(x, target, weight))


@pytest.mark.parametrize("bad", [9, -1, -99])
def test_a_bad_target_of_nll_loss_is_found(bad: int) -> None:
    x, target = np.zeros((5, 9), np.float32), np.array([0, 1, 2, bad, 4])
    with pytest.raises(bc.IndexOutOfRangeError, match=f"{bad} at element 3"):
        F.nll_loss(x, target)
    with pytest.raises(bc.IndexOutOfRangeError, match=f"{bad} at element 3"):
        F.nll_loss_backward(np.ones((), np.float32), x, target)


def test_many_rows_beside_each_other() -> None:
    x, target = RNG.normal(size=(2, 5, 300, 400)).astype(np.float32), RNG.integers(0, 5, (2, 300, 400))
    flat, rows = np.moveaxis(x, 1, -1).reshape(-1, 5), target.reshape(-1)
    assert float(F.nll_loss(x, target)) == pytest.approx(
        -float(flat[np.arange(len(rows)), rows].mean(dtype=np.float64))
    )
    dx = F.nll_loss_backward(np.ones((), np.float32), x, target, reduction="sum")
    assert np.count_nonzero(dx) == rows.size and dx.sum() == -rows.size


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("element", [torch.float16, torch.bfloat16], ids=str)
def test_losses_of_halves_in_f32(element: torch.dtype, reduction: str) -> None:
    """What training code adds up: as torch's loss of the same logits in f32, where halves keep three digits."""
    x = torch.randn(70, 1000, generator=torch.Generator().manual_seed(0)).to(element)
    target = torch.arange(70) * 14
    wanted = torch.nn.functional.cross_entropy(x.float(), target, reduction=reduction)
    loss, pull = bc.vjp(F.cross_entropy, x, target, reduction=reduction, out_element="f32")
    assert loss.dtype == torch.float32 and torch.allclose(loss, wanted, rtol=1e-6)
    assert not torch.allclose(F.cross_entropy(x, target, reduction=reduction).float(), wanted, rtol=1e-6)
    dloss = torch.rand_like(wanted) + 1e-9 * torch.ones_like(wanted)  # what no half holds
    leaf = x.float().requires_grad_()
    torch.nn.functional.cross_entropy(leaf, target, reduction=reduction).backward(dloss)
    assert pull(dloss).dtype == element and torch.allclose(pull(dloss), leaf.grad.to(element), rtol=1e-2, atol=1e-7)
    likely = torch.log_softmax(x.float(), -1).to(element)
    loss, pull = bc.vjp(F.nll_loss, likely, target, reduction=reduction, out_element=torch.float32)
    assert torch.allclose(loss, torch.nn.functional.nll_loss(likely.float(), target, reduction=reduction), rtol=1e-6)
    assert pull(dloss).dtype == element
    if reduction == "mean":
        assert torch.allclose(F.cross_entropy_fused(x, target, out_element="f32")[0], wanted, rtol=1e-6)
    narrow = F.cross_entropy(x, (target % 256).to(torch.uint8), reduction=reduction, out_element="f32")
    again = F.cross_entropy(x, target % 256, reduction=reduction, out_element="f32")
    assert narrow.dtype == torch.float32 and torch.equal(narrow, again)


@pytest.mark.parametrize(
    ("element", "out_element", "want"),
    [("bf16", "f64", "bf16 or f32"), ("f32", "f64", "f32"), ("f16", "bf16", "f16 or f32")],
)
def test_elements_that_no_loss_has_are_refused(element: str, out_element: str, want: str) -> None:
    for made in (bc.CrossEntropyDescriptor, bc.CrossEntropyFusedDescriptor, bc.NllLossDescriptor):
        with pytest.raises(bc.InvalidProblemError, match=f"out_element: got '{out_element}', want {want}"):
            made((4, 5), element, out_element=out_element)
        assert made((4, 5), element).loss_element() is made((4, 5), element, out_element=element).loss_element()
