"""Tables of scaled rotary embeddings: transformers' formulas, written once more pair by pair, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F

DIM, BASE = 64, 500000.0
Config = dict[str, Any]


def _wave(i: int, base: float = BASE) -> float:
    return 1.0 / base ** (2 * i / DIM)


def _linear(c: Config, i: int, length: int) -> float:
    return _wave(i) / c["factor"]


def _ntk(c: Config, i: int, length: int) -> float:
    return _wave(i, BASE * c["factor"] ** (DIM / (DIM - 2)))


def _dynamic(c: Config, i: int, length: int) -> float:
    most = c["original_max_position_embeddings"]
    length = max(length, most)
    base = BASE * ((c["factor"] * length / most) - (c["factor"] - 1)) ** (DIM / (DIM - 2))
    return _wave(i, base)


def _yarn(c: Config, i: int, length: int) -> float:
    def correction(rotations: float) -> float:
        most = c["original_max_position_embeddings"]
        return (DIM * math.log(most / (rotations * 2 * math.pi))) / (2 * math.log(BASE))

    low, high = correction(c.get("beta_fast", 32)), correction(c.get("beta_slow", 1))
    if c.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, DIM - 1)
    if low == high:
        high += 0.001
    extrapolated = 1 - min(max((i - low) / (high - low), 0), 1)
    return 1.0 / (c["factor"] * BASE ** (2 * i / DIM)) * (1 - extrapolated) + _wave(i) * extrapolated


def _longrope(c: Config, i: int, length: int) -> float:
    longer = length > c["original_max_position_embeddings"]
    return 1.0 / (c["long_factor" if longer else "short_factor"][i] * BASE ** (2 * i / DIM))


def _llama3(c: Config, i: int, length: int) -> float:
    old, low, high, factor = (
        c[n] for n in ("original_max_position_embeddings", "low_freq_factor", "high_freq_factor", "factor")
    )
    f = _wave(i)
    wave = 2 * math.pi / f
    if wave > old / low:
        return float(f / factor)
    if wave < old / high:
        return f
    smooth = (old / wave - low) / (high - low)
    return float((1 - smooth) * f / factor + smooth * f)


def _mscale(scale: float, by: float = 1.0) -> float:
    return 1.0 if scale <= 1 else 0.1 * by * math.log(scale) + 1.0


FACTORS = {"short_factor": [1 + i / 100 for i in range(32)], "long_factor": [1.5 + i / 3 for i in range(32)]}
# What is asked, the frequency of a pair, and what cos and sin are multiplied by.
CASES: list[tuple[Config, Callable[[Config, int, int], float], float]] = [
    ({"rope_type": "linear", "factor": 4.0}, _linear, 1.0),
    ({"type": "linear", "factor": 2}, _linear, 1.0),
    ({"rope_type": "ntk", "factor": 8.0}, _ntk, 1.0),
    ({"rope_type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 50}, _dynamic, 1.0),
    ({"rope_type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 5000}, _dynamic, 1.0),
    ({"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 4096}, _yarn, _mscale(16)),
    (
        {"rope_type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "mscale": 0.7, "mscale_all_dim": 1.0,
         "beta_fast": 16, "beta_slow": 2, "truncate": False},
        _yarn, _mscale(40, 0.7) / _mscale(40, 1.0),
    ),
    ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8, "attention_factor": 1.25}, _yarn, 1.25),
    ({"rope_type": "longrope", "factor": 32.0, "original_max_position_embeddings": 50} | FACTORS, _longrope,
     math.sqrt(1 + math.log(32) / math.log(50))),
    ({"type": "su", "max_position_embeddings": 131072, "original_max_position_embeddings": 4096} | FACTORS, _longrope,
     math.sqrt(1 + math.log(32) / math.log(4096))),
    ({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
      "original_max_position_embeddings": 8192}, _llama3, 1.0),
]  # fmt: skip


@pytest.mark.parametrize(("config", "wave", "factor"), CASES, ids=lambda v: str(getattr(v, "__name__", v))[:40])
def test_tables_are_those_of_transformers(config: Config, wave: Any, factor: float) -> None:
    rows = 100
    frequencies, found = bc.rope_frequencies(DIM, BASE, config, rows)
    want = np.array([wave(config, i, rows) for i in range(DIM // 2)])
    np.testing.assert_allclose(frequencies, want, rtol=1e-14)
    assert found == pytest.approx(factor, rel=1e-14)
    for element in ("f64", "f32", "f16"):
        cos, sin = bc.rope_tables(rows, DIM, BASE, config, element=element)
        angles = np.arange(rows)[:, None] * want
        for made, f in ((cos, np.cos), (sin, np.sin)):
            assert made.shape == (rows, DIM // 2) and made.dtype == bc.Element.coerce(element).numpy
            np.testing.assert_allclose(
                made, f(angles) * factor, rtol=0, atol={"f64": 1e-12, "f32": 1e-7, "f16": 1e-3}[element]
            )


def test_usual_tables_are_those_of_the_plan() -> None:
    cos, sin = bc.rope_tables(300, DIM, element="f64")
    want, want_sin = np.empty((300, DIM // 2)), np.empty((300, DIM // 2))
    bc.plan(bc.RopeTableDescriptor((300, DIM // 2), "f64")).run(cos=want, sin=want_sin)
    np.testing.assert_allclose(cos, want, rtol=0, atol=1e-12)
    np.testing.assert_allclose(sin, want_sin, rtol=0, atol=1e-12)


@pytest.mark.parametrize("interleaved", [False, True])
def test_pairs_of_three_axes_have_their_own_positions(interleaved: bool) -> None:
    positions = np.random.default_rng(1).integers(0, 40, (3, 2, 5))
    section = [8, 12, 12] if not interleaved else [12, 10, 10]
    config = {"type": "mrope", "mrope_section": section, "mrope_interleaved": interleaved}
    cos, sin = bc.rope_tables(positions, DIM, BASE, config, element="f64")
    assert cos.shape == sin.shape == (10, DIM // 2)
    for i in range(DIM // 2):
        if interleaved:
            axis = i % 3 if i % 3 and i < 3 * section[i % 3] else 0
        else:
            axis = 0 if i < section[0] else 1 if i < section[0] + section[1] else 2
        angle = positions[axis].reshape(-1) * _wave(i)
        np.testing.assert_allclose(cos[:, i], np.cos(angle), atol=1e-13)
        np.testing.assert_allclose(sin[:, i], np.sin(angle), atol=1e-13)
    # The same positions on all axes are those of text.
    text = bc.rope_tables(np.broadcast_to(np.arange(7), (3, 7)), DIM, BASE, config)
    for found, want in zip(text, bc.rope_tables(7, DIM, BASE), strict=True):
        np.testing.assert_array_equal(found, want)


def test_rope_takes_the_tables() -> None:
    x = np.random.default_rng(2).normal(size=(2, 3, 6, DIM))
    positions = np.array([[5, 3, 1, 0, 9, 90], [0, 1, 2, 3, 4, 5]])
    config = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
    cos, sin = bc.rope_tables(100, DIM, BASE, config, element="f64")
    found = F.rope(x, cos, sin, positions=positions)
    c, s = (t[positions][:, None] for t in (cos, sin))
    a, b = np.split(x, 2, -1)
    np.testing.assert_allclose(found, np.concatenate((a * c - b * s, b * c + a * s), -1), rtol=1e-12, atol=1e-12)
    # Rows for these positions only, counted from 0.
    flat = bc.rope_tables(positions, DIM, BASE, config, element="f64", length=100)
    again = F.rope(x, *flat, positions=np.arange(12).reshape(2, 6))
    np.testing.assert_array_equal(again, found)
    made = bc.rope_tables(4, DIM, device="cpu")
    assert isinstance(made[0], bc.Tensor)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: bc.rope_tables(4, 7), "dim: got 7"),
        (lambda: bc.rope_tables(4, 8, -1.0), "base"),
        (lambda: bc.rope_tables(4, 8, scaling={"rope_type": "xpos"}), "rope_type: got 'xpos'"),
        (lambda: bc.rope_tables(4, 8, scaling={"rope_type": "linear"}), "factor: got nothing"),
        (lambda: bc.rope_tables(4, 8, scaling={"rope_type": "linear", "factor": "4"}), "factor: got '4'"),
        (lambda: bc.rope_tables(4, 2, scaling={"rope_type": "ntk", "factor": 2.0}), "dim: got 2"),
        (lambda: bc.rope_tables(4, 8, scaling={"rope_type": "longrope", "factor": 2.0, "short_factor": [1.0],
                                               "original_max_position_embeddings": 9}), "a list of 4"),
        (lambda: bc.rope_tables(4, 8, scaling={"rope_type": "llama3", "factor": 8, "low_freq_factor": 4,
                                               "high_freq_factor": 1, "original_max_position_embeddings": 9}), "high_freq"),
        (lambda: bc.rope_tables(4, 8, scaling={"mrope_section": [1, 1, 1]}), "mrope_section"),
        (lambda: bc.rope_tables(np.zeros((2, 4), np.int64), 8, scaling={"mrope_section": [2, 1, 1]}), "three rows"),
        (lambda: bc.rope_tables(np.zeros(3), 8), "positions: got float64"),
        (lambda: bc.rope_tables(-1, 8), "positions: got -1"),
        (lambda: bc.rope_tables(4, 8, scaling=2.0), "scaling: got 2.0"),
        (lambda: bc.rope_frequencies(8, scaling="yarn"), "scaling: got 'yarn'"),
        (lambda: bc.rope_tables(4, 8, 1.0, {"rope_type": "yarn", "factor": 2, "original_max_position_embeddings": 9}),
         "base: got 1, want more than 1"),
        (lambda: bc.rope_tables(4, 8, scaling={"rope_type": "longrope", "factor": 2.0, "long_factor": [1.0] * 4,
                                               "original_max_position_embeddings": 1}), "embeddings: got 1, want more"),
        (lambda: bc.rope_tables(3, 8, element="i32"), "element: got i32"),
    ],
)  # fmt: skip
def test_what_makes_no_table_is_refused(call: Any, word: str) -> None:
    with pytest.raises(bc.InvalidProblemError, match=word):
        call()
