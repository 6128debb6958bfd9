"""Results lie as torch's do, and as NumPy's: in the order of the strides that the arguments have. Values do not depend on it."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from opinfo import entries
from torch.utils._pytree import tree_leaves, tree_map

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.binary.binary_kinds import KINDS as BINARY
from baracuda.ops.unary.unary_kinds import KINDS as UNARY
from baracuda.prove.peers import torch_function
from conftest import FULL, SEED

LIMIT = None if FULL else 8  # samples of an entry of torch's
ROUNDS = 6 if FULL else 3  # of random layouts, of each function
BY_NAME = {entries.title(e): e for e in entries.table()}
LAST = {4: torch.channels_last, 5: torch.channels_last_3d}
_OF_NUMBERS = ("softplus", "hardshrink", "softshrink", "round_decimals", "nan_to_num")  # whose names take more than x


def _named(names: Any) -> list[str]:
    """Those that torch has under the same name."""
    found = []
    for name in names:
        try:
            torch_function(name)
        except LookupError:
            continue
        found.append(name)
    return found


# torch's write to memory in C order, and do not look at the argument's; its ldexp is made of such a function.
IN_C_ORDER = {"logsigmoid", "ldexp"}
ONE = _named(n for n, k in UNARY.items() if not k.numbers and n not in {*_OF_NUMBERS, "bitwise_not"} | IN_C_ORDER)
TWO = _named(n for n, k in BINARY.items() if (not k.numbers or n in ("add", "sub")) and n not in IN_C_ORDER)
BITS = {n for n in TWO if n.startswith("bitwise") or n in ("gcd", "lcm")}


def _shape(rng: np.random.Generator, rank: int) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.choice([1, 2, 3, 5], rank, p=(0.2, 0.3, 0.3, 0.2)))


def _laid(rng: np.random.Generator, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A tensor in a random order, of all elements of its memory or of some."""
    rank = len(shape)
    perm = [int(i) for i in rng.permutation(rank)]
    back = [perm.index(i) for i in range(rank)]
    steps = [int(rng.integers(1, 3)) if rng.random() < 0.2 else 1 for _ in range(rank)]
    memory = torch.from_numpy(rng.uniform(0.1, 0.9, [shape[p] * steps[p] for p in perm])).to(dtype)
    x = memory.permute(back)[tuple(slice(None, None, s) for s in steps)]
    if rank and rng.random() < 0.15:
        d = int(rng.integers(rank))
        x = x.narrow(d, 0, 1).expand(shape)
    return x


def _part(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to this one."""
    found = tuple(1 if rng.random() < 0.25 else n for n in shape)
    return found[int(rng.integers(len(found) + 1)) :] if rng.random() < 0.25 else found


def _same(made: Any, torchs: torch.Tensor, what: str) -> None:
    assert isinstance(made, torch.Tensor) and made.shape == torchs.shape, what
    if made.numel():
        assert made.stride() == torchs.stride(), f"{what}: {made.stride()}, torch {torchs.stride()}"


def _described(*given: Any) -> str:
    return ", ".join(f"{tuple(x.shape)}{x.stride()}" if isinstance(x, torch.Tensor) else repr(x) for x in given)


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_tensor(name: str) -> None:
    rng = np.random.default_rng([SEED, *name.encode()])
    fn, peer = getattr(F, name), torch_function(name)
    for rank in [*range(7)] * (ROUNDS // 3):
        x = _laid(rng, _shape(rng, rank))
        y = fn(x)
        _same(y, peer(x), f"{name}({_described(x)})")
        assert torch.equal(y.nan_to_num(), fn(x.contiguous()).nan_to_num())


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_tensors(name: str) -> None:
    rng = np.random.default_rng([SEED, *name.encode()])
    fn, peer = getattr(F, name), torch_function(name)
    dtype = torch.int32 if name in BITS else torch.float32
    for rank in [*range(7)] * ROUNDS:
        shape = _shape(rng, rank)
        a, b = _laid(rng, _part(rng, shape), dtype), _laid(rng, _part(rng, shape), dtype)
        if rng.random() < 0.3:
            b = _laid(rng, shape, dtype) if rng.random() < 0.5 else torch.empty_like(a).copy_(a)
        try:
            wanted = peer(a, b)
        except (RuntimeError, TypeError) as error:
            pytest.skip(str(error))
        y = fn(a, b)
        _same(y, wanted, f"{name}({_described(a, b)})")
        plain = fn(a.contiguous(), b.contiguous())
        assert torch.equal(
            y.nan_to_num() if y.is_floating_point() else y, plain.nan_to_num() if y.is_floating_point() else plain
        )


@pytest.mark.parametrize("name", ["add", "mul", "sub", "div", "eq", "lt", "pow"])
def test_with_numbers(name: str) -> None:
    rng = np.random.default_rng([SEED, *name.encode(), 1])
    for rank in [*range(7)] * ROUNDS:
        x = _laid(rng, _shape(rng, rank))
        _same(getattr(F, name)(x, 2.0), getattr(torch, name)(x, 2.0), f"{name}({_described(x)}, 2)")


THREE: dict[str, Callable[..., Any]] = {
    "where": lambda f, a, b, c: f(a > 0.5, b, c),
    "lerp": lambda f, a, b, c: f(a, b, c),
    "addcmul": lambda f, a, b, c: f(a, b, c),
    "addcdiv": lambda f, a, b, c: f(a, b, c),
    "clamp": lambda f, a, b, c: f(a, b, c),
}


@pytest.mark.parametrize("name", THREE)
def test_functions_of_three_tensors(name: str) -> None:
    rng = np.random.default_rng([SEED, *name.encode()])
    for rank in [*range(7)] * ROUNDS:
        shape = _shape(rng, rank)
        given = [_laid(rng, shape if name == "lerp" and i < 2 else _part(rng, shape)) for i in range(3)]
        call = THREE[name]
        _same(call(getattr(F, name), *given), call(getattr(torch, name), *given), f"{name}({_described(*given)})")


@pytest.mark.parametrize("to", ["float64", "bfloat16", "int32", "bool"])
def test_casts(to: str) -> None:
    rng = np.random.default_rng([SEED, len(to)])
    dtype = getattr(torch, to)
    for rank in [*range(7)] * ROUNDS:
        x = _laid(rng, _shape(rng, rank))
        _same(F.cast(x, dtype), x.to(dtype), _described(x)) if x.dtype != dtype else None


UFUNCS: dict[str, tuple[Callable[..., Any], int]] = {
    "exp": (np.exp, 1), "neg": (np.negative, 1), "abs": (np.abs, 1), "floor": (np.floor, 1), "add": (np.add, 2),
    "mul": (np.multiply, 2), "maximum": (np.maximum, 2), "less": (np.less, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", UFUNCS)
def test_numpy_arrays_as_ufuncs(name: str) -> None:
    """Order K: Fortran's stays Fortran's, and where arguments disagree C's wins."""
    rng = np.random.default_rng([SEED, *name.encode(), 2])
    ufunc, count = UFUNCS[name]
    for rank in [*range(7)] * ROUNDS:
        shape = _shape(rng, rank)
        given = [_laid(rng, shape if count == 1 else _part(rng, shape)).numpy() for _ in range(count)]
        if rank and rng.random() < 0.3:
            given[0] = np.flip(given[0], int(rng.integers(given[0].ndim))) if given[0].ndim else given[0]
        y, wanted = getattr(F, name)(*given), ufunc(*given)
        seen = [(n, s // y.itemsize) for n, s in zip(y.shape, y.strides, strict=True) if n != 1]
        theirs = [(n, s // wanted.itemsize) for n, s in zip(wanted.shape, wanted.strides, strict=True) if n != 1]
        assert isinstance(y, np.ndarray) and seen == theirs, [(x.shape, x.strides) for x in given]
        assert y.flags.owndata and y.flags.writeable
        np.testing.assert_array_equal(y, getattr(F, name)(*map(np.ascontiguousarray, given)))


def _in_order(x: Any, last: bool) -> Any:
    """A sample's tensor with its channels last, or with its dimensions in memory the other way round."""
    if not isinstance(x, torch.Tensor) or x.ndim < 2 or x.layout != torch.strided:
        return x
    x = x.detach()
    if last and x.ndim in LAST:
        return x.contiguous(memory_format=LAST[x.ndim])
    back = tuple(reversed(range(x.ndim)))
    return x.permute(back).contiguous().permute(back)


# Entries of torch's table whose results have torch's order, in the calls of its samples.
KEPT = [
    *(
        f"nn.functional.{n}"
        for n in ("conv2d", "conv_transpose2d", "max_pool2d", "max_pool3d", "avg_pool2d", "avg_pool3d")
    ),
    *(f"nn.functional.adaptive_{n}" for n in ("avg_pool2d", "max_pool2d", "max_pool3d")),
    *(
        f"nn.functional.interpolate.{n}"
        for n in ("area", "bicubic", "bilinear", "nearest", "nearest-exact", "trilinear")
    ),
    *(
        f"nn.functional.{n}"
        for n in ("batch_norm", "group_norm", "instance_norm", "glu", "pad.constant", "pad.reflect")
    ),
    *("clone", "sort", "argsort", "flip", "roll", "zeros_like", "ones_like", "full_like", "rand_like"),
    *("clamp", "lerp", "addcmul", "isclose", "logit"),
    *(f"nn.functional.{n}" for n in ("prelu", "dropout", "hardtanh", "threshold", "leaky_relu")),
    *(f"nn.functional.{n}" for n in ("binary_cross_entropy", "huber_loss")),
]


def _placed(x: Any, last: bool) -> Any:
    """A sample's tensor with its channels last, or with its dimensions in memory the other way round."""
    if not isinstance(x, torch.Tensor) or x.ndim < 2 or x.layout != torch.strided:
        return x
    x = x.detach()
    if last and x.ndim in LAST:
        return x.contiguous(memory_format=LAST[x.ndim])
    back = tuple(reversed(range(x.ndim)))
    return x.permute(back).contiguous().permute(back)


def differing(name: str) -> tuple[int, list[str]]:
    """How many results of an entry's samples torch has in another order than C's, and where ours lie otherwise."""
    entry = BY_NAME[name]
    fn = entries.function(entry)
    assert fn is not None
    kept, wrong = 0, []
    element = torch.float32 if torch.float32 in entry.dtypes else torch.int64
    for (args, options), last in itertools.product(entries.samples(entry, element)[:LIMIT], (True, False)):
        args, options = tree_map(lambda x, last=last: _placed(x, last), (args, options))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                wanted = entry.op(*args, **options)
                made = fn(*args, **options)
            except Exception:
                continue  # of elements or options that there are not; tests/test_opinfo.py judges that
        for y, t in zip(tree_leaves(made), tree_leaves(wanted), strict=True):
            if not isinstance(t, torch.Tensor) or t.ndim < 2 or not t.numel() or ("conv" in name and t.ndim < 4):
                continue  # unbatched convolutions' are in C order
            kept += not t.is_contiguous()
            if y.stride() != t.stride():
                wrong.append(f"{name}({_described(*args)}, {options}): {y.stride()}, torch {t.stride()}")
    return kept, wrong


@pytest.mark.parametrize("name", KEPT)
def test_results_of_torchs_samples(name: str) -> None:
    kept, wrong = differing(name)
    assert not wrong, f"{len(wrong)}, {kept} not in C order:\n" + "\n".join(wrong[:5])


def _last(*shape: int) -> torch.Tensor:
    return torch.rand(shape).contiguous(memory_format=torch.channels_last)


PULLED: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    **{n: (lambda f, x: f(x), (_last(2, 3, 4, 5),)) for n in ("relu", "gelu", "silu", "sigmoid", "tanh", "exp")},
    **{n: (lambda f, x, y: f(x, y), (_last(2, 3, 4, 5), _last(2, 3, 4, 5))) for n in ("mul", "div", "add", "atan2")},
    "conv2d": (lambda f, x, w: f(x, w), (_last(2, 3, 4, 5), _last(6, 3, 2, 2))),
    "max_pool2d": (lambda f, x: f(x, 2), (_last(2, 3, 4, 6),)),
    "avg_pool2d": (lambda f, x: f(x, 2), (_last(2, 3, 4, 6),)),
    "batch_norm": (lambda f, x: f(x, None, None, None, None, True), (_last(4, 3, 4, 6),)),
    "interpolate": (lambda f, x: f(x, scale_factor=2), (_last(2, 3, 4, 6),)),
}


@pytest.mark.parametrize("name", PULLED)
def test_gradients(name: str) -> None:
    call, given = PULLED[name]
    y, pull = bc.vjp(lambda *xs: call(getattr(F, name), *xs), *given)
    leaves = [x.clone().requires_grad_() for x in given]
    wanted = call(torch_function(name), *leaves)
    _same(y, wanted, name)
    dy = torch.rand(y.shape).contiguous(memory_format=torch.channels_last)
    made = pull(dy)
    for dx, t in zip(
        made if isinstance(made, tuple) else (made,), torch.autograd.grad(wanted, leaves, dy), strict=True
    ):
        _same(dx, t, f"gradient of {name}")
        torch.testing.assert_close(dx, t)


def test_what_lies_in_c_order_anyway() -> None:
    x = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4))
    assert F.copy(x).flags.c_contiguous and F.relu(x, out=np.empty((3, 4), np.float32)).flags.c_contiguous
    assert bc.jit(lambda x: F.relu(x))(x).flags.c_contiguous
    np.testing.assert_array_equal(bc.jit(lambda x: F.exp(F.relu(x)))(x.T), F.exp(x.T))


def test_infer_gives_strides() -> None:
    spec = bc.TensorSpec((3, 4), "f32", (1, 3))
    assert F.relu.infer(spec).strides == (1, 3) and F.matmul.infer(spec, bc.TensorSpec((4, 3))).strides is None


def test_own_tensors_and_views_of_results() -> None:
    x = bc.asarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4)).permute(2, 0, 1)
    y = F.square(x)
    assert y.strides == x.strides and F.copy(y).strides == (6, 3, 1)
    np.testing.assert_array_equal(F.copy(y).reshape(-1).numpy(), np.square(x.numpy()).reshape(-1))
    z, pull = bc.vjp(lambda x: F.sum(F.square(x).reshape(4, 6) * 2.0), x)
    np.testing.assert_array_equal(pull(F.ones_like(z)).numpy(), 4 * x.numpy())
