"""Random fills: published Philox vectors, statistics, layouts, generators."""

from __future__ import annotations

import pickle
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.random.random_ref import philox, words

ROOT = Path(__file__).resolve().parents[2]
# Random123, kat_vectors, "philox4x32 10": counter, key, result.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def draw(
    kind: str, shape: tuple[int, ...], a: float, b: float, seed: int, offset: int = 0, element: str = "f32"
) -> np.ndarray:
    y = np.empty(shape, bc.Element.coerce(element).numpy)
    bc.plan(bc.RandomDescriptor(kind, shape, element)).run(y, a, b, seed, offset)
    return y


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN)
def test_reference_gives_the_published_vectors(
    counter: tuple[int, ...], key: tuple[int, int], result: tuple[int, ...]
) -> None:
    assert tuple(int(w) for w in philox(tuple(np.array(c) for c in counter), key)) == result


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_portable_functor_gives_the_published_vectors(tmp_path: Path) -> None:
    flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'csrc'}", f"-I{ROOT / 'include'}"]
    program = tmp_path / "philox"
    subprocess.run(["g++", *flags, str(ROOT / "tests" / "native" / "philox_test.cpp"), "-o", str(program)], check=True)
    for counter, key, result in KNOWN:
        words_in = [f"{w:x}" for w in (*counter, *key)]
        done = subprocess.run([str(program), *words_in], check=True, capture_output=True, text=True)
        assert done.stdout.split() == [f"{w:08x}" for w in result]


def test_kernel_gives_the_published_vector() -> None:
    """A draw's counter has 0 in its upper half, so of the three vectors only the first can be asked of the kernel."""
    want = np.array(KNOWN[0][2], np.uint32)
    np.testing.assert_array_equal(
        draw("uniform", (4,), 0.0, 1.0, 0), (want >> 8).astype(np.float32) * np.float32(2**-24)
    )
    top, low = want[1::2].astype(np.uint64), want[::2].astype(np.uint64)
    steps = (top >> np.uint64(6)) * np.uint64(2**27) + (low >> np.uint64(5))
    np.testing.assert_array_equal(draw("uniform", (2,), 0.0, 1.0, 0, element="f64"), steps * 2.0**-53)


def test_key_and_counter_use_all_64_bits() -> None:
    seed, offset = 0xFEDCBA9876543210, 2**64 - 3
    got = draw("uniform", (40,), 0.0, 1.0, seed, offset)
    want = np.stack(words(seed, offset, 10), 1).reshape(-1)
    np.testing.assert_array_equal(got, (want >> np.uint64(8)).astype(np.float32) * np.float32(2**-24))


def test_offset_moves_along_the_same_stream() -> None:
    whole = draw("uniform", (4000,), 0.0, 1.0, 5)
    np.testing.assert_array_equal(draw("uniform", (400,), 0.0, 1.0, 5, 25), whole[100:500])
    whole = draw("normal", (4000,), 0.0, 1.0, 5, element="f64")
    np.testing.assert_array_equal(draw("normal", (400,), 0.0, 1.0, 5, 50, element="f64"), whole[100:500])


@pytest.mark.parametrize("kind", ["uniform", "normal"])
@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
def test_bits_do_not_depend_on_layout_or_threads(kind: str, element: str) -> None:
    shape, dtype = (37, 60, 31), bc.Element.coerce(element).numpy
    want = draw(kind, shape, 0.5, 2.0, 9, 77, element)
    made = bc.plan(bc.RandomDescriptor(kind, shape, element), preference=bc.PlanPreference(threads=1))
    views = [np.empty(shape, dtype), np.empty(shape[::-1], dtype).T, np.empty((74, 60, 62), dtype)[::-2, :, 1::2]]
    for y in views:
        made.run(y, 0.5, 2.0, 9, 77)
        assert np.ascontiguousarray(y).tobytes() == want.tobytes()


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (1.0, 2.0), (-3.1, 2.9), (-1.0, 0.0), (1e-3, 1.1e-3)])
def test_uniform_stays_below_high(element: str, low: float, high: float) -> None:
    y = draw("uniform", (200_000,), low, high, 1, element=element).astype(np.float64)
    assert y.min() >= low
    assert y.max() < high


def kolmogorov_smirnov(sample: np.ndarray, cdf: np.ndarray) -> float:
    """sqrt(n) times the largest distance between the two distributions; `cdf` is of the sorted sample."""
    n = sample.size
    return float(np.sqrt(n) * max((np.arange(1, n + 1) / n - cdf).max(), (cdf - np.arange(n) / n).max()))


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_statistics(element: str) -> None:
    """Seeds are fixed; 1.95 is the 0.1 % point of the Kolmogorov distribution, 4 standard errors bound the moments."""
    from math import erf

    n = 200_000
    for seed in (0, 12345):
        u = draw("uniform", (n,), 0.0, 1.0, seed, element=element).astype(np.float64)
        assert abs(u.mean() - 0.5) < 4 * np.sqrt(1 / 12 / n)
        assert abs(u.var() - 1 / 12) < 4 * np.sqrt(1 / 180 / n)
        assert kolmogorov_smirnov(u, np.sort(u)) < 1.95
        z = draw("normal", (n,), 0.0, 1.0, seed, element=element).astype(np.float64)
        assert abs(z.mean()) < 4 / np.sqrt(n)
        assert abs(z.var() - 1) < 4 * np.sqrt(2 / n)
        assert abs((z**3).mean()) < 4 * np.sqrt(15 / n)
        cdf = np.array([0.5 * (1 + erf(x / np.sqrt(2))) for x in np.sort(z)[::10]])
        assert np.abs(cdf - (np.arange(n)[::10] + 0.5) / n).max() * np.sqrt(n) < 1.95
        for lag in (1, 2, 3, 4):  # within a block and across blocks
            assert abs((z[:-lag] * z[lag:]).mean()) < 4 / np.sqrt(n)


@pytest.mark.parametrize(
    ("kind", "a", "b", "name"),
    [
        ("uniform", 1.0, 0.0, "high"),
        ("uniform", np.nan, 1.0, "low"),
        ("uniform", -3e38, 3e38, "high"),
        ("normal", 0.0, -1.0, "std"),
        ("normal", np.inf, 1.0, "mean"),
    ],
)
def test_bad_scalar_changes_nothing(kind: str, a: float, b: float, name: str) -> None:
    y = np.full(10, 7, np.float32)
    with pytest.raises(bc.InvalidProblemError, match=name):
        bc.plan(bc.RandomDescriptor(kind, (10,))).run(y, a, b, 0, 0)
    assert (y == 7).all()


def test_generator_never_repeats_and_can_be_restored() -> None:
    g = bc.Generator(seed=3)
    first, second = F.uniform(size=5, generator=g), F.uniform(size=5, generator=g)
    assert g.offset == 4
    assert set(first.tolist()).isdisjoint(second.tolist())
    saved = g.get_state()
    third = F.normal(size=(2, 3), dtype="f64", generator=g)
    assert g.offset == 7
    assert pickle.loads(pickle.dumps(g)).get_state() == g.get_state()
    g.set_state(saved)
    np.testing.assert_array_equal(F.normal(size=(2, 3), dtype="f64", generator=g), third)
    np.testing.assert_array_equal(F.uniform(size=5, generator=g.manual_seed(3)), first)
    with pytest.raises(bc.InvalidProblemError, match="seed"):
        bc.Generator(seed=-1)


@pytest.mark.parametrize(
    ("name", "numbers"),
    [("uniform", (0.0, 1.0)), ("normal", (0.0, 1.0)), ("uniform_", (0.0, 1.0)), ("normal_", (0.0, 1.0)), ("bernoulli_", (0.5,))],
)  # fmt: skip
def test_the_numbers_are_torchs_where_none_are_given(name: str, numbers: tuple[float, ...]) -> None:
    def drawn(*given: float) -> np.ndarray:
        before, size = ((np.empty(300, np.float32),), {}) if name.endswith("_") else ((), {"size": (300,)})
        return getattr(F, name)(*before, *given, **size, generator=bc.Generator(4))

    np.testing.assert_array_equal(drawn(), drawn(*numbers))


def test_default_generator_and_out() -> None:
    bc.manual_seed(11)
    a = F.normal(1.0, 2.0, (3, 4))
    b = np.empty((3, 4), np.float32)
    bc.manual_seed(11)
    assert F.normal(1.0, 2.0, out=b) is b
    np.testing.assert_array_equal(a, b)
    torch = pytest.importorskip("torch")
    t = torch.empty(3, 4)
    bc.manual_seed(11)
    assert F.normal_(t, 1.0, 2.0) is t
    np.testing.assert_array_equal(a, t.numpy())
