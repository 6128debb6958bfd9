"""x[key] and x[key] = value of bc.Tensor against NumPy's: random keys of every kind, elements, overlaps, traces."""

from __future__ import annotations

import os
import random
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F
from baracuda.memory.tensor import unbacked

SEED = int(os.environ.get("BARACUDA_SEED", random.SystemRandom().randrange(2**31)))
ELEMENTS = [e for e in bc.Element if e.bits >= 8]
A = np.arange(24, dtype=np.float32).reshape(4, 6)


class Keys:
    """Random shapes and keys for them: ints, slices, None, `...`, arrays and lists of positions, masks, truth values."""

    def __init__(self, seed: int) -> None:
        self.choose, self.numbers = random.Random(seed), np.random.default_rng(seed)

    def shape(self) -> tuple[int, ...]:
        found = tuple(self.choose.choice([1, 2, 3, 4, 5]) for _ in range(self.choose.randrange(1, 5)))
        return (*found, 0) if self.choose.random() < 0.05 else found

    def array(self, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        return self.numbers.integers(-1000, 1000, shape).astype(np.float32)

    def key(self, shape: tuple[int, ...]) -> Any:
        parts: list[Any] = []
        taken = 0
        while taken < len(shape) and self.choose.random() < 0.9:
            part, takes = self._part(shape[taken:])
            parts.append(part)
            taken += takes
        if self.choose.random() < 0.3:
            parts.insert(self.choose.randrange(len(parts) + 1), ...)
        if self.choose.random() < 0.02:
            parts.append(0)  # maybe one too many
        return parts[0] if len(parts) == 1 and self.choose.random() < 0.5 else tuple(parts)

    def _part(self, shape: tuple[int, ...]) -> tuple[Any, int]:
        r, size = self.choose, shape[0]
        kind = r.choice("isssaaalmmMnb")
        if kind == "i":
            return r.choice([int, np.int64])(r.randrange(-size - 1, size) if size else 0), 1
        if kind == "a" and size:
            common = r.choice([(), (1,), (3,), (2, 3), (2, 1)])
            return self.numbers.integers(-size, size, common).astype(r.choice(["i8", "i4", "i2"])), 1
        if kind == "l" and size:
            return [r.randrange(-size, size) for _ in range(r.choice([3, 1, 3, 0]))], 1
        if kind == "m":
            mask = self._mask((size,))
            return mask.tolist() if r.random() < 0.3 and size else mask, 1
        if kind == "M" and len(shape) > 1:
            return self._mask(shape[:2]), 2
        if kind in "nb" and r.random() < 0.4:
            return (None if kind == "n" else r.choice([True, False])), 0
        ends = [r.choice([None, *range(-size - 1, size + 2)]) for _ in range(2)]
        return slice(*ends, r.choice([None, 1, -1, 2, -2])), 1

    def _mask(self, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        mask = np.zeros(int(np.prod(shape)), bool)
        mask[: self.choose.choice([0, 1, 3])] = True
        self.numbers.shuffle(mask)
        return mask.reshape(shape)


def _given_as(key: Any, r: random.Random) -> Any:
    """The arrays of a key as those of some library."""
    if isinstance(key, tuple):
        return tuple(_given_as(k, r) for k in key)
    if not isinstance(key, np.ndarray):
        return key
    return r.choice([np.asarray, bc.asarray, torch.from_numpy])(key)


def _read(x: Any, key: Any) -> Any:
    try:
        return x[key]
    except (IndexError, bc.InvalidProblemError):  # as bc.IndexOutOfRangeError is
        return None


@pytest.mark.parametrize("part", range(4))
def test_random_keys_read_as_numpy(part: int) -> None:
    keys = Keys(SEED + part)
    for _ in range(300):
        a = keys.array(keys.shape())
        key = keys.key(a.shape)
        what = f"BARACUDA_SEED={SEED}: {a.shape} {key!r}"
        want, got = _read(a, key), _read(bc.asarray(a), _given_as(key, keys.choose))
        if want is None or want.ndim > 8:
            assert got is None, what
        elif got is None and want.size == 0:
            continue  # an index that is out of range, which NumPy does not look at where nothing is named
        else:
            assert got is not None and got.shape == want.shape, what
            np.testing.assert_array_equal(got.numpy(), want, what)


def _value(keys: Keys, shape: tuple[int, ...]) -> Any:
    """What can be written to a shape: a number, values of it, and such as broadcast to it, of other elements, too."""
    value = keys.array(shape)
    match keys.choose.randrange(5):
        case 0:
            return keys.choose.choice([7, -2.5, True, np.float32(3), np.int16(-4)])
        case 1:
            value = value[tuple(slice(0, keys.choose.choice([1, None])) for _ in shape)]
        case 2:
            value = value.astype(keys.choose.choice([np.int64, np.float16, np.float64]))[None]
        case 3:
            value = value[0] if value.ndim and len(value) else value
    return keys.choose.choice([np.asarray, bc.asarray, torch.from_numpy, np.ndarray.tolist])(np.asarray(value))


@pytest.mark.parametrize("part", range(4))
def test_random_keys_write_as_numpy(part: int) -> None:
    keys = Keys(SEED + part)
    for _ in range(300):
        a = keys.array(keys.shape())
        key = keys.key(a.shape)
        named = _read(a, key)
        if named is None or named.ndim > 8:
            continue
        value, want = _value(keys, named.shape), a.copy()
        what = f"BARACUDA_SEED={SEED}: {a.shape} {key!r} = {value!r}"
        try:
            want[key] = np.asarray(value)
        except (ValueError, IndexError, TypeError):
            continue  # such as values with dimensions of size 1 for masks, which NumPy refuses
        x = bc.asarray(a)
        if named.size == 0 and _read(x, key) is None:
            continue  # as above
        x[_given_as(key, keys.choose)] = value
        np.testing.assert_array_equal(x.numpy(), want, what)


def _bits(shape: tuple[int, ...], element: bc.Element) -> bc.Tensor:
    out = bc.empty(shape, element)
    high = 2 if element is bc.Element.BOOL else 256
    out._opaque().reshape(-1).view(np.uint8)[...] = np.random.default_rng(1).integers(0, high, out.nbytes, np.uint8)
    return out


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_every_element_keeps_its_bits(element: bc.Element) -> None:
    x, y = _bits((4, 5), element), _bits((4, 5), element)
    a, b = x._opaque().copy(), y._opaque().copy()
    mask = A[:, :5] % 3 == 0
    for key in ([2, 0], (slice(None), [1, -1]), (np.array([[0], [3]]), [0, 2]), mask, mask[:, 1]):
        assert x[key]._opaque().tobytes() == a[key].tobytes(), key
        x[key] = y[key]
        a[key] = b[key]
        assert x._opaque().tobytes() == a.tobytes(), key
    x[1:, ::2] = y[:-1, ::-2]
    a[1:, ::2] = b[:-1, ::-2]
    assert x._opaque().tobytes() == a.tobytes()
    x[...] = 1
    one = x._opaque()[1, 1]
    x[0, 0], x[2] = 0, bc.zeros(5, "i32")
    mask[0, 0] = mask[2] = True
    x[mask] = x[1, 1]
    assert (x._opaque() == one).all()


def test_values_may_share_memory_with_what_is_written() -> None:
    for to, at in (
        (np.s_[1:], np.s_[:-1]), (np.s_[:-1], np.s_[1:]), (np.s_[::-1], np.s_[:]), (np.s_[:, 1:], np.s_[:, :-1]),
        (np.s_[:, ::2], np.s_[:, 3:]), (np.s_[:2], np.s_[1]), ([0, 1], np.s_[1:3]), ([3, 0], np.s_[0]),
    ):  # fmt: skip
        x, a = bc.asarray(A), A.copy()
        x[to] = x[at]
        a[to] = a[at].copy()
        np.testing.assert_array_equal(x.numpy(), a)
    x, a = bc.asarray(A[:4, :4]), A[:4, :4].copy()
    x[...] = x.T
    np.testing.assert_array_equal(x.numpy(), a.T)
    x[1:3] += 5
    x[[0, 0]] *= 2
    x.T[0] -= 1
    a = a.T.copy()
    a[1:3] += 5
    a[[0, 0]] *= 2
    a.T[0] -= 1
    np.testing.assert_array_equal(x.numpy(), a)


def test_values_of_every_library() -> None:
    for value in (A[0], torch.from_numpy(A[0]), jnp.asarray(A[0]), A[0].tolist(), bc.asarray(A[0], "bf16"), range(6)):
        x = bc.zeros((2, 6))
        x[1] = value
        assert x.tolist() == [[0] * 6, A[0].tolist()]
    x = bc.zeros(3, "c64")
    x[0], x[1:] = 1 - 2j, [3, 4j]
    assert x.tolist() == [1 - 2j, 3, 4j]
    x[:2], x[2] = bc.asarray([2 + 1j, 5]), bc.asarray(np.float32(6))
    assert x.tolist() == [2 + 1j, 5, 6]
    y = bc.zeros(3, "i32")
    y[0], y[1:] = 1.75, np.array([-2.5, 2.5])  # towards zero, as NumPy and torch
    assert y.tolist() == [1, -2, 2]


def test_one_mask_and_a_value_for_each_row_count_nothing() -> None:
    x, a = bc.asarray(A), A.copy()
    for mask, value in ((A > 11, -1), (A[:, 0] > 6, A[0] * 2), (A[:, 0] < 6, [[5]])):
        x[mask] = value
        a[mask] = value
        np.testing.assert_array_equal(x.numpy(), a)


def test_what_cannot_be_written_is_refused() -> None:
    array = A.copy()
    array.flags.writeable = False
    with pytest.raises(bc.InvalidProblemError, match=r"x is read-only.*copy"):
        bc.from_dlpack(array)[0] = 1
    x = bc.asarray(A)
    with pytest.raises(TypeError, match="deleted"):
        del x[0]  # type: ignore[attr-defined]
    for key, value, word in (
        (0, np.zeros(5, np.float32), r"got shape \(5,\), want one that broadcasts to \(6,\)"),
        ([0, 1], np.zeros(5, np.float32), r"got shape \(5,\), want one that broadcasts to \(2, 6\)"),
        (0, 1j, "want a real element"),
        (0, np.ones(6, np.complex64), "want a real element"),
        ([0.5], 1, "index: got float64"),
        (torch.ones(2), 1, "index: got"),
        ("a", 1, "index: got"),
        ({}, 1, "index: got"),
        ([[0], [1, 2]], 1, "nested lists of equal lengths"),
        ((np.ones(3, bool),), 1, "a mask of shape"),
        ((0, 0, [0]), 1, "a key for 3 dimensions"),
        ((..., [0], ...), 1, "2 times `...`"),
        (([0, 1], [0, 1, 2]), 1, "indices"),
        (np.array([2**63], np.uint64), 1, "those that i64 holds"),
    ):
        with pytest.raises((bc.InvalidProblemError, bc.IndexOutOfRangeError), match=word):
            x[key] = value
        if word.startswith(("index", "nested", "a mask", "a key", "2 times", "indices", "those")):
            with pytest.raises((bc.InvalidProblemError, bc.IndexOutOfRangeError), match=word):
                x[key]
    for key in ([4], (slice(None), [-7]), 4):
        with pytest.raises(bc.IndexOutOfRangeError):
            x[key] = 1
        with pytest.raises(bc.IndexOutOfRangeError):
            x[key]
    for number in (300, -1, float("nan")):
        with pytest.raises(bc.InvalidProblemError, match="value: got"):
            bc.zeros(2, "u8")[0] = number
    with pytest.raises(bc.BaracudaError):
        bc.zeros(1).expand(3)[:] = 1
    np.testing.assert_array_equal(x.numpy(), A)
    assert x[unbacked((2,), "i64").shape[0]].shape == (6,)


def test_where_numpy_and_torch_differ_keys_are_numpys() -> None:
    a = np.arange(24).reshape(2, 3, 4)
    for key in ((0, slice(None), [0, 1]), np.array([1, 0], np.uint8), ([0], ..., 1)):
        np.testing.assert_array_equal(bc.asarray(a)[key].numpy(), a[key])
    assert bc.asarray(a)[0, :, [0, 1]].shape == (2, 3) != tuple(torch.from_numpy(a)[0, :, [0, 1]].shape)


def test_wide_and_scalar_tensors() -> None:
    x = bc.asarray(np.arange(2**8).reshape((2,) * 8))
    a = x.numpy().copy()
    for key in ([1, 0, 0], (..., [1]), (0, ..., [0, 1], 1), (slice(None, None, -1), [1], ..., 0)):
        np.testing.assert_array_equal(x[key].numpy(), a[key])
    with pytest.raises(bc.InvalidProblemError, match=r"at most 8|rank"):
        x[[[0]], ...]
    y = bc.asarray(5.0)
    y[...] = 3
    y[()] = y[()] + 1
    assert (y[None, ...].shape, y[True].tolist(), y[False].shape, y[y > 0].tolist(), y.item()) == (
        (1,),
        [4],
        (0,),
        [4],
        4,
    )


def test_keys_are_traced() -> None:
    mask, at = A % 3 == 0, np.array([0, 3, 3])
    seen: list[Any] = []

    def step(x: Any, i: Any, y: Any) -> Any:
        z = x * 1
        z[1:] = z[:-1]
        z[:, 0] = 7
        z[i, 1] = y
        z[z > 20] = 0
        z[mask] = -1.5
        seen[:] = [F.sum(z[i, 2:] * x[[1, 0, -1], 2:]), x]
        return z, z[:, [1, -1]], z[mask], seen[0]

    specs = (bc.TensorSpec((4, 6)), bc.TensorSpec((3,), "i64"), bc.TensorSpec((3,)))
    graph = bc.trace(step, *specs)
    y = np.array([-1, -2, -3], np.float32)
    z = A.copy()
    z[1:] = z[:-1].copy()
    z[:, 0], z[at, 1] = 7, y
    z[z > 20] = 0
    z[mask] = -1.5
    found = graph.compile().run(A, at, y)
    for got, want in zip(found, (z, z[:, [1, -1]], z[mask], (z[at, 2:] * A[[1, 0, -1], 2:]).sum()), strict=True):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)

    def read(x: Any, i: Any) -> Any:
        seen[:] = [F.sum(F.square(x[i, 2:])), x]
        return seen[0]

    graph = bc.trace(read, *specs[:2])
    leaf = torch.tensor(A, requires_grad=True)
    (leaf[torch.from_numpy(at), 2:] ** 2).sum().backward()
    (dx,) = graph.grad(*[[s] for s in seen]).compile().run(A, at)[1]
    np.testing.assert_array_equal(np.asarray(dx), leaf.grad)


def test_sizes_that_depend_on_data_are_not_traced() -> None:
    held = bc.asarray(A > 3)
    for fn in (lambda x: x[x > 3], lambda x: x[x[:, 0] > 3], lambda x: x[held], lambda x: x[x[0, 0] > 3]):
        with pytest.raises(bc.InvalidProblemError, match=r"test_tensor_keys\.py"):
            bc.trace(fn, bc.TensorSpec((4, 6)))
    with pytest.raises(bc.InvalidProblemError, match="a mask of shape"):
        bc.trace(lambda x: x[np.ones(3, bool)], bc.TensorSpec((4, 6)))


def test_keys_are_traced_for_open_sizes() -> None:
    def step(x: Any, i: Any) -> Any:
        z = x * 1
        z[z > 5] = 0
        z[i, ::2] = -1
        z[1:] = z[:-1]
        return z, z[:, [0, -1]], z[[0, 1], 1:], z[i]

    n = bc.Dim("n", max=16)
    plan = bc.trace(step, bc.TensorSpec((n, 6)), bc.TensorSpec((n,), "i64")).compile()
    for size in (2, 3, 7, 16):
        a, i = np.arange(size * 6, dtype=np.float32).reshape(size, 6) % 11, np.arange(size)[::-1].copy()
        z = np.where(a > 5, 0, a)
        z[i, ::2] = -1
        z[1:] = z[:-1].copy()
        for got, want in zip(plan.run(a, i), (z, z[:, [0, -1]], z[[0, 1], 1:], z[i]), strict=True):
            np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("kind", [np.asarray, bc.asarray, torch.from_numpy], ids=["numpy", "tensor", "torch"])
def test_gradients_go_through_keys(kind: Any) -> None:
    at, keep = np.array([0, 3, 3]), [True, False, True, True]

    def loss(x: Any) -> Any:
        z = x[at, 1:4]
        return (
            F.sum(z * z) + F.sum(F.exp(x[x > 0])) + F.sum(F.abs(x[:, [0, -1]])) + F.amax(x[keep]) + F.sum(x[1] * x[2])
        )

    a = np.random.default_rng(2).normal(size=(4, 6))
    leaf = torch.tensor(a, requires_grad=True)
    want = (leaf[torch.from_numpy(at), 1:4] ** 2).sum() + leaf[leaf > 0].exp().sum() + leaf[:, [0, -1]].abs().sum()
    (want + leaf[torch.tensor(keep)].amax() + (leaf[1] * leaf[2]).sum()).backward()
    np.testing.assert_allclose(np.asarray(bc.grad(loss)(kind(a))), leaf.grad, rtol=1e-13, atol=1e-13)
    jitted = bc.jit(bc.grad(lambda x: F.sum(x[at, 1:4] * x[[1, 0, 2], 1:4])))
    leaf = torch.tensor(a, requires_grad=True)
    (leaf[torch.from_numpy(at), 1:4] * leaf[[1, 0, 2], 1:4]).sum().backward()
    np.testing.assert_allclose(np.asarray(jitted(kind(a))), leaf.grad, rtol=1e-13, atol=1e-13)


def test_fused_expressions_have_keys_of_views_alone() -> None:
    for fn in (lambda x: x[[0, 1]] * 2, lambda x: x[A > 3] * 2):
        with pytest.raises(bc.InvalidProblemError, match="in a fused expression, want ints and slices"):
            bc.expr.fuse(fn)(A)
