"""Copies that have to be turned, at sizes where tiles, streaming and threads come in; bits that must survive; fills."""

from __future__ import annotations

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.layout import CopyDescriptor

PERMUTATIONS = [
    ((1030, 700), (1, 0)),
    ((33, 20, 50, 40), (3, 1, 2, 0)),
    ((7, 6, 5, 4, 3, 4, 5, 6), (7, 6, 5, 4, 3, 2, 1, 0)),
    ((16, 40, 24, 64), (0, 2, 1, 3)),
]


def copy_into(x: np.ndarray, y: np.ndarray) -> None:
    bc.plan(CopyDescriptor(x.shape, {1: "u8", 2: "f16", 4: "f32", 8: "f64", 16: "c128"}[x.itemsize])).run(x, y)


@pytest.mark.parametrize(("shape", "axes"), PERMUTATIONS)
@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "f8", "c16"])
def test_permuted_copies(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str) -> None:
    n = int(np.prod(shape))
    x = (np.arange(n) % 251).astype(dtype).reshape(shape).transpose(axes)
    y = np.full(x.shape, 77, dtype)
    copy_into(x, y)
    assert np.array_equal(x, y)
    # The other way round: contiguous into a permuted output.
    z = np.full(shape, 77, dtype).transpose(axes)
    copy_into(y, z)
    assert np.array_equal(z, y)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_large_copies_are_streamed_right(dtype: str) -> None:
    x = np.arange(2300 * 2100, dtype=np.int64).astype(dtype if dtype != "f2" else "u2").view(dtype).reshape(2300, 2100)
    for offset in (0, 1, 5):
        memory = np.zeros(x.size + 16, dtype)
        y = memory[offset : offset + x.size].reshape(2100, 2300)
        copy_into(x.T, y)
        assert np.array_equal(y.view(f"u{x.itemsize}"), np.ascontiguousarray(x.T).view(f"u{x.itemsize}"))
        flat = memory[offset : offset + x.size].reshape(x.shape)
        copy_into(x, flat)
        assert np.array_equal(flat.view(f"u{x.itemsize}"), x.view(f"u{x.itemsize}"))
        assert not memory[:offset].any()
        assert not memory[offset + x.size :].any()


def test_bits_survive() -> None:
    bits = np.array([0x7F800001, 0xFFC12345, 0x80000000, 0x00000001], np.uint32)
    x = np.tile(bits, 300).view(np.float32)
    y = np.empty_like(x)
    copy_into(x[::-1], y)
    assert np.array_equal(y.view(np.uint32), x[::-1].view(np.uint32))


def test_broadcast_view_is_written_out() -> None:
    x = np.broadcast_to(np.arange(5, dtype=np.float32)[:, None], (5, 600))
    assert np.array_equal(F.copy(x), x)


def test_fills() -> None:
    x = np.empty((3, 5), np.int64)
    assert (F.full_like(x, 2**62 + 1) == 2**62 + 1).all()
    assert not F.zeros_like(x).any()
    assert (F.ones_like(np.empty(4000, np.float16)) == 1).all()
    assert F.full_like(np.empty(3, bool), True).all()
