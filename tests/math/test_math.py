"""The vector math library against its own promises: error bounds, special values, vectorisation, CUDA.

The bounds are read from the headers (`// ulp: 1.0 (f32) 1.0 (f64)`). BARACUDA_EXHAUSTIVE=1 tries every f32 value.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import math_harness as harness
import numpy as np
import pytest
from mpmath import mp, mpf

LEVELS = harness.levels() if shutil.which("g++") else []
BOUNDS = harness.promised()
FUNCTIONS = sorted(harness.MPMATH)
ELEMENTS = ("f32", "f64")
TRIG = ("sin", "cos", "tan")
NEAR_LIMIT = {"f32": 2.0**16, "f64": 2.0**20}  # as is_near of trig.h
COUNT = {"f32": 2**20, "f64": 2**17}

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@pytest.fixture(scope="session")
def cache(pytestconfig: pytest.Config) -> Path:
    return Path(pytestconfig.cache.mkdir("math"))


@pytest.fixture(scope="session")
def probes(cache: Path) -> dict[str, harness.Probe]:
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(LEVELS, pool.map(lambda level: harness.Probe(cache, level), LEVELS), strict=True))


@pytest.fixture(scope="session")
def reference(cache: Path) -> harness.Reference:
    return harness.Reference(cache)


@pytest.fixture(scope="session")
def nearly(cache: Path) -> harness.Nearly:
    return harness.Nearly(cache)


def levels_with(name: str, element: str) -> list[str]:
    differs = element == "f32" and name in TRIG + tuple(f"{t}_near" for t in TRIG)
    """Without f64 only the angle reduction of f32 is different, and built."""
    return [level for level in LEVELS if differs or not level.endswith("f32only")]


def test_every_function_states_its_bound() -> None:
    assert sorted(BOUNDS) == FUNCTIONS
    # What activations are made from trades units for speed.
    limit = {"silu": 4.0, "fast_sigmoid": 3.0, "gelu": 5.0, "asinh": 3.0, "acosh": 3.0, "atanh": 3.0, "erfinv": 3.5}
    limit |= dict.fromkeys(harness.POSITIVE, 6.0)
    assert all(0.5 <= bound.ulp <= limit.get(name, 2.0) for name, bounds in BOUNDS.items() for bound in bounds.values())
    assert {name for name, bounds in BOUNDS.items() for bound in bounds.values() if bound.square} == {"gelu"}


def judge(
    reference: harness.Reference,
    level: str,
    name: str,
    element: str,
    y: np.ndarray,
    want: np.ndarray,
    *args: np.ndarray,
) -> None:
    """One level's results for `args` against the reference's, within the bound that the header states."""
    bound = BOUNDS[name.removesuffix("_near")][element]
    if bound.square:
        error, at = reference.worst_excess(element, y, want, bound, args[0])
    else:
        error, at = reference.worst(element, y, want)
    where = ", ".join(float(a[at]).hex() for a in args)
    message = f"{level}: {name}({where}) = {y[at]!r}, want {want[at]!r}: {error:.3f} {'of ' if bound.square else ''}ulp"
    assert error <= (1 if bound.square else bound.ulp), message


def check(
    probes: dict[str, harness.Probe], reference: harness.Reference, name: str, element: str, *args: np.ndarray
) -> None:
    want = reference(name.removesuffix("_near"), element, *args)
    for level in levels_with(name, element):
        judge(reference, level, name, element, probes[level](name, element, *args), want, *args)


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_bound(probes: dict[str, harness.Probe], reference: harness.Reference, name: str, element: str) -> None:
    if element == "f64" and np.finfo(np.longdouble).nmant <= 52:
        pytest.skip("long double is no wider than double here; test_error_bound_mpmath covers f64")
    check(probes, reference, name, element, *harness.inputs(name, element, COUNT[element]))


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("name", TRIG)
def test_error_bound_near(
    probes: dict[str, harness.Probe], reference: harness.Reference, name: str, element: str
) -> None:
    if element == "f64" and np.finfo(np.longdouble).nmant <= 52:
        pytest.skip("long double is no wider than double here")
    (x,) = harness.inputs(name, element, COUNT[element])
    check(probes, reference, f"{name}_near", element, x[np.abs(x) <= NEAR_LIMIT[element]])


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("name", TRIG)
def test_near_has_the_same_bits(probes: dict[str, harness.Probe], name: str, element: str) -> None:
    (x,) = harness.inputs(name, element, COUNT[element])
    x = x[np.abs(x) <= NEAR_LIMIT[element]]
    for level in levels_with(name, element):
        near, full = probes[level](f"{name}_near", element, x), probes[level](name, element, x)
        bits = f"u{x.itemsize}"
        assert np.array_equal(near.view(bits), full.view(bits)), level


@pytest.mark.skipif(os.environ.get("BARACUDA_EXHAUSTIVE") != "1", reason="BARACUDA_EXHAUSTIVE=1 tries all 2^32 values")
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in harness.BINARY])
def test_error_bound_exhaustive(
    probes: dict[str, harness.Probe], reference: harness.Reference, nearly: harness.Nearly, name: str
) -> None:
    def chunk(start: int) -> None:
        x = np.arange(start, start + 2**20, dtype=np.uint64).astype(np.uint32).view(np.float32)
        x = x[x > 0] if name in harness.POSITIVE else x
        if not x.size:
            return
        if name not in nearly:
            check(probes, reference, name, "f32", x)
            return
        near = nearly(name, x)
        for level in levels_with(name, "f32"):
            y = probes[level](name, "f32", x)
            doubt = nearly.doubtful(y, near, x, BOUNDS[name]["f32"])
            if doubt.any():
                args = x[doubt]
                judge(reference, level, name, "f32", y[doubt], reference(name, "f32", args), args)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(chunk, range(0, 2**32, 2**20)))


# Where the results are finite; magnitudes are spread over the exponents down to 2^-70.
DOMAIN = {
    "exp": (-745.0, 709.7), "exp2": (-1074.0, 1023.9), "expm1": (-50.0, 709.7), "sinh": (-710.4, 710.4),
    "cosh": (-710.4, 710.4), "sigmoid": (-745.0, 50.0), "fast_sigmoid": (-745.0, 50.0), "gelu": (-37.0, 1.7e308), "silu": (-750.0, 1.7e308),
    "erfc": (-6.0, 27.2), "erf": (-7.0, 7.0), "tanh": (-22.0, 22.0),
    "asin": (-1.0, 1.0), "acos": (-1.0, 1.0), "log": (0.0, 1.7e308), "log2": (0.0, 1.7e308), "log10": (0.0, 1.7e308),
    "log1p": (-0.999999, 1.7e308), "rsqrt": (0.0, 1.7e308), "pow": (0.0, 1.7e308), "acosh": (1.0, 1.7e308), "atanh": (-1.0, 1.0),
    "erfinv": (-1.0, 1.0),
    "lgamma": (0.0, 1e300), "digamma": (0.0, 1.7e308), "trigamma": (1e-150, 1.7e308),
}  # fmt: skip


def points_for_mpmath(name: str, count: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(7)
    low, high = DOMAIN.get(name, (-1.7e308, 1.7e308))
    top = math.log2(high)
    x = np.exp2(np.concatenate([rng.uniform(-70, min(top, 10), count // 2), rng.uniform(-3, min(top, 3), count // 2)]))
    if top > 1000:
        x = np.concatenate([x, np.exp2(rng.uniform(-1000, 1000, count // 4))])
    if name == "digamma":
        x = np.concatenate(
            [x, 1.4616321449683622 + rng.uniform(-1, 1, count // 4) * 2.0 ** -rng.uniform(3, 50, count // 4)]
        )
    x = np.concatenate([x, -x, rng.uniform(max(low, -1e3), min(high, 1e3), count // 2)])
    x = x[(x > low) & (x < high)]
    if name not in harness.BINARY:
        return (x,)
    if name != "pow":
        return x, x * np.exp2(rng.uniform(-20, 20, x.size)) * rng.choice([-1.0, 1.0], x.size)
    return x, rng.uniform(-1000, 1000, x.size) / np.maximum(np.abs(np.log2(x)), 1e-9)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_bound_mpmath(probes: dict[str, harness.Probe], name: str) -> None:
    args = points_for_mpmath(name, 1500)
    with mp.workprec(200):
        want = [harness.MPMATH[name](*map(mpf, point)) for point in zip(*(a.tolist() for a in args), strict=True)]
        for level in levels_with(name, "f64"):
            y = probes[level](name, "f64", *args)
            errors = [harness.error_in_ulps(*pair) for pair in zip(y.tolist(), want, strict=True)]
            shares = [e / BOUNDS[name]["f64"].at(x) for e, x in zip(errors, args[0].tolist(), strict=True)]
            at = int(np.argmax(shares))
            message = f"{level}: {name}({[float(a[at]) for a in args]}) = {y[at]!r}: {errors[at]:.3f} ulp"
            assert shares[at] <= 1, message


# The doubles and floats closest to a multiple of pi/2, and arguments where the window of 1/(2 pi) moves.
@pytest.mark.parametrize(
    ("element", "value"), [("f64", math.ldexp(6381956970095103, 797)), ("f32", math.ldexp(16367173, 72))]
)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_hardest_reduction(probes: dict[str, harness.Probe], name: str, element: str, value: float) -> None:
    bound = BOUNDS[name][element].ulp * float(np.finfo(harness.DTYPES[element]).eps)
    with mp.workprec(1200):
        want = harness.MPMATH[name](mpf(value))
        for level in levels_with(name, element):
            y = float(probes[level](name, element, np.array([value], harness.DTYPES[element]))[0])
            assert abs(mpf(y) - want) <= bound * abs(want), f"{level}: {y!r}, want {want}"


INF, NAN = math.inf, math.nan
# function: arguments and result; exact, with the sign of zero
SPECIAL: dict[str, list[tuple[float, ...]]] = {
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (1e4, INF), (-1e4, 0.0)],
    "exp2": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (10.0, 1024.0), (-3.0, 0.125), (1e4, INF)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (NAN, NAN), (-1e4, -1.0), (1e4, INF)],
    "log": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (-INF, NAN), (NAN, NAN)],
    "log2": [(1.0, 0.0), (8.0, 3.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (-INF, NAN), (NAN, NAN)],
    "log10": [(1.0, 0.0), (1000.0, 3.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (-INF, NAN), (NAN, NAN)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (INF, INF), (-2.0, NAN), (-INF, NAN), (NAN, NAN)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (1e4, INF), (-1e4, -INF)],
    "cosh": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (NAN, NAN), (-1e4, INF)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (1e4, 1.0)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.5, NAN), (-1.5, NAN), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "acos": [(1.0, 0.0), (1.5, NAN), (-1.5, NAN), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (NAN, NAN)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (30.0, 1.0)],
    "erfc": [(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 2.0), (NAN, NAN), (30.0, 0.0), (-30.0, 2.0)],
    "sigmoid": [(0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0), (NAN, NAN), (-1e4, 0.0), (1e4, 1.0)],
    "fast_sigmoid": [(0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0), (NAN, NAN), (-1e4, 0.0), (1e4, 1.0)],
    "gelu": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, NAN), (NAN, NAN), (1e4, 1e4)],
    "silu": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, NAN), (NAN, NAN), (-1e4, -0.0), (1e4, 1e4)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (4.0, 0.5), (INF, 0.0), (-1.0, NAN), (-INF, NAN), (NAN, NAN)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "acosh": [(1.0, 0.0), (0.5, NAN), (-1.0, NAN), (-INF, NAN), (INF, INF), (NAN, NAN)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "cbrt": [(0.0, 0.0), (-0.0, -0.0), (8.0, 2.0), (-27.0, -3.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "erfinv": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (-INF, NAN), (NAN, NAN)],
    "lgamma": [
        (0.0, INF), (-0.0, INF), (1.0, 0.0), (2.0, 0.0), (-1.0, INF), (-2.0, INF), (INF, INF), (-INF, INF), (NAN, NAN),
    ],
    "digamma": [(0.0, -INF), (-0.0, INF), (-1.0, NAN), (-7.0, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)],
    "trigamma": [(0.0, INF), (-0.0, INF), (-1.0, INF), (INF, 0.0), (-INF, NAN), (NAN, NAN)],
    "atan2": [
        (0.0, 1.0, 0.0), (-0.0, 1.0, -0.0), (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0), (1.0, INF, 0.0), (-1.0, INF, -0.0),
        (NAN, 1.0, NAN), (1.0, NAN, NAN), (NAN, 0.0, NAN), (0.0, NAN, NAN), (NAN, INF, NAN), (INF, NAN, NAN),
    ],
    "hypot": [
        (3.0, 4.0, 5.0), (-3.0, 4.0, 5.0), (0.0, 0.0, 0.0), (0.0, -2.0, 2.0), (-0.0, -0.0, 0.0), (INF, NAN, INF),
        (NAN, -INF, INF), (NAN, 1.0, NAN), (0.0, NAN, NAN), (INF, -1.0, INF), (-INF, -INF, INF), (1e30, 0.0, 1e30),
    ],
    # C99 annex F.9.4.4, and exact powers
    "pow": [
        (0.0, -3.0, INF), (-0.0, -3.0, -INF), (0.0, -2.5, INF), (-0.0, -2.0, INF), (0.0, -INF, INF),
        (-0.0, -INF, INF), (0.0, 3.0, 0.0), (-0.0, 3.0, -0.0), (0.0, 2.5, 0.0), (-0.0, 2.0, 0.0), (-1.0, INF, 1.0),
        (-1.0, -INF, 1.0), (1.0, NAN, 1.0), (1.0, INF, 1.0), (NAN, 0.0, 1.0), (NAN, -0.0, 1.0), (INF, 0.0, 1.0),
        (0.0, 0.0, 1.0), (-0.0, -0.0, 1.0), (-8.0, 1 / 3, NAN), (-1.5, 0.5, NAN), (0.5, -INF, INF), (-0.5, -INF, INF),
        (1.5, -INF, 0.0), (-1.5, -INF, 0.0), (0.5, INF, 0.0), (-0.5, INF, 0.0), (1.5, INF, INF), (-1.5, INF, INF),
        (-INF, -3.0, -0.0), (-INF, -2.5, 0.0), (-INF, -2.0, 0.0), (-INF, 3.0, -INF), (-INF, 2.5, INF),
        (-INF, 2.0, INF), (INF, -1.5, 0.0), (INF, 1.5, INF), (INF, INF, INF), (INF, -INF, 0.0), (-INF, INF, INF),
        (-INF, -INF, 0.0), (0.0, INF, 0.0), (-0.0, INF, 0.0), (NAN, 1.0, NAN), (2.0, NAN, NAN), (NAN, NAN, NAN),
        (2.0, 10.0, 1024.0), (-2.0, 3.0, -8.0), (-2.0, 2.0, 4.0), (4.0, 0.5, 2.0), (10.0, 3.0, 1000.0),
        (-3.0, -1e30, 0.0), (2.0, 1e30, INF),
    ],
}  # fmt: skip


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(probes: dict[str, harness.Probe], name: str, element: str) -> None:
    # Repeated, so that the packed loop meets them and not only the loop over what is left.
    table = np.array(SPECIAL[name], harness.DTYPES[element]).repeat(16, axis=0)
    args, want = [np.ascontiguousarray(c) for c in table[:, :-1].T], table[:, -1]
    for level in levels_with(name, element):
        y = probes[level](name, element, *args)
        right = (np.isnan(y) & np.isnan(want)) | ((y == want) & (np.signbit(y) == np.signbit(want)))
        bad = [(level, *(float(a[i]) for a in args), float(y[i]), float(want[i])) for i in np.flatnonzero(~right)[::16]]
        assert not bad, f"(level, arguments, got, wanted): {bad}"


@pytest.mark.parametrize("element", ELEMENTS)
def test_gradual_underflow(probes: dict[str, harness.Probe], reference: harness.Reference, element: str) -> None:
    low = (-104.5, -87.0) if element == "f32" else (-746.0, -708.0)
    x = np.linspace(*low, 10001).astype(harness.DTYPES[element])
    for name in ("exp", "sigmoid", "fast_sigmoid"):
        check(probes, reference, name, element, x)
        assert np.count_nonzero(probes[LEVELS[0]](name, element, x)) > 9000


def test_weights_of_differences(probes: dict[str, harness.Probe]) -> None:
    """What the header says of exp_weight: the error grows with |x|, subnormal results are lost, nothing else is."""
    x = np.concatenate([np.linspace(-87.3, 88, 2**20), np.linspace(-1, 0, 2**18), [0.0, -0.0]]).astype(np.float32)
    edges = np.array([-INF, -1e30, -88.0, -104.0, NAN], np.float32).repeat(16)
    want = np.exp(x.astype(np.float64))
    for level in levels_with("exp_weight", "f32"):
        y = probes[level]("exp_weight", "f32", x).astype(np.float64)
        error = np.abs(y - want) / want / np.finfo(np.float32).eps / (1 + np.abs(x))
        at = int(np.argmax(error))
        assert error[at] <= 1.4, f"{level}: exp_weight({float(x[at]).hex()}): {error[at]:.3f} eps (1 + |x|)"
        assert np.all(y[-2:] == 1)
        got = probes[level]("exp_weight", "f32", edges)[::16]
        assert np.all(got[:4] == 0) and np.isnan(got[4]), level
        wide = x.astype(np.float64)
        same = probes[level]("exp_weight", "f64", wide) == probes[level]("exp", "f64", wide)
        assert np.all(same), level


# Every function's loop is packed: arithmetic on whole registers of the level's width, and no call.
X86 = r"\bv?(?:mul|add|sub|div|sqrt|fn?m(?:add|sub)\d*)p{kind}\s.*%{register}"
PACKED = {
    "v2": X86.replace("{register}", "xmm"),
    "v3": X86.replace("{register}", "ymm"),
    "v4": X86.replace("{register}", "zmm"),
    "neon": r"\bf(?:ml[as]|mul|add|sub|div|sqrt)\s+v\d+\.\d{kind}",
}


@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs objdump")
@pytest.mark.parametrize("level", [level for level in LEVELS if level in PACKED])
def test_loops_are_vectorised(probes: dict[str, harness.Probe], level: str) -> None:
    command = ["objdump", "-d", "--no-show-raw-insn", str(probes[level].path)]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    bodies = dict(re.findall(r"^[0-9a-f]+ <(\w+)>:\n(.*?)(?=^$|\Z)", listing, re.M | re.S))
    for name in [*FUNCTIONS, *(f"{t}_near" for t in TRIG)]:
        for element, kind in (("f32", "[sd]"), ("f64", "d")):  # pow of f32 computes in f64
            body = bodies[f"{name}_{element}"]
            packed = re.findall(PACKED[level].replace("{kind}", kind), body)
            assert len(packed) >= (2 if name == "rsqrt" else 10), f"{name}_{element} is not vectorised"
            assert not re.search(r"\t(?:callq?|bl)\s", body), f"{name}_{element} calls a function"


def test_math_cuda_compiles(tmp_path: Path) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
    command = ["nvcc", "-std=c++20", "-arch=sm_80", f"-I{harness.INCLUDE}", "-Werror=all-warnings", "-c"]
    command += [str(harness.HERE / "probe.cu"), "-o", str(tmp_path / "probe.o")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
