"""Results too large for the caches go past them (csrc/host/stream.h): other stores, the same bits, no byte beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import baracuda as bc

ROWS, COLUMNS, PART = 2063, 4099, 103  # 16 MB and more in a half type
GUARD = 13  # elements around a tensor: it starts off a line of the cache, and ends in the middle of one

CASES: dict[str, Callable[[int, str], Any]] = {
    "exp": lambda n, e: bc.UnaryDescriptor("exp", (n, COLUMNS), element=e),
    "exp backward": lambda n, e: bc.UnaryBackwardDescriptor("exp", (n, COLUMNS), element=e),
    "relu": lambda n, e: bc.UnaryDescriptor("relu", (n, COLUMNS), element=e),
    "clamp_tensors": lambda n, e: bc.TernaryDescriptor("clamp_tensors", *[(n, COLUMNS)] * 3, element=e),
    "add": lambda n, e: bc.BinaryDescriptor("add", (n, COLUMNS), (n, COLUMNS), element=e),
    "mul backward": lambda n, e: bc.BinaryBackwardDescriptor("mul", (n, COLUMNS), (n, COLUMNS), element=e),
    "swiglu": lambda n, e: bc.GatedActivationDescriptor("swiglu", (n, 2 * COLUMNS), -1, element=e),
    "swiglu backward": lambda n, e: bc.GatedActivationBackwardDescriptor("swiglu", (n, 2 * COLUMNS), -1, element=e),
    "rms_norm": lambda n, e: bc.RmsNormDescriptor((n, COLUMNS), (COLUMNS,), element=e),
    "layer_norm": lambda n, e: bc.LayerNormDescriptor((n, COLUMNS), (COLUMNS,), element=e),
    "softmax": lambda n, e: bc.SoftmaxDescriptor("softmax", (n, COLUMNS), -1, element=e),
    "log_softmax": lambda n, e: bc.SoftmaxDescriptor("log_softmax", (n, COLUMNS), -1, element=e),
    "softmax backward": lambda n, e: bc.SoftmaxBackwardDescriptor("softmax", (n, COLUMNS), -1, element=e),
    # Twice as many: codes are bytes.
    "rms_norm_quantize": lambda n, e: bc.NormQuantizeDescriptor("rms_norm_quantize", (n, 2 * COLUMNS), e),
    "swiglu_quantize": lambda n, e: bc.GatedQuantizeDescriptor("swiglu_quantize", (n, 4 * COLUMNS), -1, e),
}
ELEMENTS = ("f32", "bf16", "f16", "f64")


class Guarded:
    """A tensor of some plan inside memory of a known pattern."""

    def __init__(self, param: Any, rng: np.random.Generator | None) -> None:
        dtype = np.dtype(param.element.numpy)
        count = int(np.prod(param.shape))
        self.memory = np.zeros(count + 2 * GUARD, dtype)
        self.memory.view(np.uint8)[:] = 0xA5
        self.array = self.memory[GUARD : GUARD + count].reshape(param.shape)
        if rng:
            self.array[...] = rng.standard_normal(param.shape, np.float32).astype(dtype)

    def guards(self) -> np.ndarray:
        return np.concatenate([self.memory[:GUARD].view(np.uint8), self.memory[-GUARD:].view(np.uint8)])


@pytest.mark.parametrize(
    ("name", "element"), [(n, e) for n in CASES for e in ELEMENTS if e != "f64" or not n.endswith("quantize")]
)
def test_large_results_have_the_bits_of_small_ones(name: str, element: str) -> None:
    plan = bc.plan(CASES[name](ROWS, element))
    rng = np.random.default_rng(0)
    tensors = {p.name: Guarded(p, rng) for p in plan.signature.inputs}
    tensors |= {p.name: Guarded(p, None) for p in plan.signature.outputs}
    plan.run(**{k: t.array for k, t in tensors.items()})
    assert all((t.guards() == 0xA5).all() for t in tensors.values())
    for first in range(0, ROWS, PART):
        rows = slice(first, min(first + PART, ROWS))
        small = bc.plan(CASES[name](rows.stop - first, element))
        args = {k: t.array[rows] if t.array.shape[0] == ROWS else t.array for k, t in tensors.items()}
        outputs = {p.name: np.empty(p.shape, p.element.numpy) for p in small.signature.outputs}
        small.run(**args | outputs)
        for k, part in outputs.items():
            assert part.tobytes() == args[k].tobytes(), f"{k}, rows from {first}"
