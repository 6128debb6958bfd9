"""Calls under every floating-point state that a caller may have: flushed subnormals, other rounding, traps.

    python tests/harness/float_states.py

Prints what has other bits than under the ordinary state, and which call left another state behind.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np

import baracuda as bc
import baracuda.functional as F
from baracuda import _core

# Reading and writing MXCSR or FPCR, with the states: what is set beside an ordinary one, and the bits that are no flags.
_CODE = {
    "x86_64": ("0fae1fc3", "0fae17c3", 0x1F80, 0xFFC0),  # stmxcsr [rdi]; ldmxcsr [rdi]
    # mrs x1, fpcr; str x1, [x0]; ret, and ldr x1, [x0]; msr fpcr, x1; ret
    "aarch64": ("01443bd5010000f9c0035fd6", "010040f901441bd5c0035fd6", 0, 0xFFFFFFFF),
}  # fmt: skip
_STATES = {
    "x86_64": {
        "flushed": 0x9FC0, "upward": 0x5F80, "downward": 0x3F80, "to zero": 0x7F80, "traps": 0x1000, "all": 0xF040 | 0x1000,
    },
    "aarch64": {"flushed": 1 << 24, "upward": 1 << 22, "downward": 2 << 22, "to zero": 3 << 22},
}  # fmt: skip
Call = Callable[[], Any]


class State:
    """The calling thread's floating-point state."""

    def __init__(self) -> None:
        read, write, self.ordinary, self.kept = _CODE[platform.machine()]
        self._memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code = bytes.fromhex(read).ljust(64, b"\0") + bytes.fromhex(write)
        self._memory[: len(code)] = code
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        kind = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint64))
        self._read, self._write = kind(start), kind(start + 64)
        self._word = ctypes.c_uint64()

    def get(self) -> int:
        """Without the flags of what has happened."""
        self._read(self._word)
        return self._word.value & self.kept

    def set(self, value: int) -> None:
        """Writes it."""
        self._write(ctypes.c_uint64(value))


def _values(n: int, dtype: Any, seed: int = 0) -> Any:
    """Numbers of all magnitudes, subnormal ones above all."""
    rng = np.random.default_rng(seed)
    tiny = np.finfo(dtype).tiny
    return (rng.standard_normal(n) * rng.choice([tiny / 8, tiny, 1.0], n)).astype(dtype)


def _program() -> Call:
    x, y = _values(200_000, np.float32), _values(200_000, np.float32, 1)
    b = bc.ProgramBuilder()
    first, second, z = b.input("x", x.shape), b.input("y", x.shape), b.output("z", x.shape)
    between = b.scratch(x.shape)
    desc = bc.BinaryDescriptor("mul", x.shape, x.shape)
    b.add(desc, a=first, b=second, y=between)
    b.add(desc, a=between, b=first, y=z)
    made = b.build()
    return lambda: made.run(x, y, np.empty_like(x))


def calls() -> Iterator[tuple[str, Call]]:
    """What is called, by name; each gives an array, or a number."""
    x, y = _values(300_000, np.float32), _values(300_000, np.float32, 1)
    d, h = _values(20_000, np.float64), (_values(20_000, np.float32) * 1e3).astype(np.float16)
    few, square = x[:32].copy(), _values(128 * 128, np.float32).reshape(128, 128)
    half = np.full(300_000, 0.5, np.float32)
    yield "functions of two", lambda: F.mul(x, half)
    yield "functions of few", lambda: F.mul(few, half[:32])
    yield "additions", lambda: F.add(x, y)
    zeros = np.zeros_like(d)
    yield "divisions", lambda: F.div(d, zeros)
    yield "functions of one", lambda: F.exp(x)
    yield "logarithms", lambda: F.log(d)
    yield "roots", lambda: F.sqrt(x)
    yield "halves", lambda: F.mul(h, h)
    casting = bc.plan(bc.CastDescriptor(x.shape, "f32", "f16"))
    larger = x * np.float32(1e30)
    yield "casts", lambda: casting.run(larger, np.empty(x.shape, np.float16))
    yield "rounding", lambda: F.round(y)
    yield "numbers", lambda: F.add(d, 1e-310)
    number = np.float32(1e-40)
    yield "numbers of NumPy", lambda: F.add(few, number)
    yield "sums", lambda: F.sum(x)
    yield "rows", lambda: F.softmax(square, -1)
    yield "means", lambda: F.layer_norm(square, (128,))
    yield "running sums", lambda: F.cumsum(x, 0)
    yield "products of BLAS", lambda: F.matmul(square, square)
    wide = square.astype(np.float64)
    yield "products in doubles", lambda: F.matmul(wide, wide)
    yield "convolutions", lambda: F.conv2d(square[None, None], square[None, None, :3, :3].copy())
    yield "sorts", lambda: F.sort(x)[0]
    yield "compositions", lambda: F.var(square, 0)
    yield "gradients", lambda: bc.vjp(F.mul, x, half)[1](y)[0]
    yield "random numbers", lambda: F.randn(1000, generator=bc.Generator(3))
    fused = bc.expr.fuse(lambda a, b: a * b + a)
    yield "fused expressions", lambda: fused(x, half)
    engine = bc.Engine()
    yield "engines", lambda: engine.F.mul(x, half)
    made = bc.plan(bc.BinaryDescriptor("mul", x.shape, x.shape))
    yield "plans", lambda: made.run(x, half, np.empty_like(x))
    out = np.empty_like(x)
    bound = made.bind(x, half, out)
    yield "bound plans", lambda: bound()
    limited = bc.plan(bc.BinaryDescriptor("mul", x.shape, x.shape), preference=bc.PlanPreference(threads=2))
    yield "plans with so many threads", lambda: limited.run(x, half, np.empty_like(x))
    yield "programs", _program()
    traced = bc.trace(
        lambda a, b: F.mul(F.mul(a, b), b), bc.TensorSpec(x.shape, "f32"), bc.TensorSpec(x.shape, "f32")
    ).compile()
    yield "graphs", lambda: traced.run(x, half)
    one = bc.asarray(np.asarray(1e-40, np.float32))
    yield "items", one.item


def bits(value: Any) -> bytes:
    """What a result holds."""
    return b"".join(bits(v) for v in value) if isinstance(value, (tuple, list)) else np.asarray(value).tobytes()


def main() -> None:
    """Makes each call under each state, several times each, as work is spread over threads in other ways."""
    state = State()
    made = list(calls())
    ordinary = [bits(call()) for _, call in made]
    wrong = []
    for name, value in _STATES[platform.machine()].items():
        for (what, call), want in zip(made, ordinary, strict=True):
            for _ in range(4):
                state.set(value)
                try:
                    got, left = call(), state.get()
                finally:
                    state.set(state.ordinary)
                if bits(got) != want:
                    wrong.append(f"{what}, {name}: other bits")
                    break
                if left != value & state.kept:
                    wrong.append(f"{what}, {name}: leaves {left:#x}, not {value:#x}")
                    break
    _core.set_thread_pacing(True)
    print(f"{len(made)} calls")
    sys.exit("\n".join(wrong) if wrong else 0)


if __name__ == "__main__":
    _core.set_thread_pacing(False)
    main()
