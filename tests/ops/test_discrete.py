"""Random integers, coin tosses, permutations, samples and dropout: statistics with fixed seeds, layouts, torch's errors.

The bounds of chi-square statistics are mean + 4 standard deviations of their distribution.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.random.discrete_ref import below


def chi_square(found: np.ndarray, expected: np.ndarray) -> float:
    """In standard deviations beyond what is to be expected."""
    degrees = found.size - 1
    return float((np.sum((found - expected) ** 2 / expected) - degrees) / np.sqrt(2 * degrees))


# --- coin tosses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.5, 0.1, 0.999])
def test_bernoulli_has_its_mean_and_independent_neighbours(p: float) -> None:
    n = 400_000
    y = F.bernoulli_(np.empty(n, np.float32), p, generator=bc.Generator(1))
    assert set(np.unique(y)) <= {0.0, 1.0}
    assert abs(y.mean() - p) < 4 * np.sqrt(p * (1 - p) / n)
    z = y - p
    for lag in (1, 2, 3, 4):
        assert abs((z[:-lag] * z[lag:]).mean()) < 4 * p * (1 - p) / np.sqrt(n)


def test_bernoulli_of_tensors_and_of_every_element() -> None:
    p = np.array([[0.0, 1.0, 0.5], [1.0, 0.0, 2.0**-40]])
    for element in (np.float32, np.float64):
        y = F.bernoulli(p.astype(element), generator=bc.Generator(2))
        assert y.dtype == element and y[0, 0] == 0 and y[0, 1] == 1 and y[1, 0] == 1
    want = F.bernoulli_(np.empty(999, np.float32), 0.3, generator=bc.Generator(3))
    for dtype in (np.bool_, np.int8, np.int64, np.uint16, np.float16):
        got = F.bernoulli_(np.empty(999, dtype), 0.3, generator=bc.Generator(3))
        np.testing.assert_array_equal(got.astype(np.float32), want)
    out = np.empty((2, 3), bool)
    assert F.bernoulli(p.astype(np.float32), generator=bc.Generator(2), out=out) is out


def test_tiny_probabilities_are_not_rounded_up() -> None:
    """2^-26 and 2^24 tosses: with a resolution of 2^-24 one would be expected, with all 32 bits a quarter."""
    y = F.bernoulli_(np.empty(1 << 24, np.float32), 2.0**-26, generator=bc.Generator(0))
    assert y.sum() <= 3


@pytest.mark.parametrize("bad", [-0.1, 1.5, np.nan])
def test_bernoulli_checks_its_probabilities(bad: float) -> None:
    with pytest.raises(bc.InvalidProblemError, match="p"):
        F.bernoulli_(np.empty(3, np.float32), bad)
    p = np.full((3, 500), 0.5, np.float32)
    p[2, 100] = bad
    with pytest.raises(bc.ValueOutOfRangeError, match="at element 1100, want 0 <= value <= 1"):
        F.bernoulli(p)


# --- integers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 7, 100, 1000])
def test_randint_is_uniform(n: int) -> None:
    y = F.randint(-5, n - 5, (200_000,), generator=bc.Generator(n))
    assert y.dtype == np.int64 and y.min() >= -5 and y.max() < n - 5
    assert abs(chi_square(np.bincount(y + 5, minlength=n), np.full(n, y.size / n))) < 4


def test_randint_has_no_bias_where_words_do_not_divide() -> None:
    """n = 3 * 2^61: 64 bits modulo n would favour the lowest numbers; every fourth word is passed over."""
    n = 3 * 2**61
    y = F.randint(n, (100_000,), generator=bc.Generator(5))
    thirds = np.bincount(y // 2**61, minlength=3)
    assert abs(chi_square(thirds, np.full(3, y.size / 3))) < 4
    assert y[:500].tolist() == below(5, 0, 500, n)
    wide = F.randint(-(2**63), 2**63 - 1, (100_000,), generator=bc.Generator(6))
    assert abs(np.mean(wide < 0) - 0.5) < 4 * 0.5 / np.sqrt(wide.size)


def test_randint_takes_torchs_arguments() -> None:
    assert F.randint(10, (2, 3)).shape == (2, 3)
    assert F.randint(3, 10, (4,)).min() >= 3
    assert F.randint(high=2, low=0, size=(5,), dtype=bool).dtype == bool
    assert F.randint(5, size=(3,), dtype="f16").dtype == np.float16
    y = np.empty((3, 4), np.int32)
    assert F.random_(y, 0, 7, generator=bc.Generator(1)) is y
    np.testing.assert_array_equal(F.randint(7, (3, 4), generator=bc.Generator(1)), y)
    for call, match in (
        (lambda: F.randint(5, 5, (3,)), "high"),
        (lambda: F.randint(0, 257, (3,), dtype="u8"), "high"),
        (lambda: F.randint(-1, 5, (3,), dtype="u8"), "low"),
        (lambda: F.randint(0, 5000, (3,), dtype="f16"), "high"),
        (lambda: F.randint(5), "size"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=match):
            call()


# --- permutations ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 17, 1024, 1025, 100_003])
def test_randperm_is_a_permutation(n: int) -> None:
    y = F.randperm(n, generator=bc.Generator(n))
    assert np.array_equal(np.sort(y), np.arange(n))


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_all_permutations_are_as_likely(n: int) -> None:
    rounds, g = 200 * len(list(itertools.permutations(range(n)))), bc.Generator(99)
    seen: dict[tuple[int, ...], int] = dict.fromkeys(itertools.permutations(range(n)), 0)
    for _ in range(rounds):
        seen[tuple(F.randperm(n, generator=g).tolist())] += 1
    found = np.array(list(seen.values()))
    assert abs(chi_square(found, np.full(found.size, rounds / found.size))) < 4


def test_numbers_of_a_permutation_go_everywhere() -> None:
    n, rounds, g = 100, 3000, bc.Generator(4)
    found = np.zeros((n, n))
    for _ in range(rounds):
        found[np.arange(n), F.randperm(n, generator=g)] += 1
    assert abs(chi_square(found.reshape(-1), np.full(n * n, rounds / n))) < 4
    inversions = [np.sum(np.triu(np.less.outer(p, p).T)) for p in (F.randperm(n, generator=g) for _ in range(500))]
    spread = np.sqrt(n * (n - 1) * (2 * n + 5) / 72 / 500)
    assert abs(np.mean(inversions) - n * (n - 1) / 4) < 4 * spread


def test_randperm_of_elements() -> None:
    want = F.randperm(200, generator=bc.Generator(1))
    for dtype in ("i32", "u8", "f32", "f16"):
        np.testing.assert_array_equal(F.randperm(200, dtype=dtype, generator=bc.Generator(1)).astype(np.int64), want)
    with pytest.raises(bc.InvalidProblemError, match="n"):
        F.randperm(200, dtype="i8")
    with pytest.raises(bc.InvalidProblemError, match="n"):
        F.randperm(-1)


# --- samples --------------------------------------------------------------------------------------------------------


def test_samples_follow_their_probabilities() -> None:
    p = np.array([[1, 2, 3, 4, 0, 10], [5, 0, 0, 1, 1, 1]], np.float32)
    y = F.multinomial(p, 60_000, True, generator=bc.Generator(8))
    for row, drawn in zip(p, y, strict=True):
        kept = row > 0
        found = np.bincount(drawn, minlength=6)
        assert (found[~kept] == 0).all()
        assert abs(chi_square(found[kept], row[kept] / row.sum() * drawn.size)) < 4


def test_many_categories_follow_their_probabilities() -> None:
    p = np.random.default_rng(1).uniform(0, 1, 5000).astype(np.float32)
    y = F.multinomial(p, 1_000_000, True, generator=bc.Generator(9))
    assert abs(chi_square(np.bincount(y, minlength=5000), p / p.sum(dtype=np.float64) * y.size)) < 4


def test_samples_without_replacement() -> None:
    """The first is as likely as its share; the second as its share of what is left."""
    p = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    rows, g = 60_000, bc.Generator(10)
    y = F.multinomial(np.broadcast_to(p, (rows, 4)), 2, generator=g)
    assert (y[:, 0] != y[:, 1]).all()
    share = p / p.sum()
    pairs = [(a, b) for a in range(4) for b in range(4) if a != b]
    want = np.array([share[a] * share[b] / (1 - share[a]) for a, b in pairs]) * rows
    found = np.array([np.sum((y[:, 0] == a) & (y[:, 1] == b)) for a, b in pairs])
    assert abs(chi_square(found, want)) < 4
    every = F.multinomial(np.ones(1000), 1000, generator=g)
    assert np.array_equal(np.sort(every), np.arange(1000))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_minus_zero_is_never_drawn(dtype: Any) -> None:
    p = np.full(200, -0.0, dtype)
    p[[3, 150]] = 1, 3
    drawn = F.multinomial(p, 4000, replacement=True, generator=bc.Generator(5))
    assert set(drawn.tolist()) == {3, 150} and 0.7 < (drawn == 150).mean() < 0.8
    assert sorted(F.multinomial(p, 2, generator=bc.Generator(5)).tolist()) == [3, 150]


def test_what_multinomial_cannot_draw() -> None:
    p = np.ones((3, 300), np.float32)
    for at, bad, match in ((301, -1.0, "element 301"), (899, np.nan, "element 899"), (0, np.inf, "element 0")):
        wrong = p.copy()
        wrong.reshape(-1)[at] = bad
        with pytest.raises(bc.ValueOutOfRangeError, match=match):
            F.multinomial(wrong, 2)
    wrong = p.copy()
    wrong[1] = 0
    with pytest.raises(bc.ValueOutOfRangeError, match="element 300, want a finite sum above 0"):
        F.multinomial(wrong, 2, True)
    wrong[1, :2] = 1
    with pytest.raises(bc.ValueOutOfRangeError, match="element 300, want a finite sum above 0"):
        F.multinomial(wrong, 3)
    assert set(F.multinomial(wrong, 2)[1].tolist()) == {0, 1}
    for call, match in (
        (lambda: F.multinomial(p, 301), "samples"),
        (lambda: F.multinomial(p[None], 1), "p_shape"),
        (lambda: F.multinomial(p, -1), "samples"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=match):
            call()
    with pytest.raises(bc.UnsupportedError):
        F.multinomial(p.astype(np.int64), 1)
    assert F.multinomial(p, 0, True).shape == (3, 0)


def test_scale_of_weights_does_not_matter() -> None:
    p = np.random.default_rng(3).uniform(0, 1, (4, 777)).astype(np.float32)
    want = F.multinomial(p, 50, True, generator=bc.Generator(1))
    for scale in (2.0**-140, 2.0**-100, 2.0**100):
        scaled = (p.astype(np.float64) * scale).astype(np.float32)
        got = F.multinomial(scaled, 50, True, generator=bc.Generator(1))
        assert np.mean(got == want) > (0.9 if scale == 2.0**-140 else 0.9999)  # subnormal numbers have fewer digits


# --- dropout --------------------------------------------------------------------------------------------------------


def test_dropout_keeps_its_share_and_its_mean() -> None:
    x = np.ones((500, 800), np.float32)
    for p in (0.1, 0.5, 0.75):
        y = F.dropout(x, p, generator=bc.Generator(3))
        kept = y != 0
        assert abs(kept.mean() - (1 - p)) < 4 * np.sqrt(p * (1 - p) / x.size)
        assert np.allclose(y[kept], 1 / (1 - p), rtol=2e-7)


def test_dropouts_gradient_makes_the_mask_again() -> None:
    x, dy = (np.random.default_rng(k).normal(size=(37, 53)).astype(np.float32) for k in range(2))
    g = bc.Generator(4, 1000)
    y, pull = bc.vjp(F.dropout, x, 0.3, generator=g)
    assert g.offset == 1000 + -(-x.size // 4)
    dx = pull(dy)
    assert np.array_equal(dx != 0, y != 0)
    np.testing.assert_array_equal(dx, F.dropout_backward(dy, 0.3, 4, 1000))
    np.testing.assert_allclose(dx[y != 0], (dy / np.float32(0.7))[y != 0], rtol=3e-7)


def test_dropouts_ends_and_options() -> None:
    x = np.array([1.0, np.nan, -np.inf, 2.0], np.float32)
    assert (F.dropout(x, 1.0) == 0).all()
    np.testing.assert_array_equal(F.dropout(x, 0.0), x)
    assert F.dropout(x, 0.5, training=False) is x
    for bad in (-0.1, 1.1, np.nan):
        with pytest.raises(bc.InvalidProblemError, match="p"):
            F.dropout(x, bad)
    z = np.ones(1000, np.float32)
    assert F.dropout(z, 0.5, True, True, generator=bc.Generator(1)) is z
    np.testing.assert_array_equal(z, F.dropout(np.ones(1000, np.float32), 0.5, generator=bc.Generator(1)))


def test_one_mask_for_every_element_type() -> None:
    masks = set()
    for dtype in ("f16", "bf16", "f32", "f64"):
        x = np.ones(5000, bc.Element.coerce(dtype).numpy)
        masks.add((F.dropout(x, 0.4, generator=bc.Generator(7)).astype(np.float32) != 0).tobytes())
    assert len(masks) == 1


# --- all ------------------------------------------------------------------------------------------------------------

DRAWS = {
    "bernoulli": lambda y: bc.plan(bc.BernoulliDescriptor(y.shape, "f32")).run(y, 0.4, 9, 77),
    "randint": lambda y: bc.plan(bc.RandintDescriptor(y.shape, "f32")).run(y, 0, 1000, 9, 77),
    "dropout": lambda y: bc.plan(bc.DropoutDescriptor(y.shape, "f32")).run(np.ones(y.shape, np.float32), y, 0.4, 9, 77),
}


@pytest.mark.parametrize("name", DRAWS)
def test_bits_do_not_depend_on_layout_or_threads(name: str) -> None:
    shape = (37, 60, 31)
    want = np.empty(shape, np.float32)
    DRAWS[name](want)
    before = bc.get_num_threads()
    try:
        bc.set_num_threads(1)
        for y in (np.empty(shape, np.float32), np.empty(shape[::-1], np.float32).T,
                  np.empty((74, 60, 62), np.float32)[::-2, :, 1::2]):  # fmt: skip
            DRAWS[name](y)
            assert np.ascontiguousarray(y).tobytes() == want.tobytes()
    finally:
        bc.set_num_threads(before)


def test_offset_moves_along_the_same_stream() -> None:
    whole = F.randint(10, (4000,), generator=bc.Generator(5))
    np.testing.assert_array_equal(F.randint(10, (400,), generator=bc.Generator(5, 50)), whole[100:500])
    p = np.random.default_rng(3).uniform(0, 1, (2, 600)).astype(np.float32)
    both = F.multinomial(p, 10, True, generator=bc.Generator(6))
    second = F.multinomial(p[1], 10, True, generator=bc.Generator(6, 5))
    np.testing.assert_array_equal(both[1], second)


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    p = torch.rand(4, 9)
    assert isinstance(F.bernoulli(p), torch.Tensor)
    drawn = F.multinomial(p, 3, generator=bc.Generator(1))
    assert drawn.dtype == torch.int64
    np.testing.assert_array_equal(drawn.numpy(), F.multinomial(p.numpy(), 3, generator=bc.Generator(1)))
    assert isinstance(F.dropout(p, 0.5), torch.Tensor)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_range_of_weights(dtype: type) -> None:
    """What is too small beside the largest weight is never drawn, however small it is."""
    p = np.ldexp(np.ones(120, dtype), -np.arange(120))
    for rows in (p, p[::-1].copy()):
        drawn = F.multinomial(rows, 4000, True, generator=bc.Generator(11))
        places = np.arange(120) if rows is p else np.arange(119, -1, -1)
        found = np.bincount(places[drawn], minlength=120)
        assert found[40:].sum() == 0 and abs(found[0] - 2000) < 200
