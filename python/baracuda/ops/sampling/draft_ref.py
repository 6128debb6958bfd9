"""Reference of speculative sampling's verification: the documented mapping, token by token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.random.discrete_ref import below, weights
from baracuda.ops.random.random_ref import words
from baracuda.ops.sampling.draft import VerifyDraftDescriptor, VerifyTreeDescriptor
from baracuda.prove.reference import Array, Case, Expected

_SHAPES: list[tuple[int, int, int]] = [
    (3, 4, 7),
    (1, 1, 1),
    (0, 2, 5),
    (5, 0, 33),
    (2, 3, 1500),
    (64, 5, 12),
    (4, 2, 600),
]


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """No draft tokens, one and several; drafts like the target, unlike it and the same; rows with zeros."""
    del direction
    if op == "verify_tree":
        yield from _trees(element, rng)
        return
    for i, shape in enumerate(_SHAPES):
        rows, n, vocabulary = shape
        target = rng.dirichlet(np.full(vocabulary, 0.5), (rows, n + 1))
        draft = 0.7 * target[:, :n] + 0.3 * rng.dirichlet(np.full(vocabulary, 0.3), (rows, n))
        if i % 3 == 0:
            draft[:, -1:] = target[:, n - 1 : n]
        if i % 3 == 1 and vocabulary > 2:
            target[..., 1::3] = 0.0
        tokens = rng.integers(0, vocabulary, (rows, n))
        given = (Element.I64, Element.I32)[i % 2]
        tensors = {"draft": draft, "draft_tokens": tokens, "target": target}
        scalars: dict[str, float] = {"seed": (5, 2**64 - 1)[i % 2], "offset": (0, 2**64 - 3)[i % 2]}
        yield Case(VerifyDraftDescriptor(shape, element, given), tensors, scalars)


def _trees(element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Chains, stars and trees, with tokens that are likely and some twice."""
    for i, (rows, n, vocabulary) in enumerate(_SHAPES):
        target = rng.dirichlet(np.full(vocabulary, 0.2), (rows, n + 1))
        tokens = rng.integers(0, min(vocabulary, 4), (rows, n))
        target[..., :4] += 0.3
        parents = np.broadcast_to(np.arange(n) * (i % 2), (rows, n)).copy()
        if i % 3 == 2:
            parents = rng.integers(0, np.arange(n) + 1, (rows, n))
        tensors = {"tokens": tokens, "parents": parents, "target": target}
        scalars: dict[str, float] = {"seed": (5, 2**64 - 1)[i % 2], "offset": (0, 2**64 - 3)[i % 2]}
        given = (Element.I64, Element.I32)[i % 2]
        yield Case(VerifyTreeDescriptor((rows, n + 1, vocabulary), element, given), tensors, scalars)


def _drawn(p: Array, seed: int, block: int) -> int:
    """A token drawn by its weight, with the upper half of a block."""
    ends = np.cumsum(np.array(weights(p, False), np.uint64))
    u = below(seed, block % 2**64, 2, int(ends[-1]))[1]
    return int(np.searchsorted(ends, np.uint64(u), side="right"))


def _walked(case: Case) -> dict[str, Expected]:
    target = np.asarray(case.tensors["target"], np.float32)
    tokens, parents = (np.asarray(case.tensors[name], np.int64) for name in ("tokens", "parents"))
    rows, n = tokens.shape
    y, path, accepted = np.full((rows, n + 1), -1), np.full((rows, n), -1), np.zeros(rows, np.int64)
    for r in range(rows):
        place, k = 0, 0
        while True:
            block = int(case.scalars["offset"]) + r * (n + 1) + place
            y[r, k] = _drawn(target[r, place], int(case.scalars["seed"]), block)
            found = ((parents[r] == place) & (tokens[r] == y[r, k])).nonzero()[0]
            if not len(found):
                break
            path[r, k] = found[0]
            place, k = int(found[0]) + 1, k + 1
        accepted[r] = k
    return {"y": Expected(y), "path": Expected(path), "accepted": Expected(accepted)}


def reference(case: Case) -> dict[str, Expected]:
    """Tokens and how many of the draft's are among them."""
    desc: Any = case.descriptor
    if isinstance(desc, VerifyTreeDescriptor):
        return _walked(case)
    rows, n, _ = desc.draft_shape
    draft, target = (np.asarray(case.tensors[name], np.float32) for name in ("draft", "target"))
    tokens: Array = np.asarray(case.tensors["draft_tokens"], np.int64)
    seed, offset = int(case.scalars["seed"]), int(case.scalars["offset"])
    u = (words(seed, offset, rows * (n + 1))[0] >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)
    y, accepted = np.full((rows, n + 1), -1, np.int64), np.zeros(rows, np.int64)
    for r in range(rows):
        i = 0
        while i < n:
            p, q = target[r, i, tokens[r, i]], draft[r, i, tokens[r, i]]
            if not (p >= q or u[r * (n + 1) + i] * q < p):
                break
            y[r, i] = tokens[r, i]
            i += 1
        accepted[r] = i
        left = np.maximum(target[r, i] - draft[r, i], 0) if i < n else target[r, i]
        left = left if left.any() else target[r, i]
        y[r, i] = _drawn(left, seed, offset + r * (n + 1) + i)
    return {"y": Expected(y), "accepted": Expected(accepted)}
