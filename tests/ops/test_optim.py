"""Optimizer steps: torch's trajectories, long lists, scalars, threads, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F


def state(shapes: list[tuple[int, ...]], dtype: type = np.float32) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(3)
    grads, params = ([np.asarray(rng.normal(size=s), dtype) for s in shapes] for _ in range(2))
    return [grads, params, [np.zeros(s, dtype) for s in shapes], [np.zeros(s, dtype) for s in shapes]]


SHAPES = [(4, 5), (), (33,), (3, 0)]


def follow(torch_step: Any, theirs: list[Any], params: list[np.ndarray], ours: Any, steps: int = 200) -> None:
    """Many steps of both over the same gradients, some of which depend on the parameters."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    for step in range(1, steps + 1):
        grads = [np.asarray(rng.normal(size=p.shape) + 0.1 * p) for p in params]
        for p, g in zip(theirs, grads, strict=True):
            p.grad = torch.tensor(g)
        torch_step.step()
        ours(step, grads)
    for p, q in zip(params, theirs, strict=True):
        np.testing.assert_allclose(p, q.detach().numpy(), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_adam_follows_torch(name: str, amsgrad: bool, maximize: bool) -> None:
    torch = pytest.importorskip("torch")
    _, params, m, v = state(SHAPES, np.float64)
    theirs = [torch.tensor(p, requires_grad=True) for p in params]
    most = [np.zeros(s) for s in SHAPES] if amsgrad else None
    same = {"eps": 1e-7, "weight_decay": 0.2, "maximize": maximize, "amsgrad": amsgrad}
    torch_step = getattr(torch.optim, name)(theirs, lr=3e-2, betas=(0.85, 0.99), **same)
    update = F.adam_ if name == "Adam" else F.adamw_
    follow(
        torch_step,
        theirs,
        params,
        lambda step, grads: update(params, grads, m, v, most, step=step, lr=3e-2, beta1=0.85, beta2=0.99, **same),
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight_decay": 0.1, "maximize": True},
        {"momentum": 0.9},
        {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.05},
        {"momentum": 0.8, "nesterov": True, "weight_decay": 0.05},
        {"momentum": 0.8, "nesterov": True, "maximize": True},
    ],
    ids=str,
)
def test_sgd_follows_torch(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    _, params, _, _ = state(SHAPES, np.float64)
    theirs = [torch.tensor(p, requires_grad=True) for p in params]
    buffers = [np.full(s, np.nan) for s in SHAPES] if "momentum" in options else None
    follow(
        torch.optim.SGD(theirs, lr=3e-2, **options),
        theirs,
        params,
        lambda step, grads: F.sgd_(params, grads, buffers, step=step, lr=3e-2, **options),
    )


def test_no_weight_decay_leaves_infinite_parameters_alone() -> None:
    p = np.array([np.inf, -np.inf], np.float32)
    F.adam_(p, np.ones(2, np.float32), np.zeros(2, np.float32), np.zeros(2, np.float32), step=1)
    assert p.tolist() == [np.inf, -np.inf]
    F.sgd_(p, np.ones(2, np.float32))
    assert p.tolist() == [np.inf, -np.inf]


def test_what_the_options_need_is_asked_for() -> None:
    p, g, m, v = (np.ones(3, np.float32) for _ in range(4))
    with pytest.raises(bc.InvalidProblemError, match="max_exp_avg_sqs"):
        F.adam_(p, g, m, v, step=1, amsgrad=True)
    with pytest.raises(bc.InvalidProblemError, match="max_exp_avg_sqs"):
        F.adamw_(p, g, m, v, v.copy(), step=1)
    with pytest.raises(bc.InvalidProblemError, match="step"):
        F.sgd_(p, g, m, momentum=0.9)
    with pytest.raises(bc.InvalidProblemError, match="momentum"):
        F.sgd_(p, g, momentum=0.9)
    with pytest.raises(bc.InvalidProblemError, match="nesterov"):
        F.sgd_(p, g, nesterov=True)
    with pytest.raises(bc.InvalidProblemError, match="dampening"):
        F.sgd_(p, g, m, step=1, momentum=0.9, dampening=0.1, nesterov=True)
    with pytest.raises(bc.InvalidProblemError, match="momentum"):
        F.sgd_(p, g, m, step=1, momentum=0.0, nesterov=True)
    assert (p == 1).all()


def test_a_thousand_tensors_equal_one_at_a_time() -> None:
    shapes = [(k % 11, 1 + k % 17) for k in range(1000)]
    together, alone = state(shapes), state(shapes)
    made = bc.plan(bc.AdamWDescriptor(tuple(shapes)))
    made.run(*together, lr=1e-2, step=4)
    for parts in zip(*alone, strict=True):
        g, p, m, v = parts
        F.adamw_(p, g, m, v, step=4, lr=1e-2)
    for a, b in zip(together, alone, strict=True):
        assert all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


def test_gradients_are_not_written() -> None:
    parts = state([(100,)])
    before = parts[0][0].copy()
    bc.plan(bc.AdamWDescriptor(((100,),))).run(*parts, lr=1.0, step=1, grad_scale=8.0)
    np.testing.assert_array_equal(parts[0][0], before)


def test_half_parameters_keep_moments_in_f32() -> None:
    desc = bc.AdamWDescriptor(((3,),), "f16")
    assert [str(p.element) for p in desc.signature().present] == ["f16", "f16", "f32", "f32"]


def test_changing_scalars_needs_no_new_plan() -> None:
    made = bc.plan(bc.AdamWDescriptor(((50,),)))
    for step, lr in ((1, 1e-3), (2, 5e-4), (1000, np.array(1e-5)), (np.array(7), 0.0)):
        ours, want = state([(50,)]), state([(50,)], np.float64)
        made.run(*ours, lr=lr, step=step)
        F.adamw_(want[1], want[0], want[2], want[3], lr=lr, step=step)
        start = state([(50,)], np.float64)[1][0].astype(np.float32)
        np.testing.assert_allclose(ours[1][0], want[1][0], rtol=1e-5, atol=1e-6)
        assert float(lr) == 0.0 or (ours[1][0] != start).any()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step", 0),
        ("lr", -1e-3),
        ("lr", np.nan),
        ("lr", np.inf),
        ("beta1", 1.0),
        ("beta2", -0.1),
        ("eps", np.nan),
        ("grad_scale", 0.0),
    ],
)
def test_bad_scalar_changes_nothing(name: str, value: float) -> None:
    parts, before = state([(10,)]), state([(10,)])
    with pytest.raises(bc.InvalidProblemError, match=name):
        bc.plan(bc.AdamWDescriptor(((10,),))).run(*parts, **({"lr": 1e-3, "step": 1} | {name: value}))
    assert all(a[0].tobytes() == b[0].tobytes() for a, b in zip(parts, before, strict=True))


def test_bits_do_not_depend_on_threads() -> None:
    shapes = ((300, 401), (7,), (99_999,))
    results = []
    for threads in (1, 2):
        parts = state(list(shapes))
        bc.plan(bc.AdamWDescriptor(shapes), preference=bc.PlanPreference(threads=threads)).run(*parts, lr=1e-2, step=3)
        results.append(b"".join(a.tobytes() for a in parts[1]))
    assert results[0] == results[1]


def test_lists_of_different_length_and_empty_lists_are_refused() -> None:
    parts = state([(3,), (4,)])
    with pytest.raises(bc.InvalidProblemError, match="exp_avg_sqs"):
        bc.plan(bc.AdamWDescriptor(((3,), (4,)))).run(*parts[:3], parts[3][:1], lr=1e-3, step=1)
    with pytest.raises(bc.InvalidProblemError, match="shapes"):
        bc.AdamWDescriptor(())


def test_mixed_elements_in_one_call() -> None:
    g, p, m, v = state([(3,), (4,), (5,)])
    p[1], g[1], m[1], v[1] = (x.astype(np.float64) for x in (p[1], g[1], m[1], v[1]))
    p[2], g[2] = p[2].astype(np.float16), g[2].astype(np.float16)
    before = [x.copy() for x in p]
    F.adamw_(p, g, m, v, step=1, lr=0.1)
    assert all((a != b).all() for a, b in zip(p, before, strict=True))


def test_overlap_is_found_in_a_long_list_and_neighbours_are_not_overlap() -> None:
    shapes = [(8,)] * 300
    arena = np.ones((1200, 8), np.float32)
    rows = np.random.default_rng(0).permutation(1200)
    parts = [[arena[r] for r in rows[k * 300 : (k + 1) * 300]] for k in range(4)]
    made = bc.plan(bc.AdamWDescriptor(tuple(shapes)))
    made.run(*parts, lr=1e-3, step=1)
    parts[2][17] = parts[1][250]
    with pytest.raises(bc.InvalidProblemError, match="memory"):
        made.run(*parts, lr=1e-3, step=1)
    parts[2][17] = arena.reshape(-1)[8 * rows[5] + 3 :][:8]
    with pytest.raises(bc.InvalidProblemError, match="overlap"):
        made.run(*parts, lr=1e-3, step=1)
