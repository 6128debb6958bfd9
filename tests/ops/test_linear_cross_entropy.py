"""linear_cross_entropy beyond the generated tests: torch's two steps, chunks, one pass against two, refusals."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import baracuda as bc
import baracuda.functional as F


def layer(rows: int, features: int, classes: int, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    """input, weight, bias and targets, some of them -100."""
    made = torch.Generator().manual_seed(rows)
    x, w, b = (
        torch.randn(s, dtype=torch.float64, generator=made) for s in ((rows, features), (classes, features), (classes,))
    )
    target = torch.randint(0, classes, (rows,), generator=made)
    target[::4] = -100
    return [x.to(dtype), (w / features**0.5).to(dtype), b.to(dtype), target]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_loss_and_gradients_as_torchs_two_steps(reduction: str, smoothing: float, bias: bool, weighted: bool) -> None:
    x, w, b, target = layer(37, 20, 130)
    leaves = [v.clone().requires_grad_() for v in ((x, w, b) if bias else (x, w))]
    logits = torch.nn.functional.linear(*leaves)
    weight = torch.linspace(0.5, 3, 130, dtype=torch.float64) if weighted else None
    want = torch.nn.functional.cross_entropy(logits, target, weight, reduction=reduction, label_smoothing=smoothing)
    dloss = torch.full_like(want, 0.5) if reduction != "none" else torch.linspace(-1, 1, 37, dtype=torch.float64)
    want.backward(dloss)
    options: dict[str, Any] = {"linear_bias": b if bias else None, "weight": weight, "reduction": reduction}
    options["label_smoothing"] = smoothing
    loss, pull = bc.vjp(F.linear_cross_entropy, x, w, target, **options)
    torch.testing.assert_close(loss, want.detach(), rtol=1e-12, atol=1e-12)
    for got, leaf in zip(pull(dloss), leaves, strict=True):
        torch.testing.assert_close(got, leaf.grad, rtol=1e-10, atol=1e-12)
    if reduction == "none":
        return
    once, *gradients = F.linear_cross_entropy_fused(x, w, target, **options, dloss=0.5)
    torch.testing.assert_close(once, want.detach(), rtol=1e-12, atol=1e-12)
    for got, leaf in zip(gradients, leaves, strict=True):
        torch.testing.assert_close(got, leaf.grad, rtol=1e-10, atol=1e-12)


def planned(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, target: torch.Tensor, preference: bc.PlanPreference
) -> list[torch.Tensor]:
    """The sum of the losses, and its gradients."""
    desc = bc.LinearCrossEntropyDescriptor(
        tuple(x.shape), len(w), x.dtype, reduction="sum", bias=True, save=False, gradients_wanted=True
    )
    plan = bc.plan(desc, preference=preference)
    loss = torch.empty((), dtype=x.dtype)
    found = {f"d{name}": torch.empty_like(v) for name, v in (("input", x), ("linear_weight", w), ("linear_bias", b))}
    workspace = bc.empty(plan.workspace_size, "u8")
    plan.run(input=x, target=target, linear_weight=w, linear_bias=b, loss=loss, **found, workspace=workspace)
    return [loss, *found.values()]


@pytest.mark.parametrize("rows, classes", [(190, 90000), (700, 40)])
def test_bf16_gradients_of_logits_are_rounded_as_by_two_steps(rows: int, classes: int) -> None:
    """Both rows come as near as one rounding of each gradient of a logit, whatever a chunk holds."""
    x, w, b, target = layer(rows, 3, classes, torch.bfloat16)
    leaves = [v.double().requires_grad_() for v in (x, w, b)]
    logits = torch.nn.functional.linear(*leaves)
    torch.nn.functional.cross_entropy(logits, target, reduction="sum").backward(inputs=leaves)
    hot = torch.zeros_like(logits)
    counted = target >= 0
    hot[counted, target[counted]] = 1
    d = ((torch.softmax(logits, 1) - hot) * counted[:, None]).detach().abs()
    terms = [d @ w.double().abs(), d.T @ x.double().abs(), d.sum(0)]
    for preference in (bc.PlanPreference(), bc.PlanPreference(max_error=13)):
        for got, leaf, size in zip(planned(x, w, b, target, preference)[1:], leaves, terms, strict=True):
            assert leaf.grad is not None
            allowed = 2.0**-8 * (leaf.grad.abs() + 1.01 * size) + 1e-5 * size
            assert ((got.double() - leaf.grad).abs() <= allowed).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves_are_rounded_at_the_end_only(dtype: torch.dtype) -> None:
    """Three chunks: what they add up to is kept in f32, by the row that rounds no gradients of logits."""
    x, w, b, target = layer(190, 3, 90000, dtype)
    leaves = [v.double().requires_grad_() for v in (x, w, b)]
    wide = torch.nn.functional.cross_entropy(torch.nn.functional.linear(*leaves), target, reduction="sum")
    wide.backward()
    loss, *gradients = planned(x, w, b, target, bc.PlanPreference(max_error=13))
    eps = torch.finfo(dtype).eps
    assert abs(loss.double() - wide) <= eps * wide
    for got, leaf in zip(gradients, leaves, strict=True):
        # Half an ulp of what is stored, and what f32 leaves of the largest.
        allowed = eps / 2 * leaf.grad.abs() + 1e-5 * leaf.grad.abs().max() + torch.finfo(dtype).smallest_normal * eps
        assert ((got.double() - leaf.grad).abs() <= allowed).all()


def test_results_do_not_depend_on_threads() -> None:
    x, w, b, target = layer(300, 24, 40000, torch.float32)
    found = []
    for threads in (1, 2):
        desc = bc.LinearCrossEntropyDescriptor((300, 24), 40000, bias=True, gradients_wanted=True)
        plan = bc.plan(desc, preference=bc.PlanPreference(threads=threads))
        out = {"loss": torch.empty(()), "lse": torch.empty(300)}
        out |= {
            "dinput": torch.empty_like(x),
            "dlinear_weight": torch.empty_like(w),
            "dlinear_bias": torch.empty_like(b),
        }
        plan.run(
            input=x, target=target, linear_weight=w, linear_bias=b, **out, workspace=bc.empty(plan.workspace_size, "u8")
        )
        found.append([v.numpy().tobytes() for v in out.values()])
    assert found[0] == found[1]


def test_workspace_holds_a_chunk_of_logits_only() -> None:
    rows, classes = 100_000, 128_000
    plan = bc.plan(bc.LinearCrossEntropyDescriptor((rows, 64), classes, save=False))
    assert plan.workspace_size < 64 * 2**20 < rows * classes * 4
    halves = bc.plan(bc.LinearCrossEntropyDescriptor((rows, 64), classes, "bf16", gradients_wanted=True))
    assert halves.workspace_size >= classes * 64 * 4, "the weights' gradient is summed in f32"


def test_one_plan_serves_all_numbers_of_rows() -> None:
    batch = bc.Dim("batch", max=400)
    plan = bc.plan(bc.LinearCrossEntropyDescriptor((batch, 6), 50000, "f32", gradients_wanted=True, save=False))
    workspace = bc.empty(plan.workspace_size, "u8")
    for rows in (0, 3, 400):
        x, w, _, target = layer(rows, 6, 50000, torch.float32)
        loss, dx, dw = torch.empty(()), torch.empty_like(x), torch.empty_like(w)
        plan.run(input=x, target=target, linear_weight=w, loss=loss, dinput=dx, dlinear_weight=dw, workspace=workspace)
        for got, want in zip((loss, dx, dw), F.linear_cross_entropy_fused(x, w, target), strict=True):
            torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)


def test_one_plan_serves_all_numbers_of_features() -> None:
    """Fewer features have shorter chunks: what is summed over them fits the workspace."""
    features = bc.Dim("features", max=1024)
    plan = bc.plan(bc.LinearCrossEntropyDescriptor((300, features), 50000, "bf16", gradients_wanted=True, save=False))
    workspace = bc.empty(plan.workspace_size, "u8")
    for n in (1, 20):
        x, w, _, target = layer(300, n, 50000, torch.bfloat16)
        loss, dx, dw = torch.empty((), dtype=x.dtype), torch.empty_like(x), torch.empty_like(w)
        plan.run(input=x, target=target, linear_weight=w, loss=loss, dinput=dx, dlinear_weight=dw, workspace=workspace)
        for got, want in zip((loss, dx, dw), F.linear_cross_entropy_fused(x, w, target), strict=True):
            torch.testing.assert_close(got, want, rtol=0, atol=0)


def test_strided_tensors_and_outputs() -> None:
    x, w, _, target = layer(21, 10, 33, torch.float32)
    plan = bc.plan(bc.LinearCrossEntropyDescriptor((21, 10), 33, "f32", gradients_wanted=True, save=False))
    workspace = bc.empty(plan.workspace_size, "u8")
    loss, dx, dw = torch.empty(()), torch.empty(10, 42).T[::2], torch.full((33, 20), 7.0)
    plan.run(
        input=x,
        target=target,
        linear_weight=w.T.contiguous().T,
        loss=loss,
        dinput=dx,
        dlinear_weight=dw[:, ::2],
        workspace=workspace,
    )
    for got, want in zip((loss, dx, dw[:, ::2]), F.linear_cross_entropy_fused(x, w, target), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)
    assert (dw[:, 1::2] == 7).all()


def test_wrong_calls_are_refused() -> None:
    x, w, b, target = (v.numpy() for v in layer(6, 4, 5, torch.float32))
    wrong: Any = target.copy()
    wrong[2] = 5
    with pytest.raises(bc.IndexOutOfRangeError, match=r"target.*5"):
        F.linear_cross_entropy(x, w, wrong)
    with pytest.raises(bc.InvalidProblemError, match="use the backward plan"):
        F.linear_cross_entropy_fused(x, w, target, reduction="none")
    with pytest.raises(bc.InvalidProblemError, match="Reshape it, and the target"):
        F.linear_cross_entropy(x[None], w, target)
    with pytest.raises(bc.InvalidProblemError, match=r"want \(classes, 4\)"):
        F.linear_cross_entropy(x, w.T, target)
    with pytest.raises(
        bc.InvalidProblemError, match=r"target: got f32 of shape \(6, 4\), .* probabilities of shape \(6, 5\)"
    ):
        F.linear_cross_entropy(x, w, x)
    with pytest.raises(bc.InvalidProblemError, match="want class indices"):
        F.linear_cross_entropy_fused(x, w, x)
    with pytest.raises(bc.InvalidProblemError, match="bias"):
        F.linear_cross_entropy(x, w, target, linear_bias=b[:3])
    with pytest.raises(bc.InvalidProblemError, match="weight"):
        F.linear_cross_entropy(x, w, target, weight=b[:3])
    with pytest.raises(bc.InvalidProblemError):
        F.linear_cross_entropy(x, w, target, label_smoothing=1.5)
    gpu = bc.LinearCrossEntropyDescriptor.plan_class.query(bc.LinearCrossEntropyDescriptor((6, 4), 5), device="cuda:0")
    assert not gpu and gpu.refusals
