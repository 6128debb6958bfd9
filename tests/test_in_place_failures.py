"""Every function that writes to its arguments, with a failure at each allocation and each launch: an error changed no byte.

Where a function writes to several tensors by several launches, what fails before the first of them changed none; of a launch that
fails behind that, each tensor is as it was or as it shall be.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.call.op import Function
from baracuda.prove.facts import collected
from conftest import SEED
from test_engine import tensors_of
from test_engine_options import WRITING, made, wrapped

SAMPLES = collected("samples")

MOST = 200  # failures of one call
RNG = np.random.default_rng(SEED)


def lists(count: int, *elements: str) -> list[list[bc.Tensor]]:
    """Lists of matrices, vectors and numbers of some elements, of positive values."""
    shapes = [(3, 2), (5,), (), (2, 0, 3)]
    return [
        [bc.asarray(np.abs(RNG.normal(size=s)).astype(np.float32) + 0.1) for s in shapes for _ in elements]
        for _ in range(count)
    ]


def cast(values: list[bc.Tensor], *elements: str) -> list[bc.Tensor]:
    return [F.cast(x, elements[i % len(elements)]) for i, x in enumerate(values)]


def number(value: float, element: str = "f32") -> bc.Tensor:
    return bc.asarray(np.array(value, np.float32), element)


def matrices(count: int, *elements: str) -> list[bc.Tensor]:
    return [
        F.cast(bc.asarray(RNG.normal(size=(4, 3)).astype(np.float32)), elements[i % len(elements)])
        for i in range(count)
    ]


MIXED = ("f32", "bf16")


def mixed(count: int) -> tuple[list[bc.Tensor], ...]:
    """Parameters and gradients of two elements, and so many lists of f32."""
    return cast(lists(1, *MIXED)[0], *MIXED), cast(lists(1, *MIXED)[0], *MIXED), *lists(count, *MIXED)


def zeros(*shapes: tuple[int, ...] | None) -> list[bc.Tensor | None]:
    return [None if s is None else bc.zeros(s) for s in shapes]


def muon(*elements: str) -> tuple[list[bc.Tensor], ...]:
    return matrices(3, *elements), matrices(3, *elements[::-1]), matrices(3, "f32")


def adafactor() -> tuple[list[Any], ...]:
    states = zeros((4, 1), (4, 1), None), zeros((1, 3), (1, 3), None), zeros(None, None, ())
    return [*matrices(2, "f32", "f16"), number(2)], [*matrices(2, "f32", "f16"), number(1)], *states


MORE: dict[str, tuple[str, Callable[[], Any]]] = {
    "muon of a list": ("muon_", lambda: (muon("f32", "f16"), {"ns_steps": 2})),
    "muon by arrays": ("muon_", lambda: (muon("f16"), {"ns_steps": 1, "lr": number(0.1), "weight_decay": number(0.1)})),
    "lamb of a list": ("lamb_", lambda: (mixed(2), {"step": number(2), "lr": number(0.1), "weight_decay": 0.1})),
    "adafactor of a list": ("adafactor_", lambda: (adafactor(), {"step": 2, "weight_decay": number(0.1)})),
    "adamw of two elements": ("adamw_", lambda: (mixed(2), {"step": bc.asarray(np.array(2))})),
    "clip of two elements": ("clip_grad_norm_", lambda: ((mixed(0)[0], 0.1), {})),
    "clip by an array": ("clip_grad_norm_", lambda: ((lists(1, "f32")[0], number(0.1)), {"norm_type": 3.0})),
    "clip values": ("clip_grad_value_", lambda: ((mixed(0)[0], number(0.1)), {})),
    "unscale by an array": ("unscale_grads_", lambda: ((mixed(0)[0], number(0), number(0.5)), {})),
    "unscale of two elements": ("unscale_grads_", lambda: ((mixed(0)[0], number(0), 0.5), {})),
    "running statistics": ("batch_norm", lambda: ((matrices(1, "f32")[0], *zeros((3,), (3,))), {"training": True})),
}


def copied(value: Any) -> Any:
    """With arrays of any framework as bc.Tensors of their own memory."""
    if isinstance(value, (list, tuple)):
        return type(value)(copied(v) for v in value)
    return bc.from_dlpack(value, copy=True) if isinstance(value, (np.ndarray, bc.Tensor)) else value


def contents(tensors: list[bc.Tensor]) -> list[bytes]:
    return [t.numpy().tobytes() for t in tensors]


def cases() -> dict[str, tuple[str, Callable[[], Any]]]:
    """Calls that change an argument, and calls with `out=`."""
    found = {name: (name, lambda call=call: call) for name, call in SAMPLES.items()}
    return {**found, **MORE, **{f"{name} to out": (name, lambda name=name: to_out(name)) for name in WRITING}}


def to_out(name: str) -> Any:
    for args, kwargs in made(name, 1):
        want = wrapped(getattr(F, name)(*args, **kwargs))
        return args, {**kwargs, "out": bc.zeros(want.shape, want.element)}
    return None


def forget() -> None:
    """No call is remembered, and no program has scratch."""
    for name in dir(F):
        if isinstance(fn := getattr(F, name), Function):
            fn._forget()


class Attempt:
    """One call in a thread of its own, whose workspaces are new."""

    def __init__(self, fn: Any, args: Any, kwargs: Any, after: int, kind: str) -> None:
        self.error: BaseException | None = None
        self.happened = False
        thread = threading.Thread(target=self.run, args=(fn, args, kwargs, after, kind))
        thread.start()
        thread.join()

    def run(self, fn: Any, args: Any, kwargs: Any, after: int, kind: str) -> None:
        with bc.testing.fail(after=after, on=kind) as asked:
            try:
                fn(*args, **kwargs)
            except BaseException as error:
                self.error = error
        self.happened = asked.happened


@pytest.mark.parametrize("case", cases())
def test_a_failure_changes_nothing(case: str) -> None:
    name, make = cases()[case]
    fn, call = getattr(F, name), make()
    if call is None:
        pytest.skip("no call of it has one result")
    args, kwargs = copied(call[0]), {k: copied(v) for k, v in call[1].items()}
    given = tensors_of([*args, *kwargs.values()])
    start = contents(given)
    seeds = {"generator": bc.Generator(SEED)} if "generator" in fn.__signature__.parameters else {}
    fn(*args, **kwargs, **seeds)
    after = contents(given)
    if start == after:
        return  # it writes to none
    for kind in ("alloc", "launch"):
        for k in range(MOST):
            forget()
            for t, was in zip(given, start, strict=True):
                t.numpy().reshape(-1).view(np.uint8)[...] = np.frombuffer(was, np.uint8)
            seeds = {"generator": bc.Generator(SEED)} if seeds else {}
            tried = Attempt(fn, args, {**kwargs, **seeds}, k, kind)
            now = contents(given)
            if not tried.happened:
                assert tried.error is None and now == after
                break
            assert isinstance(tried.error, bc.DeviceError), tried.error
            if kind == "alloc" or k == 0:
                assert now == start, f"the failure of {kind} {k} has changed an argument"
            assert all(a in (b, c) for a, b, c in zip(now, start, after, strict=True)), (
                f"{kind} {k}: neither old nor new"
            )
        else:
            raise AssertionError("it never came to its end")
