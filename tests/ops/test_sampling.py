"""Drawing tokens: distributions, what torch's sorted rows keep, rows of their own numbers, penalties, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.sampling.sampling import CONTROLS

torch = pytest.importorskip("torch")


def _softmax(z: Any) -> Any:
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _chi_square(counts: Any, p: Any) -> float:
    """How many deviations chi-square lies above its mean; cells that are rare count as one."""
    p, n = np.asarray(p, np.float64), counts.sum()
    rare = p * n < 10
    cells = [*zip(counts[~rare], p[~rare] * n, strict=True)]
    if rare.any() and p[rare].sum() * n >= 10:
        cells.append((counts[rare].sum(), p[rare].sum() * n))
    freedom = len(cells) - 1
    return float((sum((c - e) ** 2 / e for c, e in cells) - freedom) / np.sqrt(2 * freedom))


def _draws(logits: Any, n: int, seed: int = 1, **numbers: Any) -> Any:
    tokens = F.sample_tokens(logits, num_samples=n, generator=bc.Generator(seed), **numbers)
    return np.bincount(tokens, minlength=len(logits))


Z = np.random.default_rng(5).normal(0, 2, 60).astype(np.float32)


@pytest.mark.parametrize(
    "numbers",
    [{}, {"temperature": 0.5}, {"temperature": 3.0, "top_k": 7}, {"top_p": 0.7}, {"min_p": 0.1},
     {"typical_p": 0.5}, {"top_k": 20, "top_p": 0.9, "min_p": 0.02, "typical_p": 0.95, "temperature": 1.5}],
)  # fmt: skip
def test_draws_are_distributed_as_what_is_kept(numbers: dict[str, Any]) -> None:
    p = F.filter_logits(Z, probabilities=True, **numbers)
    assert p.sum() == pytest.approx(1, abs=1e-6)
    counts = _draws(Z, 30_000, **numbers)
    assert not counts[p == 0].any()
    assert abs(_chi_square(counts, p)) < 5
    kept = F.filter_logits(Z, **numbers)
    np.testing.assert_array_equal(kept[p > 0], Z[p > 0])
    assert (kept[p == 0] == -np.inf).all()
    want = np.where(p > 0, _softmax(np.where(p > 0, Z, -np.inf) / numbers.get("temperature", 1.0)), 0)
    np.testing.assert_allclose(p, want, rtol=3e-6)


def _torch_kept(z: Any, temperature: float, top_k: int, top_p: float, min_p: float, typical: float) -> Any:
    """What transformers' warpers keep, one after another, of z."""
    scores = torch.tensor(z, dtype=torch.float64) / temperature
    if top_k:
        scores[scores < torch.topk(scores, min(top_k, len(scores)))[0][-1]] = -torch.inf
    ordered, where = torch.sort(scores)
    gone = ordered.softmax(-1).cumsum(-1) <= 1 - top_p
    gone[-1] = False
    scores[where[gone]] = -torch.inf
    p = scores.softmax(-1)
    scores[p < min_p * p.max()] = -torch.inf
    if typical < 1:
        logs = torch.log_softmax(scores, -1)
        surprise = -logs - (-torch.nansum(logs * logs.exp()))
        order = torch.argsort(surprise.abs())
        last = int((scores[order].softmax(-1).cumsum(-1) < typical).sum())
        scores[order[last + 1 :]] = -torch.inf
    return (scores > -torch.inf).numpy()


@pytest.mark.parametrize("seed", range(12))
def test_what_is_kept_is_what_sorted_rows_keep(seed: int) -> None:
    rng = np.random.default_rng(seed)
    z = rng.normal(0, (0.5, 3, 8)[seed % 3], (10, 50, 1000, 3001)[seed % 4]).astype(np.float32)
    numbers = {
        "temperature": (1.0, 0.6, 2.5)[seed % 3], "top_k": (0, 5, 40)[seed % 3], "top_p": (1.0, 0.9, 0.35, 0.99)[seed % 4],
        "min_p": (0.0, 0.01)[seed % 2],
    }  # fmt: skip
    found = F.filter_logits(z, **numbers) > -np.inf
    np.testing.assert_array_equal(found, _torch_kept(z, *numbers.values(), 1.0))
    found = F.filter_logits(z, typical_p=0.8, **numbers) > -np.inf
    np.testing.assert_array_equal(found, _torch_kept(z, *numbers.values(), 0.8))


def test_ties_are_kept_by_position() -> None:
    z = np.array([1, 3, 2, 3, 3, 0, 2, -np.inf], np.float32)
    assert (F.filter_logits(z, top_k=2) > -np.inf).nonzero()[0].tolist() == [1, 3]
    assert (F.filter_logits(z, top_k=4) > -np.inf).nonzero()[0].tolist() == [1, 2, 3, 4]
    assert (F.filter_logits(np.zeros(8, np.float32), top_p=0.5) > -np.inf).nonzero()[0].tolist() == [0, 1, 2, 3]
    assert F.sample_tokens(z, temperature=0.0) == 1
    assert F.sample_tokens(np.array([-0.0, 0.0], np.float32), 0.0) == 0


def test_each_row_may_have_its_own_numbers() -> None:
    rng = np.random.default_rng(2)
    z = rng.normal(0, 3, (6, 300)).astype(np.float32)
    k, p = np.array([0, 1, 5, 40, 300, 7]), np.array([1, 0.5, 0.9, 0.2, 0.999, 0.0], np.float32)
    t = np.array([1.0, 0.0, 0.3, 2.0, 5.0, 1.0], np.float32)
    together = F.sample_tokens(z, t, k, p, 0.001, num_samples=4, generator=bc.Generator(3))
    assert together.shape == (6, 4)
    table = np.tile(np.array(list(CONTROLS.values()), np.float32), (6, 1))
    table[:, 0], table[:, 1], table[:, 2], table[:, 3] = t, k, p, 0.001
    kept = F.filter_logits(z, controls=table)
    for r in range(6):
        alone = F.filter_logits(z[r], float(t[r]), int(k[r]), float(p[r]), 0.001)
        np.testing.assert_array_equal(kept[r], alone)
        assert np.isin(together[r], (alone > -np.inf).nonzero()[0]).all()


def test_all_layouts_and_kinds_draw_the_same() -> None:
    z = np.random.default_rng(4).normal(0, 3, (5, 700)).astype(np.float32)
    given = {"top_p": 0.95, "temperature": 0.8}
    want = F.sample_tokens(z, generator=bc.Generator(9, 3), **given)
    assert want.shape == (5,) and want.dtype == np.int64
    wide = np.zeros((700, 10), np.float32)
    wide[::-1, ::2] = z.T
    for same in (wide[::-1, ::2].T, torch.tensor(z), bc.asarray(z)):
        np.testing.assert_array_equal(F.sample_tokens(same, generator=bc.Generator(9, 3), **given), want)
    threads = bc.get_num_threads()
    try:
        bc.set_num_threads(1)
        np.testing.assert_array_equal(F.sample_tokens(z, generator=bc.Generator(9, 3), **given), want)
    finally:
        bc.set_num_threads(threads)
    torch_t = torch.full((5,), 0.8)
    np.testing.assert_array_equal(
        F.sample_tokens(torch.tensor(z), torch_t, 0, 0.95, generator=bc.Generator(9, 3)), want
    )
    out = np.zeros(5, np.int64)
    assert F.sample_tokens(z, generator=bc.Generator(9, 3), out=out, **given) is out
    np.testing.assert_array_equal(out, want)


def test_penalties_and_masks() -> None:
    rng = np.random.default_rng(6)
    z = rng.normal(0, 2, (3, 200)).astype(np.float32)
    counts = np.where(rng.random((3, 200)) < 0.6, 0, rng.integers(1, 9, (3, 200))).astype(np.int32)
    mask = rng.random((3, 200)) < 0.7
    found = F.filter_logits(
        z, counts=counts, repetition_penalty=1.4, presence_penalty=0.3, frequency_penalty=0.21, mask=mask
    )
    want = np.where(counts > 0, np.where(z > 0, z / 1.4, z * 1.4) - 0.21 * counts - 0.3, z)
    np.testing.assert_allclose(found, np.where(mask, want, -np.inf), rtol=1e-5, atol=1e-6)
    drawn = F.sample_tokens(z, mask=mask[0], num_samples=500)
    assert mask[0][drawn].all()


def test_a_draw_goes_on_where_the_last_one_ended() -> None:
    z = np.zeros((3, 50), np.float32)
    g = bc.Generator(4)
    first, second = F.sample_tokens(z, generator=g), F.sample_tokens(z, generator=g)
    assert g.offset == 4 and not (first == second).all()
    np.testing.assert_array_equal(F.sample_tokens(z, generator=bc.Generator(4, 2)), second)


@pytest.mark.parametrize(
    ("call", "error", "word"),
    [
        (lambda z: F.sample_tokens(z, -1.0), bc.InvalidProblemError, "temperature"),
        (lambda z: F.sample_tokens(z, top_p=1.5), bc.InvalidProblemError, "top_p"),
        (lambda z: F.sample_tokens(z, min_p=float("nan")), bc.InvalidProblemError, "min_p"),
        (lambda z: F.filter_logits(z, typical_p=-0.1), bc.InvalidProblemError, "typical_p"),
        (lambda z: F.sample_tokens(z, top_p=np.array([0.5, 2.0], np.float32)), bc.ValueOutOfRangeError, "controls"),
        (lambda z: F.sample_tokens(z, np.ones(3, np.float32)), bc.InvalidProblemError, "temperature: got shape"),
        (lambda z: F.sample_tokens(z, 1.0, np.ones((2, 1), np.int64)), bc.InvalidProblemError, "top_k: got shape"),
        (lambda z: F.sample_tokens(z, "warm"), bc.InvalidProblemError, "temperature: got 'warm', want a number"),
        (lambda z: F.sample_tokens(z, top_k=2.5), bc.InvalidProblemError, "top_k: got 2.5, want an int"),
        (lambda z: F.sample_tokens(z, np.ones(2, np.float32), top_k=None), bc.InvalidProblemError, "top_k: got None"),
        (lambda z: F.sample_tokens(z, presence_penalty=[1]), bc.InvalidProblemError, "presence_penalty: got"),
        (lambda z: F.sample_tokens(np.where(z > 1, np.nan, z)), bc.ValueOutOfRangeError, "logits"),
        (lambda z: F.sample_tokens(np.where(z > 1, np.inf, z)), bc.ValueOutOfRangeError, "finite number"),
        (lambda z: F.sample_tokens(z, mask=np.zeros(5, bool)), bc.ValueOutOfRangeError, "sum above 0"),
        (lambda z: F.sample_tokens(z[:, :0]), bc.ValueOutOfRangeError, "logits"),
        (lambda z: F.sample_tokens(z[None]), bc.InvalidProblemError, "shape"),
        (lambda z: F.sample_tokens(z, num_samples=-1), bc.InvalidProblemError, "samples"),
        (lambda z: F.filter_logits(z, mask=np.zeros(5)), bc.InvalidProblemError, "mask"),
    ],
)
def test_what_cannot_be_drawn_from_is_refused(call: Any, error: Any, word: str) -> None:
    z = np.array([[0, 1, 2, 3, 4], [1, 1, 1, 1, 1]], np.float32)
    with pytest.raises(error, match=word):
        call(z)


@pytest.mark.parametrize("near", [0.0, 0.6, 1.0])
def test_verified_drafts_are_distributed_as_the_target(near: float) -> None:
    """Two draft tokens, drawn from the draft: pairs of tokens that come out are those of the target, chi-square over all."""
    rng = np.random.default_rng(3)
    n, v = 40_000, 6
    target = rng.dirichlet(np.ones(v), 3)
    draft = near * target[:2] + (1 - near) * rng.dirichlet(np.ones(v), 2)
    g = bc.Generator(11)
    rows = [F.multinomial(np.broadcast_to(d, (n, v)), 1, True, generator=g)[:, 0] for d in draft]
    tokens, accepted = F.verify_draft(
        np.broadcast_to(draft, (n, 2, v)).astype(np.float32), np.stack(rows, 1),
        np.broadcast_to(target, (n, 3, v)).astype(np.float32), generator=g,
    )  # fmt: skip
    assert ((tokens >= 0).sum(1) == accepted + 1).all()
    assert abs(_chi_square(np.bincount(tokens[:, 0], minlength=v), target[0])) < 5
    for place in (1, 2):
        there = tokens[accepted >= place, place]
        if len(there) > 1000:
            assert abs(_chi_square(np.bincount(there, minlength=v), target[place])) < 5
    kept = np.minimum(target[0], draft[0]).sum()
    assert abs((accepted >= 1).mean() - kept) < 5 * np.sqrt(max(kept * (1 - kept), 1e-12) / n) + 1e-6
    # A second token, of those that got so far, does not depend on the first.
    pair = tokens[accepted >= 1]
    assert abs(_chi_square(np.bincount(pair[:, 1], minlength=v), target[1])) < 5


def test_trees_are_walked_as_the_target_draws() -> None:
    """Two levels: pairs of tokens that come out are those of the target, whichever tokens the tree has."""
    rng = np.random.default_rng(4)
    n, v = 40_000, 5
    root, after = rng.dirichlet(np.full(v, 5.0)), rng.dirichlet(np.full(v, 5.0), 3)
    tokens, parents = np.array([1, 3, 2]), np.array([0, 0, 2])  # 1 and 3 after the root, 2 after 3
    target = np.concatenate((root[None], after)).astype(np.float32)
    wide = [np.broadcast_to(x, (n, *x.shape)) for x in (tokens, parents, target)]
    y, path, accepted = F.verify_tree(*wide, generator=bc.Generator(6))
    assert ((y >= 0).sum(1) == accepted + 1).all() and ((path >= 0).sum(1) == accepted).all()
    assert abs(_chi_square(np.bincount(y[:, 0], minlength=v), root)) < 5
    for first, place in ((1, 0), (3, 1)):
        there = y[y[:, 0] == first]
        assert (path[y[:, 0] == first, 0] == place).all()
        assert abs(_chi_square(np.bincount(there[:, 1], minlength=v), after[place])) < 5
    deep = y[(y[:, 0] == 3) & (y[:, 1] == 2)]
    assert abs(_chi_square(np.bincount(deep[:, 2], minlength=v), after[2])) < 5
    assert (y[~np.isin(y[:, 0], (1, 3)), 1:] == -1).all()
    with pytest.raises(bc.IndexOutOfRangeError, match="parents"):
        F.verify_tree(tokens[None], np.array([[0, 2, 0]]), target[None])


def test_what_is_no_draft_is_refused() -> None:
    p = np.full((1, 2, 4), 0.25, np.float32)
    target = np.full((1, 3, 4), 0.25, np.float32)
    with pytest.raises(bc.IndexOutOfRangeError):
        F.verify_draft(p, np.array([[0, 4]]), target)
    with pytest.raises(bc.InvalidProblemError):
        F.verify_draft(p[0], np.array([[0, 1]]), target)
    with pytest.raises(bc.ValueOutOfRangeError, match="target"):
        F.verify_draft(p, np.array([[0, 1]]), target - 0.25)
    bad = target.copy()
    bad[0, 2, 1] = np.nan
    with pytest.raises(bc.ValueOutOfRangeError, match="target"):
        F.verify_draft(p, np.array([[0, 1]]), bad)


def test_a_repetition_penalty_of_0_and_numbers_beside_controls_are_refused() -> None:
    x, counts = np.array([[1.0, 0, -1]], np.float32), np.array([[1, 1, 0]], np.int32)
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        for call in (F.filter_logits, F.sample_tokens):
            with pytest.raises(
                bc.InvalidProblemError, match=f"repetition_penalty: got {wrong}, want a finite number above 0"
            ):
                call(x, counts=counts, repetition_penalty=wrong)
    controls = np.array([[1, 0, 1, 0, 1, 1, 0, 0]], np.float32)
    assert (F.filter_logits(x, controls=controls) == x).all()
    with pytest.raises(bc.InvalidProblemError, match="controls: got numbers beside them"):
        F.filter_logits(x, top_k=2, controls=controls)
