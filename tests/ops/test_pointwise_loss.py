"""Elementwise losses: torch's values and gradients, promotion, what is checked, one pass."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda import _index

RNG = np.random.default_rng(17)
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("mse_loss", {}),
    ("l1_loss", {}),
    ("smooth_l1_loss", {}),
    ("smooth_l1_loss", {"beta": 0.25}),
    ("smooth_l1_loss", {"beta": 0.0}),
    ("huber_loss", {"delta": 0.75}),
    ("binary_cross_entropy", {}),
    ("binary_cross_entropy", {"weight": (6,)}),
    ("binary_cross_entropy_with_logits", {}),
    ("binary_cross_entropy_with_logits", {"weight": (5, 1), "pos_weight": (6,)}),
    ("kl_div", {}),
    ("kl_div", {"log_target": True}),
]
IDS = [f"{name}-{'-'.join(given)}" for name, given in CALLS]


def inputs(name: str, given: dict[str, Any], shape: tuple[int, ...] = (5, 6)) -> tuple[np.ndarray, ...]:
    unit = name == "binary_cross_entropy"
    x = RNG.uniform(0, 1, shape) if unit else RNG.normal(size=shape)
    t = RNG.normal(size=shape) if "l1" in name or name in ("mse_loss", "huber_loss") else RNG.uniform(0, 1, shape)
    if given.get("log_target"):
        t = np.log(t)
    if x.size > 2 and not unit and name != "kl_div":
        x[0, :2] = t[0, :2]  # a kink, or a zero
    return x, t


@pytest.mark.parametrize(("name", "given"), CALLS, ids=IDS)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum", "batchmean"])
def test_values_and_gradients_are_torchs(name: str, given: dict[str, Any], reduction: str) -> None:
    torch = pytest.importorskip("torch")
    if reduction == "batchmean" and name != "kl_div":
        with pytest.raises(bc.InvalidProblemError, match="reduction"):
            getattr(F, name)(np.zeros(3), np.zeros(3), reduction=reduction)
        return
    x, t = inputs(name, given)
    options = {k: RNG.uniform(0.5, 2, v) if isinstance(v, tuple) else v for k, v in given.items()}
    theirs = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    leaf = torch.tensor(x, requires_grad=True)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's about "mean"
        want = getattr(torch.nn.functional, name)(leaf, torch.tensor(t), reduction=reduction, **theirs)
    loss, pull = bc.vjp(getattr(F, name), x, t, reduction=reduction, **options)
    np.testing.assert_allclose(loss, want.detach().numpy(), rtol=1e-12, atol=1e-14)
    dloss = np.asarray(RNG.normal(size=np.shape(loss)))
    (grad,) = torch.autograd.grad(want, leaf, torch.tensor(dloss))
    np.testing.assert_allclose(pull(dloss), grad.numpy(), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div"])
def test_broadcasting_and_its_gradient(name: str) -> None:
    torch = pytest.importorskip("torch")
    x, t = RNG.normal(size=(3, 1, 4)), RNG.uniform(0.1, 1, (5, 1))
    leaf = torch.tensor(x, requires_grad=True)
    a, b = torch.broadcast_tensors(leaf, torch.tensor(t))
    want = getattr(torch.nn.functional, name)(a, b, reduction="sum")
    want.backward()
    loss, pull = bc.vjp(getattr(F, name), x, t, reduction="sum")
    assert float(loss) == pytest.approx(want.item(), rel=1e-12)
    np.testing.assert_allclose(pull(np.ones(())), leaf.grad.numpy(), rtol=1e-11)


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div"])
def test_elements_are_promoted_as_torch_does(name: str) -> None:
    torch = pytest.importorskip("torch")
    for a, b in ((np.float16, np.float32), (np.float32, np.float64), (np.float32, np.int64)):
        if name == "kl_div" and b is np.int64:
            continue
        x, t = np.ones((4, 3), a), np.zeros((4, 3), b)
        ours = getattr(F, name)(x, t, reduction="sum")
        theirs = getattr(torch.nn.functional, name)(torch.tensor(x), torch.tensor(t), reduction="sum")
        assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch."), (a, b)
        assert float(ours) == pytest.approx(float(theirs))


@pytest.mark.parametrize("bad", [-0.25, 1.5, np.nan])
@pytest.mark.parametrize("which", ["input", "target"])
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_probabilities_are_checked(which: str, bad: float, reduction: str) -> None:
    given = {"input": np.full((3, 700), 0.5, np.float32), "target": np.full((3, 700), 0.25, np.float32)}
    given[which][1, 300] = bad
    with pytest.raises(bc.ValueOutOfRangeError, match=r"at element 1000, want 0 <= value <= 1") as caught:
        F.binary_cross_entropy(**given, reduction=reduction)
    assert caught.value.refusals[0].field == which
    given[which][1, 300] = 1.0
    assert np.isfinite(F.binary_cross_entropy(**given, reduction=reduction)).all()


def test_what_has_no_meaning_is_refused() -> None:
    x = np.zeros((2, 3), np.float32)
    for call, match in (
        (lambda: F.smooth_l1_loss(x, x, beta=-1.0), "beta"),
        (lambda: F.huber_loss(x, x, delta=0.0), "delta"),
        (lambda: F.mse_loss(x, x, weight=x), "weight"),
        (lambda: F.mse_loss(x, x, reduction="average"), "reduction"),
        (lambda: F.mse_loss(x.astype(np.int32), x.astype(np.int32)), "float"),
        (lambda: F.binary_cross_entropy(x, x[0]), "target_shape"),
        (lambda: F.binary_cross_entropy(x, x.astype(np.float64)), "target"),
        (lambda: F.binary_cross_entropy_with_logits(x, x, weight=np.zeros((4, 2, 3), np.float32)), "weight: got"),
        (lambda: F.kl_div(x, np.zeros((2, 4), np.float32)), "broadcast"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=match):
            call()


LOSSES = [name for name in _index.FUNCTIONS if "size_average" in inspect.signature(getattr(F, name)).parameters]


@pytest.mark.parametrize("argument", ["size_average", "reduce"])
@pytest.mark.parametrize("name", LOSSES)
def test_the_arguments_before_reduction_are_refused(name: str, argument: str) -> None:
    x = np.full((2, 3), 0.5, np.float32)
    for value in (True, False):
        with pytest.raises(bc.InvalidProblemError, match=rf"{argument}: got {value}, want None. Use reduction="):
            wanted = [p for p in inspect.signature(getattr(F, name)).parameters.values() if p.default is p.empty]
            getattr(F, name)(*(x for _ in wanted), **{argument: value})


def test_means_over_nothing() -> None:
    nothing = np.zeros((0, 3), np.float32)
    assert np.isnan(F.mse_loss(nothing, nothing))
    assert F.mse_loss(nothing, nothing, reduction="sum") == 0
    assert np.isnan(F.kl_div(nothing, nothing, reduction="batchmean"))
    assert F.mse_loss_backward(np.ones((), np.float32), nothing, nothing).shape == (0, 3)


def test_a_sum_does_not_depend_on_threads_and_keeps_its_digits() -> None:
    x, t = (RNG.normal(size=(3_000_000,)).astype(np.float32) for _ in range(2))
    desc = bc.PointwiseLossDescriptor("mse_loss", x.shape, t.shape)
    bits = set()
    for threads in (1, 2):
        loss = np.empty((), np.float32)
        bc.plan(desc, preference=bc.PlanPreference(threads=threads)).run(x, t, loss)
        bits.add(loss.tobytes())
    assert len(bits) == 1
    want = np.mean(np.square(x.astype(np.float64) - t))
    assert float(loss) == pytest.approx(want, rel=2e-7)
    assert bc.plan(desc).workspace_size == 0


def test_layouts_agree() -> None:
    x, t = (RNG.normal(size=(64, 48)).astype(np.float32) for _ in range(2))
    want = F.mse_loss(x, t, reduction="none")
    for a, b in ((x.copy("F"), t), (x, t.copy("F")), (x.copy("F"), t.copy("F")), (x[::-1][::-1], t)):
        np.testing.assert_array_equal(F.mse_loss(a, b, reduction="none"), want)
        assert float(F.mse_loss(a, b)) == pytest.approx(float(want.mean(dtype=np.float64)), rel=1e-6)


def test_a_changed_number_needs_no_new_plan() -> None:
    x, t, loss = np.array([3.0]), np.array([0.0]), np.empty(())
    made = bc.plan(bc.PointwiseLossDescriptor("huber_loss", (1,), (1,), "f64"))
    for delta, want in ((1.0, 2.5), (2.0, 4.0), (np.array(5.0), 4.5)):
        made.run(x, t, loss, delta)
        assert loss == want
