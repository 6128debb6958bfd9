"""A small program, and what it computes."""

from __future__ import annotations

from typing import Any

import numpy as np

import baracuda as bc

N = bc.Dim("n", max=64)


def chain(n: Any = N, columns: int = 12) -> bc.ProgramBuilder:
    """y = softmax(-exp(x)), with two values of scratch."""
    b = bc.ProgramBuilder()
    x, y = b.input("x", (n, columns)), b.output("y", (n, columns))
    t = b.add(bc.UnaryDescriptor("exp", (n, columns)), x=x)
    b.add(bc.SoftmaxDescriptor("softmax", (n, columns)), x=b.add(bc.UnaryDescriptor("neg", (n, columns)), x=t), y=y)
    return b


def by_plans(x: Any) -> Any:
    t = bc.plan(bc.UnaryDescriptor("exp", x.shape)).run(x, np.empty_like(x))
    t = bc.plan(bc.UnaryDescriptor("neg", x.shape)).run(t, np.empty_like(x))
    return bc.plan(bc.SoftmaxDescriptor("softmax", x.shape)).run(t, np.empty_like(x))


def rows(k: int, columns: int = 12, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(k, columns)).astype(np.float32)
