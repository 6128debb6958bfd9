"""Functions whose results are as large as the data say: counted, made and filled without Python, for any count."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
from baracuda import functional as F
from test_remembered import frames


def runs(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return x[np.concatenate([[True], x[1:] != x[:-1]])]


KINDS: dict[str, Callable[[Any], Any]] = {
    "numpy": np.asarray,
    "torch": lambda a: torch.from_numpy(np.ascontiguousarray(a)),
    "bc.Tensor": bc.asarray,
}
# What is called with an array, and the same of NumPy.
Pair = tuple[Callable[[Any], Any], Callable[[Any], Any]]
CASES: dict[str, Pair] = {
    "nonzero": (lambda x: F.nonzero(x), lambda x: np.argwhere(x)),
    "argwhere": (lambda x: F.argwhere(x), lambda x: np.argwhere(x)),
    "masked_select": (lambda x: F.masked_select(x, F.ne(x, 0)), lambda x: x[x != 0]),
    "bincount": (lambda x: F.bincount(x.reshape(-1)), lambda x: np.bincount(x.reshape(-1))),
    "bincount of some bins": (lambda x: F.bincount(x.reshape(-1), None, 3), lambda x: np.bincount(x.reshape(-1), None, 3)),
    "unique": (lambda x: F.unique(x), lambda x: np.unique(x)),
    "unique_consecutive": (lambda x: F.unique_consecutive(x.reshape(-1)), lambda x: runs(x.reshape(-1))),
    "repeat_interleave": (lambda x: F.repeat_interleave(x.reshape(-1)), lambda x: np.repeat(np.arange(4), x.reshape(-1))),
    "repeat_interleave of all": (lambda x: F.repeat_interleave(x, x.reshape(-1)), lambda x: np.repeat(x, x.reshape(-1))),
}  # fmt: skip
GIVEN = [np.array(a) for a in ([[0, 3], [0, 1]], [[0, 0], [0, 0]], [[5, 1], [1, 9]], [[0, 0], [0, 2]])]


def same(got: Any, want: np.ndarray[Any, Any]) -> None:
    seen = got.numpy() if isinstance(got, bc.Tensor) else np.asarray(got)
    assert seen.shape == want.shape and seen.dtype == want.dtype and seen.flags.c_contiguous
    np.testing.assert_array_equal(seen, want)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_another_count_is_no_new_kind_of_call(name: str, kind: str) -> None:
    (call, want), make = CASES[name], KINDS[kind]
    for a in GIVEN:
        got = call(make(a))
        assert type(got) is type(make(a))
        same(got, want(a))
    given = [make(a) for a in GIVEN]
    for x in given:
        assert frames(lambda x=x: call(x)) == []


def test_results_are_of_other_frameworks_by_dlpack() -> None:
    jnp = pytest.importorskip("jax.numpy")
    for values in ([0.0, 2.0, 3.0], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]):
        x = jnp.asarray(values)
        for got in (F.masked_select(x, x != 0), F.nonzero(x)):
            assert type(got) is type(x)
        np.testing.assert_array_equal(F.masked_select(x, x != 0), x[x != 0])


def test_a_told_size_is_inferred_whatever_is_remembered() -> None:
    x, repeats = np.arange(10.0).reshape(5, 2), np.array([3, 0, 1, 2, 4])
    for _ in range(2):
        want = bc.TensorSpec((10, 2), "f64")
        assert F.repeat_interleave.infer(bc.TensorSpec((5, 2), "f64"), repeats, 0, output_size=10) == want
        same(F.repeat_interleave(x, repeats, 0, output_size=10), np.repeat(x, repeats, 0))
    for size in (9, 11):
        with pytest.raises(bc.InvalidProblemError, match=f"output_size: got {size}, want 10, the sum of repeats"):
            F.repeat_interleave(x, repeats, 0, output_size=size)


def test_several_results_of_one_count() -> None:
    """What is as large as the argument is made before it is counted, and handed out as all else."""
    jnp = pytest.importorskip("jax.numpy")
    for make in (*KINDS.values(), jnp.asarray):
        for a in GIVEN:
            for x in (make(a.astype(np.float32)), make(a.astype(np.float32)).reshape(-1)):
                got = F.unique(x, return_index=True, return_inverse=True, return_counts=True)
                assert [type(y) for y in got] == [type(x)] * 4
                want = np.unique(np.asarray(a.reshape(x.shape), np.float32), True, True, True)
                for y, z in zip(got, want, strict=True):
                    np.testing.assert_array_equal(y.numpy() if isinstance(y, bc.Tensor) else y, z)
    for x in GIVEN:
        F.unique(x, return_inverse=True)
    for x in GIVEN:
        assert frames(lambda x=x: F.unique(x, return_inverse=True)) == []


LAYOUTS: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "as it is": lambda a: a,
    "backwards": lambda a: a[::-1, :, ::-1],
    "permuted": lambda a: a.transpose(2, 0, 1),
    "every other": lambda a: a[:, ::2, 1::3],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
    "empty": lambda a: a[:, :0],
    "rank 0": lambda a: a[0, 0, 1],
    "rank 8": lambda a: a.reshape(1, 5, 1, 7, 1, 3, 3, 1)[..., ::-1, :],
}


@pytest.mark.parametrize("element", ["bool", "u8", "i16", "f16", "f32", "f64", "i64"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str, element: str) -> None:
    dtype = {"u8": "uint8", "i16": "int16", "f16": "float16", "f32": "float32", "f64": "float64", "i64": "int64"}
    whole = np.random.default_rng(1).integers(-2, 3, (5, 7, 9)).clip(0 if element == "u8" else -2, 2)
    x = np.asarray(LAYOUTS[layout](whole.astype(dtype.get(element, element))))
    if x.dtype.kind == "f" and x.size and x.flags.writeable:
        x.flat[0] = np.nan
        x.flat[-1] = -0.0
    same(F.nonzero(x), np.argwhere(x))
    mask = np.asarray(LAYOUTS[layout](np.random.default_rng(2).random((5, 7, 9)) < 0.4))
    same(F.masked_select(x, mask), x[mask])
    if x.ndim > 2:
        same(F.masked_select(x, mask[:1]), x[np.broadcast_to(mask[:1], x.shape)])
        same(F.masked_select(x[..., :1], mask), np.broadcast_to(x[..., :1], mask.shape)[mask])
    if x.dtype.kind in "iu" and x.ndim != 8 and x.size:
        row = np.abs(x.reshape(-1))[::-2]
        same(F.bincount(row), np.bincount(row))


@pytest.mark.parametrize("size", [1, 255, 256, 257, 16384, 16385, 100_003])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_many_elements(size: int, share: float) -> None:
    """More than are found together, and more than a chunk; the same with one thread."""
    rng = np.random.default_rng(size)
    mask, x = rng.random(size) < share, rng.integers(0, 1000, size)
    rows = np.argwhere(mask)
    for threads in (1, 2):
        before = bc.get_num_threads()
        bc.set_num_threads(threads)
        try:
            same(F.nonzero(mask), rows)
            same(F.masked_select(x, mask), x[mask])
            same(F.bincount(x), np.bincount(x))
        finally:
            bc.set_num_threads(before)


def test_plans_write_what_fits() -> None:
    """Capacities of their own, smaller and larger than the count, in strided outputs: what is between stays."""
    x = np.array([[0, 3, 0, 4], [5, 0, 6, 7]], np.float32)
    want = np.argwhere(x)
    for capacity in (0, 1, 3, 5, 8):
        made = bc.plan(bc.NonzeroDescriptor(x.shape, capacity, "f32"))
        room, count = np.full((capacity, 5), -9), np.zeros((), np.int64)
        made.run(x, room[:, 1:4:2], count, workspace=bc.empty(made.workspace_size, "u8"))
        assert count == 5 and (room[:, ::2] == -9).all()
        np.testing.assert_array_equal(room[:5, 1:4:2], want[:capacity])
        assert (room[5:, 1:4:2] == 0).all()


def test_threads_have_counts_of_their_own() -> None:
    rng = np.random.default_rng(3)
    given = [(rng.random(4000) < share, rng.integers(0, most, 4000)) for share, most in ((0.1, 9), (0.9, 700), (0, 1))]
    wrong: list[str] = []

    def work(mask: Any, x: Any) -> None:
        rows, kept, bins = np.argwhere(mask), x[mask], np.bincount(x)
        for _ in range(150):
            for got, want in ((F.nonzero(mask), rows), (F.masked_select(x, mask), kept), (F.bincount(x), bins)):
                if not np.array_equal(got, want):
                    wrong.append(f"{got.shape} {want.shape}")

    threads = [threading.Thread(target=work, args=pair) for pair in given]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_data_that_change_meanwhile_break_nothing() -> None:
    """Another thread writes between the count and what is written then: sizes are those of some moment."""
    n = 1 << 18
    mask, x, over = np.zeros(n, bool), np.arange(n), threading.Event()

    def change() -> None:
        while not over.is_set():
            mask[:] = True
            mask[::3] = False
            mask[:] = False

    t = threading.Thread(target=change)
    t.start()
    try:
        for _ in range(40):
            assert 0 <= len(F.nonzero(mask)) <= n and 0 <= len(F.masked_select(x, mask)) <= n
    finally:
        over.set()
        t.join()
    assert len(F.nonzero(np.zeros(n, bool))) == 0


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_an_allocation_that_fails_leaves_all_usable(name: str, kind: str) -> None:
    call, want = CASES[name]
    x = KINDS[kind](GIVEN[2])
    call(x)
    for after in range(6):
        got = None
        with bc.testing.fail(after=after, on="alloc") as asked, suppress(bc.DeviceMemoryError):
            got = call(x)
        assert asked.happened == (got is None)
        same(call(x), want(GIVEN[2]))
    with bc.testing.fail(after=1, on="launch"), pytest.raises(bc.DeviceError):
        call(x)
        call(x)
    same(call(x), want(GIVEN[2]))


def test_memory_is_counted_and_limited() -> None:
    engine = bc.Engine(memory_limit=16_000)
    x = bc.asarray(np.arange(3000) % 2)
    made = engine.F.nonzero(x)
    assert engine.memory.allocated == made.nbytes == 1500 * 8
    with pytest.raises(bc.MemoryLimitError):
        engine.F.nonzero(x)
    assert engine.memory.allocated == 1500 * 8
    del made
    assert engine.F.nonzero(x).shape == (1500, 1)


def test_a_size_beyond_memory_is_refused() -> None:
    for most in (2**60, 2**63 - 1):
        for _ in range(2):
            with pytest.raises(bc.InvalidProblemError, match=f"bincount: input: got {most}, want numbers below"):
                F.bincount(np.array([0, most]))
    with pytest.raises(bc.DeviceMemoryError, match="no memory for a result of shape"):
        F.bincount(np.array([2**46]))
    with pytest.raises(bc.InvalidProblemError, match="bincount: minlength"):
        F.bincount(np.array([1]), None, 2**60)
    same(F.bincount(np.array([0, 2])), np.array([1, 0, 1]))


@pytest.mark.parametrize("name", ["nonzero", "argwhere", "masked_select", "bincount", "unique", "repeat_interleave"])
def test_traces_refuse_by_name_what_is_remembered(name: str) -> None:
    x = np.array([1, 0, 2])

    def call(v: Any) -> Any:
        return F.masked_select(v, F.gt(v, 0)) if name == "masked_select" else getattr(F, name)(v)

    for _ in range(2):  # a call of this shape was seen, or was not
        with pytest.raises(bc.InvalidProblemError, match=rf"(?s)test_counted.py:\d+: .*\({name} needs them\)"):
            bc.trace(call, x)
        with pytest.raises(bc.InvalidProblemError, match=rf"{name}\.infer\(\): .* depends on values"):
            getattr(F, name).infer(*((x, x > 0) if name == "masked_select" else (x,)))
        assert len(call(x))
