"""Functions of several plans, and those of frameworks that take results over, run what they remember without Python."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
from baracuda import functional as F


def x(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def frames(call: Callable[[], Any]) -> list[str]:
    """Names of the Python functions that a call runs."""
    seen: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            seen.append(frame.f_code.co_qualname)

    before = sys.getprofile()
    gc.disable()  # whose callbacks are Python, too
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
        gc.enable()
    return [name for name in seen if "<lambda>" not in name]


A, B, SQUARE = x(3, 4), x(4, 5, seed=1), x(4, 4, seed=2)
INDEX = np.array([[0, 2, 1]])
DY = {n: x(*n, seed=3) for n in ((3,), (4,), (3, 5), (12,))}
INTO = np.empty((3, 5), np.float32)
WIDE, HALF, MASK, EMPTY = A.astype(np.float64), A.astype(np.float16), A > 0, np.empty(0, np.float32)
SEVERAL: dict[str, Callable[[], Any]] = {
    "one plan": lambda: F.neg(A),
    "one plan of a list": lambda: F.cat([A, A]),
    "einsum": lambda: F.einsum("ij,jk->ik", A, B),
    "einsum of three": lambda: F.einsum("ij,jk,kl->il", A, B, B.T),
    "einsum of a list": lambda: F.einsum("ij,jk->ik", [A, B]),
    "einsum's gradient": lambda: F.einsum_backward(DY[4,], "ii->i", SQUARE),
    "tensordot into": lambda: F.tensordot(A, B, 1, out=INTO),
    "tensordot's gradient": lambda: F.tensordot_backward(DY[3, 5], A, B, 1),
    "kron": lambda: F.kron(A, B),
    "masked_scatter": lambda: F.masked_scatter(A, MASK, DY[12,]),
    "diag_embed": lambda: F.diag_embed(A),
    "chain_matmul": lambda: F.chain_matmul(A, B, B.T),
    "roll of all": lambda: F.roll(A, 2),
    "take_along_dim of all": lambda: F.take_along_dim(A, INDEX),
    "take_along_dim's gradient": lambda: F.take_along_dim_backward(DY[3,], A, INDEX),
    "cat of several elements": lambda: F.cat([A, WIDE]),
    "cat with an empty one": lambda: F.cat([A, EMPTY]),
    "stack of several elements": lambda: F.stack([A, HALF]),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_a_call_that_is_remembered_runs_no_python(name: str) -> None:
    first = SEVERAL[name]()
    assert frames(SEVERAL[name]) == []
    second = SEVERAL[name]()
    for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (first, second)), strict=True):
        np.testing.assert_array_equal(a, b)
        assert (a is not b or a is INTO) and isinstance(b, np.ndarray) and b.flags.c_contiguous


def test_strides_are_told_apart() -> None:
    """Steps depend on strides; a tensor without dimensions has none to tell it by."""
    kept = [A, x(6, 8)[::2, ::2], np.asfortranarray(A), A[::-1, ::-1], np.broadcast_to(A[:1], (3, 4))]
    for _ in range(2):
        for seen in kept:
            np.testing.assert_allclose(F.einsum("ij,jk->ki", seen, B), (seen @ B).T, rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(F.roll(seen, 3), np.roll(seen, 3))
    for _ in range(3):
        assert F.einsum(",->", np.full((), 2, np.float32), np.full((), 3, np.float32)) == 6


def test_results_are_of_the_callers_kind() -> None:
    made = F.einsum("ij,jk", torch.from_numpy(A), torch.from_numpy(B))
    assert isinstance(made, torch.Tensor) and isinstance(F.einsum("ij->j", bc.from_dlpack(A)), bc.Tensor)
    only = F.einsum_backward(x(3), "ij->i", A)
    assert isinstance(only, tuple) and len(only) == 1


def test_jax_arrays_are_remembered() -> None:
    jnp = pytest.importorskip("jax.numpy")
    a, b = jnp.asarray(A), jnp.asarray(B)
    for call, want in (
        (lambda: F.softmax(a, 1), F.softmax(A, 1)),
        (lambda: F.einsum("ij,jk->ik", a, b), F.einsum("ij,jk->ik", A, B)),
        (lambda: F.topk(a, 2)[0], F.topk(A, 2)[0]),
    ):
        made = call()
        assert type(made) is type(a)
        np.testing.assert_array_equal(np.asarray(made), want)
        assert not [name for name in frames(call) if "Miss" in name or "Composer" in name or "plan" in name]
        np.testing.assert_array_equal(np.asarray(call()), want)


def test_what_is_written_to_may_be_what_was_read() -> None:
    """A result that is written last may take the place of an argument."""
    for _ in range(3):
        row = A.copy()
        assert F.tensordot(row, np.eye(4, dtype=np.float32), 1, out=row) is row
        np.testing.assert_array_equal(row, A)
    strided = np.zeros((3, 10), np.float32)[:, ::2]
    assert F.tensordot(A, B, 1, out=strided) is strided
    np.testing.assert_array_equal(strided, F.tensordot(A, B, 1))
    for wrong in (np.empty((3, 4), np.float32), np.empty((3, 5)), strided[::-1][:2]):
        with pytest.raises(bc.InvalidProblemError, match="out: got"):
            F.tensordot(A, B, 1, out=wrong)
    with pytest.raises(bc.InvalidProblemError, match="out"):
        F.tensordot(A, B, 1, out=3)
    written = torch.zeros(3, 5)
    before = written._version
    F.tensordot(torch.from_numpy(A), torch.from_numpy(B), 1, out=written)
    F.tensordot(torch.from_numpy(A), torch.from_numpy(B), 1, out=written)
    assert written._version == before + 2


def test_scratch_of_all_sizes_in_all_threads() -> None:
    """Small scratch is the thread's, which grows and moves; large scratch is a call's own."""
    sizes = [(64, 8), (700, 8), (64, 8), (3000, 3000), (1500, 64), (64, 8)]
    wrong: list[tuple[int, int]] = []

    def work(seed: int) -> None:
        for rows, columns in sizes:
            a = x(rows, columns, seed=seed)
            got = F.einsum("ij,ij->ij", a.astype(np.float64), a)
            both = F.cat([a, a.astype(np.float64)])
            if not np.array_equal(got, a.astype(np.float64) ** 2) or not np.array_equal(both[rows:], a):
                wrong.append((rows, columns))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_options_decide_the_steps() -> None:
    for _ in range(2):
        for shift in (1, True, 2, -1):
            np.testing.assert_array_equal(F.roll(A, shift), np.roll(A, shift))
        for dims in (1, 0, ((1,), (0,)), [[1], [0]]):
            want = np.tensordot(A, B, dims if isinstance(dims, int) else tuple(map(tuple, dims)))
            np.testing.assert_allclose(F.tensordot(A, B, dims), want, rtol=1e-5, atol=1e-6)


def test_what_is_no_tensor_is_named() -> None:
    for call, said in (
        (lambda: F.einsum("ij,jk", A, [1, 2]), r"operands\[1\]: got a list"),
        (lambda: F.einsum("ij", None), r"operands\[0\]: got None"),
        (lambda: F.einsum("ij,jk", [A, 3.0]), r"operands\[1\]: got a float"),
        (lambda: F.tensordot(None, B), "a: got None"),
        (lambda: F.tensordot(A, B, A), "dims: got ndarray, want a number"),
        (lambda: F.chain_matmul(), "matrices: got none"),
    ):
        for _ in range(2):
            with pytest.raises(bc.InvalidProblemError, match=said):
                call()
    with pytest.raises(TypeError, match="unexpected keyword argument 'operands'"):
        F.einsum(equation="ij", operands=A)
    with pytest.raises(TypeError, match="misses its argument 'b'"):
        F.tensordot(A)


def test_errors_in_the_data_name_the_function() -> None:
    for _ in range(2):
        with pytest.raises(bc.IndexOutOfRangeError, match=r"take_along_dim\(\): indices: got index 77"):
            F.take_along_dim(A, np.full((2, 2), 77))


def test_programs_with_strides_and_parts() -> None:
    b = bc.ProgramBuilder()
    seen = b.input("x", (3, 4), strides=(-8, 2))
    y = b.output("y", (3, 4), strides=(1, 3))
    b.add(bc.UnaryDescriptor("neg", (3, 4)), x=seen, y=y)
    program = b.build()
    memory, out = x(3, 8), np.empty((4, 3), np.float32).T
    given = memory[::-1, ::2]
    assert program.run(given, out) is out
    np.testing.assert_array_equal(out, -given)
    again = bc.Program.from_bytes(program.to_bytes())
    np.testing.assert_array_equal(again.run(given, np.empty((4, 3), np.float32).T), -given)
    with pytest.raises(bc.InvalidProblemError, match=r"x: got strides \(4, 1\), want strides \(-8, 2\)"):
        program.run(A, out)
    with pytest.raises(bc.InvalidProblemError, match=r"y: got strides \(4, 1\), want strides \(1, 3\)"):
        program.run(given)
    b = bc.ProgramBuilder()
    z = b.output("z", (2, 3), "c64")
    b.add(bc.FillDescriptor((12,), "f32"), value=1.5, y=z.as_strided((12,), (1,), element="f32"))
    np.testing.assert_array_equal(b.build().run(np.empty((2, 3), np.complex64)), np.full((2, 3), 1.5 + 1.5j))
    b = bc.ProgramBuilder()
    z = b.output("z", (2, 3), "c64")
    with pytest.raises(bc.InvalidProblemError, match="beyond"):
        b.add(bc.FillDescriptor((13,), "f32"), value=1.5, y=z.as_strided((13,), (1,), element="f32"))
        b.build().run(np.empty((2, 3), np.complex64))
    b = bc.ProgramBuilder()
    z = b.output("z", (2, 3), "f64")
    with pytest.raises(bc.InvalidProblemError, match="real parts"):
        b.add(bc.FillDescriptor((12,), "f32"), value=1.5, y=z.as_strided((12,), (1,), element="f32"))
        b.build()
