"""A torch tensor's flags are seen by torch's own C++ functions and, where a torch has none of them, through Python."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

import baracuda as bc
import baracuda.memory._torch as native

SCRIPT = """
import sys
import baracuda.memory._torch as native
found = native.native_functions()
if sys.argv[1] == "python":
    native.native_functions = lambda: None
import torch
import baracuda as bc

plan = bc.plan(bc.CopyDescriptor((2,), element=sys.argv[2]))
kind = {"f32": torch.float32, "c64": torch.complex64}[sys.argv[2]]
plain = lambda: torch.ones(2, dtype=kind)

def code(x, y):
    support = plan.can_implement(x, y)
    try:
        plan.run(x, y)
    except bc.BaracudaError as e:
        assert [r.code for r in support.refusals] == [e.code], (support.refusals, e)
        return e.code
    assert support
    return "ok"

y = plain()
assert y._version == 0
assert code(plain(), y) == "ok" and y._version == 1
bound = plan.bind(plain(), y)
bound(), bound()
assert y._version == 3
assert code(plain().requires_grad_(), plain()) == "requires_grad"
assert code(torch.nn.Parameter(plain()), plain()) == "requires_grad"
assert code(plain(), plain().requires_grad_()) == "requires_grad"
with torch.no_grad():
    assert code(torch.nn.Parameter(plain()), plain()) == "ok"
with torch.inference_mode():
    inference = plain()
    assert code(inference, plain()) == "ok"
assert code(plain(), inference) == "ok"  # has no version to count
assert code(torch._neg_view(plain()), plain()) == "negative"
assert code(torch._neg_view(plain()).detach(), plain()) == "negative"
assert code(plain(), torch._neg_view(plain())) == "negative"
import torch.autograd.forward_ad as forward_ad
with forward_ad.dual_level():
    dual = forward_ad.make_dual(plain(), plain())
    assert code(dual, plain()) == "requires_grad" and code(plain(), dual) == "requires_grad"
    with torch.no_grad():
        assert code(dual, plain()) == "requires_grad"
    assert code(plain(), plain()) == "ok" and code(torch.ones(3, dtype=kind)[1:], plain()) == "ok"
if kind is torch.complex64:
    assert code(plain().conj(), plain()) == "conjugate"
else:
    lone = torch.ones(4, dtype=torch.complex64).conj().imag[:2]
    assert code(lone, plain()) == "negative"
print(found is not None)
"""


@pytest.mark.parametrize("element", ["f32", "c64"])
@pytest.mark.parametrize("how", ["native", "python"])
def test_flags_are_seen_either_way(how: str, element: str) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, how, element], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_this_torch_has_the_functions() -> None:
    """Five functions, three places in its tensors and storages, and those of plain tensors."""
    found = native.native_functions()
    assert found is not None and len(found) == 9 and all(found), torch.__version__


PLAIN = """
import sys
import torch
import baracuda.memory._torch as native
if sys.argv[1] == "asked":
    native._find_plain_places = lambda *_: 1 / 0
found = native.native_functions()
assert (found[-1] is None) == (sys.argv[1] == "asked")
import numpy as np
import baracuda as bc
import baracuda.functional as F
from baracuda import _core

def same(x):
    assert _core.describe(x)[:2] == (tuple(x.shape), bc.Element.coerce(x.dtype)), (x.shape, x.dtype)
    assert torch.equal(F.neg(x), -x), (x.shape, x.stride())

base = torch.arange(2 * 3 * 4 * 5, dtype=torch.float32).reshape(2, 3, 4, 5)
deep = base.reshape(1, 2, 1, 3, 2, 2, 5, 1)
for x in (base, base[1:, :, ::2], base.permute(3, 1, 0, 2), base[0, 0, 0, 3], base[:0], base.mT[..., :3], deep):
    same(x)
for kind in (torch.float64, torch.bfloat16, torch.float16, torch.int8, torch.int16, torch.int32, torch.int64):
    same(base.to(kind)[1:, 1:, ::3])
same(deep.permute(6, 4, 2, 0, 1, 3, 5, 7)), same(deep[:, 1:])
moved = torch.zeros(3)
moved.data = base[0, 1]
same(moved)
same(torch.zeros(2).resize_(7).fill_(3)), same(torch.zeros(7).resize_(2).fill_(3))
moved.set_(base.untyped_storage(), 7, (2, 3), (1, 0))
same(moved)

# Memory that is shared until it is written to is not written to by our way.
one = torch.ones(5)
two = torch._lazy_clone(one)
bc.plan(bc.CopyDescriptor((5,))).run(torch.full((5,), -7.0), two)
assert torch.equal(one, torch.ones(5)) and torch.equal(two, torch.full((5,), -7.0))
three = torch._lazy_clone(one)
assert torch.equal(F.neg(three), -one)

def code(x):
    try:
        F.neg(x)
    except bc.BaracudaError as e:
        return e.code
    return "ok"

kept = torch.zeros(4)
torch._C._set_throw_on_mutable_data_ptr(kept)
freed = torch.zeros(4)
freed.untyped_storage().resize_(0)
assert code(kept) == code(freed) == "null_data", (code(kept), code(freed))
assert code(base.to("meta")) == "meta" and code(base.to_sparse()) == "sparse"
assert code(torch.zeros(3, requires_grad=True)) == code(torch.zeros(3, requires_grad=True)[1:]) == "requires_grad"
with torch.no_grad():
    assert code(torch.nn.Parameter(torch.zeros(3))) == "ok"
assert code(torch._neg_view(base)) == "negative"
"""


@pytest.mark.parametrize("how", ["read", "asked"])
def test_plain_tensors_are_read_as_torch_has_them(how: str) -> None:
    done = subprocess.run([sys.executable, "-c", PLAIN, how], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_places_that_read_otherwise_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_SCALAR_TYPES", native._SCALAR_TYPES | {"float64": 7, "int16": 3, "int32": 2})
    found = native.native_functions()
    assert found is not None and found[-1] is None
    monkeypatch.undo()
    monkeypatch.setattr(native, "_special_tensors", lambda: [torch.zeros(3)])
    found = native.native_functions()
    assert found is not None and found[-1] is None


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_they_are_found_whatever_the_caller_set(mode: type) -> None:
    with mode():
        assert native.native_functions() is not None
    default = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        assert native.native_functions() is not None
    finally:
        torch.set_default_dtype(default)


def test_a_function_that_answers_differently_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_QUESTIONS", (native._QUESTIONS[1], *native._QUESTIONS[1:]))
    assert native.native_functions() is None
    monkeypatch.setattr(native, "_QUESTIONS", ("_ZN2at6native11no_such_fnERKNS_6TensorE", *native._QUESTIONS[1:]))
    assert native.native_functions() is None


def test_other_versions_and_a_switch_turn_them_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "2.99.1+cpu")
    assert native.native_functions() is None
    native.scalar_types.cache_clear()
    assert native.scalar_types() == {}
    native.scalar_types.cache_clear()
    monkeypatch.setenv("BARACUDA_TORCH_NATIVE", "1")
    assert native.native_functions() is not None
    monkeypatch.undo()
    assert native.native_functions() is not None
    monkeypatch.setenv("BARACUDA_TORCH_NATIVE", "0")
    assert native.native_functions() is None
    monkeypatch.setenv("BARACUDA_TORCH_NATIVE", "yes")
    with pytest.raises(bc.InvalidProblemError, match="BARACUDA_TORCH_NATIVE: got 'yes', want 0, 1 or nothing"):
        native.native_functions()


@pytest.mark.parametrize("switch", ["0", "yes"])
def test_calls_with_the_switch(switch: str) -> None:
    code = "import torch, baracuda.functional as F; print(F.exp(torch.zeros(3, requires_grad=False)))"
    env = os.environ | {"BARACUDA_TORCH_NATIVE": switch}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    if switch == "0":
        assert done.stdout == "tensor([1., 1., 1.])\n", done.stderr
    else:
        assert "BARACUDA_TORCH_NATIVE: got 'yes'" in done.stderr


RESULTS = """
import sys
import torch
import baracuda.memory._torch as native
if sys.argv[1] == "python":
    native.scalar_types.cache_clear()
    native._EMPTY = ("no_such_function", native._EMPTY[1])
import baracuda.functional as F
assert bool(native.scalar_types()) == (sys.argv[1] == "native")
x = torch.ones(3, 4)

def plain(y, shape=(3, 4), dtype=torch.float32):
    assert type(y) is torch.Tensor and y.is_leaf and not y.requires_grad and y.grad_fn is None
    assert y.is_inference() or y._version == 0  # as torch's results have it
    assert (y.shape, y.dtype, y.device.type) == (shape, dtype, "cpu") and y.is_contiguous()
    return y

for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int8, torch.uint8, torch.int64, torch.bool):
    plain(F.tile(x.to(dtype), (1, 2)), (3, 8), dtype)
plain(F.cast(x, "f8e4m3"), dtype=torch.float8_e4m3fn)
plain(F.sum(x), ())
plain(F.exp(x[:0]), (0, 4))
y = plain(F.exp(x))
y.resize_(20).add_(1)
for n in (100_000, 3, 0, 5):
    y.resize_(n).fill_(n)
    assert y.sum() == n * n
for n in (10, 100_000):  # from the pool, and from torch
    shared = F.neg(torch.ones(n)).share_memory_()
    assert shared.is_shared() and shared.sum() == -n and torch._lazy_clone(F.neg(torch.ones(n))).add_(1).sum() == 0
kept = y.clone().requires_grad_()
(kept * 2).sum().backward()
torch.set_default_device("meta")
plain(F.exp(x))
torch.set_default_device("cpu")
with torch.inference_mode():
    assert F.exp(x).is_inference() and not y.is_inference()
try:
    F.repeat(x[:1, :1].expand(1, 1), (1 << 30, 1 << 27))
except RuntimeError as e:
    assert "memory" in str(e), e
else:
    raise AssertionError("an exabyte was had")
"""


@pytest.mark.parametrize("how", ["native", "python"])
def test_results_are_plain_tensors_either_way(how: str) -> None:
    done = subprocess.run([sys.executable, "-c", RESULTS, how], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_torch_whose_numbers_of_dtypes_differ_is_asked_through_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_SCALAR_TYPES", {"float32": 6, "float64": 5})
    native.scalar_types.cache_clear()
    try:
        assert native.scalar_types() == {torch.float32: 6}
    finally:
        native.scalar_types.cache_clear()
