"""AdamW: torch's trajectory, long lists, scalars, threads, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F


def state(shapes: list[tuple[int, ...]], dtype: type = np.float32) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(3)
    grads, params = ([np.asarray(rng.normal(size=s), dtype) for s in shapes] for _ in range(2))
    return [grads, params, [np.zeros(s, dtype) for s in shapes], [np.zeros(s, dtype) for s in shapes]]


@pytest.mark.parametrize("maximize", [False, True])
def test_twenty_steps_follow_torch(maximize: bool) -> None:
    torch = pytest.importorskip("torch")
    shapes = [(4, 5), (), (33,)]
    _, params, m, v = state(shapes, np.float64)
    theirs = [torch.tensor(p, requires_grad=True) for p in params]
    options = {"lr": 3e-2, "betas": (0.85, 0.99), "eps": 1e-7, "weight_decay": 0.2}
    torch_step = torch.optim.AdamW(theirs, maximize=maximize, **options)
    rng = np.random.default_rng(5)
    for step in range(1, 21):
        grads = [np.asarray(rng.normal(size=s)) for s in shapes]
        for p, g in zip(theirs, grads, strict=True):
            p.grad = torch.tensor(g)
        torch_step.step()
        F.adamw_(
            params,
            grads,
            m,
            v,
            step=step,
            lr=3e-2,
            beta1=0.85,
            beta2=0.99,
            eps=1e-7,
            weight_decay=0.2,
            maximize=maximize,
        )
    for p, q in zip(params, theirs, strict=True):
        np.testing.assert_allclose(p, q.detach().numpy(), rtol=1e-12)


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
    assert [str(p.element) for p in desc.signature().params] == ["f16", "f16", "f32", "f32"]


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
