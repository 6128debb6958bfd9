"""Operators and Python numbers of bc.Tensor against torch."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc

A = torch.tensor([[1.5, -2.25, 3.0], [0.5, 4.0, -5.5]])
B = torch.tensor([[2.0, 0.5, -1.0], [3.0, -2.0, 0.25]])
I = torch.tensor([[1, -2, 30], [4, 5, -6]])  # noqa: E741
J = torch.tensor([[2, 3, 1], [1, 4, 2]])
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod]
COMPARISONS = [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
IN_PLACE = {
    operator.add: operator.iadd, operator.sub: operator.isub, operator.mul: operator.imul, operator.truediv: operator.itruediv,
    operator.floordiv: operator.ifloordiv, operator.mod: operator.imod, operator.and_: operator.iand, operator.or_: operator.ior,
    operator.xor: operator.ixor, operator.lshift: operator.ilshift, operator.rshift: operator.irshift, operator.pow: operator.ipow,
}  # fmt: skip


def ours(t: torch.Tensor) -> bc.Tensor:
    return bc.from_dlpack(t.clone())


def same(got: Any, want: torch.Tensor) -> None:
    assert type(got) is bc.Tensor
    back = torch.from_dlpack(got)
    assert back.dtype == want.dtype
    torch.testing.assert_close(back, want, rtol=1e-6, atol=0)


@pytest.mark.parametrize("op", ARITHMETIC + COMPARISONS + BITS, ids=lambda f: f.__name__)
def test_binary(op: Callable[[Any, Any], Any]) -> None:
    pairs = [(I, J)] if op in BITS else [(A, B), (I, J), (A, J)]
    for a, b in pairs:
        same(op(ours(a), ours(b)), op(a, b))
        same(op(ours(a), ours(b[0])), op(a, b[0]))
        number = 2 if op in BITS else 2.5
        same(op(ours(a), 3), op(a, 3))
        same(op(ours(a), number), op(a, number))
        same(op(ours(a), b.numpy()), op(a, b))
        if op in (operator.lshift, operator.rshift):
            continue
        same(op(3, ours(b)), op(3, b))
        same(op(number, ours(b)), op(number, b))
        if number == 2.5:
            same(op(np.float32(2.5), ours(b)), op(2.5, b))


def test_powers_and_products() -> None:
    same(ours(B.abs()) ** ours(A), B.abs() ** A)
    same(ours(A) ** 2, A**2)
    same(2 ** ours(A), 2**A)
    same(ours(A) @ ours(B).T, A @ B.T)
    same(ours(A) @ ours(B[0]), A @ B[0])
    with pytest.raises(TypeError):
        pow(ours(A), 2, 3)


def test_unary() -> None:
    same(-ours(A), -A)
    same(abs(ours(A)), abs(A))
    same(~ours(I), ~I)
    same(~(ours(A) > 1), ~(A > 1))
    t = ours(A)
    assert +t is t


@pytest.mark.parametrize("op", IN_PLACE, ids=lambda f: f.__name__)
def test_in_place(op: Callable[[Any, Any], Any]) -> None:
    a, b = (I, J) if op in BITS else (A.abs(), B.abs())
    for other, theirs in ((ours(b), b), (2, 2), (b.numpy(), b), (ours(b[0]), b[0])):
        t = ours(a)
        view, address = t[1:], t.address
        made = IN_PLACE[op](t, other)
        assert made is t and t.address == address
        same(t, op(a, theirs))
        same(view, op(a, theirs)[1:])


def test_in_place_keeps_shape_and_element() -> None:
    for make, other in ((lambda: ours(I), 2.5), (lambda: ours(A[0]), ours(A)), (lambda: ours(I), ours(A))):
        t = make()
        before = t.tolist()
        with pytest.raises(bc.InvalidProblemError):
            t += other
        assert t.tolist() == before
    frozen = np.ones((2, 3), np.float32)
    frozen.flags.writeable = False
    t = bc.from_dlpack(frozen)
    with pytest.raises(bc.InvalidProblemError, match="read-only"):
        t += 1
    t = ours(A)
    kept = t
    t @= ours(B).T
    assert kept is not t
    same(kept, A)


def test_kinds_of_results_are_those_of_the_functions() -> None:
    assert isinstance(A.numpy() + ours(B), np.ndarray)
    assert isinstance(A + ours(B), torch.Tensor)
    assert isinstance(ours(A) + B, bc.Tensor)


@pytest.mark.parametrize("other", [b"a", None, (1.0,), object, 1j, ()], ids=str)
def test_what_is_no_operand(other: Any) -> None:
    t = ours(A)
    for op in (*ARITHMETIC, *BITS, operator.matmul, operator.pow, *COMPARISONS[:2], operator.iadd, operator.ipow):
        for act in (lambda op=op: op(t, other), lambda op=op: op(other, t)):
            if op is operator.mod and isinstance(other, bytes):
                continue  # its format
            with pytest.raises(TypeError):
                act()
    assert (t == other) is False and (other == t) is False
    assert (t != other) is True
    same(t, A)


def test_operands_may_know_better() -> None:
    class Other:
        def __radd__(self, t: Any) -> str:
            return "radd"

        def __eq__(self, t: object) -> Any:
            return "eq"

    assert ours(A) + Other() == "radd"
    assert (ours(A) == Other()) == "eq"


def test_truth_is_that_of_one_element() -> None:
    for value in (0.0, -0.0, 2.0, float("nan"), 0, 5, True, False):
        for shape in ((), (1,), (1, 1)):
            t = bc.asarray(np.full(shape, value))
            assert bool(t) is bool(value)
    for t in (bc.zeros((0,)), bc.zeros((2,)), bc.zeros((2, 2))):
        with pytest.raises(
            bc.InvalidProblemError, match=r"bool: got a tensor of \d elements.*F\.any\(x\) or F\.all\(x\)"
        ):
            bool(t)
    t = ours(A)
    assert t in [t, 1]
    with pytest.raises(bc.InvalidProblemError, match="ambiguous"):
        assert t in [ours(B)]


@pytest.mark.parametrize("element", [e for e in bc.Element if e.bits >= 8], ids=str)
def test_one_element_as_a_number(element: bc.Element) -> None:
    value = np.array([[1]]).astype(element.numpy)
    t = bc.asarray(value, element)
    assert t.item() == 1 and type(t.item()) is type(value.item())
    assert t.tolist() == [[1]]
    if element in (bc.Element.C64, bc.Element.C128):
        for convert in (int, float, operator.index):
            with pytest.raises(TypeError):
                convert(t)
        assert bool(t)
        return
    assert (int(t), float(t), bool(t)) == (1, 1.0, True)
    assert type(int(t)) is int and type(float(t)) is float
    if element.is_integer or element is bc.Element.BOOL:
        assert operator.index(t) == 1 and [7, 8][t] == 8
    else:
        with pytest.raises(TypeError, match="want integers"):
            operator.index(t)


def test_numbers_at_the_ends() -> None:
    for element in (e for e in bc.Element if e.is_integer):
        for value in element.limits:
            assert int(bc.asarray(np.array(value, element.numpy))) == value
    for convert, name in ((int, "int"), (float, "float"), (operator.index, "index")):
        for n in (0, 2):
            with pytest.raises(bc.InvalidProblemError, match=f"{name}: got a tensor of {n} elements"):
                convert(bc.zeros((n,), "i64"))
    with pytest.raises(ValueError, match="NaN"):
        int(bc.asarray(np.nan))
    with pytest.raises(bc.InvalidProblemError, match="item"):
        bc.zeros((2,)).item()


def test_hashes_are_those_of_objects() -> None:
    a, b = ours(A), ours(A)
    found = {a: 1, b: 2}
    assert (found[a], found[b], len({a, b, a[:]})) == (1, 2, 3)


def test_a_tensor_is_made_by_functions_alone() -> None:
    with pytest.raises(TypeError):
        bc.Tensor()
    with pytest.raises(TypeError):
        type("Mine", (bc.Tensor,), {})
    with pytest.raises(TypeError):
        bc.Tensor.shape = ()  # type: ignore[misc, assignment]
    with pytest.raises(AttributeError):
        ours(A).colour = 1  # type: ignore[attr-defined]
    assert (bc.Tensor.__name__, bc.Tensor.__module__) == ("Tensor", "baracuda")


def test_arguments_are_checked_as_python_does() -> None:
    x = np.ones(3, np.float32)
    for act in (
        lambda: bc.empty(), lambda: bc.empty((1,), "f32", "cpu"), lambda: bc.empty((1,), shape=(1,)),  # type: ignore[call-arg, misc]
        lambda: bc.empty((1,), colour=1), lambda: bc.from_pointer(x.ctypes.data), lambda: bc.from_pointer(*range(8)),  # type: ignore[call-arg, misc]
    ):  # fmt: skip
        with pytest.raises(TypeError):
            act()
    t = bc.from_pointer(element=np.float32, shape=3, ptr=x.ctypes.data, nbytes=12, strides=[1], device=bc.Device("cpu"))
    assert (t.shape, t.strides, t.element, t.nbytes) == ((3,), (1,), bc.Element.F32, 12)
    for element in ("f32", "float32", np.float32, np.dtype("f4"), torch.float32, bc.Element.F32, float):
        want = bc.Element.F64 if element is float else bc.Element.F32
        assert bc.empty((), element).element is want or element is float
        assert bc.empty((), element).element is bc.empty((), element).element
    for nbytes in ("x", -1, 1.5):
        with pytest.raises(bc.InvalidProblemError, match="nbytes"):
            bc.from_pointer(x.ctypes.data, (3,), "f32", nbytes=nbytes)  # type: ignore[arg-type]
    assert bc.empty([2, np.int64(3)]).shape == (2, 3) and bc.empty(4).shape == (4,)
