"""batch_norm and instance_norm as torch has them: gradients, running statistics, layouts and mixed elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.norm.batch_norm import BatchNormDescriptor

nn = torch.nn.functional
SHAPES = [(6, 3), (300, 40), (2, 5, 7), (3, 4, 6, 5), (2, 20, 9, 8), (2, 3, 4, 3, 5), (2, 2, 90, 200)]
LAYOUTS = ["first", "last", "sliced", "flipped"]


def _laid(x: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values with channels before or behind positions, with gaps, or broadcast from elsewhere."""
    if layout == "last":
        return x.movedim(1, -1).contiguous().movedim(-1, 1)
    if layout == "sliced":
        wide = torch.zeros(*(2 * n for n in x.shape), dtype=x.dtype)
        seen = wide[tuple(slice(None, None, 2) for _ in x.shape)]
        return seen.copy_(x)
    if layout == "flipped":
        return x.transpose(0, -1).contiguous().transpose(0, -1)
    return x


def _given(shape: tuple[int, ...], *, affine: bool, dtype: torch.dtype = torch.float64) -> list[Any]:
    made = torch.Generator().manual_seed(len(shape))
    x, mean, var, w, b = (torch.randn(s, generator=made, dtype=dtype) for s in (shape, *[(shape[1],)] * 4))
    return [x, mean, var.abs(), *((w, b) if affine else (None, None))]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
def test_results_statistics_and_gradients_as_torch(
    name: str, training: bool, layout: str, shape: tuple[int, ...]
) -> None:
    if name == "instance_norm" and len(shape) == 2:
        pytest.skip("an image has one value of each channel")
    for affine in (True, False):
        x, mean, var, w, b = _given(shape, affine=affine)
        leaves = [x.clone().requires_grad_(), *(v.clone().requires_grad_() for v in (w, b) if affine)]
        own, theirs = [mean.clone(), var.clone()], [mean.clone(), var.clone()]
        last = leaves[1:] if affine else [None, None]
        want = getattr(nn, name)(leaves[0], *theirs, *last, training, 0.3, 1e-3)
        dy = torch.randn(shape, dtype=x.dtype, generator=torch.Generator().manual_seed(1))
        want.backward(dy)
        y, pull = bc.vjp(getattr(F, name), _laid(x, layout), *own, w, b, training, 0.3, 1e-3)
        assert torch.allclose(y, want, rtol=1e-11, atol=1e-11)
        for a, b_ in zip(own, theirs, strict=True):
            assert torch.allclose(a, b_, rtol=1e-12, atol=1e-13)
        found = pull(_laid(dy, layout))
        for got, leaf in zip(found if affine else (found,), leaves, strict=True):
            assert torch.allclose(got, leaf.grad, rtol=1e-9, atol=1e-10)
        again = getattr(F, name)(_laid(x, layout), mean, var, w, b, training, 0.3, 1e-3)
        assert torch.equal(again, y) and torch.equal(mean, own[0]) and torch.equal(var, own[1])


@pytest.mark.parametrize("element", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("training", [True, False])
def test_halves_with_wide_weights_and_running_statistics(element: torch.dtype, training: bool) -> None:
    x, *rest = _given((4, 6, 50), affine=True, dtype=torch.float32)
    x = x.to(element)
    theirs = [v.double() for v in rest]
    want = nn.batch_norm(x.double(), *theirs, training, 0.5)
    y, pull = bc.vjp(F.batch_norm, x, *rest, training, 0.5)
    assert y.dtype is element and torch.allclose(y.double(), want, rtol=2e-2, atol=2e-2)
    for got, exact in zip(rest[:2], theirs[:2], strict=True):
        assert torch.allclose(got.double(), exact, rtol=1e-6, atol=1e-6), "statistics are those of x as it is stored"
    dx, dweight, dbias = pull(torch.ones_like(x))
    assert dx.dtype is element and dweight.dtype is dbias.dtype is torch.float32
    assert torch.allclose(dbias, torch.full((6,), 200.0))


def test_running_statistics_of_two_elements_are_refused() -> None:
    x = np.ones((4, 3, 5), np.float16)
    with pytest.raises(bc.BaracudaError, match="running_var"):
        F.batch_norm(x, np.zeros(3, np.float32), np.ones(3, np.float16))
    with pytest.raises(bc.InvalidProblemError, match="parameter_element: got 'f64', want f16 or f32"):
        F.batch_norm(x, None, None, np.ones(3), training=True)


def test_cumulative_averages_are_a_momentum_of_one_over_the_batches() -> None:
    rng = np.random.default_rng(0)
    module = torch.nn.BatchNorm1d(4, momentum=None, affine=False).double()
    mean, var = np.zeros(4), np.ones(4)
    for batch in range(1, 5):
        x = rng.normal(batch, batch, (9, 4))
        y = F.batch_norm(x, mean, var, training=True, momentum=1 / batch)
        assert np.allclose(y, module(torch.from_numpy(x)).numpy(), atol=1e-12)
    assert np.allclose(mean, module.running_mean.numpy()) and np.allclose(var, module.running_var.numpy())
    with pytest.raises(bc.InvalidProblemError, match="momentum: got None, want a number"):
        F.batch_norm(x, mean, var, training=True, momentum=None)


def test_changing_momentum_and_eps_needs_no_new_plan() -> None:
    x = np.random.default_rng(1).normal(size=(5, 3, 8)).astype(np.float32)
    plan = bc.plan(BatchNormDescriptor(x.shape, weight=False, bias=False, save=False))
    workspace = bc.empty(plan.workspace_size, "u8")
    for momentum, eps in ((0.1, 1e-5), (1.0, 2.0)):
        mean, var, y = np.zeros(3, np.float32), np.ones(3, np.float32), np.empty_like(x)
        plan.run(
            x=x, running_mean=mean, running_var=var, y=y, next_mean=mean, next_var=var, eps=eps, momentum=momentum,
            workspace=workspace,
        )  # fmt: skip
        assert np.allclose(mean, momentum * x.mean((0, 2)), atol=1e-6)
        assert np.allclose(
            y * np.sqrt(x.var((0, 2), keepdims=True) + eps), x - x.mean((0, 2), keepdims=True), atol=1e-5
        )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(4, 70, 31, 33), (2, 3, 200, 201), (700, 260)])
def test_bits_do_not_depend_on_threads(shape: tuple[int, ...], layout: str) -> None:
    x, mean, var, w, b = _given(shape, affine=True, dtype=torch.float32)
    x = _laid(x, layout)
    found = []
    for threads in (1, 2, 3):
        before = bc.get_num_threads()
        bc.set_num_threads(threads)
        try:
            own = (mean.clone(), var.clone())
            y, pull = bc.vjp(F.batch_norm, x, *own, w, b, True)
            found.append([v.numpy().tobytes() for v in (y, *own, *pull(x))])
        finally:
            bc.set_num_threads(before)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("by", [1e-25, 1e-30, 1e20, 1e30])
def test_values_whose_squares_leave_the_range(by: float, layout: str) -> None:
    x, *_ = _given((3, 20, 41), affine=False)
    scaled = _laid((x * by).float(), layout)
    y, _, rstd = F.batch_norm_forward(scaled, None, None, training=True, eps=0.0)
    want = (x - x.mean((0, 2), keepdim=True)) / x.var((0, 2), correction=0, keepdim=True).sqrt()
    assert torch.allclose(y.double(), want, atol=1e-5)
    assert torch.allclose(rstd.double() * by, 1 / x.var((0, 2), correction=0).sqrt(), rtol=1e-5)


def test_values_far_from_zero() -> None:
    rng = np.random.default_rng(2)
    for layout in ("first", "last"):
        x = _laid(torch.from_numpy((rng.normal(size=(40, 20, 300)) + 1000).astype(np.float32)), layout)
        wide = x.double()
        want = (wide - wide.mean((0, 2), keepdim=True)) / (wide.var((0, 2), correction=0, keepdim=True) + 1e-5).sqrt()
        assert torch.allclose(F.batch_norm(x, None, None, training=True).double(), want, atol=2e-4)


def test_a_training_step_in_a_graph() -> None:
    x, mean, var, w, b = (None if v is None else v.numpy() for v in _given((4, 3, 5, 6), affine=True))

    def step(x: Any, mean: Any, var: Any, w: Any, b: Any, dy: Any) -> Any:
        y, pull = bc.vjp(F.batch_norm, x, mean, var, w, b, True, 0.2)
        return y, *pull(dy)

    given = (x, mean, var, w, b, np.cos(x))
    graph = bc.trace(step, *(bc.TensorSpec(v.shape, "f64") for v in given))
    run = graph.compile()
    own = [v.copy() for v in given]
    want = step(*[v.copy() for v in given[:1]], *(theirs := [v.copy() for v in given[1:]]))
    found = run.run(*own)
    for got, exact in zip(found, want, strict=True):
        assert np.array_equal(np.asarray(got), exact)
    assert np.array_equal(own[1], theirs[0]) and np.array_equal(own[2], theirs[1]) and not np.array_equal(own[1], mean)


def test_one_plan_serves_all_batches() -> None:
    batch = bc.Dim("batch", max=90)
    descriptor = BatchNormDescriptor((batch, 20, 33), save=True)
    plan, back = bc.plan(descriptor), bc.plan(descriptor.backward())
    workspace = bc.empty(max(plan.workspace_size, back.workspace_size), "u8")
    rng = np.random.default_rng(3)
    for n in (0, 1, 17, 90):
        x, dy = rng.normal(size=(2, n, 20, 33)).astype(np.float32)
        if n == 17:
            x, dy = (np.moveaxis(np.moveaxis(v, 1, -1).copy(), -1, 1) for v in (x, dy))
        w, b, mean, var = rng.normal(size=(4, 20)).astype(np.float32)
        y, m, rstd, dweight, dbias = np.empty_like(x), *np.empty((4, 20), np.float32)
        kept = mean.copy()
        plan.run(
            x=x, weight=w, bias=b, running_mean=mean, running_var=var, y=y, mean=m, rstd=rstd, next_mean=mean, next_var=var,
            workspace=workspace,
        )  # fmt: skip
        if n == 0:
            assert np.array_equal(kept, mean) and np.isnan(m).all(), (
                "an empty batch leaves running statistics as they are"
            )
        dx = np.empty_like(x)
        back.run(dy=dy, x=x, weight=w, mean=m, rstd=rstd, dx=dx, dweight=dweight, dbias=dbias, workspace=workspace)
        assert np.allclose(dbias, dy.sum((0, 2)), atol=1e-3)


def test_what_does_not_fit_is_refused() -> None:
    x = np.ones((2, 6, 3), np.float32)
    with pytest.raises(bc.InvalidProblemError, match="more than one value for each channel"):
        F.batch_norm(x[:1, :, :1], None, None, training=True)
    with pytest.raises(bc.InvalidProblemError, match="more than one value for each channel"):
        F.instance_norm(x[:, :, :1])
    with pytest.raises(bc.InvalidProblemError, match="running_mean, running_var: got None and None, want both"):
        F.batch_norm(x, None, None)
    with pytest.raises(bc.InvalidProblemError, match="want both, or neither"):
        F.batch_norm(x, x[0, :, 0], None, training=True)
    with pytest.raises(bc.InvalidProblemError, match="at least 2 dimensions"):
        F.batch_norm(x[0, 0], None, None, training=True)
    with pytest.raises(bc.InvalidProblemError, match="weight"):
        F.batch_norm(x, None, None, np.ones(5, np.float32), training=True)
    with pytest.raises(bc.InvalidProblemError, match="per_instance"):
        BatchNormDescriptor((2, 3, 4), training=False, per_instance=True)
    with pytest.raises(bc.InvalidProblemError, match="running"):
        BatchNormDescriptor((2, 3, 4), training=False, running=False)
