"""Reference of connectionist temporal classification in extended precision, state by state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.loss.ctc import CtcLossBackwardDescriptor, CtcLossDescriptor
from baracuda.prove.reference import Array, Case, Expected

# (steps, samples, classes), most labels of a sample, or labels of all of them
_SHAPES: tuple[tuple[tuple[int, int, int], int | None, int], ...] = (
    ((1, 1, 1), 0, 0),
    ((6, 3, 4), 2, 0),
    ((6, 3, 4), None, 5),
    ((9, 2, 2), 4, 1),
    ((40, 5, 30), 12, 29),
    ((33, 4, 300), None, 37),
    ((70, 2, 7), 31, 3),
    ((5, 0, 3), 2, 0),
    ((0, 2, 3), 2, 0),
    ((600, 1, 11), 260, 0),
)


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Targets in rows and behind each other, repeated labels, none, labels that are the blank, infinite losses."""
    for i, (shape, most, last) in enumerate(_SHAPES):
        index = Element.I32 if i % 3 == 1 else Element.I64
        samples = shape[1]
        if most is None:
            parts = rng.multinomial(last, np.ones(samples) / samples)
            desc = CtcLossDescriptor(shape, (last,), 0, False, element, index)
        else:
            parts = rng.integers(0, most + 1, samples)
            desc = CtcLossDescriptor(shape, (samples, most), last, i % 2 == 1, element, index)
            if samples:
                parts[0] = most
        lengths = np.full(samples, shape[0])
        lengths[1::2] = rng.integers(shape[0] // 2, shape[0] + 1, samples // 2)
        yield _case(desc, direction, rng, parts, lengths)
    for zero in (False, True):
        desc = CtcLossDescriptor((5, 4, 6), (4, 4), 0, zero, element, Element.I64)
        yield _special(_case(desc, direction, rng, np.array([4, 2, 0, 3]), np.array([3, 5, 5, 0])))


def _case(desc: Any, direction: str, rng: np.random.Generator, counts: Array, lengths: Array) -> Case:
    x = rng.normal(0, 2, desc.log_probs_shape)
    x -= np.log(np.sum(np.exp(x), axis=-1, keepdims=True))
    targets = rng.integers(0, desc.log_probs_shape[2], desc.targets_shape)
    targets[..., 1::3] = targets[..., ::3][..., : targets[..., 1::3].shape[-1]]  # repeated ones
    tensors = {"log_probs": x, "targets": targets, "input_lengths": lengths, "target_lengths": counts}
    if direction == "forward":
        return Case(desc, tensors)
    dloss = rng.normal(1, 0.5, desc.log_probs_shape[1])
    return Case(desc.backward(), {"dloss": dloss, **tensors}, exact_gradient=False)


def _special(case: Case) -> Case:
    """Impossible classes; behind a row's labels anything may stand."""
    case.note = "special values"
    case.tensors["log_probs"][1, 1:3, 1:] = -np.inf
    case.tensors["log_probs"][2, 2] = -np.inf
    case.tensors["targets"][2] = -5
    return case


def _sum(*logs: Array) -> Array:
    return np.asarray(np.logaddexp.reduce(np.stack(logs)))


def _paths(x: Array, ids: Array, blank: int) -> tuple[Array, Array, Array]:
    """Of scores [steps, classes]: states' classes, and logarithms of what leads to each state, and of what follows."""
    states = np.full(2 * len(ids) + 1, blank)
    states[1::2] = ids
    skips = np.zeros(len(states), bool)
    skips[3::2] = ids[1:] != ids[:-1]
    steps, wide = len(x), len(states)
    none = np.full(wide, -np.inf, np.longdouble)
    before, after = np.full((steps + 1, wide), -np.inf, np.longdouble), np.full((steps, wide), -np.inf, np.longdouble)
    before[0, 0] = 0
    if steps:
        after[-1, -2:] = 0

    def moved(row: Array, by: int, where: Array | None = None) -> Array:
        out = none.copy()
        if by > 0:
            out[by:] = row[:-by] if by < wide else out[by:]
        elif by < 0:
            out[:by] = row[-by:]
        return out if where is None else np.where(where, out, none)

    for t in range(steps):
        row = before[t]
        # Before the first step there is only the blank's place, from which a label can be entered.
        before[t + 1] = _sum(row, moved(row, 1), moved(row, 2, skips)) + x[t, states]
    for t in range(steps - 1, 0, -1):
        row = after[t] + x[t, states]
        jump = np.where(skips, row, none)
        after[t - 1] = _sum(row, moved(row, -1), moved(jump, -2) if wide > 2 else none)
    return states, before, after


def reference(case: Case) -> dict[str, Expected]:
    """Losses, or gradients, by the definition."""
    desc: Any = case.descriptor
    back = isinstance(desc, CtcLossBackwardDescriptor)
    t = case.tensors
    x = t["log_probs"].astype(np.longdouble)
    _, samples, classes = desc.log_probs_shape
    loss, size = np.zeros(samples, np.longdouble), np.zeros(samples, np.longdouble)
    made, sizes = np.zeros(x.shape, np.longdouble), np.zeros(x.shape, np.longdouble)
    start, most = 0, 1
    with np.errstate(all="ignore"):
        for n in range(samples):
            count, length = int(t["target_lengths"][n]), int(t["input_lengths"][n])
            ids = t["targets"][start : start + count] if t["targets"].ndim == 1 else t["targets"][n, :count]
            start += count
            scores = x[:length, n]
            states, before, after = _paths(scores, np.asarray(ids), desc.blank)
            loss[n] = -np.logaddexp.reduce(before[-1, -2:])
            used = np.where(np.isfinite(scores), np.abs(scores), 0)[:, np.unique(states)]
            size[n] = np.sum(np.max(used, axis=1, initial=0) + np.log(3)) + 1
            most = max(most, length + len(states))
            infinite = not loss[n] < np.inf
            if back and not infinite:
                shares = np.zeros((length, classes), np.longdouble)
                for k, c in enumerate(states):
                    shares[:, c] += np.exp(before[1:, k] + after[:length, k] + loss[n])
                dloss = np.longdouble(t["dloss"][n])
                made[:length, n] = dloss * (np.exp(scores) - shares)
                sizes[:length, n] = np.abs(dloss) * (np.exp(scores) * 2 + shares * (1 + 3 * size[n]))
            elif back:
                made[:length, n] = 0 if desc.zero_infinity and loss[n] == np.inf else np.nan
            if infinite and desc.zero_infinity and loss[n] == np.inf:
                loss[n] = 0
    if back:
        heavy = np.abs(t["dloss"])[None, :, None] + np.zeros(x.shape)
        return {"dlog_probs": Expected(_f64(made), _f64(sizes), most, lost=1 + heavy)}
    return {"loss": Expected(_f64(loss), _f64(size), most)}


def _f64(x: Array) -> Array:
    return np.asarray(x, np.float64)
