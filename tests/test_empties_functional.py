"""Functions given empty tensors, and tensors of rank 0, as NumPy, torch and jax make them, whose strides differ: the same bits,
forward and backward, whatever memory held before, or the same refusal."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F
from baracuda import _index
from conftest import FULL

TRIES = 3000 if FULL else 150  # random calls per function, most of which it refuses
KEPT = 40 if FULL else 4  # accepted calls that are compared
SIZES = (0, 2, 3)
_WIDE = ("float_power",)  # whose results have 64 bits
_RANDOM = (
    "random",
    "discrete",
    "distributions",
    "rejection",
    "fractional",
    "dropout",
    "sampling",
    "draft",
)  # rooms of ops whose results differ from call to call
_INDICES = ("index", "indices", "page_table", "kv_len", "cu_seq_q", "cu_seq_k", "target", "offsets")
_MASKS = ("mask", "condition")
Rng = np.random.Generator


def _shape(rng: Rng) -> tuple[int, ...]:
    rank = int(rng.choice(5, p=(0.15, 0.25, 0.25, 0.25, 0.1)))
    return tuple(int(rng.choice(SIZES, p=(0.3, 0.5, 0.2))) for _ in range(rank))


# What is no tensor, by the name of the parameter.
OPTIONS: dict[str, Callable[[Rng], Any]] = {
    **dict.fromkeys(("dim", "dims", "n", "k", "num_samples", "steps"), lambda rng: int(rng.integers(-1, 3))),
    **dict.fromkeys(("normalized_shape", "shape", "size"), _shape),
    **dict.fromkeys(("repeats", "shifts", "pad"), lambda rng: tuple(rng.integers(0, 3, 2).tolist())),
    **dict.fromkeys(
        ("fill_value", "start", "low", "threshold", "scale", "shift", "clip_value", "max_norm", "p"), lambda rng: 0.5
    ),
    **dict.fromkeys(("high", "end", "num_weights", "max_q", "max_k", "seed", "offset", "num_groups"), lambda rng: 2),
    "reduce": lambda rng: str(rng.choice(["amax", "prod", "mean"])),
    "dtype": lambda rng: np.dtype(np.float64),
    "equation": lambda rng: str(rng.choice(["ij,jk->ik", "bij,bjk->ik", "ij,ij->", "ij->j"])),
}
# Sizes by letters, so that factors of products fit each other now and then.
FACTORS = {
    **{"input": ("mn", "mk", "bmk", "bmn", "m", "k"), "mat1": ("mk",), "mat2": ("kn", "bkn"), "batch1": ("bmk",)},
    **{
        "batch2": ("bkn",),
        "mat": ("mk",),
        "vec": ("k",),
        "vec2": ("n",),
        "other": ("kn", "bkn", "k"),
        "weight": ("nk",),
    },
}
LISTS = ("tensors", "matrices", "operands", "params", "grads", "exp_avgs", "exp_avg_sqs")


def _tensor(rng: Rng, name: str, shape: tuple[int, ...]) -> np.ndarray:
    kind = "i8" if name in _INDICES and rng.random() < 0.9 else "?" if name in _MASKS else "f4"
    if kind == "f4" and rng.random() < 0.1:
        kind = "i4"
    return (rng.integers(0, 2, shape) if kind != "f4" else rng.normal(size=shape)).astype(kind)


def arguments(rng: Rng, name: str) -> list[Any] | None:
    """Something for every parameter without a default; None where nothing of it is empty or of rank 0."""
    same = _shape(rng) if rng.random() < 0.5 else None
    sizes = {letter: int(rng.choice(SIZES)) for letter in "bmnk"} if rng.random() < 0.5 else {}
    given: list[Any] = []
    for p in inspect.signature(getattr(F, name)).parameters.values():
        if p.default is not p.empty or p.kind is p.KEYWORD_ONLY:
            continue
        if p.name in OPTIONS:
            given.append(OPTIONS[p.name](rng))
        elif p.name in LISTS or p.kind is p.VAR_POSITIONAL:
            parts = [_tensor(rng, p.name, same or _shape(rng)) for _ in range(int(rng.integers(1, 4)))]
            given += parts if p.kind is p.VAR_POSITIONAL else [parts]
        elif sizes and p.name in FACTORS:
            given.append(_tensor(rng, p.name, tuple(sizes[letter] for letter in rng.choice(FACTORS[p.name]))))
        else:
            given.append(_tensor(rng, p.name, _shape(rng) if same is None or rng.random() < 0.1 else same))
    arrays = [a for v in given for a in (v if isinstance(v, list) else [v]) if isinstance(a, np.ndarray)]
    return given if any(a.size == 0 or a.ndim == 0 for a in arrays) else None


def _as_torch(a: np.ndarray) -> torch.Tensor:
    return torch.empty(a.shape, dtype=torch.from_numpy(a).dtype).copy_(torch.from_numpy(a))


def _as_jax(a: np.ndarray) -> Any:
    import jax

    return jax.numpy.asarray(a)


PRODUCERS: dict[str, Callable[[np.ndarray], Any]] = {"numpy": np.copy, "torch": _as_torch, "jax": _as_jax}


def _made(given: list[Any], make: Callable[[np.ndarray], Any]) -> list[Any]:
    return [_made(v, make) if isinstance(v, list) else make(v) if isinstance(v, np.ndarray) else v for v in given]


def _dirty() -> None:
    """Leaves numbers in the memory that results and workspaces are given next."""
    for size in (4, 16, 64, 256, 1024):
        kept = [np.full(size, 0.7470588, np.float32) for _ in range(8)]
        del kept


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [x for v in value for x in _flat(v)]
    if isinstance(value, torch.Tensor) and value.dtype.is_floating_point and value.dtype.itemsize == 1:
        value = value.view(torch.uint8)  # NumPy has no such numbers
    array = np.asarray(value.numpy() if isinstance(value, (bc.Tensor, torch.Tensor)) else value)
    return [(array.shape, array.tobytes() if array.dtype.kind != "i" else array.astype(np.int64).tobytes())]


def outcome(name: str, given: list[Any], make: Callable[[np.ndarray], Any]) -> list[Any] | None:
    """Shapes and bits of the results and of the gradients; None for a refusal."""
    function = getattr(F, name)
    _dirty()
    try:
        found = _flat(function(*_made(given, make)))
    except (bc.BaracudaError, TypeError):
        return None
    args = _made(given, make)
    try:
        y, pull = bc.vjp(function, *args)
        dy = make(np.ones(tuple(y.shape), np.asarray(y).dtype))
        _dirty()
        return found + _flat([g for g in _flat_values(pull(dy)) if g is not None])
    except (bc.BaracudaError, TypeError, AttributeError):  # no gradient, or several results
        return found


def _flat_values(value: Any) -> list[Any]:
    return [x for v in value for x in _flat_values(v)] if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize("name", sorted(dir(F)))
def test_producers_agree_about_empties(name: str, rng: np.random.Generator) -> None:
    if _index.FUNCTIONS[name].rpartition(".")[2] in _RANDOM:
        pytest.skip("gives other numbers in each call")
    wrong, kept = [], 0
    for _ in range(TRIES):
        given = arguments(rng, name)
        if given is None:
            continue
        want = outcome(name, given, PRODUCERS["numpy"])
        if want is None:
            continue
        for producer in ("torch", "jax"):
            got = outcome(name, given, PRODUCERS[producer])
            # jax has no 64-bit numbers, and its arrays are not written to.
            if got != want and not (producer == "jax" and (got is None or name in _WIDE)):
                shapes = [v.shape if isinstance(v, np.ndarray) else v for v in given]
                wrong.append(f"{name}{shapes}: {producer} {got}, numpy {want}"[:500])
        kept += 1
        if kept == KEPT:
            break
    assert not wrong, "\n".join(wrong[:5])
