"""Builds the math probe per instruction set level, makes inputs, and measures errors in ulps."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import platform
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from mpmath import mp, mpf

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"
# The flags of the product's kernels.
FLAGS = ["-std=c++20", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"]
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
ARCH = {
    "v2": ["-march=x86-64-v2"],
    "v3": ["-march=x86-64-v3"],
    "v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
    "neon": ["-march=armv8-a"],
    # The reduction of angles that Metal and CUDA use for f32: no double anywhere.
    "v2-f32only": ["-march=x86-64-v2", "-DBCU_HAS_F64=0"],
    "v3-f32only": ["-march=x86-64-v3", "-DBCU_HAS_F64=0"],
}
NEEDS = {
    "v2": {"ssse3", "sse4_2", "popcnt"},
    "v3": {"avx2", "fma", "bmi2"},
    "v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}
DTYPES = {"f32": np.float32, "f64": np.float64}


def levels() -> list[str]:
    """The instruction set levels that this machine can run."""
    if platform.machine() in ("aarch64", "arm64"):
        return ["neon"]
    flags = set(re.findall(r"\w+", Path("/proc/cpuinfo").read_text()))
    found = [level for level, need in NEEDS.items() if need <= flags]
    return found + [f"{level}-f32only" for level in found if f"{level}-f32only" in ARCH]


@dataclass(frozen=True)
class Bound:
    """ulp + square x^2: what a header promises."""

    ulp: float
    square: float = 0.0

    def at(self, x: float) -> float:
        return self.ulp + self.square * x * x


def promised() -> dict[str, dict[str, Bound]]:
    """The bounds that the headers state: function -> element -> ulp, or (a, b) for a + b x^2 ulp."""
    found: dict[str, dict[str, Bound]] = {}
    bound = r"([\d.]+)(?: \+ ([\d.]+) x\^2)?"
    pattern = re.compile(rf"// ulp: {bound} \(f32\) {bound} \(f64\)\nBCU_FN float (\w+)\(")
    for header in sorted((INCLUDE / "baracuda" / "math").glob("*.h")):
        for f32, f32_square, f64, f64_square, name in pattern.findall(header.read_text()):
            found[name] = {
                "f32": Bound(float(f32), float(f32_square or 0)),
                "f64": Bound(float(f64), float(f64_square or 0)),
            }
    return found


def compile_shared(source: Path, name: str, cache: Path, flags: list[str]) -> Path:
    """Compiles a shared library unless `cache` has it; the key is everything that goes into it."""
    key = hashlib.sha256(repr(flags).encode())
    key.update(subprocess.run(["g++", "--version"], check=True, capture_output=True).stdout)
    for part in [source, *sorted((INCLUDE / "baracuda").rglob("*.h"))]:
        key.update(part.read_bytes())
    out = cache / f"{name}-{key.hexdigest()[:16]}.so"
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one pytest-xdist worker builds, the others wait
        if not out.exists():
            for old in cache.glob(f"{name}-*.so"):
                old.unlink()
            new = out.with_suffix(".new")
            command = ["g++", *flags, f"-I{INCLUDE}", "-shared", "-fPIC", str(source), "-o", str(new)]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            new.replace(out)
    return out


def _pointer(a: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(a.ctypes.data)


class Probe:
    """One build of probe.cpp."""

    def __init__(self, cache: Path, level: str):
        flags = [*FLAGS, *WARNINGS, *ARCH[level]]
        self.path = compile_shared(HERE / "probe.cpp", f"probe_{level}", cache, flags)
        self.lib = ctypes.CDLL(str(self.path))

    def __call__(self, name: str, element: str, *args: np.ndarray) -> np.ndarray:
        out = np.empty_like(args[0])
        assert all(a.dtype == DTYPES[element] and a.flags.c_contiguous and a.shape == out.shape for a in args)
        getattr(self.lib, f"{name}_{element}")(*map(_pointer, (*args, out)), ctypes.c_long(out.size))
        return out


class Reference:
    """One build of reference.cpp: libm's double for f32, long double for f64."""

    def __init__(self, cache: Path):
        path = compile_shared(HERE / "reference.cpp", "reference", cache, ["-std=c++20", "-O2", *WARNINGS])
        self.lib = ctypes.CDLL(str(path))
        for worst in (self.lib.worst_f32, self.lib.worst_f64):
            worst.restype = ctypes.c_double

    def __call__(self, name: str, element: str, *args: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):  # signalling NaNs become quiet
            wide = [np.ascontiguousarray(a, dtype=np.float64) for a in args]
        out = np.empty(wide[0].shape, np.float64 if element == "f32" else np.longdouble)
        function = getattr(self.lib, f"{name}_{'f64' if element == 'f32' else 'wide'}")
        function(*map(_pointer, (*wide, out)), ctypes.c_long(out.size))
        return out

    def worst(self, element: str, y: np.ndarray, want: np.ndarray) -> tuple[float, int]:
        """The largest error in ulps (1e30: wrong NaN or sign) and where it is."""
        where = ctypes.c_long(0)
        error = getattr(self.lib, f"worst_{element}")(
            _pointer(y), _pointer(want), ctypes.c_long(y.size), ctypes.byref(where)
        )
        return float(error), where.value

    def worst_excess(
        self, element: str, y: np.ndarray, want: np.ndarray, bound: Bound, x: np.ndarray
    ) -> tuple[float, int]:
        """The largest share of a bound that grows with x^2 (1e30: wrong NaN or infinity) and where it is."""
        mantissa, least = (23, -126) if element == "f32" else (52, -1022)
        with np.errstate(all="ignore"):
            exponent = np.maximum(np.frexp(want)[1] - 1, least)
            error = np.ldexp(np.abs(y - want), mantissa - exponent)
            share = error / (bound.ulp + bound.square * np.square(np.clip(x, -1e9, 1e9, dtype=np.float64)))
        share = np.where((y == want) | (np.isnan(y) & np.isnan(want)), 0, np.where(np.isnan(share), 1e30, share))
        at = int(np.argmax(share))
        return float(share[at]), at


class Nearly:
    """One build of nearly.cpp: quick double results, and which f32 results they cannot vouch for."""

    def __init__(self, cache: Path):
        native = ["-march=native"] if platform.machine() == "x86_64" else []
        flags = ["-std=c++20", "-O3", "-fno-math-errno", "-fno-trapping-math", *native, *WARNINGS]
        self.lib = ctypes.CDLL(str(compile_shared(HERE / "nearly.cpp", "nearly", cache, flags)))

    def __contains__(self, name: str) -> bool:
        return hasattr(self.lib, f"{name}_nearly")

    def __call__(self, name: str, x: np.ndarray) -> np.ndarray:
        out = np.empty(x.shape, np.float64)
        getattr(self.lib, f"{name}_nearly")(_pointer(x), _pointer(out), ctypes.c_long(x.size))
        return out

    def doubtful(self, y: np.ndarray, near: np.ndarray, x: np.ndarray, bound: Bound) -> np.ndarray:
        """Where y may be further than `bound` from the exact result."""
        doubt = np.empty(x.shape, np.bool_)
        self.lib.doubtful(
            *map(_pointer, (y, near, x)),
            ctypes.c_long(x.size),
            ctypes.c_double(bound.ulp),
            ctypes.c_double(bound.square),
            _pointer(doubt),
        )
        return doubt


# Where the implementations change method, overflow or underflow; each is tried with its neighbours.
THRESHOLDS = [
    0.375, 0.41421356, 0.5, 0.55, 0.70710678, 0.9, 1.0, 1.41421356, 2.0, 2.41421356, 4.0, 6.0, 10.0, 10.1, 20.0, 27.3,
    0.34657359, 1.03972077, 0.78539816, 1.57079633, 2.35619449, 3.14159265, 17.32868, 37.42994, 52.0,
    87.33654, 88.0, 88.72283, 89.4159863, 103.27893, 103.97208, 104.0, 126.0, 127.0, 128.0, 149.0, 150.0, 152.0,
    708.39642, 709.78271, 710.47586, 744.44007, 745.13322, 746.0, 1021.0, 1022.0, 1023.0, 1024.0, 1074.0, 1075.0,
    2.0**-12, 2.0**-27, 2.0**40, 2.0**52, 2.0**53,
]  # fmt: skip


def stratified(element: str, count: int, seed: int) -> np.ndarray:
    """`count` values spread evenly over every sign and exponent, NaN and infinity included."""
    exponent_bits, mantissa_bits, uint = (8, 23, np.uint32) if element == "f32" else (11, 52, np.uint64)
    strata = 2 ** (exponent_bits + 1)
    high = np.repeat(np.arange(strata, dtype=uint), count // strata)
    low = np.random.default_rng(seed).integers(0, 2**mantissa_bits, high.size, dtype=uint)
    return ((high << uint(mantissa_bits)) | low).view(DTYPES[element])


def edges(element: str) -> np.ndarray:
    """Every power of two and every threshold with its neighbours, the special values; both signs."""
    dtype = DTYPES[element]
    powers = np.ldexp(dtype(1), np.arange(-149, 128) if element == "f32" else np.arange(-1074, 1024)).astype(dtype)
    around = [powers, np.nextafter(powers, dtype(0)), np.nextafter(powers, dtype(np.inf))]
    middle = np.array(THRESHOLDS, dtype)
    up, down = middle, middle
    for _ in range(32):
        around += [up, down]
        up, down = np.nextafter(up, dtype(np.inf)), np.nextafter(down, dtype(0))
    special = np.array([0, np.inf, np.nan, np.finfo(dtype).max], dtype)
    x = np.concatenate([*around, special])
    return np.concatenate([x, -x])


def dense(element: str, count: int, seed: int) -> np.ndarray:
    """Values where most of the functions have their shape."""
    rng = np.random.default_rng(seed)
    spans = [(-1, 1), (-4, 4), (-12, 12), (-110, 110), (-1e5, 1e5), (0.5, 2)]
    spans += [(-150, 150)] if element == "f32" else [(-760, 760)]
    return np.concatenate([rng.uniform(*span, count // len(spans)) for span in spans]).astype(DTYPES[element])


def inputs(name: str, element: str, count: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    x = np.concatenate([stratified(element, count, seed), dense(element, count // 2, seed), edges(element)])
    if name in POSITIVE:
        x = np.abs(x[x != 0])
    if (
        name == "digamma" and element == "f64"
    ):  # near its root long double is not enough; test_error_bound_mpmath covers it
        with np.errstate(invalid="ignore"):
            x = x[~(np.abs(x - 1.4616321449683622) < 0.1)]
    if name not in BINARY:
        return (x,)
    if name != "pow":
        # Coordinates of any two magnitudes, and of nearly the same.
        rng = np.random.default_rng(seed + 1)
        with np.errstate(all="ignore"):
            near = (x * np.exp2(rng.uniform(-30, 30, x.size) * rng.integers(0, 2, x.size))).astype(x.dtype)
        signs = rng.choice([-1, 1], x.size).astype(x.dtype)
        return np.concatenate([x, x, x]), np.concatenate([rng.permutation(x), near * signs, np.abs(near)])
    # Bases with all exponents against exponents that keep the result in range, bases near one against large exponents.
    rng = np.random.default_rng(seed + 1)
    dtype, reach = DTYPES[element], 150 if element == "f32" else 1080
    base = np.abs(rng.permutation(x))
    with np.errstate(all="ignore"):
        exponent = (rng.uniform(-reach, reach, x.size) / np.log2(base)).astype(dtype)
    near = (1 + rng.choice([-1, 1], x.size) * np.exp2(-rng.uniform(1, 20, x.size))).astype(dtype)
    steep = (rng.uniform(-reach, reach, x.size) / np.log2(near)).astype(dtype)
    whole = rng.integers(-40, 40, x.size).astype(dtype)
    signed = rng.uniform(-30, 30, x.size).astype(dtype)
    a = np.concatenate([x, base, near, signed])
    return a, np.concatenate([rng.permutation(x), exponent, steep, whole])


# Where their bounds hold.
POSITIVE = ("lgamma", "digamma", "trigamma")
BINARY = ("pow", "atan2", "hypot")


def _sigmoid(x: mpf) -> mpf:
    return 1 / (1 + mp.exp(-x))


MPMATH = {
    "exp": mp.exp, "exp2": lambda x: mp.power(2, x), "expm1": mp.expm1, "log": mp.log, "log2": lambda x: mp.log(x, 2),
    "log10": mp.log10, "log1p": mp.log1p, "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "sinh": mp.sinh, "cosh": mp.cosh,
    "tanh": mp.tanh, "asin": mp.asin, "acos": mp.acos, "atan": mp.atan, "erf": mp.erf, "erfc": mp.erfc,
    "sigmoid": _sigmoid, "fast_sigmoid": _sigmoid, "silu": lambda x: x * _sigmoid(x), "gelu": lambda x: x * mp.ncdf(x),
    "rsqrt": lambda x: 1 / mp.sqrt(x), "pow": mp.power,
    "asinh": mp.asinh, "acosh": mp.acosh, "atanh": mp.atanh, "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "erfinv": mp.erfinv, "lgamma": mp.loggamma, "digamma": mp.digamma, "trigamma": lambda x: mp.polygamma(1, x),
    "atan2": mp.atan2, "hypot": mp.hypot,
}  # fmt: skip


def error_in_ulps(y: float, want: mpf) -> float:
    """|y - want| in units of the last place of a double next to `want`; `y` and `want` finite."""
    exponent = max(int(mp.floor(mp.log(abs(want), 2))) if want != 0 else -1022, -1022)
    return float(abs(mpf(y) - want) * mpf(2) ** (52 - exponent))
