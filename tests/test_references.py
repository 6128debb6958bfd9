"""A call that is made again and again leaves nothing behind, whatever kind of arguments it has and however it ends."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
from baracuda import _core
from baracuda import functional as F

CALLS = 600
X, Y = np.ones((3, 4), np.float32), np.empty((3, 4), np.float32)
T, OWN = torch.from_numpy(X), bc.asarray(X)
READ_ONLY = np.broadcast_to(X, X.shape)
DRAW = bc.plan(bc.RandomDescriptor("uniform", (4,), "f32"))
NEG = bc.plan(bc.UnaryDescriptor("neg", (3, 4)))
CAT = bc.plan(bc.CatDescriptor(((3, 4), (3, 4)), 0))
BOUND = NEG.bind(X, Y)
DRAWN = np.empty(4, np.float32)


class Producer:
    """Any framework's tensor."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def _program() -> bc.Program:
    n = bc.Dim("n", max=8)
    b = bc.ProgramBuilder()
    x, y = b.input("x", (n, 4)), b.output("y", (n, 4))
    low = b.scalar("low")
    t = b.add(bc.UnaryDescriptor("exp", (n, 4)), x=x)
    b.add(bc.UnaryDescriptor("neg", (n, 4)), x=t, y=y)
    b.add(bc.RandomDescriptor("uniform", (4,), "f32"), y=b.output("z", (4,)), low=low, high=2.0, seed=0, offset=0)
    return b.build()


PROGRAM = _program()
QUESTION = bc.Question("softmax", element="f32", rank=2)
CASES: dict[str, Callable[[], Any]] = {
    "a plan": lambda: NEG.run(X, Y),
    "a plan by names": lambda: NEG.run(y=Y, x=X),
    "torch": lambda: NEG.run(T, Y),
    "own tensors": lambda: NEG.run(OWN, Y),
    "another producer": lambda: NEG.run(Producer(X), Y),
    "a capsule": lambda: NEG.run(X.__dlpack__(), Y),
    "a list": lambda: CAT.run([X, T], np.empty((6, 4), np.float32)),
    "a list of producers": lambda: CAT.run([Producer(X), X], np.empty((6, 4), np.float32)),
    "numbers of numpy": lambda: DRAW.run(DRAWN, low=np.float32(0.5), high=np.float64(2), seed=np.int64(2**40 + 7), offset=np.uint64(2**63)),
    "0-d tensors": lambda: DRAW.run(DRAWN, low=np.full((), 0.5, np.float32), high=torch.tensor(2.0), seed=7, offset=0),
    "large ints": lambda: DRAW.run(DRAWN, low=0, high=2**70, seed=2**63 + 5, offset=0),
    "a wrong shape": lambda: NEG.run(X[:2], Y),
    "no tensor": lambda: NEG.run("x", Y),
    "an unknown argument": lambda: NEG.run(X, Y, z=3),
    "the same argument twice": lambda: NEG.run(X, Y, x=X),
    "a read-only output": lambda: NEG.run(X, READ_ONLY),
    "a wrong number": lambda: DRAW.run(DRAWN, low="0", high=1.0, seed=0, offset=0),
    "a number beyond its range": lambda: DRAW.run(DRAWN, low=0.0, high=1.0, seed=-1, offset=0),
    "a bound plan": lambda: BOUND(),
    "binding": lambda: NEG.bind(X, Y),
    "rebinding": lambda: BOUND.rebind(x=T).rebind(x=X),
    "a refused rebinding": lambda: BOUND.rebind(x=X[:2]),
    "can_implement": lambda: NEG.can_implement(X[:2], Y),
    "a function": lambda: F.neg(X),
    "a function of torch": lambda: F.neg(T),
    "a function into": lambda: F.neg(X, out=Y),
    "a function's number": lambda: F.add(X, np.float32(2)),
    "a function's list": lambda: F.cat([X, X]),
    "a refused function": lambda: F.neg("x"),
    "a function without an argument": lambda: F.softmax(X),
    "an unknown keyword": lambda: F.neg(X, outt=Y),
    "several plans": lambda: F.einsum("ij,kj->ik", X, X),
    "several plans in torch": lambda: F.einsum("ij,kj->ik", T, T),
    "a refused einsum": lambda: F.einsum("ij,jk", X, X),
    "what the data decide": lambda: F.take_along_dim(X, np.full((2, 2), 77)),
    "a program": lambda: PROGRAM.run(X, low=0.5),
    "a program into": lambda: PROGRAM.run(X, Y, DRAWN, 0.5),
    "a bound program": lambda: PROGRAM.bind(X, Y, DRAWN, 0.5)(),
    "a refused program": lambda: PROGRAM.run(X[:, :2], low=0.5),
    "a refused number of a program": lambda: PROGRAM.run(X, low="a"),
    "views": lambda: OWN.reshape(4, 3)[1:].permute(1, 0).unsqueeze(0).expand(2, 3, 3),
    "refused views": lambda: OWN.reshape(5, 5),
    "operators": lambda: (OWN + 1) * OWN - OWN[0],
    "a tensor for numpy": lambda: np.from_dlpack(OWN),
    "a tensor for torch": lambda: torch.from_dlpack(OWN),
    "bc.from_dlpack": lambda: bc.from_dlpack(X),
    "a capability question": lambda: QUESTION.answer(),
    "a malformed document": lambda: bc.Plan.from_bytes(b'{"schema": 2}'),
    "shapes alone": lambda: F.softmax.infer(X, 1),
    "a gradient": lambda: bc.vjp(F.swiglu, X)[1](X[:, :2]),
}  # fmt: skip


def grown(call: Callable[[], Any]) -> int:
    """Blocks of memory that many calls leave."""

    def run(times: int) -> None:
        for _ in range(times):
            with suppress(bc.BaracudaError, TypeError):
                call()

    run(60)
    gc.collect()
    before = sys.getallocatedblocks()
    run(CALLS)
    gc.collect()
    return sys.getallocatedblocks() - before


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_left_behind(name: str) -> None:
    call = CASES[name]
    assert grown(call) < CALLS // 3 or grown(call) < CALLS // 3  # a cache may fill up once


def test_the_measure_sees_what_is_left() -> None:
    kept: list[Any] = []
    assert grown(lambda: kept.append(float(len(kept)))) >= CALLS // 3


def test_a_nameless_function_refuses() -> None:
    nameless = _core.Function(lambda values: (None, 1), (("x", 0, False, False, None, ()),))
    with pytest.raises(bc.InvalidProblemError, match=r"^x: got an object of type str"):
        nameless("text")
