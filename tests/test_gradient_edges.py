"""Gradients at zeros, infinities, ties and ends of the range are torch's, computed in float64, or the limit; or excused by name."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from differential import functions
from edges import judge, points
from edges.excuses import excused

import baracuda as bc
import baracuda.functional as F
from baracuda import _index
from conftest import FULL, SEED

SHARDS = 8
CALLS = 60 if FULL else 2  # of each function
AGAIN = "PYTHONPATH=tests/harness python -m edges.again {name} {seed} {number}"
# Functions with a gradient that torch gives no samples of, by their name or the module that they are in.
ELSEWHERE = {
    "the reference of its op says what is right, and `verify` holds the kernel to it": (
        "attention_merge", "attention_merge_states", "attention_varlen", "fake_quantize", "norm", "quant_linear", "quant_matmul",
        "quant_matmul_ids", "rms_norm_rope", "rope", "softmax", "sparse", "unary",
    ),
    "sums, and weights that depend on positions; compared with torch and torchvision in tests/ops": (
        "coordinates", "ctc", "fold", "fractional", "interpolate", "pooling", "regions", "roi_pool", "sample", "joined", "copies",
        "reduce", "segments", "index",
    ),
    "draws numbers": ("dropout", "distributions"),
    "compared with formulas in tests/ops": ("preference_losses", "distances"),
    "other names of linalg_vander, trapezoid and triplet_margin_loss": ("vander", "trapz", "triplet_margin_with_distance_loss"),
}  # fmt: skip


@pytest.mark.parametrize("shard", range(SHARDS))
def test_gradients_are_limits_or_torchs(shard: int) -> None:
    compared, wrong = 0, []
    for at, name in enumerate(points.names()):
        for number in range(CALLS) if at % SHARDS == shard else ():
            count, found = judge.judge(points.make(name, (SEED, number)))
            compared += count
            again = AGAIN.format(name=name, seed=SEED, number=number)
            wrong += [f"{again}\n    {str(f)[:600]}" for f in found if not excused(f)]
    print(f"{compared} gradients")
    assert not wrong, f"{len(wrong)} findings:\n" + "\n".join(wrong[:20])


def test_every_gradient_is_compared_or_has_a_reason() -> None:
    everything = {n for n in dir(F) if not n.endswith("_backward") and functions.has_gradient(n)}
    left = {name for names in ELSEWHERE.values() for name in names}
    places = {n: {n, _index.FUNCTIONS[n].rpartition(".")[2]} for n in everything - set(points.names())}
    assert not [n for n, place in places.items() if not place & left]
    assert left <= set().union(*places.values()), "a reason that no function needs"


def test_enough_of_each_kind_is_made() -> None:
    seen: Counter[str] = Counter()
    for name in points.names():
        made = points.make(name, (SEED, 0))
        seen.update({made.theme, *(str(x.dtype) for x in judge.leaves_of(made))})
    assert not {*points.THEMES, "torch.float32", "torch.float64", "torch.float16"} - {
        k for k, n in seen.items() if n >= 3
    }


@pytest.mark.parametrize("change", [np.nan, np.inf, 0.0, 1.01])
def test_differences_are_seen(change: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A NaN, an infinity, a zero, and one percent in the place of what is right."""
    right = judge.ours

    def wrong(made: points.Points) -> list[torch.Tensor]:
        found = right(made)
        found[0] = found[0] * 1.01 if change == 1.01 else torch.full_like(found[0], change)
        return found

    def seen() -> int:
        made = (points.make("exp", (SEED, number)) for number in range(20))
        return sum(bool(judge.judge(m)[1]) for m in made)

    assert seen() == 0
    monkeypatch.setattr(judge, "ours", wrong)
    assert seen() > 5


def _pulled(fn: object, *given: torch.Tensor, **options: object) -> list[torch.Tensor]:
    y, pull = bc.vjp(fn, *given, **options)
    found = pull(torch.ones_like(y))
    return list(found) if isinstance(found, (list, tuple)) else [found]


def t(*values: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


INF = float("inf")
# What was found when this was first run: a call, and its gradients.
FOUND = {
    "equal points, by a product": (F.cdist, (torch.ones(30, 3), torch.ones(30, 3)), {}, [torch.zeros(30, 3)] * 2),
    "masked deviation of equal numbers": (F.masked.std, (torch.ones(2, 3), -1), {}, [torch.zeros(2, 3)]),
    "norm of tiny numbers": (F.norm, (t(3e-20, 4e-20), 3.0), {}, [t(9, 16) / 91 ** (2 / 3)]),
    "norm of huge numbers": (F.norm, (t(3e20, 4e20), 3.0), {}, [t(9, 16) / 91 ** (2 / 3)]),
    "norm of a small power of tiny numbers": (F.norm, (t(1e-5, 0), 10.0), {}, [t(1, 0)]),
    "norm of a negative power": (F.norm, (t(1e-20, 1e-20), -3.0), {}, [t(1, 1) * 2 ** (-4 / 3)]),
    "distance of tiny numbers": (F.dist, (t(1e-20, 0), t(0, 0), 3), {}, [t(1, 0), t(-1, 0)]),
    "distances of tiny numbers": (F.pdist, (torch.tensor([[1e-20], [0]]), 3), {}, [torch.tensor([[1.0], [-1]])]),
    "tiny numbers over their norm": (F.normalize, (t(1e-5, 0), 10.0, 0), {}, [t(0, 1e5)]),
    "xlog1py at 0": (F.special.xlog1py, (t(0, 0, 0), t(-1, -2, INF)), {}, [t(0, 0, INF), t(np.nan, 0, 0)]),
    "entr at infinity": (F.special.entr, (t(INF, 2),), {}, [t(-INF, -1 - np.log(2))]),
    "logsumexp at infinity": (F.logsumexp, (t(INF, 0, -INF), 0), {}, [t(1, 0, 0)]),
    "logsumexp of two infinities": (F.logsumexp, (t(INF, 0, INF), 0), {}, [t(0.5, 0, 0.5)]),
    "logsumexp of nothing but -inf": (F.logsumexp, (torch.full((2, 4), -INF), 1), {}, [torch.full((2, 4), 0.25)]),
    "logaddexp of -inf": (F.logaddexp, (t(-INF, INF), t(-INF, INF)), {}, [t(0.5, 0.5)] * 2),
    "logaddexp2 of -inf": (F.logaddexp2, (t(-INF, INF), t(-INF, INF)), {}, [t(0.5, 0.5)] * 2),
    "glu of infinities": (F.glu, (t(INF, INF),), {}, [t(1, 0)]),
    "hypot of an infinity": (F.hypot, (t(INF, 3), t(2, -INF)), {}, [t(1, 0), t(0, -1)]),
    "atan2 of an infinity": (F.atan2, (t(INF, 3), t(2, -INF)), {}, [t(0, 0), t(0, 0)]),
    "pow by an infinity": (F.pow, (t(2, 0.5, INF), t(-INF, INF, -1)), {}, [t(0, 0, 0)] * 2),
    "a variance below the least": (
        F.gaussian_nll_loss, (t(1), t(0), t(0)), {"eps": 1.0}, [t(1), t(-1), t(0)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", FOUND)
def test_what_was_found_stays_mended(what: str) -> None:
    fn, given, options, want = FOUND[what]
    for got, right in zip(_pulled(fn, *given, **options), want, strict=True):
        torch.testing.assert_close(got, right.to(got.dtype), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("beta", "threshold"), [(1.0, 100.0), (1e3, 1e6), (1.0, 2000.0), (0.25, 1e4), (-2.0, 1e3)])
def test_softplus_does_not_overflow(beta: float, threshold: float, dtype: torch.dtype) -> None:
    x = torch.tensor([-INF, -2000.0, -89.0, -1.0, 0.0, 1e-3, 1.0, 12.0, 89.0, 500.0, 800.0, 2000.0], dtype=dtype)
    wide = x.double()
    right = torch.where(beta * wide > 0, wide, 0.0) + torch.log1p(torch.exp(-(beta * wide).abs())) / beta
    torch.testing.assert_close(F.softplus(x, beta, threshold), right.to(dtype))
