"""A torch tensor's flags are seen by torch's own C++ functions and, where a torch has none of them, through Python."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

import baracuda._torch as native

SCRIPT = """
import sys
import baracuda._torch as native
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
    found = native.native_functions()
    assert found is not None and len(found) == 5 and all(found), torch.__version__


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
