"""Copies that have to be turned, at sizes where tiles, streaming and threads come in; bits that must survive; fills."""

from __future__ import annotations

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.layout.layout import CopyDescriptor

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


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.complex128])
@pytest.mark.parametrize("gap", [0, 1])
def test_cat_of_short_rows(dtype: type, gap: int) -> None:
    """Written row by row, in pieces that may overlap: no byte of a neighbour may change."""
    rng = np.random.default_rng(2)
    for widths in ([1, 40], [16, 17], [3, 64, 65, 5, 0, 127], [256, 1], [1, 2, 3], [30] * 16, [20] * 17, [2000, 100]):
        parts = [rng.integers(0, 100, (3, 7, n + gap)).astype(dtype)[:, :, :n] for n in widths]
        want = np.concatenate(parts, 2)
        room = np.full((3, 7, want.shape[2] + 2 * gap), 101, dtype)
        out = room[:, :, gap : gap + want.shape[2]]
        F.cat(parts, 2, out=out)
        np.testing.assert_array_equal(out, want, err_msg=str(widths))
        out[:] = 101
        assert (room == 101).all(), widths
        turned = [p.transpose(1, 0, 2) for p in parts]
        np.testing.assert_array_equal(F.cat(turned, 2), want.transpose(1, 0, 2), err_msg=str(widths))
        last = [p.transpose(0, 2, 1) for p in parts]
        np.testing.assert_array_equal(F.cat(last, 1), want.transpose(0, 2, 1), err_msg=str(widths))


def test_cat_that_is_written_past_the_caches() -> None:
    rng = np.random.default_rng(2)
    for rows, widths in ((100_000, (33, 20)), (50_000, (100, 29, 7)), (9000, (700, 311))):
        parts = [rng.normal(size=(rows, n)).astype(np.float32) for n in widths]
        want = np.concatenate(parts, 1)
        memory = np.full(want.size + 32, -1, np.float32)
        out = memory[3 : 3 + want.size].reshape(want.shape)
        F.cat(parts, 1, out=out)
        np.testing.assert_array_equal(out, want)
        out[:] = -1
        assert (memory == -1).all()
